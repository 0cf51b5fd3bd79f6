// Mixed precision: contractions in 16 bits, what adds up many numbers in f32.
//
//     {
//       const ein::Autocast scope(ein::DType::bf16);
//       loss = cross_entropy(model(tokens), targets, "b s [v], b s");
//     }
//     loss.backward();  // parameters and their gradients are f32
#pragma once

#include <optional>

#include <ein/dtype.hpp>

namespace ein {

/// While it lives, this thread's calls convert their operands: einsum and matmul of two or more
/// take those in f32, f16 and bf16 as `dtype`, which their result has (they accumulate in f32);
/// softmax, norms, losses, cumsum, cumprod and reductions that add or multiply take those in f16
/// and bf16 as f32. Other operations are as always. The conversions are remembered for gradients. A
/// scope of f32 makes calls as outside of any. An Error of kind `dtype` for others than bf16, f16,
/// f32.
class Autocast {
 public:
  explicit Autocast(DType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  std::optional<DType> before_;
};

/// The dtype of contractions in this thread's innermost scope; none outside, or in one of f32.
std::optional<DType> autocast_dtype();

}  // namespace ein
