// Typed tensors: the types of results, and what a conversion checks when it runs.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <ein/call.hpp>
#include <ein/detail/pattern_message.hpp>
#include <ein/ein.hpp>
#include "ein/grammar/match.hpp"
#include "support/random_pattern.hpp"

namespace {

using namespace ein::literals;
using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::Float;
using ein::ones;
using ein::Shape;
using ein::size_c;
using ein::Tensor;

// --- the types of results ---

/// The type is the one expected, and what it says is true of the tensor.
template <class Expected, class Result>
void expect_result(const Result& result, const Shape& shape) {
  static_assert(std::is_same_v<Result, Expected>);
  EXPECT_EQ(result.shape(), shape);
  if constexpr (!std::is_same_v<Expected, Tensor>) {
    EXPECT_NO_THROW(Expected(static_cast<const Tensor&>(result)));
  }
}

struct TypedResults : testing::Test {
  ein::Scope names;  // what the types of results say is true together
  Float<"heads"> heads = ones({3});
  Float<"d"> d = ones({4});
  Float<"batch seq hidden=8"> x = ones({2, 3, 8});
  Float<"hidden=8 out=6"> w = ones({8, 6});
  Float<"batch seq"> mask = ones({2, 3});
  Float<"*batch c=4"> many = ones({2, 3, 4});
  Float<"... c=4"> open = ones({2, 3, 4});
  Float<"n n+1"> band = ones({3, 4});
  Float<"n n"> square = ones({3, 3});
  Float<"_ c"> unnamed = ones({2, 4});
  Float<"2 heads*d"> numbers = ones({2, 12});
  Tensor plain = ones({2, 3, 8});
};

TEST_F(TypedResults, OfEinsum) {
  expect_result<Float<"batch seq out=6">>(ein::einsum(x, w, "b s h, h o -> b s o"_p), {2, 3, 6});
  expect_result<Float<"batch seq out=6">>(ein::einsum<"b s h, h o -> b s o">(x, w), {2, 3, 6});
  expect_result<Float<"out=6 batch seq">>(ein::einsum<"b s h, h o -> o b s">(x, w), {6, 2, 3});
  expect_result<Float<"">>(ein::einsum<"b s h ->">(x), {});
  expect_result<Float<"n">>(ein::einsum<"i i -> i">(square), {3});
  expect_result<Float<"batch hidden=8 3">>(ein::einsum<"b s h, b s -> b h 3">(x, mask), {2, 8, 3});
  expect_result<Float<"batch*seq 8">>(
      ein::einsum<"b s (h d), b s -> (b s) (d h)">(x, mask, "h"_a = size_c<2>), {6, 8});
  expect_result<Float<"batch">>(ein::einsum(mask, "b _ -> b"_p), {2});
  // An operand's unnamed axis is called as in the pattern, or as another operand calls it.
  expect_result<Float<"a">>(ein::einsum<"a c -> a">(unnamed), {2});
  expect_result<Float<"batch">>(ein::einsum<"a _, a _ -> a">(mask, unnamed), {2});
  // The pattern may stand anywhere after the tensors, and a size too.
  expect_result<Float<"batch h=2 d=4">>(
      ein::einsum(x, "h"_a = size_c<2>, "b s (h d) -> b h d"_p, "d"_a = 4), {2, 2, 4});
}

TEST_F(TypedResults, OfEinsumOfNineOperands) {
  const Float<"a"> v = ones({3});
  expect_result<Float<"a">>(
      ein::einsum(v, v, v, v, v, v, v, v, v, "a, a, a, a, a, a, a, a, a -> a"_p), {3});
}

TEST_F(TypedResults, OfRearrange) {
  expect_result<Float<"seq batch hidden=8">>(ein::rearrange<"b s h -> s b h">(x), {3, 2, 8});
  expect_result<Float<"batch h=2 seq d=4">>(
      ein::rearrange(x, "b s (h d) -> b h s d"_p, "h"_a = size_c<2>), {2, 2, 3, 4});
  expect_result<Float<"batch h seq d">>(ein::rearrange(x, "b s (h d) -> b h s d"_p, "h"_a = 2),
                                        {2, 2, 3, 4});
  expect_result<Float<"batch seq d*h">>(ein::rearrange(x, "b s (h d) -> b s (d h)"_p, "h"_a = 2),
                                        {2, 3, 8});
  expect_result<Float<"batch i=2 4 seq">>(
      ein::rearrange<"b s (h i d) -> b (i 1) (h d) s">(x, "h"_a = size_c<2>, "i"_a = size_c<2>),
      {2, 2, 4, 3});
  expect_result<Float<"batch seq*8">>(ein::rearrange<"b s h -> b (s h)">(x), {2, 24});
  expect_result<Float<"batch*seq hidden=8">>(ein::rearrange<"b s h -> (b s) h">(x), {6, 8});
  expect_result<Float<"batch seq 1 hidden=8 1">>(ein::rearrange<"b s h -> b s 1 h ()">(x),
                                                 {2, 3, 1, 8, 1});
  expect_result<Float<"n+1 n">>(ein::rearrange<"a b -> b a">(band), {4, 3});
  expect_result<Float<"n*(n+1)">>(ein::rearrange<"a b -> (a b)">(band), {12});
  expect_result<Float<"heads*d a=2">>(ein::rearrange<"a b -> b a">(numbers), {12, 2});
  expect_result<Float<"a=2 g j">>(ein::rearrange<"a (g j) -> a g j">(numbers, "g"_a = 3),
                                  {2, 3, 4});
}

TEST_F(TypedResults, OfRepeat) {
  expect_result<Float<"batch seq k=3">>(ein::repeat<"b s -> b s k">(mask, "k"_a = size_c<3>),
                                        {2, 3, 3});
  expect_result<Float<"batch k seq">>(ein::repeat<"b s -> b k s">(mask, "k"_a = 3), {2, 3, 3});
  expect_result<Float<"batch seq 3">>(ein::repeat<"b s -> b s 3">(mask), {2, 3, 3});
  expect_result<Float<"batch seq*2">>(ein::repeat<"b s -> b (s 2)">(mask), {2, 6});
  expect_result<Float<"batch seq 16">>(ein::repeat<"b s h -> b s (h k)">(x, "k"_a = size_c<2>),
                                       {2, 3, 16});
}

TEST_F(TypedResults, OfReduce) {
  expect_result<Float<"batch hidden=8">>(ein::reduce<"b s h -> b h">(x, "mean"), {2, 8});
  expect_result<Float<"batch 1 hidden=8">>(ein::reduce(x, "b s h -> b 1 h"_p, "max"), {2, 1, 8});
  expect_result<Float<"batch seq d=4">>(ein::reduce<"b s (2 d) -> b s d">(x, ein::Reduction::sum),
                                        {2, 3, 4});
  expect_result<Float<"">>(ein::reduce<"b s h ->">(x, ein::runtime("sum")), {});
}

TEST_F(TypedResults, UnderAnEllipsis) {
  expect_result<Float<"hidden=8 batch seq">>(ein::rearrange<"... h -> h ...">(x), {8, 2, 3});
  expect_result<Float<"batch seq">>(ein::reduce<"... h -> ...">(x, "sum"), {2, 3});
  expect_result<Float<"batch _">>(ein::rearrange<"b ... -> b (...)">(x), {2, 24});
  expect_result<Float<"batch hidden=8 seq">>(ein::rearrange<"b ... s h -> b h ... s">(x),
                                             {2, 8, 3});
  expect_result<Float<"c=4 *batch">>(ein::rearrange<"... c -> c ...">(many), {4, 2, 3});
  expect_result<Float<"*batch">>(ein::reduce<"... c -> ...">(many, "sum"), {2, 3});
  expect_result<Float<"c=4 ...">>(ein::rearrange<"... c -> c ...">(open), {4, 2, 3});
  expect_result<Float<"... a c=4">>(ein::rearrange<"a ... c -> ... a c">(many), {3, 2, 4});
}

TEST_F(TypedResults, OfBroadcasting) {
  const Float<"a b"> ab = ones({2, 3});
  const Float<"b"> b = ones({3});
  const Float<"a 1"> a1 = ones({2, 1});
  const Float<"_ _"> unknown = ones({1, 3});
  const Float<"a b=3"> sized = ones({2, 3});
  expect_result<Float<"a b">>(ein::einsum<"..., ... -> ...">(ab, b), {2, 3});
  expect_result<Float<"a b">>(ein::einsum<"..., ... -> ...">(b, ab), {2, 3});
  expect_result<Float<"a b">>(ein::einsum<"..., ... -> ...">(a1, b), {2, 3});
  expect_result<Float<"_ _">>(ein::einsum<"..., ... -> ...">(ab, unknown), {2, 3});
  expect_result<Float<"_ b=3">>(ein::einsum<"..., ... -> ...">(unknown, sized), {2, 3});
  expect_result<Float<"_ b=3">>(ein::einsum<"..., ... -> ...">(sized, unknown), {2, 3});
}

TEST_F(TypedResults, AreUntypedIfAnOperandIs) {
  expect_result<Tensor>(ein::einsum(plain, w, "b s h, h o -> b s o"_p), {2, 3, 6});
  expect_result<Tensor>(ein::rearrange<"b s h -> h b s">(plain), {8, 2, 3});
  expect_result<Tensor>(ein::einsum(x, w, "b s h, h o -> b s o"), {2, 3, 6});
}

TEST_F(TypedResults, HaveTheDTypeOfTheOperands) {
  const ein::Double<"a b"> f64 = ones({2, 3}, DType::f64);
  const ein::Half<"a b"> f16 = ones({2, 3}, DType::f16);
  const ein::Int<"a b"> i32 = ones({2, 3}, DType::i32);
  expect_result<ein::Double<"a">>(ein::reduce<"a b -> a">(f64, "mean"), {2});
  expect_result<ein::Half<"b a">>(ein::einsum<"a b -> b a">(f16), {3, 2});
  expect_result<ein::Tensor>(ein::reduce<"a b -> a">(i32, "max"), {2});
}

TEST_F(TypedResults, HoldTheValues) {
  const Float<"a b"> m = ein::arange(6).to(DType::f32).reshape({2, 3});
  EXPECT_EQ(ein::reduce<"a b -> b">(m, "sum").to_vector<float>(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(ein::rearrange(m, "a b -> (b a)"_p).to_vector<float>(),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ein::einsum<"a b, a c -> b c">(m, m)[0].to_vector<float>(),
            (std::vector<float>{9, 12, 15}));
}

// What a compiler prints that can print composed texts is what the call would throw.
TEST(StaticMessage, IsTheErrorsText) {
  using namespace ein::grammar;
  const Tensor x = ones({2, 4});
  const struct {
    ein::Operation op;
    std::string text;
    std::vector<ein::AxisSize> given{};
  } mistakes[] = {
      {ein::Operation::rearrange, "b c -> b"},
      {ein::Operation::rearrange, "b  (h d -> b"},
      {ein::Operation::rearrange, "b \xCF\x83\t-> \xCF\x83 b b"},
      {ein::Operation::rearrange, "b (heads d) -> b heads d", {{"haeds", 2}}},
      {ein::Operation::repeat, "b c -> b c k", {{"k", 2}, {"k", 3}}},
      {ein::Operation::reduce, "b c -> b d"},
      {ein::Operation::einsum, "b c, c d -> b d"},
      {ein::Operation::einsum, std::string(max_pattern_bytes + 1, ' ')},
      {ein::Operation::rearrange, "b (h d)@model -> b h d"},
      {ein::Operation::rearrange, "h d -> (h@x d@y)"},
  };
  for (const auto& m : mistakes) {
    const Reading reading = match_pattern(m.text);
    Mistake mistake = reading.mistake;
    if (!mistake) {
      std::vector<std::string_view> names;
      for (const ein::AxisSize& size : m.given) names.push_back(size.name);
      mistake = check_pattern(m.op, reading.buffer.pattern(m.text), 1, names);
    }
    const auto message = static_message(m.op, m.text, mistake, m.given, true);
    ein::CallOptions options;
    for (const ein::AxisSize& size : m.given) options.sizes.emplace_back(size.name, size.size);
    try {
      ein::graph_of(m.op, ein::runtime(m.text), {x.shape()}, options);
      ADD_FAILURE() << m.text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(message.data(), message.size()), error.what());
    }
  }
}

// Of random patterns: types that are true of the operands give a type that is true of the result.
class RandomTypes {
 public:
  explicit RandomTypes(std::mt19937_64& random) : random_(random) {}

  void run(const ein::test::TestPattern& p) {
    using namespace ein::grammar;
    const ein::Scope names;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      const auto& axis = p.axes[a];
      if (axis.kind == ein::test::TestAxis::named) check(axis.text, {axis.size});
      check(name_of(a), {axis.size});
    }
    std::vector<std::string> texts;
    std::string shown = p.text;
    for (const ein::test::TestSide& side : p.inputs) {
      texts.push_back(type_of(p, side));
      check(texts.back(), p.shape(side));
      shown += "\n  operand " + p.shape(side).to_string() + " \"" + texts.back() + '"';
    }
    SCOPED_TRACE(shown);
    std::vector<SpecReading> readings;
    for (const std::string& text : texts) readings.push_back(read_shape_spec(text));
    std::vector<OperandSpec> specs;
    for (const SpecReading& reading : readings) specs.push_back({&reading, 1});
    std::vector<GivenSize> given;
    for (int id : p.given) {
      const auto& axis = p.axes[static_cast<std::size_t>(id)];
      given.push_back({axis.text, chance(50) ? axis.size : -1});
    }
    const Reading reading = match_pattern(p.text);
    const InferredType result =
        infer_type(ein::Operation::einsum, reading.buffer.pattern(p.text), specs, given);
    ASSERT_FALSE(result.mistake) << static_cast<int>(result.mistake.complaint);
    ASSERT_TRUE(result.is_known);
    const std::string found(result.axes.view());
    EXPECT_NO_THROW(check(found, p.shape(p.output)))
        << '"' << found << "\" for " << p.shape(p.output).to_string();
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  static std::string name_of(std::size_t axis) { return "type" + std::to_string(axis); }

  static void check(const std::string& text, const Shape& shape) {
    ein::detail::require_type(ein::empty(shape), DType::f32, ein::grammar::read_shape_spec(text));
  }

  /// A type that is true of an operand.
  std::string type_of(const ein::test::TestPattern& p, const ein::test::TestSide& side) {
    std::vector<std::string> words;
    const Shape shape = p.shape(side);
    const auto dims = p.dims(side);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::string size = std::to_string(shape[d]);
      std::string name;
      for (int id : dims[d]) {
        name += (name.empty() ? "" : "*") + name_of(static_cast<std::size_t>(id));
      }
      if (chance(20)) {
        words.push_back("_");
      } else if (name.empty() || chance(20)) {
        words.push_back(size);
      } else if (dims[d].size() > 1 && chance(50)) {
        words.push_back("group" + std::to_string(unique_++) + (chance(50) ? "=" + size : ""));
      } else {
        words.push_back(name + (chance(40) ? "=" + size : ""));
      }
    }
    if (chance(20)) {
      const int first = below(static_cast<int>(words.size()) + 1);
      const int last = first + below(static_cast<int>(words.size()) - first + 1);
      words.erase(words.begin() + first, words.begin() + last);
      const std::string open = chance(50) ? "..." : "*many" + std::to_string(unique_++);
      words.insert(words.begin() + first, open);
    }
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  std::mt19937_64& random_;
  int unique_ = 0;
};

TEST(TypedResultsOfRandomPatterns, AreTrue) {
  const std::uint64_t seed = 20240611;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pattern " + std::to_string(i));
    using enum ein::Operation;
    const ein::Operation op = std::array{einsum, einsum, reduce, rearrange, repeat}[random() % 5];
    ein::test::PatternMaker maker(random, 2000);
    RandomTypes(random).run(maker.make(op, op == einsum ? 1 + random() % 3 : 1));
  }
}

// --- conversions ---

template <class Type>
void expect_error(const Tensor& x, ErrorKind kind, const std::string& text) {
  try {
    const Type typed = x;
    ADD_FAILURE() << x.shape().to_string() << " became \"" << Type::axes() << '"';
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_EQ(std::string(error.what()), text);
  }
}
template <class Type>
bool converts(const Tensor& x) {
  try {
    const Type typed = x;
    return typed.same_storage(x) && typed.shape() == x.shape();
  } catch (const Error&) {
    return false;
  }
}

TEST(TypedConversion, EveryDTypeHasAName) {
  EXPECT_TRUE(converts<ein::Double<"a">>(ones({2}, DType::f64)));
  EXPECT_TRUE(converts<ein::Float<"a">>(ones({2}, DType::f32)));
  EXPECT_TRUE(converts<ein::Half<"a">>(ones({2}, DType::f16)));
  EXPECT_TRUE(converts<ein::BFloat16<"a">>(ones({2}, DType::bf16)));
  EXPECT_TRUE(converts<ein::Long<"a">>(ones({2}, DType::i64)));
  EXPECT_TRUE(converts<ein::Int<"a">>(ones({2}, DType::i32)));
  EXPECT_TRUE(converts<ein::Byte<"a">>(ones({2}, DType::u8)));
  EXPECT_TRUE(converts<ein::Bool<"a">>(ones({2}, DType::boolean)));
  static_assert(std::is_same_v<ein::Long<"a">::Element, std::int64_t>);
  static_assert(ein::Half<"a b">::static_dtype == DType::f16 && ein::Half<"a b">::axes() == "a b");
}

TEST(TypedConversion, ChecksTheDType) {
  expect_error<Float<"a">>(ones({2}, DType::f64), ErrorKind::dtype,
                           "type: the type wants f32, the tensor holds f64\n"
                           "  a\n"
                           "  tensor: (2,)");
}

TEST(TypedConversion, ChecksTheRank) {
  EXPECT_TRUE(converts<Float<"">>(ones({})));
  EXPECT_TRUE(converts<Float<"_ _">>(ones({2, 3})));
  expect_error<Float<"a b">>(ones({2, 3, 4}), ErrorKind::rank,
                             "type: the type has 2 axes, the tensor has 3\n"
                             "  a b\n"
                             "  tensor: (2, 3, 4)");
  expect_error<Float<"a">>(ones({}), ErrorKind::rank,
                           "type: the type has 1 axis, the tensor has 0\n"
                           "  a\n"
                           "  tensor: ()");
}

TEST(TypedConversion, OfAnOpenType) {
  EXPECT_TRUE(converts<Float<"...">>(ones({})));
  EXPECT_TRUE(converts<Float<"a ... b">>(ones({2, 3})));
  EXPECT_TRUE(converts<Float<"a ... b=5">>(ones({2, 3, 4, 5})));
  EXPECT_TRUE(converts<Float<"*batch c">>(ones({4})));
  EXPECT_FALSE(converts<Float<"a ... b=5">>(ones({5, 4, 3})));
  expect_error<Float<"a ... b">>(ones({2}), ErrorKind::rank,
                                 "type: the type has at least 2 axes, the tensor has 1\n"
                                 "  a ... b\n"
                                 "  tensor: (2,)");
}

TEST(TypedConversion, ChecksKnownSizes) {
  EXPECT_TRUE(converts<Float<"batch c=3">>(ones({2, 3})));
  expect_error<Float<"batch c=3">>(ones({2, 4}), ErrorKind::size,
                                   "type: axis 'c=3' is 3 by its type, 4 in the tensor\n"
                                   "  batch c=3\n"
                                   "        ^^^\n"
                                   "         4\n"
                                   "  tensor: (2, 4)");
  expect_error<Float<"2 b">>(ones({3, 3}), ErrorKind::size,
                             "type: axis '2' is 2 by its type, 3 in the tensor\n"
                             "  2 b\n"
                             "  ^\n"
                             "  3\n"
                             "  tensor: (3, 3)");
}

TEST(TypedConversion, OfOneNameTwice) {
  EXPECT_TRUE(converts<Float<"n n">>(ones({3, 3})));
  expect_error<Float<"n n">>(
      ones({3, 4}), ErrorKind::size,
      "type: axis 'n' has two sizes: 3 before in this scope, 4 in the tensor\n"
      "  n n\n"
      "    ^\n"
      "    4\n"
      "  tensor: (3, 4)");
}

// The one size of a sum or product that is unknown follows from the others, and is bound.
TEST(TypedConversion, SolvesSumsAndProducts) {
  EXPECT_TRUE(converts<Float<"n m+1">>(ones({3, 5})));
  EXPECT_TRUE(converts<Float<"m+1 m">>(ones({5, 4})));
  EXPECT_TRUE(converts<Float<"2*d_k d_k">>(ones({8, 4})));
  EXPECT_FALSE(converts<Float<"2*d_k d_k">>(ones({8, 3})));
  EXPECT_TRUE(converts<Float<"k*n k*m n">>(ones({6, 8, 3})));
  EXPECT_TRUE(converts<Float<"k*m k*n n">>(ones({8, 6, 3})));
  EXPECT_FALSE(converts<Float<"k*m k*n n">>(ones({7, 6, 3})));
  EXPECT_TRUE(converts<Float<"n (m+1)*n-2">>(ones({3, 7})));
  EXPECT_FALSE(converts<Float<"n (m+1)*n-2">>(ones({3, 8})));
  EXPECT_FALSE(converts<Float<"m+5">>(ones({4})));
  EXPECT_FALSE(converts<Float<"n n*m">>(ones({0, 0})));
  expect_error<Float<"n 2*m+1">>(
      ones({3, 6}), ErrorKind::divisibility,
      "type: no size of 'm' makes axis '2*m+1' 6: it is 1 with 'm' = 0, and 3 with "
      "'m' = 1\n"
      "  n 2*m+1\n"
      "    ^^^^^\n"
      "      6\n"
      "  tensor: (3, 6)");
  const ein::Scope scope;
  const Float<"heads"> slopes(ones({3}));
  const Float<"b heads*d_k"> x(ones({2, 12}));
  EXPECT_TRUE(converts<Float<"d_k">>(ones({4})));
  EXPECT_FALSE(converts<Float<"d_k">>(ones({5})));
}

TEST(TypedConversion, OfSumsAndProducts) {
  EXPECT_TRUE(converts<Float<"n n+1">>(ones({3, 4})));
  EXPECT_TRUE(converts<Float<"heads*d heads d">>(ones({12, 3, 4})));
  EXPECT_TRUE(converts<Float<"n (n+1)*2 n-1 n-1-2">>(ones({3, 8, 2, 0})));
  EXPECT_TRUE(converts<Float<"n 2*n+1=7">>(ones({3, 7})));
  EXPECT_FALSE(converts<Float<"n 2*n+1=7">>(ones({4, 7})));
  EXPECT_FALSE(converts<Float<"n 2*n+1=7">>(ones({3, 8})));
  expect_error<Float<"n n+1">>(ones({3, 5}), ErrorKind::size,
                               "type: axis 'n+1' is 4 by its type, 5 in the tensor\n"
                               "  n n+1\n"
                               "    ^^^\n"
                               "     5\n"
                               "  tensor: (3, 5)");
  expect_error<Float<"n m+k">>(ones({3, 5}), ErrorKind::inference,
                               "type: the size of 'm' is not known here\n"
                               "  n m+k\n"
                               "    ^\n"
                               "  tensor: (3, 5)");
  expect_error<Float<"n n-4">>(ones({3, 5}), ErrorKind::size,
                               "type: a size is -1, which is negative\n"
                               "  n n-4\n"
                               "    ^^^\n"
                               "  tensor: (3, 5)");
  expect_error<Float<"n n*9223372036854775807">>(ones({3, 5}), ErrorKind::overflow,
                                                 "type: a size exceeds 63 bits\n"
                                                 "  n n*9223372036854775807\n"
                                                 "    ^^^^^^^^^^^^^^^^^^^^^\n"
                                                 "  tensor: (3, 5)");
}

TEST(TypedConversion, BetweenTypes) {
  const Float<"a b=3"> x = ones({2, 3});
  const Float<"rows columns"> renamed = x;
  const Float<"..."> open = x;
  const Float<"2 _"> known = open;
  EXPECT_TRUE(renamed.same_storage(x) && known.same_storage(x));
  EXPECT_THROW(Float<"3 _">{renamed}, Error);
}

TEST(TypedConversion, Assigns) {
  Float<"a b"> x = ones({2, 3});
  x = ones({4, 5});
  EXPECT_EQ(x.shape(), (Shape{4, 5}));
  EXPECT_THROW(x = ones({4}), Error);
  EXPECT_EQ(x.shape(), (Shape{4, 5}));
}

// --- scopes ---

TEST(TypedScope, WithoutOneConversionsShareNothing) {
  EXPECT_TRUE(converts<Float<"batch">>(ones({2})));
  EXPECT_TRUE(converts<Float<"batch">>(ones({3})));
}

TEST(TypedScope, BindsNames) {
  const ein::Scope names;
  EXPECT_TRUE(converts<Float<"batch seq">>(ones({2, 3})));
  EXPECT_TRUE(converts<Float<"seq batch">>(ones({3, 2})));
  EXPECT_TRUE(converts<Float<"batch*seq">>(ones({6})));
  EXPECT_TRUE(converts<ein::Int<"batch">>(ones({2}, DType::i32)));
  expect_error<Float<"seq channels">>(
      ones({4, 2}), ErrorKind::size,
      "type: axis 'seq' has two sizes: 3 before in this scope, 4 in the tensor\n"
      "  seq channels\n"
      "  ^^^\n"
      "   4\n"
      "  tensor: (4, 2)");
}

TEST(TypedScope, NestedStartsAnewAndEnds) {
  const ein::Scope outer;
  ASSERT_TRUE(converts<Float<"batch">>(ones({2})));
  {
    const ein::Scope inner;
    EXPECT_TRUE(converts<Float<"batch">>(ones({3})));
    EXPECT_FALSE(converts<Float<"batch">>(ones({2})));
  }
  EXPECT_FALSE(converts<Float<"batch">>(ones({3})));
  EXPECT_TRUE(converts<Float<"batch">>(ones({2})));
}

TEST(TypedScope, EndsWithAnException) {
  try {
    const ein::Scope names;
    ASSERT_TRUE(converts<Float<"batch">>(ones({2})));
    throw 1;
  } catch (int) {
  }
  EXPECT_TRUE(converts<Float<"batch">>(ones({3})));
}

TEST(TypedScope, IsOfItsThread) {
  const ein::Scope names;
  ASSERT_TRUE(converts<Float<"batch">>(ones({2})));
  bool elsewhere = false;
  std::thread([&] {
    const ein::Scope others;
    elsewhere = converts<Float<"batch">>(ones({3})) && !converts<Float<"batch">>(ones({2}));
  }).join();
  EXPECT_TRUE(elsewhere);
  EXPECT_FALSE(converts<Float<"batch">>(ones({3})));
}

TEST(TypedScope, ARefusedTensorBindsNothing) {
  const ein::Scope names;
  EXPECT_FALSE((converts<Float<"m n=4">>(ones({2, 5}))));     // a size
  EXPECT_FALSE((converts<Float<"m m+1">>(ones({2, 5}))));     // a sum
  EXPECT_FALSE((converts<Float<"m k k">>(ones({2, 5, 6}))));  // a name
  EXPECT_FALSE((converts<Float<"*m n=4">>(ones({2, 5}))));    // a variadic one
  EXPECT_TRUE((converts<Float<"m n k">>(ones({3, 4, 7}))));
  EXPECT_TRUE((converts<Float<"*m n">>(ones({6, 7, 4}))));
}

TEST(TypedScope, VariadicNames) {
  const ein::Scope names;
  EXPECT_TRUE(converts<Float<"*batch c">>(ones({2, 3, 4})));
  EXPECT_TRUE(converts<Float<"rows *batch">>(ones({7, 2, 3})));
  EXPECT_TRUE(converts<Float<"batch">>(ones({9})));  // another name
  expect_error<Float<"*batch c">>(
      ones({2, 5, 4}), ErrorKind::size,
      "type: axis '*batch' has two sizes: (2, 3) before in this scope, (2, 5) in the tensor\n"
      "  *batch c\n"
      "   ^^^^^\n"
      "  (2, 5)\n"
      "  tensor: (2, 5, 4)");
  EXPECT_FALSE(converts<Float<"*batch c">>(ones({2, 4})));
}

// --- as tensors ---

float sum_of(const Tensor& x) { return ein::reduce(x, "... ->", "sum").item<float>(); }
std::int64_t rows_of(const Float<"rows columns">& x) { return x.shape()[0]; }

TEST(TypedTensor, IsATensor) {
  const Float<"a b"> x = ones({2, 3}), y = ein::full({2, 3}, 2);
  EXPECT_EQ(sum_of(x), 6);
  EXPECT_EQ(sum_of(x + y), 18);
  EXPECT_EQ(sum_of(2 * x - y / 2 + 1), 6 * (2 - 1 + 1));
  EXPECT_EQ(sum_of(-x), -6);
  EXPECT_EQ(sum_of(ein::relu(ein::maximum(x, y))), 12);
  EXPECT_EQ(sum_of(ein::where(x < y, x, 0)), 6);
  EXPECT_EQ(sum_of(ein::matmul(x, y.transpose())), 24);
  EXPECT_TRUE(ein::all_close(x + x, y));
  EXPECT_EQ(x[0].shape(), Shape{3});
  EXPECT_EQ(rows_of(x), 2);
  EXPECT_EQ(rows_of(ones({5, 1})), 5);
  const Float<"a b"> sum = x + y;  // checked when it runs
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
}

TEST(TypedTensor, InCallsOnLists) {
  const Float<"a"> x = ones({2}), y = ein::full({2}, 2);
  const std::vector<Tensor> xs = {x, y};
  EXPECT_EQ(ein::rearrange(xs, "n a -> a n"_p).shape(), (Shape{2, 2}));
  EXPECT_EQ(ein::reduce(xs, "n a -> a"_p, "sum").to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(ein::einsum(xs, "a, b -> a b"_p).to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(ein::pack(xs, "*"_p).tensor.shape(), Shape{4});
  EXPECT_EQ(ein::parse_shape(x, "n"_p)["n"], 2);
}

}  // namespace
