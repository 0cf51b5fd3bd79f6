#include "cpu/level/gemm_few.hpp"

namespace ein::host::EIN_LEVEL {

template void few_rows_product(const Caches&, const MatrixRef<float>&, const MatrixRef<const bf16>&,
                               const MatrixRef<const bf16>&, bool, const Finish&);
template void few_rows_product(const Caches&, const MatrixRef<bf16>&, const MatrixRef<const bf16>&,
                               const MatrixRef<const bf16>&, bool, const Finish&);

}  // namespace ein::host::EIN_LEVEL
