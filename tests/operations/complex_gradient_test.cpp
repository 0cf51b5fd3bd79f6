// Functions of complex numbers, their gradients and second gradients, beside PyTorch's.
#include <cmath>
#include <complex>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>

namespace ein {
namespace {

using C = std::complex<double>;
using Function = std::function<Tensor(const Tensor&)>;

Tensor from(C (*element)(double i, double j)) {
  return tensor({{element(0, 0), element(0, 1)}, {element(1, 0), element(1, 1)}});
}
Tensor z_values() {
  return from([](double i, double j) {
    return C(std::sin(1 + 3 * i + 5 * j), std::cos(2 + 2 * i - 3 * j));
  });
}
Tensor w_values() {
  return from(
      [](double i, double j) { return C(std::cos(1 + i - 2 * j), std::sin(3 * i + j + 0.5)); });
}

Tensor loss(const Tensor& x) {
  const Tensor squares = is_complex(x.dtype()) ? real(x) * real(x) + imag(x) * imag(x) : x * x;
  const Tensor weights = cos(arange(x.numel()).to(DType::f64));
  return reduce(squares.reshape({x.numel()}) * weights, "i ->", Reduction::sum);
}

/// The functions of tests/fixtures/complex/make.py.
std::map<std::string, Function> functions() {
  const Tensor w = w_values();
  return {
      {"mul", [=](const Tensor& z) { return z * w; }},
      {"square", [](const Tensor& z) { return z * z; }},
      {"div", [=](const Tensor& z) { return w / z; }},
      {"divided", [=](const Tensor& z) { return z / w; }},
      {"reciprocal", [](const Tensor& z) { return 1 / z; }},
      {"add_number", [](const Tensor& z) { return z + C(2, -1); }},
      {"pow_3", [](const Tensor& z) { return pow(z, 3); }},
      {"pow_minus_2", [](const Tensor& z) { return pow(z, -2); }},
      {"pow_half", [](const Tensor& z) { return pow(z, 0.5); }},
      {"pow", [=](const Tensor& z) { return pow(z, w); }},
      {"exponent", [=](const Tensor& z) { return pow(w, z); }},
      {"exp", [](const Tensor& z) { return exp(z); }},
      {"exp2", [](const Tensor& z) { return exp2(z); }},
      {"expm1", [](const Tensor& z) { return expm1(z); }},
      {"log", [](const Tensor& z) { return log(z); }},
      {"log2", [](const Tensor& z) { return log2(z); }},
      {"log1p", [](const Tensor& z) { return log1p(z); }},
      {"sqrt", [](const Tensor& z) { return sqrt(z); }},
      {"rsqrt", [](const Tensor& z) { return rsqrt(z); }},
      {"sin", [](const Tensor& z) { return sin(z); }},
      {"cos", [](const Tensor& z) { return cos(z); }},
      {"tan", [](const Tensor& z) { return tan(z); }},
      {"asin", [](const Tensor& z) { return asin(z); }},
      {"acos", [](const Tensor& z) { return acos(z); }},
      {"atan", [](const Tensor& z) { return atan(z); }},
      {"sinh", [](const Tensor& z) { return sinh(z); }},
      {"cosh", [](const Tensor& z) { return cosh(z); }},
      {"tanh", [](const Tensor& z) { return tanh(z); }},
      {"sigmoid", [](const Tensor& z) { return sigmoid(z); }},
      {"silu", [](const Tensor& z) { return silu(z); }},
      {"abs", [](const Tensor& z) { return abs(z); }},
      {"angle", [](const Tensor& z) { return angle(z); }},
      {"conj", [=](const Tensor& z) { return conj(z) * w; }},
      {"real", [](const Tensor& z) { return real(z * z); }},
      {"imag", [](const Tensor& z) { return imag(z * z); }},
      {"complex",
       [](const Tensor& z) { return complex(real(z) * imag(z), real(z) - imag(z) * imag(z)); }},
      {"polar", [](const Tensor& z) { return polar(real(z) * real(z), imag(z)); }},
      {"where", [=](const Tensor& z) { return where(real(z) > 0, z * z, z * w); }},
      {"einsum", [=](const Tensor& z) { return einsum(z, z * w, "a b, b c -> a c"); }},
      {"hadamard", [](const Tensor& z) { return einsum(z, z, "a b, a b -> a b"); }},
      {"three", [=](const Tensor& z) { return einsum(z, w, z, "a b, c b, c d -> a d"); }},
      {"outer", [=](const Tensor& z) { return einsum(z, w, "a b, c d -> a b c d"); }},
      {"trace", [](const Tensor& z) { return einsum(z, "a a ->") * z; }},
      {"sum", [](const Tensor& z) { return reduce(z * z, "a b -> b", Reduction::sum); }},
      {"mean", [](const Tensor& z) { return reduce(z * z, "a b -> a", Reduction::mean); }},
      {"prod", [](const Tensor& z) { return reduce(z, "a b -> b", Reduction::prod); }},
      {"var", [](const Tensor& z) { return reduce(z * z, "a b -> b", Reduction::var); }},
      {"std", [](const Tensor& z) { return reduce(z * z, "a b -> a", Reduction::std); }},
      {"cumsum", [](const Tensor& z) { return cumsum(z * z, "a [b]"); }},
      {"cumprod", [](const Tensor& z) { return cumprod(z * z, "a [b]"); }},
      {"flip", [](const Tensor& z) { return flip(z, "a [b]") * z; }},
      {"c64", [](const Tensor& z) { return z.to(DType::c64).to(DType::c128) * z; }},
      {"real_operand", [=](const Tensor& z) { return z * real(w); }},
  };
}

std::vector<double> numbers(const Tensor& x) {
  return (is_complex(x.dtype()) ? view_as_real(x) : x).to_vector<double>();
}
void expect_near(const Tensor& x, const std::string& row, const std::string& what) {
  const std::vector<double> found = numbers(x);
  std::istringstream text(row);
  std::size_t i = 0;
  for (double wanted; text >> wanted; ++i) {
    ASSERT_LT(i, found.size()) << what;
    const double tolerance = what.starts_with("c64") ? 1e-6 : 1e-11;
    EXPECT_NEAR(found[i], wanted, tolerance * std::max(1.0, std::abs(wanted))) << what << " " << i;
  }
  EXPECT_EQ(i, found.size()) << what;
}

TEST(ComplexGradient, AsPyTorch) {
  const auto known = functions();
  std::ifstream file(EIN_TEST_DATA "/complex/rows.tsv");
  std::size_t rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    std::istringstream text(line);
    std::string name, value, first, second;
    std::getline(text, name, '\t');
    std::getline(text, value, '\t');
    std::getline(text, first, '\t');
    std::getline(text, second, '\t');
    ASSERT_TRUE(known.contains(name)) << name;
    const Function& f = known.at(name);
    const Tensor z = z_values().requires_grad(true);
    const Tensor result = f(z);
    expect_near(result, value, name);
    const Tensor gradient = gradients(loss(result), std::span(&z, 1), true).front();
    expect_near(gradient, first, name + ", first");
    if (gradient.requires_grad())
      expect_near(gradients(loss(gradient), std::span(&z, 1)).front(), second, name + ", second");
    loss(result).backward();
    expect_near(z.grad(), first, name + ", backward()");

    // Compiled, with the gradient inside.
    auto step = compile([&](const Tensor& x) {
      const Tensor leaf = detail::differentiable(x);
      const Tensor y = f(leaf);
      return std::vector<Tensor>{y, gradients(loss(y), std::span(&leaf, 1)).front()};
    });
    const std::vector<Tensor> results = step(z_values());
    expect_near(results[0], value, name + ", compiled");
    expect_near(results[1], first, name + ", compiled gradient");
  }
  EXPECT_EQ(rows, known.size());
}

TEST(ComplexGradient, OfOnesOwnAndRecomputed) {
  const Tensor z = z_values().requires_grad(true);
  const auto f = [](const Tensor& x) { return exp(x) * x; };
  loss(f(z)).backward();
  const Tensor wanted = z.grad();
  // d/dz (e^z z) = e^z (z + 1); a cotangent meets its conjugate.
  const auto own = custom(f, [](const Tensor& g, const Tensor&, const Tensor& x) {
    return g * conj(exp(x) * (x + 1));
  });
  for (const Function& call : {Function([&](const Tensor& x) { return own(x); }),
                               Function([&](const Tensor& x) { return checkpoint(f, x); })}) {
    z.zero_grad();
    loss(call(z)).backward();
    EXPECT_EQ(z.grad().dtype(), DType::c128);
    EXPECT_TRUE(all_close(z.grad(), wanted, 1e-12));
  }
  // Gradients add up, and can be set.
  z.set_grad(wanted);
  loss(f(z)).backward();
  EXPECT_TRUE(all_close(z.grad(), 2 * wanted, 1e-12));
  // A cotangent of one's own: that of the sum of real parts.
  const Tensor sum = reduce(f(z), "a b ->", Reduction::sum);
  const Tensor by_cotangent = gradients(sum, full({}, 1, DType::c128), std::span(&z, 1)).front();
  const Tensor by_part = gradients(real(sum), std::span(&z, 1)).front();
  EXPECT_TRUE(all_close(by_cotangent, by_part, 1e-13));
}

}  // namespace
}  // namespace ein
