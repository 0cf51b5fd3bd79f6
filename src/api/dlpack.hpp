// Elements as DLPack has them.
#pragma once

#include <ein/dtype.hpp>
#include "tensor/dlpack_abi.hpp"

namespace ein {

DLDataType dlpack_type(DType dtype);

}  // namespace ein
