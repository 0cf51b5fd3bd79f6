// New tensors.
#pragma once

#include <cstdint>
#include <vector>

#include <ein/tensor.hpp>

namespace ein {

// Every creation is an Error of kind `shape` or `overflow` for an impossible shape, `memory` when
// there is no more.

/// Elements are not set.
Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
Tensor full(const Shape& shape, Scalar value, DType dtype = DType::f32, Device device = cpu);
inline Tensor empty(const Shape& shape, Device device) { return empty(shape, DType::f32, device); }
inline Tensor zeros(const Shape& shape, Device device) { return zeros(shape, DType::f32, device); }
inline Tensor ones(const Shape& shape, Device device) { return ones(shape, DType::f32, device); }
inline Tensor full(const Shape& shape, Scalar value, Device device) {
  return full(shape, value, DType::f32, device);
}

/// start, start + step, ... below `end` (above it for a negative step). i64 for whole arguments,
/// else f32.
Tensor arange(Scalar start, Scalar end, Scalar step = 1, Device device = cpu);
Tensor arange(Scalar end, Device device = cpu);
/// The n × n identity matrix.
Tensor eye(Size n, DType dtype = DType::f32, Device device = cpu);

/// The values in row-major order; an Error of kind `shape` when there are not numel(shape) of them.
template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device = cpu);
template <class T>
Tensor from_vector(const std::vector<T>& values, Device device = cpu) {
  return from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device);
}

// Random numbers are a function of the seed, the number of random tensors made since it was set,
// and an element's position, so they are the same on every machine and device and for any number of
// threads.

/// Starts the sequence of random tensors anew. Without it, the seed is 0.
void manual_seed(std::uint64_t seed);
/// The place in that sequence, to go back to: the seed and how many random tensors were made from
/// it.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t streams = 0;
};
RandomState random_state();
void set_random_state(RandomState state);
/// Standard normal.
Tensor randn(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
inline Tensor randn(const Shape& shape, Device device) { return randn(shape, DType::f32, device); }
/// Uniform in [0, 1).
Tensor rand(const Shape& shape, DType dtype = DType::f32, Device device = cpu);
inline Tensor rand(const Shape& shape, Device device) { return rand(shape, DType::f32, device); }
/// Normal with mean 0 and standard deviation `std`, conditioned on lying between a and b, which are
/// values, not multiples of std. An Error of kind `value` unless a < b and std > 0.
Tensor trunc_normal(const Shape& shape, double std = 1, double a = -2, double b = 2,
                    DType dtype = DType::f32, Device device = cpu);

}  // namespace ein
