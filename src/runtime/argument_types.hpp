// The types of a compiled function's arguments: which of their sizes a trace knows by name only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/grammar/shape_spec.hpp>
#include <ein/tensor.hpp>
#include "runtime/plan.hpp"
#include "size/size_scope.hpp"

namespace ein::engine {

/// An argument, and the axes that its type says.
using ArgumentAxes = std::pair<const Tensor*, const grammar::SpecReading*>;
/// Throws an Error (rank, size, inference, divisibility) unless arguments have the axes of their
/// types; binds the types' names in the current scope (typed.hpp).
void require_axes(std::span<const ArgumentAxes> arguments);
/// What the current scope has bound to the name of an axis.
std::optional<Size> size_in_scope(std::string_view name);

/// A size as a type says it, a sum or product of names and numbers; `size_of` gives that of a
/// name's step. None where it exceeds 63 bits.
template <class F>
std::optional<Size> value_of(const grammar::SpecReading& axes, const grammar::SpecDim& dim,
                             const F& size_of) {
  using Step = grammar::SpecStep;
  std::vector<Size> stack;
  for (std::uint32_t s = dim.first; s < dim.last; ++s) {
    const Step& step = axes.steps[s];
    if (step.kind == Step::number || step.kind == Step::name) {
      stack.push_back(step.kind == Step::number ? Size(step.value) : size_of(step));
      continue;
    }
    const Size right = stack.back();
    stack.pop_back();
    Size& left = stack.back();
    if (step.kind == Step::times
            ? multiply_overflows(left, right, left)
            : add_overflows(left, step.kind == Step::plus ? right : -right, left))
      return std::nullopt;
  }
  return stack.back();
}

/// An argument without a text has the sizes and strides of its first call. The text of a type
/// (typed.hpp) leaves each axis open that has no number; a name is one size in all arguments.
class ArgumentTypes {
 public:
  using Text = std::optional<std::string_view>;

  /// An Error of kind `syntax` where a text is no type.
  explicit ArgumentTypes(std::span<const Text> texts);
  bool are_of(std::span<const Text> texts) const;

  /// The sizes that are open, with what these arguments have: names first, then others. An Error
  /// (rank, size, inference) where an argument has another type.
  SizeValues open_sizes(std::span<const Tensor> arguments) const;
  /// To the key of a trace, what is not open.
  void add_to(PlanKey& key, std::span<const Tensor> arguments) const;
  /// Of a traced argument.
  Shape shape(std::size_t k, const Tensor& argument) const;
  Strides strides(std::size_t k, const Tensor& argument) const;
  /// What the types call sizes, numbers as well.
  std::vector<std::pair<std::string, Size>> names() const;

 private:
  struct Argument {
    std::optional<std::string> text;
    grammar::SpecReading spec;  // of `text`
  };
  std::vector<Argument> arguments_;
};

}  // namespace ein::engine
