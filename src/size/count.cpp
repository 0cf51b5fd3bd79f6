#include <ein/count.hpp>

#include <algorithm>

#include <ein/error.hpp>

namespace ein {
namespace {
[[noreturn]] void raise() {
  throw Error(ErrorKind::overflow, "a count exceeds 2^128 - 1, or is negative");
}
}  // namespace

Count& Count::operator+=(Count other) {
  if (__builtin_add_overflow(value_, other.value_, &value_)) raise();
  return *this;
}
Count& Count::operator-=(Count other) {
  if (__builtin_sub_overflow(value_, other.value_, &value_)) raise();
  return *this;
}
Count& Count::operator*=(Count other) {
  if (__builtin_mul_overflow(value_, other.value_, &value_)) raise();
  return *this;
}

std::string Count::to_string() const {
  std::string digits;
  Wide rest = value_;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace ein
