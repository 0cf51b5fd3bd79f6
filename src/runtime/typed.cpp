#include <ein/typed.hpp>

#include <algorithm>
#include <optional>

#include "graph/diagnostic.hpp"

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

  void run(DType dtype) {
    if (x_.dtype() != dtype) {
      raise(ErrorKind::dtype,
            "the type wants " + std::string(name(dtype)) + ", the tensor holds " +
                std::string(name(x_.dtype())),
            {});
    }
    check_rank();
    // Names first: sums and products may be of names that come later.
    const std::size_t known = names_.size();
    try {
      for_each_dim(
          [&](const SpecDim& dim, std::span<const std::int64_t> sizes) { bind(dim, sizes); });
      for_each_dim(
          [&](const SpecDim& dim, std::span<const std::int64_t> sizes) { check_size(dim, sizes); });
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

  void bind(const SpecDim& dim, std::span<const std::int64_t> sizes) {
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
      const std::string before = one ? std::to_string((*bound)[0]) : bound->to_string();
      const std::string here = one ? std::to_string(sizes[0]) : Shape(sizes).to_string();
      raise(ErrorKind::size,
            "axis '" + key + "' has two sizes: " + before + " before in this scope, " + here +
                " in the tensor",
            {{dim.span, here}});
    }
  }

  void check_size(const SpecDim& dim, std::span<const std::int64_t> sizes) const {
    if (dim.kind != SpecDim::size) return;
    if (dim.fixed >= 0) require_size(dim, dim.fixed, sizes[0]);
    const bool is_composed = dim.last > dim.first + 1;
    if (is_composed) require_size(dim, value_of(dim), sizes[0]);
  }

  void require_size(const SpecDim& dim, std::int64_t wanted, std::int64_t size) const {
    if (wanted == size) return;
    raise(ErrorKind::size,
          "axis '" + std::string(spec_.text_of(dim.span)) + "' is " + std::to_string(wanted) +
              " by its type, " + std::to_string(size) + " in the tensor",
          {{dim.span, std::to_string(size)}});
  }

  /// The value of a sum or product of sizes.
  std::int64_t value_of(const SpecDim& dim) const {
    std::vector<std::int64_t> stack;
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
        const std::int64_t right = stack.back();
        stack.pop_back();
        std::int64_t& left = stack.back();
        const bool overflow =
            step.kind == SpecStep::plus    ? __builtin_add_overflow(left, right, &left)
            : step.kind == SpecStep::minus ? __builtin_sub_overflow(left, right, &left)
                                           : __builtin_mul_overflow(left, right, &left);
        if (overflow) raise(ErrorKind::overflow, "a size exceeds 63 bits", {{dim.span, ""}});
      }
    }
    if (stack.back() < 0)
      raise(ErrorKind::size, "a size is " + std::to_string(stack.back()), {{dim.span, ""}});
    return stack.back();
  }

  const Tensor& x_;
  const SpecReading& spec_;
  std::vector<std::pair<std::string, Shape>> own_names_;
  std::vector<std::pair<std::string, Shape>>& names_;
};

}  // namespace

namespace detail {

void require_type(const Tensor& x, DType dtype, const SpecReading& axes) {
  TypeCheck(x, axes).run(dtype);
}

}  // namespace detail
}  // namespace ein
