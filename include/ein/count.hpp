// Count: a number of operations or bytes, exact far beyond 64 bits.
#pragma once

#include <ein/compiler.hpp>

#include <compare>
#include <cstdint>
#include <string>

namespace ein {

/// A natural number below 2^128. Arithmetic that would leave that range throws an Error of kind
/// `overflow`.
class Count {
 public:
  constexpr Count() = default;
  constexpr Count(std::uint64_t value) : value_(value) {}
  constexpr Count(int value) : value_(static_cast<Wide>(static_cast<std::uint64_t>(value))) {}
  constexpr Count(std::int64_t value)
      : value_(static_cast<Wide>(static_cast<std::uint64_t>(value))) {}

  Count& operator+=(Count other);
  Count& operator-=(Count other);
  Count& operator*=(Count other);
  friend Count operator+(Count a, Count b) { return a += b; }
  friend Count operator-(Count a, Count b) { return a -= b; }
  friend Count operator*(Count a, Count b) { return a *= b; }
  friend constexpr bool operator==(Count, Count) = default;
  friend constexpr std::strong_ordering operator<=>(Count, Count) = default;

  /// The nearest double.
  double approximate() const { return static_cast<double>(value_); }
  /// All digits.
  std::string to_string() const;

 private:
  __extension__ typedef unsigned __int128 Wide;
  Wide value_ = 0;
};

inline std::string to_string(Count count) { return count.to_string(); }

}  // namespace ein
