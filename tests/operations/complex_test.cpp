// Complex tensors: in and out, what they compute, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include <ein/autograd.hpp>
#include <ein/call.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/cost.hpp>
#include <ein/eigen.hpp>
#include <ein/ein.hpp>
#include <ein/safetensors.hpp>
#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::expect_error;
using C64 = std::complex<float>;
using C128 = std::complex<double>;

std::vector<C128> random_values(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<C128> values(static_cast<std::size_t>(count));
  for (C128& value : values) value = {uniform(random), uniform(random)};
  return values;
}

void expect_near(const Tensor& x, const std::vector<C128>& wanted, double tolerance) {
  const auto found = x.to(DType::c128).to_vector<C128>();
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(std::abs(found[i] - wanted[i]), tolerance * std::max(1.0, std::abs(wanted[i])))
        << i << ": " << found[i] << " " << wanted[i];
  }
}

TEST(Complex, DTypes) {
  EXPECT_EQ(dtype_of<C64>, DType::c64);
  EXPECT_EQ(dtype_of<C128>, DType::c128);
  EXPECT_EQ(size_of(DType::c64), 8u);
  EXPECT_EQ(size_of(DType::c128), 16u);
  EXPECT_EQ(parse_dtype("c64"), DType::c64);
  EXPECT_EQ(name(DType::c128), "c128");
  for (const DType dtype : {DType::c64, DType::c128}) {
    EXPECT_TRUE(is_complex(dtype));
    EXPECT_FALSE(is_floating(dtype) || is_integral(dtype) || is_unsigned(dtype));
  }
  EXPECT_EQ(real_dtype(DType::c128), DType::f64);
  EXPECT_EQ(complex_dtype(DType::bf16), DType::c64);
  EXPECT_EQ(promote(DType::c64, DType::i64), DType::c64);
  EXPECT_EQ(promote(DType::f64, DType::c64), DType::c128);
  EXPECT_EQ(promote(DType::c64, DType::c128), DType::c128);
  EXPECT_EQ(promote(DType::f16, DType::c128), DType::c128);
}

TEST(Complex, InAndOut) {
  const Tensor x = tensor({{C64(1, 2), C64(0, -3)}, {C64(-1.5, 0), C64(0, 0)}});
  EXPECT_EQ(x.dtype(), DType::c64);
  EXPECT_EQ(to_string(x), "[[1+2i, 0-3i],\n [-1.5+0i, 0+0i]]");
  EXPECT_EQ(x(0, 1).item<C64>(), C64(0, -3));
  EXPECT_EQ(x.data<C64>()[2], C64(-1.5f, 0));
  EXPECT_EQ(x.transpose().to_vector<C64>()[1], C64(-1.5f, 0));
  EXPECT_EQ(real(x).to_vector<float>(), (std::vector<float>{1, 0, -1.5, 0}));
  EXPECT_EQ(imag(x).to_vector<float>(), (std::vector<float>{2, -3, 0, 0}));
  real(x).fill(7);
  x(1, 1) = C64(4, 5);
  EXPECT_EQ(to_string(x), "[[7+2i, 7-3i],\n [7+0i, 4+5i]]");
  EXPECT_EQ(view_as_real(x).shape(), (Shape{2, 2, 2}));
  EXPECT_TRUE(view_as_complex(view_as_real(x)).same_storage(x));
  EXPECT_EQ(full({2}, C128(1, -1), DType::c128).to_vector<C128>()[1], C128(1, -1));
  EXPECT_EQ(zeros({2}, DType::c64).to_vector<C64>()[1], C64(0, 0));
  EXPECT_EQ(eye(2, DType::c64).to_vector<C64>()[3], C64(1, 0));

  std::vector<C128> memory{{1, 2}, {3, 4}, {5, 6}};
  const Tensor borrowed = from_span(memory, {2}, {2});
  EXPECT_EQ(borrowed.to_vector<C128>()[1], C128(5, 6));
  EXPECT_EQ(to_string(Tensor(arange(3).to(DType::c64))), "[0+0i, 1+0i, 2+0i]");
}

TEST(Complex, EigenMatrices) {
  Eigen::MatrixXcd a = Eigen::MatrixXcd::Random(3, 4), b = Eigen::MatrixXcd::Random(4, 2);
  const Tensor product = einsum(from_eigen(a), from_eigen(b), "m k, k n -> m n");
  EXPECT_TRUE(as_matrix<C128>(product).isApprox(a * b, 1e-14));
}

TEST(Complex, Files) {
  const test::ScratchDirectory scratch;
  const std::string path = scratch.path("x.npy");
  for (const DType dtype : {DType::c64, DType::c128}) {
    const Tensor x = tensor({{C128(1, 2), C128(3, -4)}}).to(dtype);
    save_npy(path, x);
    const Tensor y = load_npy(path);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_TRUE(all_close(x, y, 0, 0));
  }
  const std::string tensors = scratch.path("x.safetensors");
  const Tensor x = tensor({C64(1, 2), C64(3, 4)});
  save_safetensors(tensors, {{"x", x}, {"y", ones({2})}});
  EXPECT_TRUE(all_close(load_safetensors(tensors).tensors.at("x"), x, 0, 0));
  expect_error(
      [&] {
        save_safetensors(tensors, {{"x", x.to(DType::c128)}});
      },
      ErrorKind::dtype, {"no c128", "x"});
}

/// Random contractions of two or three operands, summed by plain loops.
TEST(Complex, EinsumAsLoops) {
  test::for_seeds(150, [](unsigned seed) {
    std::mt19937 random(seed);
    const std::string letters = "abcde";
    std::int64_t sizes[5];
    for (std::int64_t& size : sizes) size = 1 + static_cast<std::int64_t>(random() % 5);
    if (random() % 8 == 0) sizes[random() % 5] = 0;
    const std::size_t count = 1 + random() % 3;
    std::vector<std::string> sides;
    std::string used, text;
    for (std::size_t k = 0; k < count; ++k) {
      std::string side;
      for (const char letter : letters) {
        if (random() % 2) side.insert(random() % (side.size() + 1), 1, letter);
      }
      used += side;
      sides.push_back(side);
    }
    std::string out;
    for (const char letter : letters) {
      if (used.find(letter) != std::string::npos && random() % 2)
        out.insert(random() % (out.size() + 1), 1, letter);
    }
    const auto spaced = [](const std::string& side) {
      std::string result;
      for (const char letter : side) result += std::string(1, letter) + " ";
      return result;
    };
    std::vector<Tensor> operands;
    std::vector<std::vector<C128>> values;
    const DType dtype = random() % 2 ? DType::c64 : DType::c128;
    const auto shape_of = [&](const std::string& side) {
      Shape shape;
      for (const char letter : side) shape.push_back(sizes[letter - 'a']);
      return shape;
    };
    for (std::size_t k = 0; k < count; ++k) {
      text += (k ? ", " : "") + spaced(sides[k]);
      const Shape shape = shape_of(sides[k]);
      values.push_back(random_values(numel(shape), random));
      operands.push_back(from_vector(values.back(), shape).to(dtype));
    }
    text += "-> " + spaced(out);
    const auto place = [&](const std::string& side, const std::int64_t* at) {
      std::int64_t index = 0;
      for (const char letter : side) index = index * sizes[letter - 'a'] + at[letter - 'a'];
      return static_cast<std::size_t>(index);
    };
    std::vector<C128> wanted(static_cast<std::size_t>(numel(shape_of(out))));
    std::int64_t total = 1, at[5];
    for (std::size_t a = 0; a < 5; ++a) {
      if (used.find(letters[a]) == std::string::npos) sizes[a] = 1;
      total *= sizes[a];
    }
    for (std::int64_t point = 0; point < total; ++point) {
      std::int64_t rest = point;
      for (std::size_t a = 5; a-- > 0; rest /= sizes[a]) at[a] = rest % sizes[a];
      C128 product = 1;
      for (std::size_t k = 0; k < count; ++k) product *= values[k][place(sides[k], at)];
      wanted[place(out, at)] += product;
    }
    SCOPED_TRACE(text);
    const double tolerance = dtype == DType::c64 ? 1e-4 : 1e-12;
    expect_near(einsum(operands, RuntimeText(text)), wanted, tolerance);
    auto compiled = compile([&](const Tensor& first) {
      std::vector<Tensor> all = operands;
      all[0] = first;
      return einsum(all, RuntimeText(text));
    });
    expect_near(compiled(operands[0]), wanted, tolerance);
  });
}

TEST(Complex, ProductsOfMatrices) {
  std::mt19937 random(3);
  for (const std::int64_t rows : {1, 3, 16, 70}) {
    const std::int64_t depth = 65, cols = 90;
    const auto a = random_values(rows * depth, random), b = random_values(depth * cols, random);
    std::vector<C128> wanted(static_cast<std::size_t>(rows * cols));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t j = 0; j < cols; ++j)
          wanted[static_cast<std::size_t>(i * cols + j)] +=
              a[static_cast<std::size_t>(i * depth + k)] *
              b[static_cast<std::size_t>(k * cols + j)];
      }
    }
    const Tensor x = from_vector(a, {rows, depth}), y = from_vector(b, {depth, cols});
    expect_near(matmul(x, y), wanted, 1e-12);
    expect_near(einsum(x, rearrange(y, "k n -> n k").contiguous(), "m k, n k -> m n"), wanted,
                1e-12);
    expect_near(rearrange(einsum(x, y, "m k, k n -> n m"), "n m -> m n"), wanted, 1e-12);
    const Tensor c = ones({rows, cols}, DType::c128);
    einsum_into(c, x, y, "m k, k n -> m n", 2, 3);
    for (C128& value : wanted) value = 2.0 * value + 3.0;
    expect_near(c, wanted, 1e-12);
  }
}

TEST(Complex, FunctionsAsTheStandardLibrary) {
  struct Row {
    Tensor (*ours)(const Tensor&);
    C128 (*theirs)(const C128&);
  };
  const Row rows[] = {{exp, std::exp},   {log, std::log},   {sqrt, std::sqrt}, {sin, std::sin},
                      {cos, std::cos},   {tan, std::tan},   {asin, std::asin}, {acos, std::acos},
                      {atan, std::atan}, {sinh, std::sinh}, {cosh, std::cosh}, {tanh, std::tanh},
                      {conj, std::conj}};
  std::mt19937 random(5);
  const auto values = random_values(200, random);
  const Tensor x = from_vector(values) * 3;
  for (const Row& row : rows) {
    std::vector<C128> wanted;
    for (const C128& value : values) wanted.push_back(row.theirs(value * 3.0));
    expect_near(row.ours(x), wanted, 1e-13);
    expect_near(row.ours(x.to(DType::c64)), wanted, 1e-5);
  }
  const double inf = std::numeric_limits<double>::infinity();
  // On the cuts, and at the ends of the range.
  const std::vector<C128> edges{{-4, 0.0},      {-4, -0.0},       {0, 0},          {0, 2},
                                {1e200, 1e200}, {-1e300, 1e-300}, {1e-300, 1e-300}};
  for (const C128& z : edges) {
    const Tensor one = from_vector(std::vector<C128>{z});
    expect_near(sqrt(one), {std::sqrt(z)}, 1e-14);
    EXPECT_DOUBLE_EQ(abs(one).item(), std::abs(z));
    EXPECT_DOUBLE_EQ(angle(one).item(), std::arg(z));
    if (z != C128(0)) expect_near(one / one, {C128(1)}, 1e-14);
  }
  EXPECT_EQ(exp(tensor({C128(inf, 0)})).item<C128>(), C128(inf, 0));
  EXPECT_EQ(pow(tensor({C128(0, 0)}), 0.5).item<C128>(), C128(0, 0));
  EXPECT_EQ(pow(tensor({C128(0, 0)}), 0).item<C128>(), C128(1, 0));
  EXPECT_EQ(pow(tensor({C128(0, 1)}), 2).item<C128>(), C128(-1, 0));
}

TEST(Complex, Arithmetic) {
  const Tensor z = tensor({C64(1, 2), C64(3, -4)}), x = tensor({2.0, 0.5});
  EXPECT_EQ((z * x).to_vector<C64>(), (std::vector<C64>{{2, 4}, {1.5, -2}}));
  EXPECT_EQ((x + C64(0, 1)).dtype(), DType::c64);
  EXPECT_EQ((x.to(DType::f64) + C64(0, 1)).dtype(), DType::c128);
  EXPECT_EQ((C64(0, 1) * z).to_vector<C64>(), (std::vector<C64>{{-2, 1}, {4, 3}}));
  EXPECT_EQ((1 - z).to_vector<C64>(), (std::vector<C64>{{0, -2}, {-2, 4}}));
  EXPECT_EQ((z == tensor({C64(1, 2), C64(3, 4)})).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ((z != z).to_vector<bool>(), (std::vector<bool>{false, false}));
  EXPECT_EQ(where(real(z) > 2, z, C64(0, 9)).to_vector<C64>(), (std::vector<C64>{{0, 9}, {3, -4}}));
  EXPECT_EQ(abs(z).dtype(), DType::f32);
  EXPECT_FLOAT_EQ(abs(z)(1).item<float>(), 5);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor odd = tensor({C64(nan, 0), C64(0, INFINITY), C64(3e38f, 3e38f)});
  EXPECT_EQ(isnan(odd).to_vector<bool>(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(isfinite(odd).to_vector<bool>(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(polar(tensor({2.0}), tensor({0.0})).item<C64>(), C64(2, 0));
}

// As NumPy has them.
TEST(Complex, ZeroHasNoNegativePowers) {
  const Tensor zero = zeros({1}, DType::c128);
  for (const double n : {-1.0, -2.0, -0.5, -3.0}) {
    const C128 power = pow(zero, n).item<C128>();
    EXPECT_TRUE(std::isnan(power.real()) && std::isnan(power.imag())) << n;
  }
}

TEST(Complex, DividedByZeroAndPowersOfZero) {
  const double inf = INFINITY;
  const Tensor z = tensor({C128(1, -2), C128(0, 3), C128(0, 0)});
  for (const Tensor& quotient : {z / C128(0, 0), z / 0.0}) {
    const auto values = quotient.to_vector<C128>();
    EXPECT_EQ(values[0], C128(inf, -inf));
    EXPECT_TRUE(std::isnan(values[1].real()) && values[1].imag() == inf) << values[1];
    EXPECT_TRUE(std::isnan(values[2].real()) && std::isnan(values[2].imag())) << values[2];
  }
  const Tensor w = tensor({C128(0.5, -1), C128(0, 0), C128(-1, 2), C128(0, 1)});
  const auto powers = pow(0.0, w).to_vector<C128>();
  EXPECT_EQ(powers[0], C128(0, 0));
  EXPECT_EQ(powers[1], C128(1, 0));
  for (const std::size_t i : {2, 3})
    EXPECT_TRUE(std::isnan(powers[i].real()) && std::isnan(powers[i].imag())) << powers[i];
}

// A condition is true where it is not 0 in its own dtype.
TEST(Complex, AsAConditionAmongIntegers) {
  const Tensor condition =
      tensor({C128(0.25, 0), C128(-88.5, -1e30), C128(0, 1e-300), C128(0, 0), C128(0, NAN)});
  const std::vector<bool> is_true{true, true, true, false, true};
  for (const DType dtype : {DType::u64, DType::i8, DType::boolean, DType::f32, DType::c64}) {
    const Tensor ones = full({5}, 1, dtype), zeros = full({5}, 0, dtype);
    EXPECT_EQ(not_equal(where(condition, ones, zeros), 0).to_vector<bool>(), is_true)
        << name(dtype);
  }
}

TEST(Complex, Reductions) {
  std::mt19937 random(9);
  for (const std::int64_t count : {0, 1, 2, 5, 8, 13}) {
    const auto values = random_values(3 * count, random);
    const Tensor x = from_vector(values, {count, 3});
    std::vector<C128> sums(3), products(3, C128(1));
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums[i % 3] += values[i];
      products[i % 3] *= values[i];
    }
    expect_near(reduce(x, "n c -> c", Reduction::sum), sums, 1e-14);
    expect_near(reduce(x, "n c -> c", Reduction::prod), products, 1e-14);
    const C128 all = products[0] * products[1] * products[2];
    expect_near(reduce(x, "n c ->", Reduction::prod), {all}, 1e-14);
    if (count == 0) continue;
    for (C128& sum : sums) sum /= static_cast<double>(count);
    expect_near(reduce(x, "n c -> c", Reduction::mean), sums, 1e-14);
  }
  const Tensor x = tensor({{C64(0, 1), C64(0, 0)}, {C64(0, 0), C64(0, 0)}});
  EXPECT_EQ(reduce(x, "a b -> a", Reduction::any).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(reduce(x, "a b -> a", Reduction::all).to_vector<bool>(),
            (std::vector<bool>{false, false}));
}

// Those of the real parts and of the imaginary ones together.
TEST(Complex, Variances) {
  std::mt19937 random(19);
  for (const DType dtype : {DType::c64, DType::c128}) {
    for (const std::int64_t count : {1, 2, 5, 1000}) {
      const Tensor x =
          (from_vector(random_values(3 * count, random), {count, 3}) + C128(7, -30)).to(dtype);
      const auto of_part = [&](const Tensor& part) {
        return reduce(part.to(DType::f64), "n c -> c", Reduction::var);
      };
      const Tensor wanted = of_part(real(x)) + of_part(imag(x));
      const double tolerance = dtype == DType::c64 ? 1e-5 : 1e-13;
      const Tensor variance = reduce(x, "n c -> c", "var"),
                   deviation = reduce(x, "n c -> c", "std");
      EXPECT_EQ(variance.dtype(), real_dtype(dtype));
      EXPECT_TRUE(all_close(variance.to(DType::f64), wanted, tolerance)) << to_string(variance);
      EXPECT_TRUE(all_close(deviation.to(DType::f64), sqrt(wanted), tolerance));
      auto compiled =
          compile([](const Tensor& y) { return reduce(y, "n c -> c", "var"); }, {"n c"});
      EXPECT_TRUE(all_close(compiled(x), variance, 0, 0));
    }
  }
  EXPECT_EQ(reduce(zeros({0, 2}, DType::c64), "n c -> c", "var").dtype(), DType::f32);
  EXPECT_TRUE(std::isnan(reduce(zeros({0, 2}, DType::c64), "n c -> c", "var")(0).item<float>()));
  EXPECT_EQ(reduce(tensor({C64(1, 2), C64(3, 4)}), "n ->", "std", as(DType::f64)).dtype(),
            DType::f64);
  // Equal numbers: no deviation, and a gradient of 0.
  const Tensor equal = full({4}, C128(0.1, -0.3), DType::c128).requires_grad(true);
  const Tensor deviation = reduce(equal, "n ->", "std");
  EXPECT_EQ(deviation.item(), 0);
  deviation.backward();
  EXPECT_TRUE(all_close(equal.grad(), zeros({4}, DType::c128), 0, 0));
}

TEST(Complex, CumulativeProducts) {
  std::mt19937 random(23);
  for (const std::int64_t count : {0, 1, 2, 3, 8, 13, 100}) {
    const auto values = random_values(2 * count * 3, random);
    const Tensor x = from_vector(values, {2, count, 3});
    std::vector<C128> wanted = values;
    const auto at = [&](std::int64_t a, std::int64_t n, std::int64_t c) {
      return static_cast<std::size_t>((a * count + n) * 3 + c);
    };
    for (std::int64_t a = 0; a < 2; ++a) {
      for (std::int64_t n = 1; n < count; ++n) {
        for (std::int64_t c = 0; c < 3; ++c) wanted[at(a, n, c)] *= wanted[at(a, n - 1, c)];
      }
    }
    const Tensor products = cumprod(x, "a [n] c");
    expect_near(products, wanted, 1e-14);
    expect_near(cumprod(x.to(DType::c64), "a [n] c", as(DType::c128)), wanted, 1e-6);
    if (count == 0) continue;
    // The last is the product of all; the slopes of products with zeros are products, too.
    expect_near(reduce(x, "a n c -> a c", "prod"),
                products.at({every, count - 1}).to_vector<C128>(), 1e-14);
  }
  const std::vector<C128> factors{{2, 1}, {0, 0}, {1, -1}, {0, 0}, {3, 0}};
  const Tensor x = from_vector(factors).requires_grad(true);
  const Tensor y = cumprod(x, "[n]");
  const auto gradient =
      gradients(y, full({5}, C128(1), DType::c128), std::span(&x, 1)).front().to_vector<C128>();
  for (std::size_t i = 0; i < factors.size(); ++i) {
    C128 slope = 0;
    for (std::size_t k = i; k < factors.size(); ++k) {
      C128 product = 1;
      for (std::size_t j = 0; j <= k; ++j) product *= j == i ? 1.0 : factors[j];
      slope += product;
    }
    EXPECT_LE(std::abs(gradient[i] - std::conj(slope)), 1e-14) << i;
  }
  auto compiled = compile([](const Tensor& z) { return cumprod(z, "a [n]"); }, {"a n"});
  for (const std::int64_t count : {3, 8, 1, 17}) {
    const Tensor z = from_vector(random_values(2 * count, random), {2, count});
    EXPECT_TRUE(all_close(compiled(z), cumprod(z, "a [n]"), 0, 0)) << count;
  }
}

TEST(Complex, MovesAsRealNumbers) {
  std::mt19937 random(11);
  const Tensor x = from_vector(random_values(24, random), {2, 3, 4});
  const auto same = [&](const Tensor& moved, const Tensor& of_real, const Tensor& of_imag) {
    EXPECT_EQ(real(moved).to_vector<double>(), of_real.to_vector<double>());
    EXPECT_EQ(imag(moved).to_vector<double>(), of_imag.to_vector<double>());
  };
  const auto check = [&](auto&& move) { same(move(x), move(real(x)), move(imag(x))); };
  check([](const Tensor& y) { return rearrange(y, "a b c -> c (b a)"); });
  check([](const Tensor& y) { return rearrange(y, "a b c -> c a b").contiguous(); });
  check([](const Tensor& y) { return repeat(y, "a b c -> a r b c", axis("r", 2)); });
  check([](const Tensor& y) { return flip(y, "a [b] c"); });
  check([](const Tensor& y) { return roll(y, "a b [c]", 1); });
  check([](const Tensor& y) { return pad(y, "a b [c]", 1, 2); });
  check([](const Tensor& y) { return y.at({every, slice(1, 3), 2}); });
  check([](const Tensor& y) { return cumsum(y, "a [b] c"); });
  check([](const Tensor& y) { return tril(y, "... [i j]"); });
  check([](const Tensor& y) { return gather(y, tensor({2, 0}), "a [b] c, k -> a k c"); });
  check([](const Tensor& y) { return pack({y, y}, "a * c").tensor; });
}

TEST(Complex, Compiled) {
  std::mt19937 random(13);
  const Tensor state = from_vector(random_values(6, random), {2, 3});
  auto step = compile([&](const Tensor& x) {
    const Tensor y = einsum(exp(x), state, "a b, a b -> a");
    state.copy_from(state * C128(0, 1));
    return std::vector<Tensor>{y, abs(y), rearrange(x, "a b -> b a")};
  });
  const Tensor x = from_vector(random_values(6, random), {2, 3});
  for (int i = 0; i < 3; ++i) {
    const Tensor before = state.clone();
    const auto results = step(x);
    EXPECT_EQ(results[0].dtype(), DType::c128);
    EXPECT_EQ(results[1].dtype(), DType::f64);
    EXPECT_TRUE(all_close(results[0], einsum(exp(x), before, "a b, a b -> a"), 1e-13));
    EXPECT_TRUE(all_close(results[2], rearrange(x, "a b -> b a"), 0, 0));
    EXPECT_TRUE(all_close(state, before * C128(0, 1), 1e-13));
  }
}

// The order of the multiplications depends on how many there are.
TEST(Complex, ProductsOfAnyLength) {
  std::mt19937 random(17);
  auto product = compile([](const Tensor& x) { return reduce(x, "a b -> a", "prod"); }, {"a b"});
  for (const std::int64_t count : {3, 7, 1, 0, 7, 8}) {
    const Tensor x = from_vector(random_values(2 * count, random), {2, count});
    EXPECT_TRUE(all_close(product(x), reduce(x, "a b -> a", "prod"), 1e-14)) << count;
  }
}

TEST(Complex, Typed) {
  const ComplexFloat<"row col"> a = full({2, 3}, C64(1, 1), DType::c64);
  const ComplexFloat<"col out"> b = full({3, 4}, C64(1, 1), DType::c64);
  const auto product = einsum<"row col, col out -> row out">(a, b);
  static_assert(std::is_same_v<decltype(product), const ComplexFloat<"row out">>);
  EXPECT_EQ(product(0, 1).item<C64>(), C64(0, 6));
}

TEST(Complex, AMultiplyAddIsEightOperations) {
  CallOptions options;
  options.dtype = DType::c128;
  const Cost c = cost(
      graph_of(Operation::einsum, RuntimeText("m k, k n -> m n"), {{30, 40}, {40, 50}}, options));
  EXPECT_EQ(c.matmul_only, 8 * 30 * 40 * 50);
}

TEST(Complex, Refusals) {
  const Tensor z = tensor({{C64(1, 2), C64(3, 4)}}), x = ones({1, 2});
  const auto refused = [](auto&& call, const std::vector<std::string>& parts) {
    expect_error(call, ErrorKind::dtype, parts);
  };
  refused([&] { reduce(z, "a b -> a", Reduction::max); }, {"c64", "max", "not ordered", "abs"});
  refused([&] { reduce(z, "a b -> a", Reduction::logsumexp); }, {"logsumexp of c64"});
  refused([&] { scatter_prod(z, tensor({0}), "a b, a -> [v] b", axis("v", 1)); },
          {"scatter_prod", "c64"});
  refused([&] { static_cast<void>(z < z); }, {"less", "c64", "not ordered"});
  refused([&] { maximum(z, 1); }, {"maximum", "not ordered"});
  refused([&] { sort(z, "a [b]"); }, {"sort", "c64"});
  refused([&] { argmax(z, "a [b]"); }, {"argmax", "c64"});
  refused([&] { median(z.at({slice(0, 0)}), "a [b]"); }, {"median", "c64"});
  refused([&] { softmax(z, "a [b]"); }, {"softmax", "c64"});
  refused([&] { floor(z); }, {"floor", "c64"});
  refused([&] { erf(z); }, {"erf", "c64"});
  refused([&] { relu(z); }, {"relu", "c64"});
  refused([&] { clamp(z, 0, 1); }, {"clamp", "c64"});
  refused([&] { inverse(z, "[a b]"); }, {"inverse", "c64"});
  refused([&] { z.to(DType::f32); }, {"c64", "f32", "imaginary", "real(x)"});
  refused([&] { z(0, 0).item<float>(); }, {"c64", "f32"});
  refused([&] { x.copy_from(z); }, {"c64", "f32"});
  refused([&] { einsum(z, x, "a b, a b ->"); }, {"c64", "f32", "cast"});
  refused([&] { einsum_into(x, z, "a b -> a b"); }, {"c64", "complex tensor"});
  refused([&] { full({2}, C64(1, 2)); }, {"f32", "imaginary"});
  refused([&] { imag(x); }, {"f32"});
  refused([&] { view_as_real(x); }, {"f32"});
  refused([&] { view_as_complex(x.to(DType::i32)); }, {"i32"});
  refused([&] { randn({2}, DType::c64); }, {"c64"});
  refused([&] { static_cast<void>(z & z); }, {"bitwise_and"});
  refused([&] { z.data<float>(); }, {"c64", "f32"});
  refused([&] { pad(z, "a [b]", 1, 1, C64(0, 1)); }, {"complex"});
  refused(
      [&] {
        const Tensor leaf = z.clone().requires_grad(true);
        reduce(leaf, "a b ->", Reduction::sum).backward();
      },
      {"backward", "c64"});
  expect_error([&] { view_as_complex(ones({2, 3})); }, ErrorKind::shape, {"(2, 3)"});
  expect_error(
      [&] {
        view_as_complex(ones({3, 2}).transpose().at({every, slice(0, 2)}));
      },
      ErrorKind::shape, {"strides"});
}

}  // namespace
}  // namespace ein
