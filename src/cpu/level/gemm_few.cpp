#include "cpu/level/gemm_few.hpp"

namespace ein::host::EIN_LEVEL {

template void few_rows_product(const Caches&, const MatrixRef<float>&,
                               const MatrixRef<const float>&, const MatrixRef<const float>&, bool,
                               const Finish&);
template void few_rows_product(const Caches&, const MatrixRef<double>&,
                               const MatrixRef<const double>&, const MatrixRef<const double>&, bool,
                               const Finish&);

}  // namespace ein::host::EIN_LEVEL
