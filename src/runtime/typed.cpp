#include <ein/typed.hpp>

#include <algorithm>
#include <optional>

#include <ein/compile.hpp>
#include "graph/diagnostic.hpp"
#include "runtime/argument_types.hpp"

namespace ein {

using grammar::SpecDim;
using grammar::SpecReading;
using grammar::SpecStep;

namespace {
thread_local scope* innermost = nullptr;
}  // namespace

scope::scope() : outer_(std::exchange(innermost, this)) {}
scope::~scope() { innermost = outer_; }

struct ScopeAccess {
  static std::vector<std::pair<std::string, Shape>>& sizes(scope& s) { return s.sizes_; }
};

namespace {

/// One conversion of a tensor to a type.
class TypeCheck {
 public:
  TypeCheck(const Tensor& x, const SpecReading& spec)
      : x_(x), spec_(spec), names_(innermost ? ScopeAccess::sizes(*innermost) : own_names_) {}

  void require_dtype(DType dtype) const {
    if (x_.dtype() == dtype) return;
    raise(ErrorKind::dtype,
          "the type wants " + std::string(name(dtype)) + ", the tensor holds " +
              std::string(name(x_.dtype())),
          {});
  }
  void run() {
    check_rank();
    // Names first: sums and products may be of names that come later.
    const std::size_t known = names_.size();
    try {
      for_each_dim([&](const SpecDim& dim, std::span<const Size> sizes) { bind(dim, sizes); });
      for_each_dim(
          [&](const SpecDim& dim, std::span<const Size> sizes) { check_size(dim, sizes); });
    } catch (...) {
      names_.resize(known);  // a refused tensor binds nothing
      throw;
    }
  }

 private:
  [[noreturn]] void raise(ErrorKind kind, const std::string& what,
                          const std::vector<Mark>& marks) const {
    fail(kind, "type", what, spec_.text, marks, {"tensor: " + x_.shape().to_string()});
  }

  void check_rank() const {
    const std::size_t wanted = spec_.dims.size() - (spec_.is_open() ? 1 : 0);
    if (spec_.is_open() ? x_.rank() >= wanted : x_.rank() == wanted) return;
    raise(ErrorKind::rank,
          "the type has " + std::string(spec_.is_open() ? "at least " : "") +
              std::to_string(wanted) + (wanted == 1 ? " axis" : " axes") + ", the tensor has " +
              std::to_string(x_.rank()),
          {});
  }

  template <class F>
  void for_each_dim(F&& f) const {
    const std::size_t under_open = x_.rank() + 1 - spec_.dims.size();
    std::size_t position = 0;
    for (const SpecDim& dim : spec_.dims) {
      const bool open = dim.kind == SpecDim::open || dim.kind == SpecDim::variadic;
      const std::size_t count = open ? under_open : 1;
      f(dim, std::span(x_.shape().begin() + position, count));
      position += count;
    }
  }

  const Shape* find(std::string_view name) const {
    const auto found = std::find_if(names_.begin(), names_.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == names_.end() ? nullptr : &found->second;
  }

  void bind(const SpecDim& dim, std::span<const Size> sizes) {
    std::string key;
    if (dim.kind == SpecDim::variadic) {
      key = "*" + std::string(spec_.text_of(dim.span));
    } else if (dim.kind == SpecDim::size && spec_.is_name(dim)) {
      key = spec_.text_of(spec_.steps[dim.first].span);
    } else {
      return;
    }
    const Shape* bound = find(key);
    if (!bound) {
      names_.emplace_back(key, Shape(sizes));
    } else if (!(*bound == Shape(sizes))) {
      const bool one = dim.kind == SpecDim::size;
      const std::string before = one ? to_string((*bound)[0]) : bound->to_string();
      const std::string here = one ? to_string(sizes[0]) : Shape(sizes).to_string();
      raise(ErrorKind::size,
            "axis '" + key + "' has two sizes: " + before + " before in this scope, " + here +
                " in the tensor",
            {{dim.span, here}});
    }
  }

  void check_size(const SpecDim& dim, std::span<const Size> sizes) const {
    if (dim.kind != SpecDim::size) return;
    if (dim.fixed >= 0) require_size(dim, dim.fixed, sizes[0]);
    const bool is_composed = dim.last > dim.first + 1;
    if (is_composed) require_size(dim, value_of(dim), sizes[0]);
  }

  void require_size(const SpecDim& dim, Size wanted, Size size) const {
    if (wanted == size) return;
    raise(ErrorKind::size,
          "axis '" + std::string(spec_.text_of(dim.span)) + "' is " + to_string(wanted) +
              " by its type, " + to_string(size) + " in the tensor",
          {{dim.span, to_string(size)}});
  }

  /// The value of a sum or product of sizes.
  Size value_of(const SpecDim& dim) const {
    std::vector<Size> stack;
    for (std::uint32_t s = dim.first; s < dim.last; ++s) {
      const SpecStep& step = spec_.steps[s];
      if (step.kind == SpecStep::number) {
        stack.push_back(step.value);
      } else if (step.kind == SpecStep::name) {
        const Shape* bound = find(spec_.text_of(step.span));
        if (!bound) {
          raise(ErrorKind::inference,
                "the size of '" + std::string(spec_.text_of(step.span)) + "' is not known here",
                {{step.span, ""}});
        }
        stack.push_back((*bound)[0]);
      } else {
        const Size right = stack.back();
        stack.pop_back();
        Size& left = stack.back();
        const bool overflow = step.kind == SpecStep::plus ? add_overflows(left, right, left)
                              : step.kind == SpecStep::minus
                                  ? add_overflows(left, -right, left)
                                  : multiply_overflows(left, right, left);
        if (overflow) raise(ErrorKind::overflow, "a size exceeds 63 bits", {{dim.span, ""}});
      }
    }
    if (stack.back() < 0)
      raise(ErrorKind::size, "a size is " + to_string(stack.back()), {{dim.span, ""}});
    return stack.back();
  }

  const Tensor& x_;
  const SpecReading& spec_;
  std::vector<std::pair<std::string, Shape>> own_names_;
  std::vector<std::pair<std::string, Shape>>& names_;
};

}  // namespace

namespace detail {

void wrong_number_of_types(std::size_t types, std::size_t arguments) {
  throw Error(ErrorKind::value, "compile: the function has types for " + std::to_string(types) +
                                    " arguments, the call has " + std::to_string(arguments));
}

void require_type(const Tensor& x, DType dtype, const SpecReading& axes) {
  TypeCheck check(x, axes);
  check.require_dtype(dtype);
  check.run();
}

}  // namespace detail

namespace engine {
namespace {

bool is_open(const SpecDim& dim) {
  return dim.kind == SpecDim::open || dim.kind == SpecDim::variadic;
}

/// A size as its type says it, in names.
Size formula_of(const SpecReading& spec, const SpecDim& dim) {
  if (dim.fixed >= 0) return dim.fixed;
  std::vector<Size> stack;
  for (std::uint32_t s = dim.first; s < dim.last; ++s) {
    const SpecStep& step = spec.steps[s];
    if (step.kind == SpecStep::number) {
      stack.push_back(step.value);
    } else if (step.kind == SpecStep::name) {
      stack.push_back(Size::named(spec.text_of(step.span)));
    } else {
      const Size right = stack.back();
      stack.pop_back();
      Size& left = stack.back();
      left = step.kind == SpecStep::plus    ? left + right
             : step.kind == SpecStep::minus ? left - right
                                            : left * right;
    }
  }
  return stack.back();
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
  const scope names_of_call;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments_[k].text) TypeCheck(arguments[k], arguments_[k].spec).run();
  }
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
    if (arguments[k].is_contiguous()) continue;
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
  if (!arguments_[k].text) return argument.strides();
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
  }
  return names;
}

}  // namespace engine
}  // namespace ein
