// Convolutions, their transposes and pools, along any number of axes. Each is one pattern with
// braces, which pattern() shows.
//
// The first argument names the axes of the input, "b [y x] c": windows go along those in brackets,
// and the channels are the last of the others. So "b c [y x]" has the channels before the rows and
// columns, "[t] c" has no batch, "... [z y x] c" any leading axes. A PerAxis is one number for all
// axes in brackets, or one for each, in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ein/named.hpp>
#include <ein/nn/module.hpp>
#include <ein/nn/pattern_layers.hpp>

namespace ein::nn {

// What each constructor refuses: kind `syntax` and `pattern` for axes other than those above;
// `arity` for another count of numbers than of axes in brackets; `value` for sizes, strides,
// dilations and groups below 1, and padding below 0; `overflow` for one of these from 2^30 on.

/// Windows, in elements along each axis: they begin `stride` apart, the first `padding` before the
/// first element, and their own elements are `dilation` apart.
struct ConvOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< at both ends; 0 is read there, also by a window that is wholly outside
  PerAxis dilation = 1;
  std::int64_t groups = 1;  ///< parts of the channels, each convolved by itself
  bool with_bias = true;
};

/// Windows as in ConvOptions, but in the result.
struct ConvTransposeOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;         ///< what is cut off at both ends of the result
  PerAxis output_padding = 0;  ///< elements more at the end; less than stride or dilation
  PerAxis dilation = 1;
  std::int64_t groups = 1;
  bool with_bias = true;
};

/// What Conv and ConvTranspose have in common.
class ConvLayer : public Layer {
 public:
  Tensor forward(const Tensor& x) const override;
  /// The einsum of an input and the weight.
  const std::string& pattern() const { return pattern_; }

  Tensor weight;
  std::optional<Tensor> bias;

 protected:
  ConvLayer(bool is_transposed, std::string_view axes, std::int64_t in, std::int64_t out,
            const PerAxis& kernel, const ConvTransposeOptions& options);

 private:
  /// A dimension of the result whose size the pattern names: scale · n + more, where n is the size
  /// of the input's dimension, the `from_end`-th from the end.
  struct NamedSize {
    std::string name;
    std::size_t from_end = 0;
    std::int64_t scale = 1, more = 0;
  };
  std::string pattern_, bias_pattern_;
  std::vector<NamedSize> sizes_;
};

/// A convolution (as all libraries have it: no axis is reversed):
///
///     nn::Conv conv("b [y x] c", 3, 64, 7, {.stride = 2, .padding = 3});
///     conv.pattern()  // "b {2*y + ky - 3} {2*x + kx - 3} c, ky kx c o -> b y x o"
///
/// An axis of n elements becomes one of ⌊(n + 2·padding - dilation·(kernel - 1) - 1) / stride⌋ + 1.
/// Parameters "weight" (kernel..., in / groups, out) and "bias" (out), both uniform in ±1/√n at
/// first, where n = in / groups · Π kernel, as PyTorch's (whose weights have the shape (out, in /
/// groups, kernel...)). `groups` = in is a convolution of each channel by itself. Errors of kind
/// `value` where groups do not divide in and out.
class Conv : public ConvLayer {
 public:
  Conv(std::string_view axes, std::int64_t in, std::int64_t out, const PerAxis& kernel,
       const ConvOptions& options = {});
};

/// The transpose of a convolution: each element of the input adds a window to the result.
///
///     nn::ConvTranspose up("b [y x] c", 64, 3, 4, {.stride = 2, .padding = 1});
///     up.pattern()  // "b y x c, ky kx c o -> b {2*y + ky - 1} {2*x + kx - 1} o"
///
/// An axis of n elements becomes one of (n - 1)·stride - 2·padding + dilation·(kernel - 1) +
/// output_padding + 1. Parameters "weight" (kernel..., in, out / groups) and "bias" (out), both
/// uniform in ±1/√n at first, where n = out / groups · Π kernel, as PyTorch's (in, out / groups,
/// kernel...). Errors of kind `value` where groups do not divide in and out, and for an
/// output_padding that is not below stride or dilation.
class ConvTranspose : public ConvLayer {
 public:
  ConvTranspose(std::string_view axes, std::int64_t in, std::int64_t out, const PerAxis& kernel,
                const ConvTransposeOptions& options = {});
};

struct PoolOptions {
  std::optional<PerAxis> stride{};  ///< where nothing is said, the size of a window: none overlap
  PerAxis padding = 0;  ///< positions at both ends that windows reach; nothing is read there
  PerAxis dilation = 1;
};

/// Max pooling, mean pooling and any other reduction over windows, of each element of the other
/// axes:
///
///     nn::Pool pool("b [y x] c", "max", 3, {.stride = 2, .padding = 1});
///     pool.pattern()  // "b {2*y + ky - 1} {2*x + kx - 1} c -> b y x c"
///
/// Sizes are as Conv's. A mean is of the elements inside the tensor (PyTorch's with
/// count_include_pad=False). No parameters. An Error of kind `value` for padding of a whole window.
class Pool : public PatternLayer {
 public:
  Pool(std::string_view axes, const ReductionFor<Tensor>& reduction, const PerAxis& kernel,
       const PoolOptions& options = {});
};

}  // namespace ein::nn
