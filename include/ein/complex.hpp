// Complex numbers: tensors of std::complex<float> (c64) and std::complex<double> (c128).
//
// What moves elements takes them, and so do einsum, sums, means and products, arithmetic and the
// functions of one number that complex analysis has. They are not ordered: a maximum, a sort or a
// comparison but == and != is an Error of kind `dtype`. Gradients are as PyTorch's: of a real
// result L, ∂L/∂a + i·∂L/∂b of an element a + i·b, which points where L grows fastest.
#pragma once

#include <complex>
#include <optional>
#include <utility>

#include <ein/elementwise.hpp>
#include <ein/typed.hpp>
#include <ein/typed_ops.hpp>

namespace ein {

namespace detail {
#define EIN_COMPLEX(dtype, element, text, npy, safetensors, cuda, typed) \
  template <>                                                            \
  struct FindElement<DType::dtype> {                                     \
    using type = element;                                                \
  };
#include <ein/detail/dtypes.hpp>
}  // namespace detail

// ComplexFloat<"b c"> and ComplexDouble<"b c">: tensors that name their axes.
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  template <FixedString Axes>                                         \
  using typed = Typed<type, Axes>;
#include <ein/detail/dtypes.hpp>

/// real + i·imag, of tensors that broadcast: c128 where one is f64, else c64.
Tensor complex(const Tensor& real, const Tensor& imag);
/// radius·(cos angle + i·sin angle)
Tensor polar(const Tensor& radius, const Tensor& angle);

/// The real parts, as a view: writing to it writes to x. A real tensor is its own.
Tensor real(const Tensor& x);
/// The imaginary parts, as a view; an Error of kind `dtype` for a real tensor, which has none.
Tensor imag(const Tensor& x);
/// a - i·b of each a + i·b; x itself where it is real.
Tensor conj(const Tensor& x);
/// The angle of each number, from -π to π: 0 or π for real ones.
Tensor angle(const Tensor& x);

/// x with its parts as numbers along one more dimension, the last, of size 2; a view.
Tensor view_as_real(const Tensor& x);
/// The way back, a view too: an Error of kind `shape` unless x is f32 or f64 and its last dimension
/// has size 2 and lies side by side, with even strides and offset elsewhere.
Tensor view_as_complex(const Tensor& x);

// --- of typed tensors ---

namespace detail {

template <FixedString Axes>
struct ComplexAxes {
  static constexpr ResultAxes make_parts() {
    grammar::Text text = Axes.view();
    if (!text.empty()) text.add(" ");
    text.add("2");
    return ResultAxes(text.view());
  }
  static constexpr ResultAxes make_whole() {
    const grammar::SpecReading spec = StaticSpec<Axes>::reading();
    if (spec.dims.empty() || spec.dims.back().is_open()) return {};
    return ResultAxes(grammar::sliced(spec, spec.dims.size() - 1, true).view());
  }
  static constexpr ResultAxes parts = make_parts(), whole = make_whole();
};

template <class T, FixedString A, class U, FixedString B, class F>
auto typed_complex(const char* what, const Typed<T, A>& a, const Typed<U, B>& b, const F& f) {
  constexpr std::optional<DType> common = common_dtype(dtype_of<T>, dtype_of<U>);
  static_assert(common.has_value(), "no dtype holds all numbers of both: cast one with .to(dtype)");
  return Typed<ElementOf<complex_dtype(*common)>, fixed_string<Meeting<A, B>::axes>()>(
      Trusted(), run_met<A, B>(what, a, b, f));
}

}  // namespace detail

/// Parts meet by the names of their axes.
template <class T, FixedString A, class U, FixedString B>
auto complex(const Typed<T, A>& real, const Typed<U, B>& imag) {
  detail::check_meeting<A, B>();
  return detail::typed_complex("complex", real, imag,
                               [](const Tensor& x, const Tensor& y) { return complex(x, y); });
}
template <class T, FixedString A, class U, FixedString B>
auto polar(const Typed<T, A>& radius, const Typed<U, B>& angle) {
  detail::check_meeting<A, B>();
  return detail::typed_complex("polar", radius, angle,
                               [](const Tensor& x, const Tensor& y) { return polar(x, y); });
}
template <class T, FixedString A>
auto real(const Typed<T, A>& x) {
  return Typed<ElementOf<real_dtype(dtype_of<T>)>, A>(detail::Trusted(),
                                                      real(static_cast<const Tensor&>(x)));
}
template <class T, FixedString A>
auto imag(const Typed<T, A>& x) {
  static_assert(is_complex(dtype_of<T>), "a real tensor has no imaginary part");
  return Typed<ElementOf<real_dtype(dtype_of<T>)>, A>(detail::Trusted(),
                                                      imag(static_cast<const Tensor&>(x)));
}
template <class T, FixedString A>
auto conj(const Typed<T, A>& x) {
  return Typed<T, A>(detail::Trusted(), conj(static_cast<const Tensor&>(x)));
}
template <class T, FixedString A>
auto angle(const Typed<T, A>& x) {
  constexpr DType dtype =
      detail::element_result(detail::ElementResult::floating, real_dtype(dtype_of<T>));
  return Typed<ElementOf<dtype>, A>(detail::Trusted(), angle(static_cast<const Tensor&>(x)));
}
/// `Float<"b 2">` of a `ComplexFloat<"b">`.
template <class T, FixedString A>
auto view_as_real(const Typed<T, A>& x) {
  static_assert(is_complex(dtype_of<T>), "view_as_real wants complex numbers");
  constexpr auto axes = detail::fixed_string<detail::ComplexAxes<A>::parts>();
  return Typed<ElementOf<real_dtype(dtype_of<T>)>, axes>(
      detail::Trusted(), view_as_real(static_cast<const Tensor&>(x)));
}
/// Without the last axis.
template <class T, FixedString A>
auto view_as_complex(const Typed<T, A>& x) {
  static_assert(dtype_of<T> == DType::f32 || dtype_of<T> == DType::f64,
                "view_as_complex wants f32 or f64");
  Tensor made = view_as_complex(static_cast<const Tensor&>(x));
  if constexpr (detail::ComplexAxes<A>::whole.is_known) {
    constexpr auto axes = detail::fixed_string<detail::ComplexAxes<A>::whole>();
    return Typed<ElementOf<complex_dtype(dtype_of<T>)>, axes>(detail::Trusted(), std::move(made));
  } else {
    return made;
  }
}

}  // namespace ein
