// Complex numbers: tensors of std::complex<float> (c64) and std::complex<double> (c128).
//
// What moves elements takes them, and so do einsum, sums, means and products, arithmetic and the
// functions of one number that complex analysis has. They are not ordered: a maximum, a sort or a
// comparison but == and != is an Error of kind `dtype`. Gradients are as PyTorch's: of a real
// result L, ∂L/∂a + i·∂L/∂b of an element a + i·b, which points where L grows fastest.
#pragma once

#include <complex>

#include <ein/elementwise.hpp>
#include <ein/typed.hpp>

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

}  // namespace ein
