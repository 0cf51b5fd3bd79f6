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
EIN_CONVERSIONS(float)
EIN_CONVERSIONS(double)
EIN_CONVERSIONS(std::int64_t)
EIN_CONVERSIONS(std::uint64_t)
#undef EIN_CONVERSIONS

}  // namespace ein
