// rearrange and reduce as layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/nn/module.hpp>
#include <ein/ops.hpp>

namespace ein::nn {

/// One operation with its pattern and axis sizes, kept for later. No parameters.
class PatternLayer : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
  const std::string& pattern() const { return pattern_; }

 protected:
  using Sizes = std::vector<RuntimeAxisSize>;
  PatternLayer(Operation op, std::pair<std::string, Sizes> pattern, Reduction reduction)
      : op_(op),
        reduction_(reduction),
        pattern_(std::move(pattern.first)),
        sizes_(std::move(pattern.second)) {}
  template <AxisArgument... S>
  PatternLayer(Operation op, std::string_view pattern, Reduction reduction, const S&... sizes)
      : op_(op), reduction_(reduction), pattern_(pattern) {
    (..., keep(sizes));
  }

 private:
  void keep(AxisSize size) {
    sizes_.push_back({std::string(size.name), size.size, size.is_number});
  }

  Operation op_;
  Reduction reduction_;
  std::string pattern_;
  Sizes sizes_;
};

/// `nn::Rearrange("b (h w) c -> b c h w", "h"_a = 8)`, or where arguments are passed on,
/// `model.add<nn::Rearrange>("b (h w) c -> b c h w"_p, "h"_a = 8)`. The errors are
/// ein::rearrange's.
class Rearrange : public PatternLayer {
 public:
  template <AxisArgument... S>
  explicit Rearrange(const std::type_identity_t<
                         PatternFor<Operation::rearrange, detail::Types<Tensor>, S...>>& pattern,
                     const S&... sizes)
      : PatternLayer(Operation::rearrange, pattern.text(), Reduction::sum, sizes...) {}
  template <FixedString Pattern, AxisArgument... S>
  explicit Rearrange(PatternLiteral<Pattern>, const S&... sizes)
      : Rearrange(PatternFor<Operation::rearrange, detail::Types<Tensor>, S...>(
                      PatternLiteral<Pattern>()),
                  sizes...) {}
};

/// `nn::Reduce("b c (h 2) (w 2) -> b c h w", "max")`, or `model.add<nn::Reduce>("..."_p,
/// ein::Reduction::max)`. The errors are ein::reduce's.
class Reduce : public PatternLayer {
 public:
  template <AxisArgument... S>
  Reduce(const std::type_identity_t<PatternFor<Operation::reduce, detail::Types<Tensor>, S...>>&
             pattern,
         const ReductionFor<Tensor>& reduction, const S&... sizes)
      : PatternLayer(Operation::reduce, pattern.text(), reduction.reduction(), sizes...) {}
  template <FixedString Pattern, AxisArgument... S>
  Reduce(PatternLiteral<Pattern>, const ReductionFor<Tensor>& reduction, const S&... sizes)
      : Reduce(
            PatternFor<Operation::reduce, detail::Types<Tensor>, S...>(PatternLiteral<Pattern>()),
            reduction, sizes...) {}
};

}  // namespace ein::nn
