// Named operations on typed tensors: the types of their results, and the values, which are those of
// the same call on plain tensors.
#include <ein/typed_named.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using namespace ein::literals;
using test::expect_error;
using test::get_values;

/// The type is the one expected, what it says is true of the tensor, and the values are `want`'s.
template <class Expected, class Result>
void expect_same(const Result& got, const Tensor& want) {
  static_assert(std::is_same_v<Result, Expected>);
  EXPECT_EQ(got.shape(), want.shape());
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(get_values(got), get_values(want));
  if constexpr (!std::is_same_v<Expected, Tensor>) {
    EXPECT_NO_THROW(Expected(static_cast<const Tensor&>(got)));
  }
}
Tensor plain(const Tensor& x) { return x; }

class TypedNamed : public testing::Test {
 protected:
  Float<"batch seq vocab"> logits = randn({2, 3, 4});
  Long<"batch seq"> words = arange(6).view({2, 3}) % 4;
  Float<"vocab dim"> table = randn({4, 5});
  Float<"batch seq dim"> hidden = randn({2, 3, 5});
  Double<"batch i j"> matrices = symmetric();
  Double<"batch i k"> sides = randn({2, 3, 2}).to(DType::f64);
  Double<"batch n m=2"> tall = randn({2, 3, 2}).to(DType::f64);

  static Tensor symmetric() {
    const Tensor x = randn({2, 3, 3}).to(DType::f64);
    return einsum(x, x, "b i k, b j k -> b i j") + eye(3).to(DType::f64) * 0.1;
  }
};

TEST_F(TypedNamed, Gather) {
  const Tensor want = gather(plain(table), plain(words), "[v] d, b s -> b s d");
  expect_same<Float<"batch seq dim">>(gather(table, words, "[v] d, b s -> b s d"_p), want);
  expect_same<Float<"batch seq dim">>(gather<"[v] d, b s -> b s d">(table, words), want);
  expect_same<Tensor>(gather(table, words, "[v] d, b s -> b s d"), want);
  expect_same<Tensor>(gather(plain(table), words, "[v] d, b s -> b s d"_p), want);
  expect_same<Tensor>(gather(plain(table), plain(words), "[v] d, b s -> b s d"_p), want);
  expect_same<Float<"batch seq">>(gather<"b s [v], b s -> b s">(logits, words),
                                  gather(plain(logits), plain(words), "b s [v], b s -> b s"));
  const Float<"... vocab"> open = logits;
  expect_same<Float<"...">>(gather<"... [v], ... -> ...">(open, words),
                            gather(plain(logits), plain(words), "... [v], ... -> ..."));
  const Float<"vocab 6"> merged = randn({4, 6});
  const Tensor split = gather(plain(merged), plain(words), "[v] (h d), b s -> b h s d", "h"_a = 2);
  static_assert(std::is_same_v<decltype(gather<"[v] (h d), b s -> b h s d">(merged, words,
                                                                            "h"_a = size_c<2>)),
                               Float<"batch h=2 seq d=3">>);
  expect_same<Float<"batch h seq d">>(
      gather(merged, words, "[v] (h d), b s -> b h s d"_p, "h"_a = 2), split);
}

TEST_F(TypedNamed, ScattersAndOneHot) {
  const auto of_plain = [&](const auto& scatter) { return scatter(plain(hidden), plain(words)); };
  expect_same<Float<"v dim">>(scatter_add<"b s d, b s -> [v] d">(hidden, words, "v"_a = 4),
                              of_plain([](const auto& x, const auto& i) {
                                return scatter_add(x, i, "b s d, b s -> [v] d", "v"_a = 4);
                              }));
  expect_same<Float<"v=4 dim">>(
      scatter_max(hidden, words, "b s d, b s -> [v] d"_p, "v"_a = size_c<4>),
      of_plain([](const auto& x, const auto& i) {
        return scatter_max(x, i, "b s d, b s -> [v] d", "v"_a = 4);
      }));
  expect_same<Long<"4">>(scatter_add<"b s, b s -> [4]">(words, words),
                         scatter_add(plain(words), plain(words), "b s, b s -> [4]"));
  const Int<"batch seq"> narrow = words.to<std::int32_t>();
  expect_same<Long<"4">>(scatter_prod<"b s, b s -> [4]">(narrow, words),
                         scatter_prod(plain(narrow), plain(words), "b s, b s -> [4]"));
  expect_same<Int<"4">>(scatter_min<"b s, b s -> [4]">(narrow, words),
                        scatter_min(plain(narrow), plain(words), "b s, b s -> [4]"));
  expect_same<Double<"4">>(
      scatter_add(narrow, words, "b s, b s -> [4]"_p, as<DType::f64>()),
      scatter_add(plain(narrow), plain(words), "b s, b s -> [4]", as(DType::f64)));
  expect_same<Tensor>(scatter_add(narrow, words, "b s, b s -> [4]"_p, as(DType::f64)),
                      scatter_add(plain(narrow), plain(words), "b s, b s -> [4]", as(DType::f64)));
  expect_same<Tensor>(scatter_add(narrow, words, "b s, b s -> [4]"),
                      scatter_add(plain(narrow), plain(words), "b s, b s -> [4]"));

  const Tensor want = one_hot(plain(words), "b s -> b s [v]", "v"_a = 4);
  expect_same<Float<"batch seq v">>(one_hot(words, "b s -> b s [v]"_p, "v"_a = 4), want);
  expect_same<Float<"v=4 batch seq">>(one_hot<"b s -> [v] b s">(words, "v"_a = size_c<4>),
                                      one_hot(plain(words), "b s -> [v] b s", "v"_a = 4));
  expect_same<Float<"batch seq 4">>(one_hot<"b s -> b s [4]">(words), want);
  expect_same<Long<"batch seq 4">>(one_hot<"b s -> b s [4]">(words, as<DType::i64>()),
                                   one_hot(plain(words), "b s -> b s [4]", DType::i64));
  expect_same<Tensor>(one_hot(words, "b s -> b s [v]", "v"_a = 4), want);
  expect_same<Tensor>(one_hot(words, "b s -> b s [4]", DType::i64),
                      one_hot(plain(words), "b s -> b s [4]", DType::i64));
}

TEST_F(TypedNamed, Losses) {
  const Tensor want = cross_entropy(plain(logits), plain(words), "b s [v], b s");
  expect_same<Float<"">>(cross_entropy(logits, words, "b s [v], b s"_p), want);
  expect_same<Float<"">>(cross_entropy<"b s [v], b s">(logits, words), want);
  expect_same<Tensor>(cross_entropy(logits, words, "b s [v], b s"), want);
  expect_same<Float<"batch">>(cross_entropy<"b s [v], b s -> b">(logits, words),
                              cross_entropy(plain(logits), plain(words), "b s [v], b s -> b"));
  expect_same<Float<"seq batch">>(
      cross_entropy<"b s [v], b s -> s b">(logits, words, {.smoothing = 0.1}),
      cross_entropy(plain(logits), plain(words), "b s [v], b s -> s b", {.smoothing = 0.1}));
  const auto likely = softmax(logits, "b s [v]");
  expect_same<Float<"">>(cross_entropy(logits, likely, "b s [v], b s v"_p),
                         cross_entropy(plain(logits), plain(likely), "b s [v], b s v"));
  const Half<"batch seq vocab"> half = logits.to<f16>();
  expect_same<Half<"">>(cross_entropy<"b s [v], b s">(half, words),
                        cross_entropy(plain(half), plain(words), "b s [v], b s"));

  const Float<"dim seq batch"> turned = randn({5, 3, 2});
  expect_same<Float<"">>(mse_loss(hidden, turned),
                         mse_loss(plain(hidden), rearrange(turned, "d s b -> b s d")));
  expect_same<Float<"">>(mse_loss(words, words), mse_loss(plain(words), plain(words)));
}

TEST_F(TypedNamed, Extremes) {
  expect_same<Long<"batch seq">>(argmax(logits, "b s [v]"_p), argmax(plain(logits), "b s [v]"));
  expect_same<Long<"batch vocab">>(argmin<"b [s] v">(logits), argmin(plain(logits), "b [s] v"));
  expect_same<Long<"batch">>(argmax<"b [s v]">(logits), argmax(plain(logits), "b [s v]"));
  expect_same<Long<"batch seq">>(argmax<"... [v]">(logits), argmax(plain(logits), "... [v]"));
  expect_same<Long<"">>(argmax<"[...]">(logits), argmax(plain(logits), "[...]"));
  expect_same<Tensor>(argmax(logits, "b s [v]"), argmax(plain(logits), "b s [v]"));
  expect_same<Tensor>(argmax<"b s [v]">(plain(logits)), argmax(plain(logits), "b s [v]"));
  const Float<"*batch 4"> many = logits;
  expect_same<Long<"*batch">>(argmax<"... [v]">(many), argmax(plain(logits), "... [v]"));

  const auto best = top_k<"b s [v]">(logits, 2);
  const Sorted want = top_k(plain(logits), "b s [v]", 2);
  expect_same<Float<"batch seq vocab">>(best.values, want.values);
  expect_same<Long<"batch seq vocab">>(best.positions, want.positions);
  const auto least = top_k(many, "... [v]"_p, 2, true);
  expect_same<Float<"*batch v">>(least.values, top_k(plain(logits), "... [v]", 2, true).values);
  expect_same<Tensor>(top_k(logits, "b s [v]", 2).values, want.values);
  const Float<"n n+1"> band = randn({3, 4});
  const Scope names(band);
  expect_same<Float<"_ n+1">>(top_k<"[i] j">(band, 2).values,
                              top_k(plain(band), "[i] j", 2).values);
}

TEST_F(TypedNamed, QuantilesAndCounts) {
  expect_same<Float<"batch vocab">>(median<"b [s] v">(logits), median(plain(logits), "b [s] v"));
  expect_same<Float<"batch seq">>(quantile(logits, "b s [v]"_p, 0.3),
                                  quantile(plain(logits), "b s [v]", 0.3));
  expect_same<Float<"batch seq _">>(quantile<"b s [v]">(logits, {0.3, 0.5}),
                                    quantile(plain(logits), "b s [v]", {0.3, 0.5}));
  expect_same<Float<"batch">>(median<"b [s]">(words), median(plain(words), "b [s]"));
  const Float<"1 seq 1"> ones_around = randn({1, 3, 1});
  expect_same<Float<"1 1">>(median<"1 [s] 1">(ones_around), median(plain(ones_around), "1 [s] 1"));
  expect_same<Long<"1 1">>(argmax<"1 [s] 1">(ones_around), argmax(plain(ones_around), "1 [s] 1"));
  expect_same<Tensor>(quantile(logits, "b s [v]", 0.3), quantile(plain(logits), "b s [v]", 0.3));
  expect_same<Long<"batch seq _">>(histogram<"b s [v]">(logits, 10, -1, 1),
                                   histogram(plain(logits), "b s [v]", 10, -1, 1));
  const Float<"edges"> edges = arange(4).to(DType::f32) - 1.5;
  expect_same<Long<"seq batch vocab">>(
      searchsorted<"[e], b s v -> s b v">(edges, logits, true),
      searchsorted(plain(edges), plain(logits), "[e], b s v -> s b v", true));
  const auto chances = softmax(logits, "b s [v]");
  const auto drawn = multinomial(chances, "b s [v]"_p, 7);
  static_assert(std::is_same_v<decltype(drawn), const Long<"batch seq _">>);
  EXPECT_EQ(drawn.shape(), (Shape{2, 3, 7}));
  const auto kept = dropout(bernoulli(chances), 0.5);
  static_assert(std::is_same_v<decltype(kept), const Float<"batch seq vocab">>);
}

TEST_F(TypedNamed, WhereElementsLie) {
  expect_same<Float<"batch seq vocab">>(pad<"b [s v]">(logits, 1, {0, 2}),
                                        pad(plain(logits), "b [s v]", 1, {0, 2}));
  const Float<"b s=3 c"> sized = logits;
  expect_same<Float<"b s c">>(pad(sized, "b [s] c"_p, 1, 1, PadMode::wrap),
                              pad(plain(sized), "b [s] c", 1, 1, PadMode::wrap));
  expect_same<Tensor>(pad(sized, "b [s] c", {1}, {2}), pad(plain(sized), "b [s] c", 1, 2));
  expect_same<Float<"batch seq">>(diagonal<"b [s v]">(logits), diagonal(plain(logits), "b [s v]"));
  expect_same<Float<"seq batch">>(
      diagonal(rearrange<"b s v -> s b v">(logits), "[s] b [v]"_p),
      diagonal(rearrange(plain(logits), "b s v -> s b v"), "[s] b [v]"));
  expect_same<Float<"batch _ _ vocab">>(from_diagonal<"b [s] v">(logits, 1),
                                        from_diagonal(plain(logits), "b [s] v", 1));
}

TEST_F(TypedNamed, Matrices) {
  expect_same<Double<"batch j i">>(inverse(matrices, "b [i j]"_p),
                                   inverse(plain(matrices), "b [i j]"));
  expect_same<Double<"j batch i">>(
      inverse<"[i] b [j]">(rearrange<"b i j -> i b j">(matrices)),
      inverse(rearrange(plain(matrices), "b i j -> i b j"), "[i] b [j]"));
  expect_same<Double<"batch">>(det<"b [i j]">(matrices), det(plain(matrices), "b [i j]"));
  expect_same<Double<"batch i j">>(cholesky(matrices, "b [i j]"),
                                   cholesky(plain(matrices), "b [i j]"));
  expect_same<Double<"batch j k">>(
      solve<"p [n m], p [n] k -> p [m] k">(matrices, sides),
      solve(plain(matrices), plain(sides), "p [n m], p [n] k -> p [m] k"));
  const auto more = sides.rename<"i", "n">();
  expect_same<Double<"batch m=2 k">>(
      lstsq(tall, more, "p [n m], p [n] k -> p [m] k"_p),
      lstsq(plain(tall), plain(more), "p [n m], p [n] k -> p [m] k"));

  const auto factors = qr<"b [n m]">(tall);
  const QrFactors want = qr(plain(tall), "b [n m]");
  expect_same<Double<"batch n _">>(factors.q, want.q);
  expect_same<Double<"batch _ m=2">>(factors.r, want.r);
  const Double<"n=3 b m=2"> between = rearrange(tall, "b n m -> n b m");
  const auto parts = svd(between, "[n] b [m]"_p);
  const SvdFactors of_plain = svd(plain(between), "[n] b [m]");
  // Between rows and columns, the least of both lies where the rows were.
  expect_same<Double<"n=3 b 2">>(parts.u, of_plain.u);
  expect_same<Double<"2 b">>(parts.s, of_plain.s);
  expect_same<Double<"2 b m=2">>(parts.vt, of_plain.vt);
  const auto pairs = eigh<"b [i j]">(matrices);
  const Eigenpairs of_matrices = eigh(plain(matrices), "b [i j]");
  expect_same<Double<"batch j">>(pairs.values, of_matrices.values);
  expect_same<Double<"batch i j">>(pairs.vectors, of_matrices.vectors);
  expect_same<Tensor>(eigh(matrices, "b [i j]").values, of_matrices.values);
  expect_same<Double<"j batch">>(eigh<"[i] b [j]">(rearrange<"b i j -> i b j">(matrices)).values,
                                 rearrange(of_matrices.values, "b j -> j b"));

  expect_same<Float<"batch seq dim">>(matmul(logits, table), matmul(plain(logits), plain(table)));
  const Float<"dim"> vector = randn({5});
  expect_same<Float<"batch seq">>(matmul(hidden, vector), matmul(plain(hidden), plain(vector)));
  expect_same<Float<"">>(matmul(vector, vector), matmul(plain(vector), plain(vector)));
  const Float<"_ dim"> unnamed = randn({2, 5});
  expect_same<Tensor>(matmul(unnamed, vector), matmul(plain(unnamed), plain(vector)));
}

TEST_F(TypedNamed, BoundsMeetByName) {
  const Float<"dim"> low = rand({5}) - 1.0;
  const Float<"seq batch"> high = rand({3, 2});
  const Tensor of_high = rearrange(high, "s b -> b s 1");
  expect_same<Float<"batch seq dim">>(clamp(hidden, low, high),
                                      clamp(plain(hidden), plain(low), of_high));
  expect_same<Float<"batch seq dim">>(clamp(hidden, low, 0.5),
                                      clamp(plain(hidden), plain(low), 0.5));
  expect_same<Float<"batch seq dim">>(clamp(hidden, -1, high), clamp(plain(hidden), -1, of_high));
  const Float<"dim"> longer = rand({6});
  expect_error([&] { clamp(hidden, longer, 0.5); }, ErrorKind::size, {"axis 'dim' has two sizes"});
}

TEST_F(TypedNamed, SizesByName) {
  EXPECT_EQ(hidden.size<"seq">(), 3);
  EXPECT_EQ(hidden.size<"dim">(), 5);
  const Float<"b ... h=5 2"> open = randn({4, 1, 3, 5, 2});
  constexpr auto known = decltype(open.size<"h">())();
  static_assert(known == 5);
  EXPECT_EQ(open.size<"b">(), 4);
  const Size as_any = open.size<"h">();
  EXPECT_EQ(as_any * open.size<"b">() + open.size<"h">(), 25);
  // Beside a pattern it is a size that types say.
  const auto split = rearrange(hidden, "b s (d k) -> b s d k"_p, "d"_a = open.size<"h">());
  static_assert(std::is_same_v<decltype(split), const Float<"batch seq d=5 k">>);
  const Float<"*lead n"> behind = randn({4, 3, 7});
  EXPECT_EQ(behind.size<"n">(), 7);

  EXPECT_EQ(size_of(hidden, "dim"), 5);
  EXPECT_EQ(size_of(behind, "n"), 7);
  expect_error([&] { size_of(hidden, "hidden"); }, ErrorKind::axis_argument,
               {"size_of: no axis of the type \"batch seq dim\", or more than one, is 'hidden'; it "
                "names 'batch', 'seq', 'dim'"});
  expect_error(
      [&] {
        size_of(Float<"_ 5">(randn({2, 5})), "b");
      },
      ErrorKind::axis_argument, {"it names none"});
}

TEST_F(TypedNamed, SlicesByName) {
  const Tensor first = zeros({1}, DType::i64);
  expect_same<Float<"batch seq dim">>(hidden.at<"dim">(slice_of(first, 2)),
                                      plain(hidden).at({every, every, slice(0, 2)}));
  expect_same<Float<"batch seq dim">>(hidden.at<"seq">(slice(0, 2)),
                                      plain(hidden).at({every, slice(0, 2)}));
  expect_same<Float<"batch dim">>(hidden.at<"seq">(-1), plain(hidden).at({every, -1}));
  const Float<"b ... h=5 2"> open = randn({4, 1, 3, 5, 2});
  expect_same<Float<"b ... h 2">>(open.at<"h">(slice(1, 5, 2)),
                                  plain(open).at({every, every, every, slice(1, 5, 2)}));
  expect_same<Float<"... h=5 2">>(open.at<"b">(open.size<"h">() - 4), plain(open)[1]);
  expect_same<Tensor>(hidden.at({0, 1}), plain(hidden)[0][1]);
  hidden.at<"seq">(0).fill(7);
  EXPECT_EQ(plain(hidden)[1][0][2].item(), 7);
  const Float<"n n+1"> band = randn({3, 4});
  const Scope names(band);
  expect_same<Float<"_ n+1">>(band.at<"n">(slice(0, 2)), plain(band).at({slice(0, 2)}));
}

Tensor total(const Floating<"b s"> x) { return reduce(x, "b s ->", "sum"); }
std::int64_t count(const Integer<"b s"> x) { return x.size<"b">() * size_of(x, "s"); }

TEST_F(TypedNamed, AnyDTypeOfAKind) {
  const Tensor x = randn({2, 3});
  expect_same<Tensor>(total(x), reduce(x, "b s ->", "sum"));
  const Half<"b s"> half = x.to(DType::f16);
  EXPECT_EQ(total(half).dtype(), DType::f16);
  EXPECT_EQ(count(words), 6);
  EXPECT_EQ(count(words.to<std::int8_t>()), 6);
  const Floating<"b s"> any = x;
  expect_same<Double<"b s">>(any.to<double>(), x.to(DType::f64));
  expect_same<Tensor>(any + half, x + plain(half));
  expect_same<Tensor>(argmax(any, "b [s]"), argmax(x, "b [s]"));
  expect_same<Tensor>(argmax<"b [s]">(any), argmax(x, "b [s]"));
  const Scope names(any, half);
  expect_error([&] { total(plain(words)); }, ErrorKind::dtype,
               {"the type wants a floating-point dtype, the tensor holds i64"});
  expect_error([&] { count(plain(words) > 1); }, ErrorKind::dtype,
               {"the type wants an integer dtype, the tensor holds bool"});
  expect_error([&] { count(arange(3)); }, ErrorKind::rank, {});
}

TEST_F(TypedNamed, GradientsFlowAndCompiledFunctionsAreTyped) {
  table.requires_grad(true);
  const auto loss = [](const Tensor& weights, const Tensor& ids) -> Tensor {
    const Float<"vocab dim"> w = weights;
    const auto x = gather<"[v] d, b s -> b s d">(w, Long<"batch seq">(ids));
    return cross_entropy<"b s [d], b s">(x, Long<"batch seq">(ids));
  };
  loss(table, words).backward();
  const Tensor got = table.grad();
  table.zero_grad();
  cross_entropy(gather(plain(table), plain(words), "[v] d, b s -> b s d"), plain(words),
                "b s [d], b s")
      .backward();
  EXPECT_EQ(get_values(got), get_values(table.grad()));
  EXPECT_EQ(get_values(compile(loss)(table.detach(), words)), get_values(loss(table, words)));
}

// What is inferred of axes in brackets is true of the results, for types and patterns of all forms.
TEST(TypesOfAxesInBrackets, AreTrue) {
  using Results = std::vector<Tensor>;
  using grammar::read_shape_spec;
  const struct {
    Operation op;
    std::size_t which;  // the first of its results, or its form
    bool resizes;
    Results (*run)(const Tensor&, RuntimeText);
  } calls[] = {
#define EIN_CALL(op, which, resizes, ...) \
  {Operation::op, which, resizes, [](const Tensor& x, RuntimeText p) -> Results { __VA_ARGS__ }},
    EIN_CALL(argmax, 0, false, return {argmax(x, p)};)
        EIN_CALL(median, 0, false, return {median(x, p)};)
            EIN_CALL(quantile, 1, false, return {quantile(x, p, {0.2, 0.4})};)
                EIN_CALL(histogram, 0, false, return {histogram(x, p, 7, 0, 1)};)
                    EIN_CALL(multinomial, 0, false, return {multinomial(x, p, 7)};)
                        EIN_CALL(top_k, 0, true, return {top_k(x, p, 1).values};)
                            EIN_CALL(pad, 0, true, return {pad(x, p, 1, 2)};) EIN_CALL(
                                flip, 0, false, return {flip(x, p)};)
                                EIN_CALL(diagonal, 0, true, return {diagonal(x, p, 1)};) EIN_CALL(
                                    from_diagonal, 0, false, return {from_diagonal(x, p, 1)};)
                                    EIN_CALL(inverse, 0, false, return {inverse(x, p)};)
                                        EIN_CALL(det, 0, false, return {det(x, p)};) EIN_CALL(
                                            qr, 0, false, auto f = qr(x, p); return {f.q, f.r};)
                                            EIN_CALL(svd, 0, false, auto f = svd(x, p);
                                                     return {f.u, f.s, f.vt};)
                                                EIN_CALL(eigh, 0, false, auto f = eigh(x, p);
                                                         return {f.values, f.vectors};)
#undef EIN_CALL
  };
  const char* const patterns[] = {"[i] j k",   "i [j] k",   "i j [k]", "[i j] k",     "[i] j [k]",
                                  "i [j k]",   "... [k]",   "[i] ...", "[i] ... [k]", "... [j k]",
                                  "[i j] ...", "i [...] k", "[...]"};
  const char* const types[] = {"a b c", "_ b _", "a=2 b c=4", "a ... c", "*x c",    "a *x", "...",
                               "2 b 4", "a b 4", "a a+1 a+2", "a a+1 c", "2*h b c", "_ _ _"};
  // Of three sizes, so that an axis at another place is found; and of square matrices.
  const Shape shapes[] = {{2, 3, 4}, {3, 3, 4}, {3, 4, 3}, {4, 3, 3}};
  std::size_t known = 0;
  const auto check = [&](const auto& call, const char* text, const char* type, const Tensor& x) {
    const grammar::Reading reading = grammar::match_pattern(text);
    const grammar::Pattern pattern = reading.buffer.pattern(text);
    const grammar::SpecReading spec = read_shape_spec(type);
    const grammar::OperandSpec operand{&spec};
    const bool has_sums = std::string_view(type).find_first_of("+*") != std::string_view::npos;
    if (grammar::check_pattern(call.op, pattern, 1) || (call.resizes && has_sums)) return;
    SCOPED_TRACE(std::string(name(call.op)) + " \"" + text + "\" of \"" + type + "\" " +
                 x.shape().to_string());
    Scope names;
    Results results;
    try {
      detail::require_type(rand({1}), DType::f32, read_shape_spec("h"));  // of "2*h"
      detail::require_type(x, DType::f32, spec);
      results = call.run(x, runtime(text));
    } catch (const Error& error) {  // the type has other sizes; a square matrix is wanted
      EXPECT_EQ(error.kind(), ErrorKind::size) << error.what();
      return;
    }
    std::optional<Scope> own;  // names of axes that grow are of another size here
    if (call.resizes) own.emplace();
    for (std::size_t k = 0; k < results.size(); ++k) {
      const grammar::InferredType found =
          grammar::infer_type(call.op, pattern, {&operand, 1}, {}, grammar::Moves::no,
                              &info(call.op).axes[call.which + k]);
      EXPECT_FALSE(found.mistake);
      if (!found.is_known) continue;
      ++known;
      const std::string axes(found.axes.view());
      EXPECT_NO_THROW(
          detail::require_type(results[k].to(DType::f32), DType::f32, read_shape_spec(axes)))
          << axes << " for " << results[k].shape().to_string();
    }
  };
  for (const auto& call : calls) {
    for (const char* const text : patterns) {
      for (const char* const type : types) {
        for (const Shape& shape : shapes) check(call, text, type, rand(shape) + 0.1);
      }
    }
  }
  EXPECT_GT(known, 1000u);
}

}  // namespace
}  // namespace ein
