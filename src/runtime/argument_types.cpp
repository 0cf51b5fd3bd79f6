#include "runtime/argument_types.hpp"

#include <algorithm>

#include <ein/compile.hpp>
#include <ein/typed.hpp>
#include "compile/operand.hpp"
#include "graph/diagnostic.hpp"

namespace ein {

using grammar::SpecDim;
using grammar::SpecReading;
using grammar::SpecStep;

void detail::wrong_number_of_types(std::size_t types, std::size_t arguments) {
  throw Error(ErrorKind::value, "compile: the function has types for " + std::to_string(types) +
                                    " arguments, the call has " + std::to_string(arguments));
}

namespace engine {
namespace {

bool is_open(const SpecDim& dim) {
  return dim.kind == SpecDim::open || dim.kind == SpecDim::variadic;
}

/// A size as its type says it, in names.
Size formula_of(const SpecReading& spec, const SpecDim& dim) {
  if (dim.fixed >= 0) return dim.fixed;
  const auto named = [&](const SpecStep& step) { return Size::named(spec.text_of(step.span)); };
  if (const auto size = value_of(spec, dim, named)) return *size;
  fail(ErrorKind::overflow, "compile", "a size exceeds 63 bits", spec.text, {{dim.span, ""}});
}

/// Whether its strides stay numbers: of a formula it is not known whether it is negative.
bool has_strides_of_numbers(const Tensor& argument) {
  return goes_back(argument.strides()) && !argument.is_contiguous();
}

/// Of what has no name in a type.
Size unnamed_size(const char* what, std::size_t dim, std::size_t argument) {
  return Size::named(what + std::to_string(dim) + " of argument " + std::to_string(argument + 1));
}

}  // namespace

ArgumentTypes::ArgumentTypes(std::span<const Text> texts) {
  arguments_.reserve(texts.size());  // specs point into the texts beside them
  for (const Text& text : texts) {
    Argument& argument = arguments_.emplace_back();
    if (!text) continue;
    argument.text.emplace(*text);
    argument.spec = grammar::read_shape_spec(*argument.text);
    if (argument.spec.mistake) {
      fail(ErrorKind::syntax, "compile", "the type of an argument is malformed here",
           *argument.text, {{argument.spec.mistake.span, ""}},
           {"help: a type is such as \"batch=8 seq hidden\""});
    }
  }
}

bool ArgumentTypes::are_of(std::span<const Text> texts) const {
  return std::equal(
      texts.begin(), texts.end(), arguments_.begin(), arguments_.end(),
      [](const Text& text, const Argument& argument) { return text == argument.text; });
}

namespace {

/// Calls f(name) for each name of a sum or product in a type.
template <class F>
void for_each_name_within(const SpecReading& spec, F&& f) {
  for (const SpecDim& dim : spec.dims) {
    if (dim.kind != SpecDim::size || spec.is_name(dim)) continue;
    for (std::uint32_t s = dim.first; s < dim.last; ++s) {
      if (spec.steps[s].kind == SpecStep::name) f(spec.text_of(spec.steps[s].span));
    }
  }
}

/// Calls f(dimension, dim) for each dimension of an argument that its type describes one by one.
template <class F>
void for_each_described(const SpecReading& spec, std::size_t rank, F&& f) {
  std::size_t position = 0;
  for (const SpecDim& dim : spec.dims) {
    if (!is_open(dim)) f(position, dim);
    position += is_open(dim) ? rank + 1 - spec.dims.size() : 1;
  }
}

}  // namespace

SizeValues ArgumentTypes::open_sizes(std::span<const Tensor> arguments) const {
  const Scope names_of_call;
  std::vector<ArgumentAxes> axes;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments_[k].text) axes.emplace_back(&arguments[k], &arguments_[k].spec);
  }
  require_axes(axes);
  SizeValues values;
  const auto add = [&](Size size, std::int64_t value) {
    const auto is_same = [&](const auto& known) { return known.first.word() == size.word(); };
    if (!size.is_number() && std::none_of(values.begin(), values.end(), is_same))
      values.emplace_back(size, value);
  };
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (!arguments_[k].text) continue;
    const SpecReading& spec = arguments_[k].spec;
    for_each_described(spec, arguments[k].rank(), [&](std::size_t d, const SpecDim& dim) {
      if (spec.is_name(dim) || dim.kind == SpecDim::unnamed)
        add(shape(k, arguments[k])[d], arguments[k].shape()[d]);
    });
    // Those that only a sum or product has are what the arguments solve it to.
    for_each_name_within(spec, [&](std::string_view name) {
      if (const auto size = size_in_scope(name)) add(Size::named(name), *size);
    });
    if (arguments[k].is_contiguous() || has_strides_of_numbers(arguments[k])) continue;
    for (std::size_t d = 0; d < arguments[k].rank(); ++d)
      add(unnamed_size("stride ", d, k), arguments[k].strides()[d]);
  }
  return values;
}

void ArgumentTypes::add_to(PlanKey& key, std::span<const Tensor> arguments) const {
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (!arguments_[k].text) {
      key.add(arguments[k]);
      continue;
    }
    key.add_kind(arguments[k]);
    key.add(arguments[k].is_contiguous());
    for (Size size : shape(k, arguments[k])) key.add(size.word());
    if (has_strides_of_numbers(arguments[k])) key.add(arguments[k].strides());
  }
}

Shape ArgumentTypes::shape(std::size_t k, const Tensor& argument) const {
  Shape shape = argument.shape();
  if (!arguments_[k].text) return shape;
  const SpecReading& spec = arguments_[k].spec;
  for_each_described(spec, argument.rank(), [&](std::size_t d, const SpecDim& dim) {
    shape[d] = dim.kind == SpecDim::unnamed ? unnamed_size("size ", d, k) : formula_of(spec, dim);
  });
  return shape;
}

Strides ArgumentTypes::strides(std::size_t k, const Tensor& argument) const {
  if (!arguments_[k].text || has_strides_of_numbers(argument)) return argument.strides();
  if (argument.is_contiguous()) return contiguous_strides(shape(k, argument));
  Strides strides = argument.strides();
  for (std::size_t d = 0; d < strides.rank(); ++d) strides[d] = unnamed_size("stride ", d, k);
  return strides;
}

std::vector<std::pair<std::string, Size>> ArgumentTypes::names() const {
  std::vector<std::pair<std::string, Size>> names;
  for (const Argument& argument : arguments_) {
    for (const SpecDim& dim : argument.spec.dims) {
      if (argument.spec.is_name(dim))
        names.emplace_back(argument.spec.text_of(argument.spec.steps[dim.first].span),
                           formula_of(argument.spec, dim));
    }
    for_each_name_within(argument.spec, [&](std::string_view name) {
      if (std::none_of(names.begin(), names.end(),
                       [&](const auto& known) { return known.first == name; }))
        names.emplace_back(name, Size::named(name));
    });
  }
  return names;
}

}  // namespace engine
}  // namespace ein
