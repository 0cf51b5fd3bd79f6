// vmap: a function over one more axis is what a loop over that axis does.
#include <ein/vmap.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {

using namespace literals;

namespace {

using test::expect_error;
using test::get_values;
using Function = std::function<Tensor(const Tensor&, const Tensor&)>;

Tensor at(const Tensor& x, std::int64_t n) { return x.at({Index(n)}); }

/// What f does one by one, of operands of which each has the axis first or not at all.
Tensor looped(const Function& f, const Tensor& x, const Tensor& y, bool x_has, bool y_has) {
  std::vector<Tensor> all;
  const Size count = x_has ? x.shape()[0] : y.shape()[0];
  for (std::int64_t n = 0; n < count; ++n)
    all.push_back(f(x_has ? at(x, n) : x, y_has ? at(y, n) : y));
  return rearrange(all, "n ... -> n ...");
}

struct Case {
  const char* name;
  Function f;
};
/// Of matrices of 4 x 4 and vectors of 4; one for each kind of operation.
std::vector<Case> cases() {
  return {
      {"map", [](const Tensor& a, const Tensor& b) { return tanh(a) * b; }},
      {"index", [](const Tensor& a, const Tensor& b) { return tril(a, "[i] [j]") + b; }},
      {"contract", [](const Tensor& a, const Tensor& b) { return einsum(a, b, "i k, k -> i"); }},
      {"several",
       [](const Tensor& a, const Tensor& b) { return einsum(a, b, a, "i k, k, k j -> i j"); }},
      {"reduce", [](const Tensor& a, const Tensor& b) { return reduce(a + b, "i j -> j", "max"); }},
      {"logsumexp",
       [](const Tensor& a, const Tensor& b) { return reduce(a * b, "i j -> i", "logsumexp"); }},
      {"reindex", [](const Tensor& a,
                     const Tensor&) { return rearrange(a, "i (j k) -> k (i j)", "k"_a = 2); }},
      {"diagonal", [](const Tensor& a, const Tensor& b) { return einsum(a, "i i -> i") - b; }},
      {"flip", [](const Tensor& a, const Tensor& b) { return flip(a, "i [j]") * b; }},
      {"slice", [](const Tensor& a, const Tensor& b) { return a.at({slice(1, 3)}) * b; }},
      {"concat",
       [](const Tensor& a, const Tensor& b) {
         return pack(std::array{a, rearrange(b, "j -> 1 j")}, "* j").tensor;
       }},
      {"pad", [](const Tensor& a,
                 const Tensor& b) { return pad(a, "i [j]", {1}, {2}) + reduce(b, "j ->", "sum"); }},
      {"softmax", [](const Tensor& a, const Tensor& b) { return softmax(a + b, "i [j]"); }},
      {"norm", [](const Tensor& a, const Tensor& b) { return layer_norm(a, "i [j]") * b; }},
      {"cumsum", [](const Tensor& a, const Tensor& b) { return cumsum(a, "i [j]") * b; }},
      {"sort", [](const Tensor& a, const Tensor& b) { return sort(a + b, "i [j]").values; }},
      {"gather",
       [](const Tensor& a, const Tensor& b) {
         return gather(a, (abs(b) * 10).to(DType::i64) % 4, "[i] j, p -> p j");
       }},
      {"gather_of_one",
       [](const Tensor& a, const Tensor& b) {
         return gather(a, arange(3), "[i] j, p -> p j") + b;
       }},
      {"scatter",
       [](const Tensor& a, const Tensor& b) {
         return scatter_add(a, (abs(b) * 10).to(DType::i64) % 5, "p j, p -> [v] j", "v"_a = 5);
       }},
      {"inverse",
       [](const Tensor& a, const Tensor& b) {
         return einsum(inverse(einsum(a, a, "i k, j k -> i j") + eye(4), "[i] [j]"), b,
                       "i j, j -> i");
       }},
      {"solve",
       [](const Tensor& a, const Tensor& b) {
         return solve(einsum(a, a, "i k, j k -> i j") + eye(4), rearrange(b, "i -> i 1"),
                      "[i] [j], [i] k -> [j] k");
       }},
      {"map of names",
       [](const Tensor& a, const Tensor& b) {
         return ein::map(
             a, b, "i k, j -> i j",
             [](const Tensor& x, const Tensor& y) { return (x - y) * (x - y); }, "max");
       }},
      {"constant", [](const Tensor&, const Tensor&) { return arange(3); }},
      {"grad",
       [](const Tensor& a, const Tensor& b) {
         return grad([&](const Tensor& x) {
           return reduce(tanh(einsum(x, b, "i k, k -> i")), "i ->", "sum");
         })(a);
       }},
      {"vmap",
       [](const Tensor& a, const Tensor& b) {
         return vmap([&](const Tensor& row) { return einsum(row, b, "k, k ->"); }, "m")(a);
       }},
  };
}

TEST(Vmap, IsWhatALoopDoes) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    for (const int which : {1, 2, 3}) {
      const bool x_has = which & 1, y_has = which & 2;
      const Tensor x = randn(x_has ? Shape{3, 4, 4} : Shape{4, 4}),
                   y = randn(y_has ? Shape{3, 4} : Shape{4});
      const std::string pattern =
          std::string(x_has ? "n ..., " : "..., ") + (y_has ? "n ..." : "...");
      const Tensor want = looped(c.f, x, y, x_has, y_has);
      const Tensor got = vmap(c.f, pattern)(x, y);
      EXPECT_EQ(got.shape(), want.shape());
      EXPECT_EQ(got.dtype(), want.dtype());
      EXPECT_TRUE(all_close(got, want, 1e-4, 1e-5)) << which;
      auto compiled =
          compile([&](const Tensor& a, const Tensor& b) { return vmap(c.f, pattern)(a, b); });
      EXPECT_TRUE(all_close(compiled(x, y), want, 1e-4, 1e-5)) << which;
    }
  }
}

TEST(Vmap, HasTheGradientsOfALoop) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Tensor x = randn({3, 4, 4}, DType::f64), y = randn({4}, DType::f64);
    x.requires_grad(true);
    y.requires_grad(true);
    const auto gradients_of = [&](const Tensor& value) {
      if (!value.requires_grad()) return std::vector<Tensor>{};
      return gradients(reduce(value * value, "... ->", "sum"), std::array{x, y});
    };
    const auto want = gradients_of(looped(c.f, x, y, true, false));
    const auto got = gradients_of(vmap(c.f, "n ..., ...")(x, y));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(all_close(got[i], want[i], 1e-8, 1e-9)) << i;
  }
}

TEST(Vmap, GivesAGradientForEachExample) {
  const Tensor w = randn({4, 3}, DType::f64), xs = randn({5, 4}, DType::f64),
               ys = randn({5, 3}, DType::f64);
  w.requires_grad(true);
  const auto gradient = [&](const Tensor& x, const Tensor& y) {
    const Tensor d = tanh(einsum(x, w, "i, i o -> o")) - y;
    return gradients(reduce(d * d, "o ->", "mean"), std::array{w})[0];
  };
  const Tensor all = vmap(gradient, "n")(xs, ys).detach();
  EXPECT_EQ(all.shape(), (Shape{5, 4, 3}));
  for (std::int64_t n = 0; n < 5; ++n)
    EXPECT_TRUE(all_close(at(all, n), gradient(at(xs, n), at(ys, n)).detach(), 1e-12, 1e-12));
  // The same by functions of functions, whose arguments are what is differentiated.
  const auto loss = [](const Tensor& v, const Tensor& x, const Tensor& y) {
    const Tensor d = tanh(einsum(x, v, "i, i o -> o")) - y;
    return reduce(d * d, "o ->", "mean");
  };
  const auto found = vmap(grad(loss), "..., n ..., n ...")(w.detach(), xs, ys);
  EXPECT_EQ(get_values(found[0]), get_values(all));
  EXPECT_EQ(found[1].shape(), xs.shape());
}

TEST(Vmap, TakesTheAxisWhereItIs) {
  const Tensor x = randn({2, 3, 4});
  const auto f = [](const Tensor& a) { return reduce(a, "i j -> j", "sum"); };
  EXPECT_EQ(get_values(vmap(f, "... n")(x)), get_values(reduce(x, "i j n -> n j", "sum")));
  EXPECT_EQ(get_values(vmap(f, "... n -> ... n")(x)), get_values(reduce(x, "i j n -> j n", "sum")));
  const auto pair = [](const Tensor& a, const Tensor& b) { return std::array{a + b, a - b}; };
  const auto [sum, difference] = vmap(pair, "n")(x, x);
  EXPECT_EQ(get_values(sum), get_values(x + x));
  EXPECT_EQ(get_values(difference), get_values(x - x));
}

TEST(Vmap, TypesLoseAndRegainTheAxis) {
  const Float<"b n=5 c"> x = randn({2, 5, 3});
  const Float<"c"> bias = randn({3});
  const auto f = []<class X>(const X& a, const Float<"c">& b) {
    static_assert(std::is_same_v<X, Float<"b c">>);
    return a + b;
  };
  const auto y = vmap<"n">(f)(x, bias);
  static_assert(std::is_same_v<decltype(y), const Float<"n=5 b c">>);
  EXPECT_EQ(get_values(y), get_values(rearrange(x + bias, "b n c -> n b c")));
  const auto sums = vmap<"n">([](const Float<"b c">& a) { return reduce<"b c ->">(a, "sum"); })(x);
  static_assert(std::is_same_v<decltype(sums), const Float<"n=5">>);
  const Float<"*batch n c"> open = x;
  const auto z = vmap<"n">([](const auto& a) { return exp(a); })(open);
  static_assert(std::is_same_v<decltype(z), const Float<"n *batch c">>);
  EXPECT_EQ(get_values(z), get_values(rearrange(exp(Tensor(x)), "b n c -> n b c")));
}

TEST(Vmap, DrawsForEachOrOnceForAll) {
  const Tensor x = zeros({3});
  const auto f = [](const Tensor& a) { return a + rand({4}); };
  const Tensor each = vmap(f, "n")(x), same = vmap(f, "n", {.same_random_numbers = true})(x);
  EXPECT_NE(get_values(at(each, 0)), get_values(at(each, 1)));
  EXPECT_NE(get_values(each), get_values(vmap(f, "n")(x)));
  EXPECT_EQ(get_values(at(same, 0)), get_values(at(same, 1)));
  auto compiled = compile([&](const Tensor& a) { return vmap(f, "n")(a); });
  const Tensor first = compiled(x);
  EXPECT_NE(get_values(at(first, 0)), get_values(at(first, 1)));
  EXPECT_NE(get_values(first), get_values(compiled(x)));
}

TEST(Vmap, OfComplexNumbers) {
  const Tensor z = ein::complex(randn({3, 4}), randn({3, 4}));
  const auto f = [](const Tensor& a) { return einsum(a, a, "i, j -> i j"); };
  EXPECT_EQ(get_values(vmap(f, "n")(z)), get_values(einsum(z, z, "n i, n j -> n i j")));
}

TEST(Vmap, OfSeveralResults) {
  const Tensor x = randn({3, 4});
  const auto f = [](const Tensor& a) { return reduce(a * a, "i ->", "sum"); };
  const auto [value, slope] = vmap(value_and_grad(f), "n")(x);
  EXPECT_TRUE(all_close(value, reduce(x * x, "n i -> n", "sum")));
  EXPECT_TRUE(all_close(slope, 2 * x));
}

TEST(Vmap, TellsATensorFromItsDetachedTwin) {
  const Tensor p = full({}, 2.0, DType::f64), x = arange(3).to(DType::f64);
  p.requires_grad(true);
  for (const bool first : {true, false}) {
    const auto f = [&](const Tensor& a) { return first ? a * p.detach() * p : a * p * p.detach(); };
    const Tensor sum = reduce(vmap(f, "n")(x), "n ->", "sum");
    EXPECT_EQ(gradients(sum, std::array{p})[0].item<double>(), 6) << first;
  }
}

TEST(Vmap, MistakesAreExplained) {
  const Tensor x = randn({3, 4}), y = randn({5, 4});
  const auto f = [](const Tensor& a, const Tensor& b) { return a + b; };
  expect_error([&] { vmap(f, "n")(x, y); }, ErrorKind::size,
               {"vmap: axis 'n' has two sizes: 3 in argument 1, 5 in argument 2"});
  expect_error([&] { vmap(f, "n ...")(x, x); }, ErrorKind::pattern,
               {"1 arguments, the call has 2"});
  expect_error([&] { vmap(f, "n ..., m ...")(x, x); }, ErrorKind::pattern, {"one axis"});
  expect_error([&] { vmap(f, "n (..., ...")(x, x); }, ErrorKind::syntax, {"vmap"});
  expect_error([&] { vmap(f, "n=3 ..., n ...")(x, x); }, ErrorKind::pattern, {"vmap"});
  expect_error([&] { vmap(f, "..., ...")(x, x); }, ErrorKind::pattern, {"no axis"});
  expect_error([&] { vmap(f, "n")(x, zeros({})); }, ErrorKind::rank, {"argument 2 is a scalar"});
  const Tensor outside = zeros({4});
  const auto writes = [&](const Tensor& a) {
    outside.copy_from(a);
    return a;
  };
  expect_error([&] { vmap(writes, "n")(y); }, ErrorKind::value,
               {"written to inside of a function that ein::vmap traces"});
  const auto reads = [](const Tensor& a) { return a * a.at({Index(0)}).item(); };
  expect_error([&] { vmap(reads, "n")(y); }, ErrorKind::value,
               {"a value of a function that ein::vmap traces"});
  const auto moves = [&](const Tensor& position) { return x.at({every, slice_of(position, 2)}); };
  expect_error([&] { vmap(moves, "n")(arange(2)); }, ErrorKind::value,
               {"vmap: operation gather can't be done along axis 'n'", "help: gather"});
}

// What functions are called with can be taken as `auto&`, in all that calls functions.
TEST(Vmap, AndItsKinTakeFunctionsOfReferences) {
  const Tensor a = randn({3}), b = randn({3});
  const Float<"n"> typed = a;
  const auto twice = [](auto& x) { return x * 2.0; };
  const auto same = [](auto& g, auto&, auto&) { return g; };
  EXPECT_EQ(map(a, b, "i, i -> i", [](auto& x, auto& y) { return x * y; }).shape(), (Shape{3}));
  EXPECT_EQ(vmap(twice, "n")(a).shape(), (Shape{3}));
  EXPECT_EQ(compile(twice)(a).shape(), (Shape{3}));
  EXPECT_EQ(compile(twice)(typed).shape(), (Shape{3}));
  EXPECT_EQ(checkpoint(twice, typed).shape(), (Shape{3}));
  EXPECT_EQ(custom(twice, same)(typed).shape(), (Shape{3}));
  EXPECT_EQ(grad([&](auto& x) { return einsum(x, b, "i, i ->"); })(a).shape(), (Shape{3}));
  // Of a product of sizes a tensor alone does not say which these are.
  const Float<"h d"> split = randn({2, 3});
  const auto joined = rearrange<"h d -> (h d)">(split);
  EXPECT_EQ(checkpoint(twice, joined).shape(), (Shape{6}));
  EXPECT_EQ(custom(twice, same)(joined).shape(), (Shape{6}));
  EXPECT_EQ(grad([](auto& x) { return reduce(x, "i ->"_p, "sum"); })(joined).shape(), (Shape{6}));
}

}  // namespace
}  // namespace ein
