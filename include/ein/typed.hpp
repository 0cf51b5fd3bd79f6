// Typed tensors: axis names and sizes in the type, as in ein::Float<"batch seq hidden=64">.
//
// The notation is jaxtyping's: a number, a name, `name=4`, `_`, `...`, `*batch` (any number of axes
// that have this name together), and sums and products of sizes such as `heads*d` or `n+1`. A name
// may say where the axis lies: `batch@data` is split over the mesh axis `data` (docs/mesh.md).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/pattern.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// While a scope lives, a name in a type stands for one size in all conversions on its thread; a
/// nested scope starts anew. Outside of any scope, each conversion is a scope of its own.
class Scope {
 public:
  Scope();
  /// `const ein::Scope names(q, k, v);`: the names in the types of these tensors are one size each,
  /// or it is an Error that names the axis.
  template <class First, class... Rest>
  requires requires { First::axes(); }
  explicit Scope(const First& first, const Rest&... rest) : Scope() {
    bind(first, First::axes());
    (bind(rest, Rest::axes()), ...);
  }
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  void bind(const Tensor& x, std::string_view axes);

  friend struct ScopeAccess;
  Scope* outer_;
  std::vector<std::pair<std::string, Shape>>
      sizes_;  // one size per name, any number for a variadic one
};

namespace detail {

/// Throws an Error (kind dtype, rank, size or inference) unless x has the dtype and the axes of a
/// type; binds the type's names in the current scope.
void require_type(const Tensor& x, DType dtype, const grammar::SpecReading& axes);

/// A type's axes, read once for all that ask about them.
template <FixedString Axes>
class StaticSpec {
  static constexpr std::size_t most = Axes.view().size() + 1;  // of dimensions, and of steps
  struct Packed {
    grammar::SpecDim dims[most] = {};
    grammar::SpecStep steps[most] = {};
    std::size_t dim_count = 0, step_count = 0;
    grammar::Mistake mistake{};
  };
  static constexpr Packed packed = [] {
    const grammar::SpecReading spec = grammar::read_shape_spec(Axes.view());
    Packed made;
    made.mistake = spec.mistake;
    for (const grammar::SpecDim& dim : spec.dims) made.dims[made.dim_count++] = dim;
    for (const grammar::SpecStep& step : spec.steps) made.steps[made.step_count++] = step;
    return made;
  }();

 public:
  static constexpr grammar::SpecReading reading() {
    return {.text = Axes.view(),
            .dims = grammar::List<grammar::SpecDim>::borrowed(packed.dims, packed.dim_count),
            .steps = grammar::List<grammar::SpecStep>::borrowed(packed.steps, packed.step_count),
            .mistake = packed.mistake};
  }
};

template <FixedString Axes>
consteval bool require_axes() {
  const grammar::Mistake mistake = StaticSpec<Axes>::reading().mistake;
  const pattern_error::Place place = pattern_error::place_of(mistake, Axes.view());
  if (mistake) pattern_error::function_of(mistake)(place);
  return true;
}

/// Whether a tensor of one type can have the rank, and then the sizes, of another.
constexpr bool ranks_agree(const grammar::SpecReading& a, const grammar::SpecReading& b) {
  return a.is_open() || b.is_open() || a.dims.size() == b.dims.size();
}
constexpr bool sizes_agree(const grammar::SpecReading& a, const grammar::SpecReading& b) {
  if (a.is_open() || b.is_open() || a.dims.size() != b.dims.size()) return true;
  for (std::size_t d = 0; d < a.dims.size(); ++d) {
    if (a.dims[d].fixed >= 0 && b.dims[d].fixed >= 0 && a.dims[d].fixed != b.dims[d].fixed)
      return false;
  }
  return true;
}

/// Whether f(x, y) holds for the axes at each place that both types describe, from either end up to
/// where one of them is open.
template <class F>
constexpr bool holds_for_pairs(const grammar::SpecReading& a, const grammar::SpecReading& b,
                               const F& f) {
  const std::size_t most = grammar::lesser(a.dims.size(), b.dims.size());
  for (const bool from_left : {true, false}) {
    for (std::size_t d = 0; d < most; ++d) {
      const grammar::SpecDim& x = a.dims[from_left ? d : a.dims.size() - 1 - d];
      const grammar::SpecDim& y = b.dims[from_left ? d : b.dims.size() - 1 - d];
      if (x.is_open() || y.is_open()) break;
      if (!f(x, y)) return false;
    }
  }
  return true;
}

/// Whether axes that both types describe lie alike.
constexpr bool places_agree(const grammar::SpecReading& a, const grammar::SpecReading& b) {
  if (!ranks_agree(a, b)) return true;
  return holds_for_pairs(a, b, [&](const grammar::SpecDim& x, const grammar::SpecDim& y) {
    return !x.says_place() || !y.says_place() || a.text_of(x.placed) == b.text_of(y.placed);
  });
}

/// Whether no name of one type stands at another place of the other.
constexpr bool names_agree(const grammar::SpecReading& a, const grammar::SpecReading& b) {
  if (!ranks_agree(a, b)) return true;
  return holds_for_pairs(a, b, [&](const grammar::SpecDim& x, const grammar::SpecDim& y) {
    const std::string_view name = a.name_of(x);
    if (name.empty() || name == b.name_of(y)) return true;
    // It stands at another place of the other type, whose axis there is not called so, too, here.
    return holds_for_pairs(a, b, [&](const grammar::SpecDim& z, const grammar::SpecDim& w) {
      return name != b.name_of(w) || name == a.name_of(z);
    });
  });
}

/// Whether types that call one axis alike call all alike: a type may name all axes anew, but not
/// some of them.
constexpr bool all_or_no_names_agree(const grammar::SpecReading& a, const grammar::SpecReading& b) {
  if (!ranks_agree(a, b)) return true;
  bool any_agrees = false, any_differs = false;
  return holds_for_pairs(a, b, [&](const grammar::SpecDim& x, const grammar::SpecDim& y) {
    const std::string_view name = a.name_of(x), other = b.name_of(y);
    if (!name.empty() && !other.empty()) (name == other ? any_agrees : any_differs) = true;
    return !(any_agrees && any_differs);
  });
}

/// The axes of a result, found while compiling.
struct ResultAxes {
  static constexpr std::size_t capacity = 512;
  bool is_known = false;
  std::size_t size = 0;
  char text[capacity] = {};

  constexpr ResultAxes() = default;
  constexpr explicit ResultAxes(const grammar::InferredType& type)
      : ResultAxes(type.axes.view(), !type.mistake && type.is_known) {}
  constexpr explicit ResultAxes(std::string_view found, bool may_be_known = true) {
    if (!may_be_known || found.size() >= capacity) return;
    is_known = true;
    size = found.size();
    for (std::size_t i = 0; i < size; ++i) text[i] = found[i];
  }
};

template <const ResultAxes& Axes>
consteval auto fixed_string() {
  FixedString<Axes.size + 1> text;
  for (std::size_t i = 0; i < Axes.size; ++i) text.text[i] = Axes.text[i];
  return text;
}

/// The axis that a type calls so.
template <FixedString Axes, FixedString Name>
struct NamedAxis {
  static constexpr std::size_t place = grammar::find_axis(StaticSpec<Axes>::reading(), Name.view());
  static constexpr bool is_there = place != SIZE_MAX;
  static constexpr std::size_t from_the_end =
      is_there ? grammar::place_from_the_end(StaticSpec<Axes>::reading(), place) : 0;
  static constexpr std::int64_t fixed =
      is_there ? StaticSpec<Axes>::reading().dims[place].fixed : -1;

  static std::size_t dimension(const Tensor& x) {
    return from_the_end > 0 ? x.rank() - from_the_end : place;
  }
  static auto size(const Tensor& x) {
    if constexpr (fixed >= 0)
      return StaticSize<fixed>();
    else
      return x.shape()[dimension(x)];
  }
  static Tensor at(const Tensor& x, const Index& index) {
    std::vector<Index> indices(dimension(x), every);
    indices.push_back(index);
    return x.at(indices);
  }
};
/// The type of a slice along an axis; or, `drops`, of one position of it.
template <FixedString Axes, FixedString Name, bool drops>
struct SlicedAxes {
  static constexpr ResultAxes axes{
      grammar::sliced(StaticSpec<Axes>::reading(), NamedAxis<Axes, Name>::place, drops).view()};
};

/// A type that calls an axis otherwise.
template <FixedString Axes, FixedString From, FixedString To>
struct RenamedAxes {
  static constexpr ResultAxes make() {
    const grammar::SpecReading spec = StaticSpec<Axes>::reading();
    const std::size_t place = NamedAxis<Axes, From>::place;
    if (place == SIZE_MAX) return {};
    const SourceSpan name = spec.steps[spec.dims[place].first].span;
    grammar::Text text = Axes.view().substr(0, name.begin);
    text.add(To.view());
    text.add(Axes.view().substr(name.end));
    return ResultAxes(text.view());
  }
  static constexpr ResultAxes axes = make();
};

/// Some dtypes, of which a type takes any.
enum class DTypeKind : bool { floating, integer };
constexpr bool is_of(DTypeKind kind, DType dtype) {
  if (kind == DTypeKind::floating) return is_floating(dtype) && !is_complex(dtype);
  return is_integral(dtype) && dtype != DType::boolean;
}
void require_type(const Tensor& x, DTypeKind kind, const grammar::SpecReading& axes);

/// The size of the axis that a type calls so; an Error of kind `axis_argument` where none is.
Size size_of_axis(const Tensor& x, std::string_view axes, std::string_view name);

struct Trusted {};

}  // namespace detail

/// A Tensor of element type T whose axes the type names. Converting a Tensor to it checks dtype,
/// rank and sizes and throws an Error that names the axis; it is a Tensor wherever one is wanted.
template <class T, FixedString Axes>
class Typed : public Tensor {
  static_assert(detail::require_axes<Axes>());

 public:
  using Element = T;
  static constexpr DType static_dtype = dtype_of<T>;
  static constexpr std::string_view axes() { return Axes.view(); }

  Typed(const Tensor& x) : Tensor(x) {
    static const grammar::SpecReading spec = detail::StaticSpec<Axes>::reading();
    detail::require_type(x, static_dtype, spec);
  }
  template <class U, FixedString Others>
  Typed(const Typed<U, Others>& x) : Typed(static_cast<const Tensor&>(x)) {
    constexpr auto from = detail::StaticSpec<Others>::reading,
                   to = detail::StaticSpec<Axes>::reading;
    static_assert(std::is_same_v<U, T>, "the two types differ in dtype: cast with .to(dtype)");
    static_assert(detail::ranks_agree(from(), to()),
                  "the two types differ in their number of axes");
    static_assert(detail::sizes_agree(from(), to()), "the two types differ in the size of an axis");
    static_assert(detail::names_agree(from(), to()),
                  "a name stands at another place in the two types: rearrange the tensor");
    static_assert(detail::all_or_no_names_agree(from(), to()),
                  "the two types call some axes alike and another differently: rename it");
    static_assert(detail::places_agree(from(), to()), "the two types place an axis differently");
  }
  Typed(const Typed&) = default;
  Typed& operator=(const Typed&) & = default;

  /// For a result whose axes are known from the types of what it was computed from. A scope of
  /// Autocast may have given it another dtype.
  Typed(detail::Trusted, Tensor x)
      : Tensor(x.dtype() == dtype_of<T> ? std::move(x) : x.to(dtype_of<T>)) {}

  // What gives the same axes, as in Tensor.
  using Tensor::requires_grad, Tensor::to;
  /// `x.to<ein::bf16>()`
  template <class U>
  Typed<U, Axes> to() const {
    return {detail::Trusted(), Tensor::to(dtype_of<U>)};
  }
  Typed detach() const { return {detail::Trusted(), Tensor::detach()}; }
  Typed clone() const { return {detail::Trusted(), Tensor::clone()}; }
  Typed contiguous() const { return {detail::Trusted(), Tensor::contiguous()}; }
  Typed grad() const { return {detail::Trusted(), Tensor::grad()}; }
  const Typed& requires_grad(bool wanted) const {
    Tensor::requires_grad(wanted);
    return *this;
  }

  /// `x.size<"seq">()`: the size of an axis; a constant where the type says it.
  template <FixedString Name>
  auto size() const {
    using Named = detail::NamedAxis<Axes, Name>;
    static_assert(Named::is_there, "no axis of the type, or more than one, has this name");
    if constexpr (Named::is_there) return Named::size(*this);
  }
  /// `k.rename<"seq", "keys">()`: the same tensor, whose type calls an axis otherwise: so that two
  /// axes of one size are not taken for one.
  template <FixedString From, FixedString To>
  auto rename() const {
    static_assert(detail::NamedAxis<Axes, From>::is_there,
                  "no axis of the type, or more than one, has this name");
    static_assert(!detail::NamedAxis<Axes, To>::is_there, "another axis has this name already");
    constexpr auto axes = detail::fixed_string<detail::RenamedAxes<Axes, From, To>::axes>();
    return Typed<T, axes>(detail::Trusted(), *this);
  }
  /// `x.at<"seq">(ein::slice(0, 11))`, `x.at<"seq">(3)`: a view of some positions along an axis, or
  /// of one, which has no such axis.
  template <FixedString Name>
  auto at(const Slice& range) const {
    return along<Name, false>(range);
  }
  template <FixedString Name>
  auto at(const TensorSlice& range) const {
    return along<Name, false>(range);
  }
  template <FixedString Name>
  auto at(Size position) const {
    return along<Name, true>(position);
  }
  using Tensor::at;

 private:
  template <FixedString Name, bool drops>
  auto along(const Index& index) const {
    using Named = detail::NamedAxis<Axes, Name>;
    static_assert(Named::is_there, "no axis of the type, or more than one, has this name");
    if constexpr (Named::is_there) {
      constexpr auto axes = detail::fixed_string<detail::SlicedAxes<Axes, Name, drops>::axes>();
      return Typed<T, axes>(detail::Trusted(), Named::at(*this, index));
    }
  }
};

/// A tensor of any dtype of a kind, whose axes the type names: what a function takes that does the
/// same for each of these dtypes. What is computed from it is a plain Tensor; `.to<ein::f32>()` is
/// a Typed.
template <detail::DTypeKind Kind, FixedString Axes>
class TypedOfKind : public Tensor {
  static_assert(detail::require_axes<Axes>());

 public:
  static constexpr std::string_view axes() { return Axes.view(); }

  TypedOfKind(const Tensor& x) : Tensor(x) {
    static const grammar::SpecReading spec = detail::StaticSpec<Axes>::reading();
    detail::require_type(x, Kind, spec);
  }
  template <class U, FixedString Others>
  TypedOfKind(const Typed<U, Others>& x) : Tensor(Typed<U, Axes>(x)) {
    static_assert(detail::is_of(Kind, dtype_of<U>), "the dtype is of another kind");
  }

  using Tensor::to;
  template <class U>
  Typed<U, Axes> to() const {
    return {detail::Trusted(), Tensor::to(dtype_of<U>)};
  }
  template <FixedString Name>
  auto size() const {
    using Named = detail::NamedAxis<Axes, Name>;
    static_assert(Named::is_there, "no axis of the type, or more than one, has this name");
    if constexpr (Named::is_there) return Named::size(*this);
  }
};
template <FixedString Axes>
using Floating = TypedOfKind<detail::DTypeKind::floating, Axes>;
template <FixedString Axes>
using Integer = TypedOfKind<detail::DTypeKind::integer, Axes>;  // bool is none

/// `size_of(x, "seq")`: the size of an axis by a name that is known at run time only. An Error of
/// kind `axis_argument` unless the type has the name, once.
template <std::derived_from<Tensor> X>
requires requires { X::axes(); }
Size size_of(const X& x, std::string_view name) { return detail::size_of_axis(x, X::axes(), name); }

// Double, Float, Half, BFloat16, Long, Int, Byte, Bool, ...: one for each row of the table.
#pragma push_macro("Bool")  // X11 has one
#undef Bool
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  template <FixedString Axes>                                       \
  using typed = Typed<type, Axes>;
#include <ein/detail/dtypes.hpp>
#pragma pop_macro("Bool")

namespace detail {

template <class T, FixedString Axes>
struct OperandType<Typed<T, Axes>> {
  static constexpr bool is_typed = true;
  static constexpr DType dtype = dtype_of<T>;
  static constexpr std::string_view axes() { return Axes.view(); }
  static constexpr auto spec = StaticSpec<Axes>::reading;
};
template <DTypeKind Kind, FixedString Axes>
struct OperandType<TypedOfKind<Kind, Axes>> {
  static constexpr bool is_typed = false;
  static constexpr std::string_view axes() { return Axes.view(); }
  static constexpr auto spec = StaticSpec<Axes>::reading;
};

}  // namespace detail
}  // namespace ein
