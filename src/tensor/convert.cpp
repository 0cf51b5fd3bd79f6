#include "tensor/convert.hpp"

#include "cpu/level.hpp"

namespace ein {

#define EIN_CONVERSIONS(C)                                                                   \
  void load_as(const void* src, DType from, std::ptrdiff_t stride, C* dst, std::size_t n) {  \
    host::level().strips<C>().load_as(src, from, stride, dst, n);                            \
  }                                                                                          \
  void store_from(const C* src, std::size_t n, void* dst, DType to, std::ptrdiff_t stride) { \
    host::level().strips<C>().store_from(src, n, dst, to, stride);                           \
  }
EIN_STRIP_TYPES(EIN_CONVERSIONS)
#undef EIN_CONVERSIONS

}  // namespace ein
