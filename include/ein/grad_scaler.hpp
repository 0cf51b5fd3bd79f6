// GradScaler: keeps small gradients of f16 from becoming 0.
//
//     scaler.scale(loss).backward();
//     scaler.unscale(optimizer.parameters());
//     clip_grad_norm(optimizer.parameters(), 1.0);  // if wanted
//     scaler.step(optimizer);
//     scaler.update();
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <ein/state_dict.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// The constants of torch.amp.GradScaler.
struct GradScalerOptions {
  double scale = 65536;
  double growth = 2;  ///< times the scale, after `interval` steps in a row that were made
  std::int64_t interval = 2000;
  double backoff = 0.5;  ///< times the scale, after a step that was skipped
  Device device = cpu;   ///< of the loss and the parameters
};

/// Multiplies the loss, and divides the gradients (Micikevicius et al. 2018, "Mixed precision
/// training"). Where one is infinite or not a number, the optimizer's step changes nothing. All of
/// it is tensor operations, so a function that ein::compile traces may do it.
class GradScaler {
 public:
  /// An Error of kind `value` unless the scale, rounded to f32, is a positive normal number, growth
  /// > 1, interval >= 1 and 0 < backoff < 1.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// loss · scale.
  Tensor scale(const Tensor& loss) const;
  /// Divides the gradients of those parameters that have one by the scale, and finds out whether
  /// all are finite. An Error of kind `value` when it was done since the last update().
  void unscale(std::span<const Tensor> parameters);
  /// Whether unscale() met a gradient that is not finite: a bool without axes. An Error of kind
  /// `value` before unscale().
  const Tensor& found_infinite() const;
  /// `optimizer.step(&found_infinite())`.
  template <class Optimizer>
  void step(Optimizer& optimizer) const {
    optimizer.step(&found_infinite());
  }
  /// The scale for the next step; it stays finite, and no less than the least normal number of f32.
  /// An Error of kind `value` before unscale().
  void update();

  /// Its present value.
  double current_scale() const;
  /// "scale" (f32) and "clean_steps" (i64), the tensors that update() writes to.
  StateDict state_dict() const;
  /// Copies them. An Error of kind `value` for other names and for values that cannot be, of kind
  /// `shape` for tensors with axes.
  void load_state_dict(const StateDict& state);

 private:
  GradScalerOptions options_;
  Tensor scale_, clean_steps_;
  std::optional<Tensor> found_infinite_;
};

}  // namespace ein
