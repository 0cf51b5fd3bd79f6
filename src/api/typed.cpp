#include <ein/typed.hpp>

#include <algorithm>
#include <optional>

#include "graph/diagnostic.hpp"
#include "runtime/argument_types.hpp"
#include "runtime/mesh.hpp"
#include "runtime/trace.hpp"

namespace ein {

using grammar::SpecDim;
using grammar::SpecReading;
using grammar::SpecStep;

namespace {
thread_local Scope* innermost = nullptr;
}  // namespace

Scope::Scope() : outer_(std::exchange(innermost, this)) {}
Scope::~Scope() { innermost = outer_; }

struct ScopeAccess {
  static std::vector<std::pair<std::string, Shape>>& sizes(Scope& s) { return s.sizes_; }
};

namespace {

using NamedSizes = std::vector<std::pair<std::string, Shape>>;

const Shape* find_in(const NamedSizes& names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == names.end() ? nullptr : &found->second;
}

/// One conversion of a tensor to a type.
class TypeCheck {
 public:
  TypeCheck(const Tensor& x, const SpecReading& spec)
      : x_(x), spec_(spec), names_(innermost ? ScopeAccess::sizes(*innermost) : own_names_) {}

  void require_dtype(bool fits, std::string_view wanted) const {
    if (fits) return;
    raise(ErrorKind::dtype,
          "the type wants " + std::string(wanted) + ", the tensor holds " +
              std::string(name(x_.dtype())),
          {});
  }
  void run() {
    const std::size_t known = names_.size();
    try {
      run({this, 1});
    } catch (...) {
      names_.resize(known);  // a refused tensor binds nothing
      throw;
    }
  }
  /// Conversions in one scope. Names first: sums and products may be of names that come later.
  static void run(std::span<TypeCheck> checks) {
    for (TypeCheck& check : checks) {
      check.check_rank();
      if (!check.x_.impl().is_traced()) check.check_places();
      check.for_each_dim(
          [&](const SpecDim& dim, std::span<const Size> sizes) { check.bind(dim, sizes); });
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (TypeCheck& check : checks) progress |= check.solve_sizes();
    }
    for (const TypeCheck& check : checks) {
      check.for_each_dim(
          [&](const SpecDim& dim, std::span<const Size> sizes) { check.check_size(dim, sizes); });
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

  /// Of a value of a trace nobody knows yet where it lies.
  void check_places() const {
    const Placement placement = engine::placement_of(x_);
    const std::size_t under_open = x_.rank() + 1 - spec_.dims.size();
    std::size_t d = 0;
    for (const SpecDim& dim : spec_.dims) {
      if (dim.says_place()) {
        std::string lies;
        for (const int m : placement.split(d))
          lies += "@" + x_.impl().placed->mesh->axes[static_cast<std::size_t>(m)].name;
        const std::string_view wanted = spec_.text_of(dim.placed);
        if (lies != wanted)
          raise(ErrorKind::placement,
                "the type has an axis that is " +
                    (wanted.empty() ? "whole" : "split " + std::string(wanted)) +
                    ", the tensor's is " + (lies.empty() ? "whole" : "split " + lies),
                {{dim.span, lies.empty() ? "whole" : lies}});
      }
      d += dim.is_open() ? under_open : 1;
    }
  }

  /// Binds names that alone are unknown in a sum or product. Whether there were any.
  bool solve_sizes() {
    bool any = false;
    for_each_dim([&](const SpecDim& dim, std::span<const Size> sizes) {
      if (dim.kind != SpecDim::size || spec_.is_name(dim)) return;
      const SpecStep* const unknown = one_unknown(dim);
      if (!unknown) return;
      names_.emplace_back(spec_.text_of(unknown->span), Shape{solved(dim, *unknown, sizes[0])});
      any = true;
    });
    return any;
  }

  /// The name of a sum or product that alone is unknown, and stands in it once; else null.
  const SpecStep* one_unknown(const SpecDim& dim) const {
    const SpecStep* unknown = nullptr;
    for (std::uint32_t s = dim.first; s < dim.last; ++s) {
      const SpecStep& step = spec_.steps[s];
      if (step.kind != SpecStep::name || find(spec_.text_of(step.span))) continue;
      if (unknown) return nullptr;
      unknown = &step;
    }
    return unknown;
  }

  /// The size of `unknown` with which the sum or product is `size`: it stands there once, so that
  /// both are a straight line.
  Size solved(const SpecDim& dim, const SpecStep& unknown, Size size) const {
    const Size at_0 = value_at(dim, &unknown, 0), slope = value_at(dim, &unknown, 1) - at_0;
    if (slope == 0 || (size - at_0) % slope != 0 || (size - at_0) / slope < 0) {
      const std::string name = "'" + std::string(spec_.text_of(unknown.span)) + "'";
      raise(slope == 0 ? ErrorKind::inference : ErrorKind::divisibility,
            "no size of " + name + " makes axis '" + std::string(spec_.text_of(dim.span)) + "' " +
                to_string(size) + ": it is " + to_string(at_0) + " with " + name + " = 0, and " +
                to_string(at_0 + slope) + " with " + name + " = 1",
            {{dim.span, to_string(size)}});
    }
    return (size - at_0) / slope;
  }

  const Shape* find(std::string_view name) const { return find_in(names_, name); }

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
    const Size value = value_at(dim, nullptr, 0);
    if (value < 0)
      raise(ErrorKind::size, "a size is " + to_string(value) + ", which is negative",
            {{dim.span, ""}});
    return value;
  }
  /// The same where `unknown`, if it is not null, has this size.
  Size value_at(const SpecDim& dim, const SpecStep* unknown, Size size) const {
    const auto value = engine::value_of(spec_, dim, [&](const SpecStep& step) -> Size {
      if (&step == unknown) return size;
      const std::string_view name = spec_.text_of(step.span);
      if (const Shape* bound = find(name)) return (*bound)[0];
      // The types of a compiled function's arguments say of each other what a scope would.
      const engine::Trace* const trace = engine::Trace::active();
      if (const auto named = trace ? trace->size_named(name) : std::nullopt) return *named;
      raise(ErrorKind::inference, "the size of '" + std::string(name) + "' is not known here",
            {{step.span, ""}});
    });
    if (!value) raise(ErrorKind::overflow, "a size exceeds 63 bits", {{dim.span, ""}});
    return *value;
  }

  const Tensor& x_;
  const SpecReading& spec_;
  NamedSizes own_names_;
  NamedSizes& names_;
};

}  // namespace

namespace detail {

void require_type(const Tensor& x, DType dtype, const SpecReading& axes) {
  TypeCheck check(x, axes);
  check.require_dtype(x.dtype() == dtype, name(dtype));
  check.run();
}
void require_type(const Tensor& x, DTypeKind kind, const SpecReading& axes) {
  TypeCheck check(x, axes);
  check.require_dtype(is_of(kind, x.dtype()),
                      kind == DTypeKind::floating ? "a floating-point dtype" : "an integer dtype");
  check.run();
}

Size size_of_axis(const Tensor& x, std::string_view axes, std::string_view name) {
  const SpecReading spec = grammar::read_shape_spec(axes);
  const std::size_t place = grammar::find_axis(spec, name);
  if (place == SIZE_MAX) {
    std::string names;
    for (const SpecDim& dim : spec.dims) {
      if (!spec.is_name(dim)) continue;
      names += names.empty() ? "'" : ", '";
      names += std::string(spec.text_of(spec.steps[dim.first].span)) + "'";
    }
    throw Error(ErrorKind::axis_argument,
                "size_of: no axis of the type \"" + std::string(axes) +
                    "\", or more than one, is '" + std::string(name) + "'; " +
                    (names.empty() ? "it names none" : "it names " + names));
  }
  const std::size_t behind = grammar::place_from_the_end(spec, place);
  return x.shape()[behind > 0 ? x.rank() - behind : place];
}

}  // namespace detail

void Scope::bind(const Tensor& x, std::string_view axes) {
  const SpecReading spec = grammar::read_shape_spec(axes);
  TypeCheck(x, spec).run();
}

std::optional<Size> engine::size_in_scope(std::string_view name) {
  const Shape* const bound = innermost ? find_in(ScopeAccess::sizes(*innermost), name) : nullptr;
  return bound ? std::optional((*bound)[0]) : std::nullopt;
}

void engine::require_axes(std::span<const ArgumentAxes> arguments) {
  std::vector<TypeCheck> checks;
  checks.reserve(arguments.size());  // a check without a scope refers to names of its own
  for (const auto& [x, axes] : arguments) checks.emplace_back(*x, *axes);
  TypeCheck::run(checks);
}

}  // namespace ein
