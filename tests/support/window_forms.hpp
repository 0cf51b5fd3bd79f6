// What programs write with braces: convolutions, their transposes, pools, stencils, windows; and
// the gradients of each.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

namespace ein::test {

struct WindowSizes {
  std::int64_t b = 2, side = 9, c = 8, o = 12;
};

struct WindowForm {
  std::string name;
  std::function<Tensor(std::span<const Tensor>)> function;
  std::vector<Shape> shapes;  // of its operands
};

inline std::vector<WindowForm> window_forms(const WindowSizes& sizes) {
  using namespace literals;
  using Arguments = std::span<const Tensor>;
  const auto [b, side, c, o] = sizes;
  const std::int64_t half = (side + 1) / 2;
  std::vector<WindowForm> forms;
  const auto product = [&](const char* name, const char* pattern, const Shape& x, const Shape& w,
                           const auto&... given) {
    forms.push_back({name,
                     [=](Arguments t) { return einsum(t[0], t[1], runtime(pattern), given...); },
                     {x, w}});
  };
  const Shape image{b, side, side, c}, line{b, side * side, c}, weights{3, 3, c, o};
  product("convolution", "b {y + ky} {x + kx} c, ky kx c o -> b y x o", image, weights);
  product("convolution_by_twos", "b {2*y + ky - 1} {2*x + kx - 1} c, ky kx c o -> b y x o", image,
          weights);
  product("convolution_of_planes", "b c {y + ky - 1} {x + kx - 1}, o c ky kx -> b o y x",
          {b, c, side, side}, {o, c, 3, 3});
  product("convolution_in_groups", "b {y + ky - 1} {x + kx - 1} (g c), ky kx g c o -> b y x (g o)",
          image, {3, 3, 2, c / 2, o / 2});
  product("convolution_dilated", "b {y + 2*ky - 2} {x + 2*kx - 2} c, ky kx c o -> b y x o", image,
          weights);
  product("convolution_flipped", "b {y - ky} {x - kx} c, ky kx c o -> b y x o", image, weights);
  product("depthwise", "b {y + ky - 1} {x + kx - 1} c, ky kx c -> b y x c", image, {3, 3, c});
  product("causal", "b {t + k - 3} c, k c o -> b t o", line, {4, c, o}, "t"_a = side * side);
  product("causal_depthwise", "b {t + k - 3} c, k c -> b t c", line, {4, c}, "t"_a = side * side);
  product("transposed", "b y x o, ky kx c o -> b {2*y + ky} {2*x + kx} c", {b, half, half, o},
          weights);
  product("transposed_and_cut", "b y x o, ky kx c o -> b {2*y + ky - 1 : h} {2*x + kx - 1 : h} c",
          {b, half, half, o}, weights, "h"_a = 2 * half);
  const auto of_image = [&](const char* name, auto f) {
    forms.push_back({name, [f](Arguments t) { return f(t[0]); }, {image}});
  };
  const auto pool = [&](const char* name, Reduction reduction) {
    of_image(name, [reduction](const Tensor& x) {
      return reduce(x, "b {2*y + ky - 1} {2*x + kx - 1} c -> b y x c", reduction, "ky"_a = 3,
                    "kx"_a = 3);
    });
  };
  pool("greatest", Reduction::max);
  pool("sum", Reduction::sum);
  pool("mean", Reduction::mean);
  // Views, and what reads them.
  of_image("windows", [](const Tensor& x) {
    return rearrange(x, "b {y + k} x c -> b y x c k", "k"_a = 3) * 2;
  });
  of_image("flipped", [](const Tensor& x) { return einsum(x, "b {-y} {-x} c -> b y x c") * 2; });
  forms.push_back({"stencil",
                   [](Arguments t) {
                     return map(
                         t[0], t[1], "b {y + dy - 1} {x + dx - 1} c, dy dx -> b y x c",
                         [](const auto& x, const auto& w) { return (x - w) * (x - w); }, "sum");
                   },
                   {image, {3, 3}}});
  return forms;
}

/// The results of a form; or, of its operands and a cotangent behind them, their gradients.
inline std::vector<Tensor> run_form(const WindowForm& form, std::span<const Tensor> x,
                                    bool is_gradient) {
  if (!is_gradient) return {form.function(x)};
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < form.shapes.size(); ++i) {
    leaves.push_back(x[i].detach());
    leaves.back().requires_grad(true);
  }
  return gradients(form.function(leaves), x.back(), leaves);
}

}  // namespace ein::test
