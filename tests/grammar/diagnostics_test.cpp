// What people read when a call is wrong: the exact text, kind and places of every mistake.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/ein.hpp>
#include "ein/grammar/infer_type.hpp"
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "graph/diagnostic.hpp"
#include "support/seeds.hpp"
namespace {

using namespace ein::literals;
using ein::axis;
using ein::AxisSize;
using ein::DType;
using ein::Error;
using ein::ErrorKind;
using ein::Operation;
using ein::Reduction;
using ein::runtime;
using ein::Shape;
using ein::SourceSpan;
using ein::Tensor;
using ein::zeros;
using ein::grammar::Complaint;
using ein::grammar::Mistake;
using ein::grammar::Pattern;
using Spans = std::vector<SourceSpan>;

std::string shown(const Spans& spans) {
  std::string text = "{";
  for (const SourceSpan& span : spans) {
    text += (text.size() > 1 ? ", {" : "{") + std::to_string(span.begin) + ", " +
            std::to_string(span.end) + "}";
  }
  return text + "}";
}

std::optional<Error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// `text` begins with the line break after the raw string's opening, which is no part of it.
void expect_error(const std::function<void()>& call, ErrorKind kind, const Spans& spans,
                  std::string_view text) {
  const auto error = error_of(call);
  ASSERT_TRUE(error) << "no Error, expected:" << text;
  EXPECT_EQ("\n" + std::string(error->what()), text);
  EXPECT_EQ(static_cast<int>(error->kind()), static_cast<int>(kind)) << text;
  EXPECT_EQ(shown(error->spans()), shown(spans)) << text;
}

// An operand that takes no memory, however large.
Tensor wide(const Shape& shape, DType dtype = DType::f32) {
  return Tensor(ein::Storage::allocate(8), dtype, shape, ein::Strides(shape.rank(), 0));
}

constexpr std::int64_t tera = std::int64_t{1} << 40;

// --- sizes against shapes ---

TEST(Diagnostics, AxisOfTwoSizes) {
  expect_error(
      [] {
        ein::einsum(zeros({2, 3, 64}), zeros({2, 5, 32}), runtime("b s1 h, b s2 h -> b s1 s2"));
      },
      ErrorKind::size, {{5, 6}, {13, 14}}, R"(
einsum: axis 'h' has two sizes: 64 in operand 1, 32 in operand 2
  b s1 h, b s2 h -> b s1 s2
       ^       ^
      64      32
  operand 1: (2, 3, 64)   operand 2: (2, 5, 32))");
  expect_error(
      [] {
        ein::einsum(zeros({2, 3}), runtime("i i -> i"));
      },
      ErrorKind::size, {{0, 1}, {2, 3}}, R"(
einsum: axis 'i' has two sizes: 2 in operand 1, 3 in operand 1
  i i -> i
  ^ ^
  2 3
  operand 1: (2, 3))");
  expect_error(
      [] {
        ein::rearrange(zeros({2, 3}), runtime("a b -> b a"), "b"_a = 4);
      },
      ErrorKind::size, {{2, 3}}, R"(
rearrange: axis 'b' has two sizes: 4 in the call, 3 in operand 1
  a b -> b a
    ^
    3
  operand 1: (2, 3))");
  expect_error(
      [] {
        ein::einsum(zeros({128, 4096}), zeros({1024, 4096}), zeros({1024, 128}),
                    runtime("a b, c b, a c -> c"));
      },
      ErrorKind::size, {{0, 1}, {10, 11}}, R"(
einsum: axis 'a' has two sizes: 128 in operand 1, 1024 in operand 3
  a b, c b, a c -> c
  ^         ^
 128      1024
  operand 1: (128, 4096)   operand 2: (1024, 4096)   operand 3: (1024, 128))");
}

TEST(Diagnostics, AxisThatMustBeOneOrAnother) {
  expect_error(
      [] {
        ein::rearrange(zeros({2, 3}), runtime("a 1 -> a"));
      },
      ErrorKind::size, {{2, 3}}, R"(
rearrange: an axis of size 1 is wanted, operand 1 has 3 there
  a 1 -> a
    ^
    3
  operand 1: (2, 3))");
  expect_error(
      [] {
        ein::rearrange(zeros({2, 3}), runtime("() a -> a"));
      },
      ErrorKind::size, {{0, 2}}, R"(
rearrange: an axis of size 1 is wanted, operand 1 has 2 there
  () a -> a
  ^^
   2
  operand 1: (2, 3))");
  expect_error(
      [] {
        ein::reduce(zeros({2, 3}), runtime("a 4 -> a"), Reduction::sum);
      },
      ErrorKind::size, {{2, 3}}, R"(
reduce: anonymous axis '4' is 3 in operand 1
  a 4 -> a
    ^
    3
  operand 1: (2, 3))");
}

TEST(Diagnostics, Rank) {
  expect_error(
      [] {
        ein::rearrange(zeros({2, 3, 4}), runtime("b (h w) -> b h w"), "h"_a = 1);
      },
      ErrorKind::rank, {{0, 1}, {2, 7}}, R"(
rearrange: operand 1 has 3 axes, the pattern wants 2
  b (h w) -> b h w
  ^ ^^^^^
  operand 1: (2, 3, 4))");
  expect_error(
      [] {
        ein::einsum(zeros({2}), zeros({2, 3, 4}), runtime("a, a b -> b"));
      },
      ErrorKind::rank, {{3, 4}, {5, 6}}, R"(
einsum: operand 2 has 3 axes, the pattern wants 2
  a, a b -> b
     ^ ^
  operand 1: (2,)   operand 2: (2, 3, 4))");
  expect_error([] { ein::reduce(zeros({5}), runtime("b ... c -> b"), Reduction::max); },
               ErrorKind::rank, {{0, 1}, {2, 5}, {6, 7}}, R"(
reduce: operand 1 has 1 axis, the pattern wants at least 2
  b ... c -> b
  ^ ^^^ ^
  operand 1: (5,))");
  expect_error([] { ein::einsum(zeros({}), zeros({2}), runtime("a, a ->")); }, ErrorKind::rank,
               {{0, 1}}, R"(
einsum: operand 1 has 0 axes, the pattern wants 1
  a, a ->
  ^
  operand 1: ()   operand 2: (2,))");
  expect_error([] { ein::einsum(zeros({2}), zeros({3}), runtime("a, -> a")); }, ErrorKind::rank,
               {{2, 2}}, R"(
einsum: operand 2 has 1 axis, the pattern wants 0
  a, -> a
    ^
  operand 1: (2,)   operand 2: (3,))");
  expect_error([] { ein::repeat(zeros({7}), runtime("-> 3")); }, ErrorKind::rank, {{0, 0}}, R"(
repeat: operand 1 has 1 axis, the pattern wants 0
  -> 3
  ^
  operand 1: (7,))");
  expect_error(
      [] {
        ein::parse_shape(zeros({2, 3}), runtime("a b c"));
      },
      ErrorKind::rank, {{0, 1}, {2, 3}, {4, 5}}, R"(
parse_shape: operand 1 has 2 axes, the pattern wants 3
  a b c
  ^ ^ ^
  operand 1: (2, 3))");
}

TEST(Diagnostics, Broadcast) {
  expect_error(
      [] {
        ein::einsum(zeros({2, 3, 4}), zeros({5, 4}), runtime("... a, ... a -> ..."));
      },
      ErrorKind::size, {{0, 3}, {7, 10}}, R"(
einsum: '...' does not broadcast: 3 in operand 1, 5 in operand 2
  ... a, ... a -> ...
  ^^^    ^^^
   3      5
  operand 1: (2, 3, 4)   operand 2: (5, 4)
  help: sizes under '...' must be equal or 1, aligned at the right)");
}

TEST(Diagnostics, Groups) {
  expect_error(
      [] {
        ein::rearrange(zeros({2, 10}), runtime("b (h d) -> b h d"), "h"_a = 3);
      },
      ErrorKind::divisibility, {{2, 7}}, R"(
rearrange: axis '(h d)' of size 10 in operand 1 cannot be split: 3 does not divide it (h = 3 in the call)
  b (h d) -> b h d
    ^^^^^
     10
  operand 1: (2, 10))");
  expect_error(
      [] {
        ein::einsum(zeros({10, 2}), zeros({3, 4}), runtime("(h d) b, h c -> b c d"));
      },
      ErrorKind::divisibility, {{0, 5}, {9, 10}}, R"(
einsum: axis '(h d)' of size 10 in operand 1 cannot be split: 3 does not divide it (h = 3 in operand 2)
  (h d) b, h c -> b c d
  ^^^^^    ^
   10      3
  operand 1: (10, 2)   operand 2: (3, 4))");
  expect_error(
      [] {
        ein::rearrange(zeros({8, 2}), runtime("(h w) b -> b h w"), "h"_a = 2, "w"_a = 3);
      },
      ErrorKind::size, {{0, 5}}, R"(
rearrange: '(h w)' is 6 by its axes (h = 2 in the call, w = 3 in the call), 8 in operand 1
  (h w) b -> b h w
  ^^^^^
    8
  operand 1: (8, 2))");
  expect_error([] { ein::einsum(zeros({8}), zeros({3}), runtime("(h w 2), w -> h"), "h"_a = 2); },
               ErrorKind::size, {{0, 7}, {9, 10}}, R"(
einsum: '(h w 2)' is 12 by its axes (h = 2 in the call, w = 3 in operand 2, 2), 8 in operand 1
  (h w 2), w -> h
  ^^^^^^^  ^
     8     3
  operand 1: (8,)   operand 2: (3,))");
  expect_error([] { ein::rearrange(zeros({6}), runtime("(2 2) -> ()")); }, ErrorKind::pattern,
               {{1, 2}}, R"(
rearrange: anonymous axis '2' is lost: each number is an axis of its own
  (2 2) -> ()
   ^
  help: name the axis and give its size)");
  expect_error([] { ein::rearrange(zeros({6}), runtime("(a b) -> a b"), "a"_a = 0); },
               ErrorKind::divisibility, {{0, 5}}, R"(
rearrange: axis '(a b)' of size 6 in operand 1 cannot be split: 0 does not divide it (a = 0 in the call)
  (a b) -> a b
  ^^^^^
    6
  operand 1: (6,))");
  expect_error([] { ein::rearrange(zeros({0}), runtime("(a b) -> a b"), "a"_a = 0); },
               ErrorKind::inference, {{0, 5}}, R"(
rearrange: the size of axis 'b' cannot be found: the rest of '(a b)' is 0 (a = 0 in the call)
  (a b) -> a b
  ^^^^^
    0
  operand 1: (0,)
  help: give its size with the call)");
  expect_error(
      [] { ein::rearrange(zeros({6}), runtime("(a b c) -> a b c"), "a"_a = tera, "b"_a = tera); },
      ErrorKind::overflow, {{0, 7}}, R"(
rearrange: the sizes of the axes of '(a b c)' multiply to more than 63 bits (a = 1099511627776 in the call, b = 1099511627776 in the call)
  (a b c) -> a b c
  ^^^^^^^
     6
  operand 1: (6,))");
}

// What one group cannot tell, another may.
TEST(Diagnostics, AnEmptyGroupWaitsForAnother) {
  EXPECT_EQ(ein::einsum(zeros({0}), zeros({6}), runtime("(a b), (a c) -> a"), "b"_a = 0, "c"_a = 3)
                .shape(),
            Shape{2});
}

TEST(Diagnostics, GivenSizes) {
  expect_error(
      [] {
        ein::rearrange(zeros({2, 8}), runtime("b (h d) -> b h d"), "h"_a = -2);
      },
      ErrorKind::axis_argument, {{3, 4}}, R"(
rearrange: axis 'h' is given the size -2, which is negative
  b (h d) -> b h d
     ^
    -2
  operand 1: (2, 8))");
  expect_error([] { ein::repeat(zeros({2}), runtime("a -> a n"), "n"_a = -1); },
               ErrorKind::axis_argument, {{7, 8}}, R"(
repeat: axis 'n' is given the size -1, which is negative
  a -> a n
         ^
        -1
  operand 1: (2,))");
  expect_error(
      [] {
        ein::rearrange(zeros({2, 8}), runtime("b (heads d) -> b heads d"), "head"_a = 2,
                       "heads"_a = 2);
      },
      ErrorKind::axis_argument, {}, R"(
rearrange: a size is given for axis 'head', which the pattern does not have
  b (heads d) -> b heads d
  help: did you mean 'heads'?)");
  expect_error(
      [] {
        ein::rearrange(zeros({2, 8}), runtime("b c -> c b"), axis("x\ny\x1b[31m", 2));
      },
      ErrorKind::axis_argument, {}, R"(
rearrange: a size is given for axis 'x y?[31m', which the pattern does not have
  b c -> c b
  help: the pattern's axes are 'b', 'c')");
  expect_error(
      [] {
        ein::reduce(zeros({2, 8}), runtime("... -> "), Reduction::sum, axis("b", 2));
      },
      ErrorKind::axis_argument, {}, R"(
reduce: a size is given for axis 'b', which the pattern does not have
  ... ->
  help: the pattern has no named axes)");
  expect_error(
      [] {
        ein::rearrange(zeros({2, 8}), runtime("b (h d) -> b h d"), axis("h", 2), axis("h", 4));
      },
      ErrorKind::axis_argument, {{3, 4}}, R"(
rearrange: the size of axis 'h' is given twice: 2 and 4
  b (h d) -> b h d
     ^)");
}

TEST(Diagnostics, Overflow) {
  expect_error(
      [] {
        ein::rearrange(wide({tera, 1}), runtime("a b -> a b (x)"), axis("x", 1));
      },
      ErrorKind::pattern, {{12, 13}}, R"(
rearrange: axis 'x' of the output is in no input
  a b -> a b (x)
              ^
  help: repeat makes new axes)");
  expect_error([] { ein::repeat(wide({tera}), runtime("a -> (a n)"), "n"_a = tera); },
               ErrorKind::overflow, {{5, 10}}, R"(
repeat: the size of '(a n)' exceeds 63 bits
  a -> (a n)
       ^^^^^
  operand 1: (1099511627776,))");
  expect_error([] { ein::repeat(wide({tera}, DType::u8), runtime("a -> a 8388608")); },
               ErrorKind::overflow, {{5, 6}, {7, 14}}, R"(
repeat: the result of shape (1099511627776, 8388608) needs more than 2^63 - 1 bytes
  a -> a 8388608
       ^ ^^^^^^^
  operand 1: (1099511627776,))");
  expect_error(
      [] { ein::repeat(zeros({1}, DType::f64), runtime("a -> (a n)"), "n"_a = tera << 21); },
      ErrorKind::overflow, {{5, 10}}, R"(
repeat: the result of shape (2305843009213693952,) needs more than 2^63 - 1 bytes
  a -> (a n)
       ^^^^^
  operand 1: (1,))");
  expect_error([] { ein::einsum(wide({tera}), wide({tera}), runtime("a, b -> a b")); },
               ErrorKind::overflow, {{8, 9}, {10, 11}}, R"(
einsum: the result of shape (1099511627776, 1099511627776) needs more than 2^63 - 1 bytes
  a, b -> a b
          ^ ^
  operand 1: (1099511627776,)   operand 2: (1099511627776,))");
  expect_error([] { ein::repeat(zeros({0}), runtime("a -> a n m"), "n"_a = tera, "m"_a = tera); },
               ErrorKind::overflow, {{5, 6}, {7, 8}, {9, 10}}, R"(
repeat: the result of shape (0, 1099511627776, 1099511627776) needs more than 2^63 - 1 bytes
  a -> a n m
       ^ ^ ^
  operand 1: (0,))");
}

// --- the call ---

TEST(Diagnostics, Operands) {
  const std::vector<Tensor> none;
  expect_error([&] { ein::einsum(none, runtime("a -> a")); }, ErrorKind::arity, {}, R"(
einsum: the call has no operands
  a -> a)");
  expect_error([&] { ein::rearrange(none, runtime("n a -> a n")); }, ErrorKind::arity, {}, R"(
rearrange: the call has no operands
  n a -> a n)");
  expect_error([&] { ein::reduce(none, runtime("n a -> a"), Reduction::sum); }, ErrorKind::arity,
               {}, R"(
reduce: the call has no operands
  n a -> a)");
  expect_error([&] { ein::repeat(none, runtime("n a -> a n 2")); }, ErrorKind::arity, {}, R"(
repeat: the call has no operands
  n a -> a n 2)");
  expect_error([&] { ein::pack(none, runtime("* a")); }, ErrorKind::arity, {}, R"(
pack: the call has no operands
  * a)");
  expect_error([] { ein::einsum(zeros({2}), zeros({2}), runtime("a -> a")); }, ErrorKind::arity,
               {{0, 1}}, R"(
einsum: the pattern describes 1 operand, the call has 2
  a -> a
  ^)");
  expect_error([] { ein::einsum(zeros({2}), runtime("a b, c -> a")); }, ErrorKind::arity,
               {{0, 3}, {5, 6}}, R"(
einsum: the pattern describes 2 operands, the call has 1
  a b, c -> a
  ^^^  ^)");
}

TEST(Diagnostics, Dtypes) {
  expect_error(
      [] {
        ein::einsum(zeros({2, 3}), zeros({3}, DType::i64), runtime("a b, b -> a"));
      },
      ErrorKind::dtype, {{0, 3}, {5, 6}}, R"(
einsum: operands have different dtypes: f32 in operand 1, i64 in operand 2
  a b, b -> a
  ^^^  ^
  f32 i64
  help: cast one with .to(dtype))");
  expect_error(
      [] { ein::einsum(zeros({2}), zeros({2}), zeros({2}, DType::bf16), runtime("a, a, a ->")); },
      ErrorKind::dtype, {{0, 1}, {6, 7}}, R"(
einsum: operands have different dtypes: f32 in operand 1, bf16 in operand 3
  a, a, a ->
  ^     ^
 f32  bf16
  help: cast one with .to(dtype))");
  const std::vector<Tensor> mixed{zeros({2}, DType::u8), zeros({2}, DType::boolean)};
  expect_error([&] { ein::rearrange(mixed, runtime("n a -> a n")); }, ErrorKind::dtype, {}, R"(
rearrange: operands have different dtypes: u8 in operand 1, bool in operand 2
  n a -> a n
  help: cast one with .to(dtype))");
  expect_error([&] { ein::pack(mixed, runtime("*")); }, ErrorKind::dtype, {}, R"(
pack: operands have different dtypes: u8 in operand 1, bool in operand 2
  *
  help: cast one with .to(dtype))");
}

TEST(Diagnostics, Lists) {
  const std::vector<Tensor> unlike{zeros({2, 3}), zeros({2, 3}), zeros({2, 4})};
  expect_error([&] { ein::rearrange(unlike, runtime("n a b -> a b n")); }, ErrorKind::size, {}, R"(
rearrange: the tensors of a list differ in shape: (2, 3) in operand 1, (2, 4) in operand 3
  n a b -> a b n
  help: pack joins tensors of unlike shapes)");
  const std::vector<Tensor> ranks{zeros({2}), zeros({})};
  expect_error([&] { ein::reduce(ranks, runtime("n a -> a"), Reduction::sum); }, ErrorKind::size,
               {}, R"(
reduce: the tensors of a list differ in shape: (2,) in operand 1, () in operand 2
  n a -> a
  help: pack joins tensors of unlike shapes)");
  const std::vector<Tensor> large(3, wide({tera << 20}));
  expect_error([&] { ein::reduce(large, runtime("n a -> n"), Reduction::sum); },
               ErrorKind::overflow, {}, R"(
reduce: the stacked list of shape (3, 1152921504606846976) needs more than 2^63 - 1 bytes
  n a -> n
  operand 1: (1152921504606846976,)   operand 2: (1152921504606846976,)
  operand 3: (1152921504606846976,))");
}

TEST(Diagnostics, Reductions) {
  expect_error([] { ein::reduce(zeros({2}), runtime("a ->"), runtime("median")); },
               ErrorKind::reduction, {}, R"(
reduce: unknown reduction 'median'
  help: one of sum, mean, max, min, prod, any, all, logsumexp, var, std, sample_var, sample_std, norm, nansum, nanmean, nanmax, nanmin, nanprod, nanvar, nanstd)");
  expect_error(
      [] {
        ein::reduce(zeros({2, 3}, DType::i32), runtime("a b -> a"), Reduction::mean);
      },
      ErrorKind::dtype, {}, R"(
reduce: mean of i32 is not defined
  a b -> a
  help: cast first, x.to(ein::DType::f32))");
  expect_error(
      [] { ein::reduce(zeros({2}, DType::boolean), runtime("a ->"), Reduction::logsumexp); },
      ErrorKind::dtype, {}, R"(
reduce: logsumexp of bool is not defined
  a ->
  help: cast first, x.to(ein::DType::f32))");
  expect_error([] { ein::reduce(zeros({2}, DType::u8), runtime("a ->"), Reduction::var); },
               ErrorKind::dtype, {}, R"(
reduce: var of u8 is not defined
  a ->
  help: cast first, x.to(ein::DType::f32))");
  expect_error([] { ein::reduce(zeros({2}, DType::i64), runtime("a ->"), Reduction::std); },
               ErrorKind::dtype, {}, R"(
reduce: std of i64 is not defined
  a ->
  help: cast first, x.to(ein::DType::f32))");
  expect_error(
      [] {
        ein::reduce(zeros({2, 0}), runtime("a b -> a"), Reduction::max);
      },
      ErrorKind::reduction, {{2, 3}}, R"(
reduce: max over no elements is not defined: axis 'b' has size 0
  a b -> a
    ^
    0
  operand 1: (2, 0))");
  expect_error(
      [] {
        ein::reduce(zeros({2, 0}), runtime("... -> "), Reduction::min);
      },
      ErrorKind::reduction, {{0, 3}}, R"(
reduce: min over no elements is not defined: an axis under '...' has size 0
  ... ->
  ^^^
   0
  operand 1: (2, 0))");
}

// --- pack and unpack ---

TEST(Diagnostics, Pack) {
  const std::vector<Tensor> ranks{zeros({2, 3, 4}), zeros({2})};
  expect_error([&] { ein::pack(ranks, runtime("a * b")); }, ErrorKind::rank,
               {{0, 1}, {2, 3}, {4, 5}}, R"(
pack: operand 2 has 1 axis, the pattern wants at least 2
  a * b
  ^ ^ ^
  operand 1: (2, 3, 4)   operand 2: (2,))");
  const std::vector<Tensor> sizes{zeros({2, 7, 4}), zeros({2, 5}), zeros({2, 1, 4})};
  expect_error([&] { ein::pack(sizes, runtime("a * bb")); }, ErrorKind::size, {{4, 6}}, R"(
pack: axis 'bb' has two sizes: 4 in operand 1, 5 in operand 2
  a * bb
      ^^
     4 / 5
  operand 1: (2, 7, 4)   operand 2: (2, 5)   operand 3: (2, 1, 4))");
  const std::vector<Tensor> before{zeros({2, 3}), zeros({4, 3})};
  expect_error([&] { ein::pack(before, runtime("rows *")); }, ErrorKind::size, {{0, 4}}, R"(
pack: axis 'rows' has two sizes: 2 in operand 1, 4 in operand 2
  rows *
  ^^^^
  2 / 4
  operand 1: (2, 3)   operand 2: (4, 3))");
  const std::vector<Tensor> open{zeros({2, 3, 4}), zeros({2, 3})};
  expect_error([&] { ein::pack(open, runtime("... * c")); }, ErrorKind::rank,
               {{0, 3}, {4, 5}, {6, 7}}, R"(
pack: operand 2 has 2 axes, operand 1 has 3: beside '...' '*' is one axis of each
  ... * c
  ^^^ ^ ^
  operand 1: (2, 3, 4)   operand 2: (2, 3))");
  const std::vector<Tensor> under{zeros({2, 3, 4}), zeros({5, 3, 4})};
  expect_error([&] { ein::pack(under, runtime("... * c")); }, ErrorKind::size, {{0, 3}}, R"(
pack: axis '...' has two sizes: 2 in operand 1, 5 in operand 2
  ... * c
  ^^^
 2 / 5
  operand 1: (2, 3, 4)   operand 2: (5, 3, 4))");
  const std::vector<Tensor> scalar{zeros({})};
  expect_error([&] { ein::pack(scalar, runtime("... *")); }, ErrorKind::rank, {{0, 3}, {4, 5}}, R"(
pack: operand 1 has 0 axes, the pattern wants at least 1
  ... *
  ^^^ ^
  operand 1: ())");
  const std::vector<Tensor> large(2, wide({tera << 22}, DType::u8));
  expect_error([&] { ein::pack(large, runtime("*")); }, ErrorKind::overflow, {{0, 1}}, R"(
pack: the packed axis is longer than 2^63 - 1
  *
  ^
  operand 1: (4611686018427387904,)   operand 2: (4611686018427387904,))");
  const std::vector<Tensor> wide_rows(2, wide({tera, 1 << 22}, DType::u8));
  expect_error([&] { ein::pack(wide_rows, runtime("a *")); }, ErrorKind::overflow, {{0, 1}, {2, 3}},
               R"(
pack: the result of shape (1099511627776, 8388608) needs more than 2^63 - 1 bytes
  a *
  ^ ^
  operand 1: (1099511627776, 4194304)   operand 2: (1099511627776, 4194304))");
}

TEST(Diagnostics, Unpack) {
  const auto unpack = [](const Shape& shape, const std::vector<Shape>& pieces,
                         std::string_view pattern) {
    ein::unpack(zeros(shape), pieces, runtime(pattern));
  };
  expect_error(
      [&] {
        unpack({2, 3}, {{3}}, "a * b");
      },
      ErrorKind::rank, {{0, 1}, {2, 3}, {4, 5}}, R"(
unpack: operand 1 has 2 axes, the pattern wants 3
  a * b
  ^ ^ ^
  operand 1: (2, 3))");
  expect_error([&] { unpack({7}, {{3}}, "... * c"); }, ErrorKind::rank, {{0, 3}, {4, 5}, {6, 7}},
               R"(
unpack: operand 1 has 1 axis, the pattern wants at least 2
  ... * c
  ^^^ ^ ^
  operand 1: (7,))");
  expect_error([&] { unpack({7}, {{3}}, "a *"); }, ErrorKind::rank, {{0, 1}, {2, 3}}, R"(
unpack: operand 1 has 1 axis, the pattern wants 2
  a *
  ^ ^
  operand 1: (7,))");
  expect_error(
      [&] {
        unpack({2, 7}, {{2}, {3}, {}}, "a *");
      },
      ErrorKind::size, {{2, 3}}, R"(
unpack: the packed shapes have 6 elements along '*', operand 1 has 7
  a *
    ^
    7
  operand 1: (2, 7)
  packed: (2,), (3,), ())");
  expect_error([&] { unpack({7}, {}, "*"); }, ErrorKind::size, {{0, 1}}, R"(
unpack: the packed shapes have 0 elements along '*', operand 1 has 7
  *
  ^
  7
  operand 1: (7,)
  packed: none)");
  expect_error(
      [&] {
        unpack({7}, {{2}, {-1}, {-1}}, "*");
      },
      ErrorKind::inference, {{0, 1}}, R"(
unpack: the packed shapes have more than one -1
  *
  ^
  7
  operand 1: (7,)
  packed: (2,), (-1,), (-1,))");
  expect_error(
      [&] {
        unpack({7}, {{-1, -1}}, "*");
      },
      ErrorKind::inference, {{0, 1}}, R"(
unpack: the packed shapes have more than one -1
  *
  ^
  7
  operand 1: (7,)
  packed: (-1, -1))");
  expect_error(
      [&] {
        unpack({7}, {{2}, {-2}}, "*");
      },
      ErrorKind::value, {{0, 1}}, R"(
unpack: a packed shape has the size -2, which is negative
  *
  ^
  7
  operand 1: (7,)
  packed: (2,), (-2,))");
  expect_error(
      [&] {
        unpack({7}, {{2}, {-1, 2}}, "*");
      },
      ErrorKind::divisibility, {{0, 1}}, R"(
unpack: the packed axis of size 7 cannot be shared out to the packed shapes
  *
  ^
  7
  operand 1: (7,)
  packed: (2,), (-1, 2))");
  expect_error(
      [&] {
        unpack({7}, {{8}, {-1}}, "*");
      },
      ErrorKind::divisibility, {{0, 1}}, R"(
unpack: the packed axis of size 7 cannot be shared out to the packed shapes
  *
  ^
  7
  operand 1: (7,)
  packed: (8,), (-1,))");
  expect_error(
      [&] {
        unpack({7}, {{-1, 0}}, "*");
      },
      ErrorKind::divisibility, {{0, 1}}, R"(
unpack: the packed axis of size 7 cannot be shared out to the packed shapes
  *
  ^
  7
  operand 1: (7,)
  packed: (-1, 0))");
  expect_error(
      [&] {
        unpack({7}, {{tera, tera}}, "*");
      },
      ErrorKind::overflow, {{0, 1}}, R"(
unpack: a packed shape has more than 2^63 - 1 elements
  *
  ^
  7
  operand 1: (7,)
  packed: (1099511627776, 1099511627776))");
  expect_error(
      [&] {
        unpack({7}, {{tera << 22}, {tera << 22}}, "*");
      },
      ErrorKind::overflow, {{0, 1}}, R"(
unpack: the packed shapes have more than 2^63 - 1 elements
  *
  ^
  7
  operand 1: (7,)
  packed: (4611686018427387904,), (4611686018427387904,))");
  expect_error(
      [&] {
        unpack({0, 0}, {{0, tera, tera}}, "a *");
      },
      ErrorKind::overflow, {{2, 3}}, R"(
unpack: the result of shape (0, 0, 1099511627776, 1099511627776) needs more than 2^63 - 1 bytes
  a *
    ^
  operand 1: (0, 0))");
}

TEST(Diagnostics, ParseShape) {
  expect_error(
      [] {
        ein::parse_shape(zeros({2, 3}), runtime("a b"))["c"];
      },
      ErrorKind::axis_argument, {}, R"(
parse_shape: the pattern has no axis 'c')");
  expect_error(
      [] {
        ein::parse_shape(zeros({2, 3}), runtime("a 1"));
      },
      ErrorKind::size, {{2, 3}}, R"(
parse_shape: an axis of size 1 is wanted, operand 1 has 3 there
  a 1
    ^
    3
  operand 1: (2, 3))");
}

// --- how a pattern is shown ---

TEST(Diagnostics, ColumnsCountCodePoints) {
  expect_error(
      [] {
        ein::einsum(zeros({2, 3}), zeros({4, 5}), runtime("größe b, größe h -> b h"));
      },
      ErrorKind::size, {{0, 7}, {11, 18}}, R"(
einsum: axis 'größe' has two sizes: 2 in operand 1, 4 in operand 2
  größe b, größe h -> b h
  ^^^^^    ^^^^^
    2        4
  operand 1: (2, 3)   operand 2: (4, 5))");
  expect_error(
      [] {
        ein::einsum(zeros({2, 3}), zeros({4, 5}), runtime("長さ 幅, 長さ 高 -> 幅 高"));
      },
      ErrorKind::size, {{0, 6}, {12, 18}}, R"(
einsum: axis '長さ' has two sizes: 2 in operand 1, 4 in operand 2
  長さ 幅, 長さ 高 -> 幅 高
  ^^    ^^
   2     4
  operand 1: (2, 3)   operand 2: (4, 5))");
  expect_error(
      [] { ein::rearrange(zeros({2}), runtime("\xF0\x9D\x92\xB3 -> \xF0\x9D\x92\xB3 é")); },
      ErrorKind::pattern, {{13, 15}}, R"(
rearrange: axis 'é' of the output is in no input
  𝒳 -> 𝒳 é
         ^
  help: repeat makes new axes)");
}

TEST(Diagnostics, ManyLinesBecomeOne) {
  expect_error(
      [] {
        ein::einsum(zeros({2, 3}), zeros({4, 5}), runtime("a\n  b,\r\n\tb c\n-> a c\n"));
      },
      ErrorKind::size, {{4, 5}, {9, 10}}, R"(
einsum: axis 'b' has two sizes: 3 in operand 1, 4 in operand 2
  a   b,   b c -> a c
      ^    ^
      3    4
  operand 1: (2, 3)   operand 2: (4, 5))");
}

TEST(Diagnostics, ControlCharactersAreNotPrinted) {
  expect_error([] { ein::rearrange(zeros({2}), runtime("a \x1b[31m -> a")); }, ErrorKind::syntax,
               {{2, 3}}, R"(
rearrange: unexpected character U+001B
  a ?[31m -> a
    ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')");
  expect_error([] { ein::rearrange(zeros({2}), runtime("a \x7f -> a")); }, ErrorKind::syntax,
               {{2, 3}}, R"(
rearrange: unexpected character U+007F
  a ? -> a
    ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')");
  expect_error([] { ein::rearrange(zeros({2}), runtime(std::string_view("a\0b", 3))); },
               ErrorKind::syntax, {{1, 2}}, R"(
rearrange: unexpected character U+0000
  a?b
   ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')");
  expect_error([] { ein::rearrange(zeros({2}), runtime("a \xFF\xC3 -> a")); }, ErrorKind::syntax,
               {{2, 3}}, R"(
rearrange: the pattern is not valid UTF-8 here
  a ?? -> a
    ^)");
  // U+0085 (next line) and U+202E (right-to-left override).
  expect_error([] { ein::rearrange(zeros({2}), runtime("a\xC2\x85 -> a")); }, ErrorKind::syntax,
               {{1, 3}}, R"(
rearrange: unexpected character U+0085
  a? -> a
   ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')");
  expect_error([] { ein::rearrange(zeros({2}), runtime("a -> a \xE2\x80\xAE")); },
               ErrorKind::syntax, {{7, 10}}, R"(
rearrange: unexpected character U+202E
  a -> a ?
         ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')");
}

TEST(Diagnostics, LabelsThatWouldTouchTakeMoreLines) {
  expect_error([] { ein::einsum(zeros({1000}), zeros({2000}), runtime("a,a->")); }, ErrorKind::size,
               {{0, 1}, {2, 3}}, R"(
einsum: axis 'a' has two sizes: 1000 in operand 1, 2000 in operand 2
  a,a->
  ^ ^
1000
  2000
  operand 1: (1000,)   operand 2: (2000,))");
}

TEST(Diagnostics, ManyOperandsTakeMoreLines) {
  expect_error(
      [] {
        const Tensor x = zeros({10, 20, 30});
        ein::einsum(x, x, x, x, zeros({11, 20, 30}),
                    runtime("a b c, a b c, a b c, a b c, a b c -> a b c"));
      },
      ErrorKind::size, {{0, 1}, {28, 29}}, R"(
einsum: axis 'a' has two sizes: 10 in operand 1, 11 in operand 5
  a b c, a b c, a b c, a b c, a b c -> a b c
  ^                           ^
 10                          11
  operand 1: (10, 20, 30)   operand 2: (10, 20, 30)   operand 3: (10, 20, 30)
  operand 4: (10, 20, 30)   operand 5: (11, 20, 30))");
}

// --- every complaint about a pattern ---

struct Complained {
  Complaint complaint;
  Operation op;
  std::string text;
  std::size_t operands;
  std::vector<AxisSize> sizes;
  ErrorKind kind;
  std::string_view expected;
};

std::vector<Complained> complaint_table() {
  using enum Complaint;
  using enum Operation;
  return {
      {pattern_is_too_long, rearrange, std::string(300000, 'a'), 1, {}, ErrorKind::syntax, R"(
rearrange: the pattern is longer than 131072 bytes)"},
      {unexpected_character, rearrange, "a : b -> a b", 1, {}, ErrorKind::syntax, R"(
rearrange: unexpected character ':'
  a : b -> a b
    ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')"},
      {unexpected_character, rearrange, "a ;b -> a b", 1, {}, ErrorKind::syntax, R"(
rearrange: unexpected character ';'
  a ;b -> a b
    ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')"},
      {unexpected_character, rearrange, "a \u2026 -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: unexpected character U+2026
  a … -> a
    ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')"},
      {text_is_not_utf8, rearrange, "a \xFF -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: the pattern is not valid UTF-8 here
  a ? -> a
    ^)"},
      {axis_name_begins_with_a_digit, rearrange, "b 2h -> b", 1, {}, ErrorKind::syntax, R"(
rearrange: axis name '2h' begins with a digit
  b 2h -> b
    ^^)"},
      {axis_name_begins_or_ends_with_underscore, einsum, "_h w -> w", 1, {}, ErrorKind::syntax, R"(
einsum: axis name '_h' begins or ends with '_'
  _h w -> w
  ^^)"},
      {axis_name_begins_or_ends_with_underscore, einsum, "h_ w -> w", 1, {}, ErrorKind::syntax, R"(
einsum: axis name 'h_' begins or ends with '_'
  h_ w -> w
  ^^)"},
      {ellipsis_is_not_three_dots, rearrange, "a .. -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: an ellipsis is three dots, '...'
  a .. -> a
    ^^)"},
      {ellipsis_is_not_three_dots, rearrange, "....->a", 1, {}, ErrorKind::syntax, R"(
rearrange: an ellipsis is three dots, '...'
  ....->a
  ^^^^)"},
      {words_touch, rearrange, "...a -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: '...a' is not an axis name
  ...a -> a
  ^^^^
  help: put spaces around '...' and '*')"},
      {words_touch, repeat, "a b.c -> a", 1, {}, ErrorKind::syntax, R"(
repeat: 'b.c' is not an axis name
  a b.c -> a
    ^^^
  help: put spaces around '...' and '*')"},
      {number_is_zero, repeat, "a -> a 0", 1, {}, ErrorKind::syntax, R"(
repeat: an anonymous axis has a size of at least 1
  a -> a 0
         ^)"},
      {number_is_too_large, repeat, "a -> a 99999999999999999999", 1, {}, ErrorKind::overflow, R"(
repeat: the number '99999999999999999999' is too large
  a -> a 99999999999999999999
         ^^^^^^^^^^^^^^^^^^^^)"},
      {parenthesis_is_not_closed, rearrange, "a (b c -> a b c", 1, {}, ErrorKind::syntax, R"(
rearrange: '(' is never closed
  a (b c -> a b c
    ^)"},
      {parenthesis_closes_nothing, rearrange, "a b) c -> a b c", 1, {}, ErrorKind::syntax, R"(
rearrange: ')' closes nothing
  a b) c -> a b c
     ^)"},
      {groups_are_nested_too_deeply,
       reduce,
       std::string(40, '(') + std::string(40, ')') + "->",
       1,
       {},
       ErrorKind::syntax,
       R"(
reduce: groups are nested more than 32 deep
  (((((((((((((((((((((((((((((((((((((((())))))))))))))))))))))))))))))))))))))))->
                                  ^)"},
      {arrow_is_malformed, rearrange, "a b - > b a", 1, {}, ErrorKind::syntax, R"(
rearrange: an arrow is written '->'
  a b - > b a
      ^)"},
      {arrow_is_malformed, rearrange, "a b => b a", 1, {}, ErrorKind::syntax, R"(
rearrange: an arrow is written '->'
  a b => b a
      ^^)"},
      {unexpected_character, rearrange, "a b ~ b a", 1, {}, ErrorKind::syntax, R"(
rearrange: unexpected character '~'
  a b ~ b a
      ^
  help: a pattern has axis names, numbers, '...', '( )', '[ ]', '{ }', '@', ',' and '->')"},
      {arrow_is_repeated, einsum, "a -> b -> c", 1, {}, ErrorKind::syntax, R"(
einsum: '->' is written twice
  a -> b -> c
         ^^)"},
      {mesh_axis_is_missing, rearrange, "b@ data s -> s b", 1, {}, ErrorKind::syntax, R"(
rearrange: the name of a mesh axis follows '@' at once
  b@ data s -> s b
   ^
  help: write 'b@data' for an axis 'b' and a mesh axis 'data')"},
      {axis_size_is_no_number, rearrange, "b h= s -> s b", 1, {}, ErrorKind::syntax, R"(
rearrange: the size of an axis is a number that follows '=' at once
  b h= s -> s b
     ^
  help: write 'h=4', or give the size beside the pattern)"},
      {only_a_named_axis_has_a_size, rearrange, "b 4=4 -> b", 1, {}, ErrorKind::syntax, R"(
rearrange: '=' follows the name of an axis at once
  b 4=4 -> b
     ^
  help: write 'h=4')"},
      {placed_axis_is_missing, rearrange, "b @data s -> s b", 1, {}, ErrorKind::syntax, R"(
rearrange: '@' follows the name of an axis at once
  b @data s -> s b
    ^^^^^
  help: write 'b@data' for an axis 'b' and a mesh axis 'data')"},
      {only_a_named_axis_is_placed, place, "b 2@data", 1, {}, ErrorKind::syntax, R"(
place: '2@data': only an axis with a name is placed
  b 2@data
    ^^^^^^
  help: write the name of the axis before '@')"},
      {group_is_placed, rearrange, "b (h d)@model -> b h d", 1, {}, ErrorKind::syntax, R"(
rearrange: a group is not placed, its outermost axis is
  b (h d)@model -> b h d
    ^^^^^^^^^^^
  help: write '(h@model d)')"},
      {group_is_placed, rearrange, "((1 h@x) d)@y@z e ->", 1, {}, ErrorKind::syntax, R"(
rearrange: a group is not placed, its outermost axis is
  ((1 h@x) d)@y@z e ->
  ^^^^^^^^^^^^^^^
  help: write '((1 h@x@y@z) d)')"},
      {group_is_placed, rearrange, "(2 d)@x ->", 1, {}, ErrorKind::syntax, R"(
rearrange: a group is not placed, its outermost axis is
  (2 d)@x ->
  ^^^^^^^
  help: write '@' behind the name of the group's outermost axis)"},
      {arrow_is_missing, rearrange, "a b", 1, {}, ErrorKind::pattern, R"(
rearrange: the pattern has no '->'
  a b
     ^
  help: write the axes of the result after '->')"},
      {arrow_is_missing, rearrange, "", 1, {}, ErrorKind::pattern, R"(
rearrange: the pattern has no '->'

  ^
  help: write the axes of the result after '->')"},
      {arrow_is_not_wanted, pack, "a * -> b", 2, {}, ErrorKind::pattern, R"(
pack: the pattern takes no '->'
  a * -> b
      ^^
  help: it names the axes of the packed tensor, nothing else)"},
      {arrow_is_not_wanted, unpack, "a * -> b", 1, {}, ErrorKind::pattern, R"(
unpack: the pattern takes no '->'
  a * -> b
      ^^
  help: it names the axes of the packed tensor, nothing else)"},
      {arrow_is_not_wanted, parse_shape, "a b -> a", 1, {}, ErrorKind::pattern, R"(
parse_shape: the pattern takes no '->'
  a b -> a
      ^^
  help: it names the axes of the operand, nothing else)"},
      {number_of_operands_differs, einsum, "a b, b c -> a c", 3, {}, ErrorKind::arity, R"(
einsum: the pattern describes 2 operands, the call has 3
  a b, b c -> a c
  ^^^  ^^^)"},
      {number_of_operands_differs, einsum, "a b -> a", 2, {}, ErrorKind::arity, R"(
einsum: the pattern describes 1 operand, the call has 2
  a b -> a
  ^^^)"},
      {number_of_operands_differs, rearrange, "a, b -> a b", 1, {}, ErrorKind::arity, R"(
rearrange: the pattern describes 2 operands, the call has 1
  a, b -> a b
  ^  ^)"},
      {number_of_operands_differs, unpack, "a *, *", 1, {}, ErrorKind::arity, R"(
unpack: the pattern describes 2 operands, unpack takes 1
  a *, *
  ^^^  ^)"},
      {number_of_operands_differs, pack, "a *, b *", 2, {}, ErrorKind::arity, R"(
pack: the pattern describes 2 operands, pack wants one pattern for them all
  a *, b *
  ^^^  ^^^)"},
      {unnamed_axis_is_not_allowed, rearrange, "a _ -> a", 1, {}, ErrorKind::pattern, R"(
rearrange: the unnamed axis '_' is for inputs of einsum and for parse_shape
  a _ -> a
    ^)"},
      {unnamed_axis_is_not_allowed, einsum, "a -> _", 1, {}, ErrorKind::pattern, R"(
einsum: the unnamed axis '_' is for inputs of einsum and for parse_shape
  a -> _
       ^)"},
      {packed_axes_are_not_allowed, rearrange, "a * -> * a", 1, {}, ErrorKind::pattern, R"(
rearrange: '*' is for pack and unpack
  a * -> * a
    ^)"},
      {packed_axes_are_missing, pack, "a b", 2, {}, ErrorKind::pattern, R"(
pack: the pattern has no '*'
  a b
  ^^^
  help: '*' stands for the axes that are packed)"},
      {packed_axes_are_repeated, pack, "* a *", 2, {}, ErrorKind::pattern, R"(
pack: '*' is written twice
  * a *
  ^   ^)"},
      {group_is_not_allowed, pack, "(a b) *", 2, {}, ErrorKind::pattern, R"(
pack: a group '( )' has no meaning here
  (a b) *
  ^^^^^)"},
      {group_is_not_allowed, parse_shape, "a (b c)", 1, {}, ErrorKind::pattern, R"(
parse_shape: a group '( )' has no meaning here
  a (b c)
    ^^^^^)"},
      {number_is_not_allowed, unpack, "3 *", 1, {}, ErrorKind::pattern, R"(
unpack: a number has no meaning here
  3 *
  ^)"},
      {ellipsis_is_repeated, rearrange, "... a ... -> a ...", 1, {}, ErrorKind::pattern, R"(
rearrange: '...' is written twice on one side
  ... a ... -> a ...
  ^^^   ^^^)"},
      {ellipsis_is_inside_a_group_of_an_input,
       rearrange,
       "(a ...) -> a ...",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: '...' is inside a group of an input
  (a ...) -> a ...
     ^^^
  help: a group may hold '...' only after the arrow)"},
      {ellipsis_of_the_output_is_in_no_input,
       rearrange,
       "a -> a ...",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: '...' of the output is in no input
  a -> a ...
         ^^^)"},
      {ellipsis_of_the_input_is_lost, rearrange, "a ... -> a", 1, {}, ErrorKind::pattern, R"(
rearrange: '...' is lost: the output has none
  a ... -> a
    ^^^
  help: reduce removes axes)"},
      {axis_is_repeated, rearrange, "a b a -> a b", 1, {}, ErrorKind::pattern, R"(
rearrange: axis 'a' is repeated
  a b a -> a b
  ^   ^
  help: einsum takes diagonals, 'i i -> i')"},
      {axis_is_repeated, einsum, "a b -> a b a", 1, {}, ErrorKind::pattern, R"(
einsum: axis 'a' is repeated
  a b -> a b a
         ^   ^)"},
      {axis_is_repeated, parse_shape, "a b a", 1, {}, ErrorKind::pattern, R"(
parse_shape: axis 'a' is repeated
  a b a
  ^   ^)"},
      {axis_is_summed_alone, einsum, "b hiden, hidden o -> b o", 2, {}, ErrorKind::pattern, R"(
einsum: axes 'hiden' and 'hidden' are summed alone: each is in one operand
  b hiden, hidden o -> b o
    ^^^^^  ^^^^^^
  help: write '_' for an axis that is to be summed alone, or reduce its operand first)"},
      {axis_is_summed_alone, einsum, "b s h, b -> b h", 2, {}, ErrorKind::pattern, R"(
einsum: axis 's' is summed alone: no other operand has it
  b s h, b -> b h
    ^
  help: write '_' for an axis that is to be summed alone, or reduce its operand first)"},
      {axis_names_are_glued,
       einsum,
       "ij,jk->ik",
       2,
       {},
       ErrorKind::pattern,
       R"(
einsum: axis names are glued together: write `i j, j k -> i k`
  ij,jk->ik
  ^^^^^^^^^
  help: an axis has a name of any length, so blanks separate them)"},
      {axis_of_the_output_is_in_no_input,
       einsum,
       "batch seq1 h, batch seq2 h -> batch seq1 sek2",
       2,
       {},
       ErrorKind::pattern,
       R"(
einsum: axis 'sek2' of the output is in no input
  batch seq1 h, batch seq2 h -> batch seq1 sek2
                                           ^^^^
  help: did you mean 'seq2'?)"},
      {axis_of_the_output_is_in_no_input, rearrange, "a b -> a b c", 1, {}, ErrorKind::pattern, R"(
rearrange: axis 'c' of the output is in no input
  a b -> a b c
             ^
  help: repeat makes new axes)"},
      {axis_of_the_output_is_in_no_input, einsum, "a b -> a b x", 1, {}, ErrorKind::pattern, R"(
einsum: axis 'x' of the output is in no input
  a b -> a b x
             ^)"},
      {axis_of_the_output_is_in_no_input, reduce, "a b -> a x", 1, {}, ErrorKind::pattern, R"(
reduce: axis 'x' of the output is in no input
  a b -> a x
           ^
  help: repeat makes new axes)"},
      {axis_of_the_input_is_lost, rearrange, "b h w -> b h", 1, {}, ErrorKind::pattern, R"(
rearrange: axis 'w' is lost: the output lacks it
  b h w -> b h
      ^
  help: reduce removes axes)"},
      {anonymous_axis_of_the_input_is_lost, rearrange, "a 3 -> a", 1, {}, ErrorKind::pattern, R"(
rearrange: anonymous axis '3' is lost: each number is an axis of its own
  a 3 -> a
    ^
  help: name the axis and give its size)"},
      {anonymous_axis_of_the_output_is_in_no_input,
       rearrange,
       "a -> a 3",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: anonymous axis '3' of the output is in no input
  a -> a 3
         ^
  help: repeat makes new axes)"},
      {anonymous_axis_of_the_output_is_in_no_input,
       reduce,
       "a b -> a 3",
       1,
       {},
       ErrorKind::pattern,
       R"(
reduce: anonymous axis '3' of the output is in no input
  a b -> a 3
           ^
  help: repeat makes new axes)"},
      {axis_size_is_not_of_the_pattern,
       rearrange,
       "b (heads d) -> b heads d",
       1,
       {{"haeds", 8}},
       ErrorKind::axis_argument,
       R"(
rearrange: a size is given for axis 'haeds', which the pattern does not have
  b (heads d) -> b heads d
  help: did you mean 'heads'?)"},
      {axis_size_is_not_of_the_pattern,
       rearrange,
       "b (h d) -> b h d",
       1,
       {{"groups", 8}},
       ErrorKind::axis_argument,
       R"(
rearrange: a size is given for axis 'groups', which the pattern does not have
  b (h d) -> b h d
  help: the pattern's axes are 'b', 'h', 'd')"},
      {axis_size_is_given_twice,
       rearrange,
       "b (h d) -> b h d",
       1,
       {{"h", 8}, {"h", 8}},
       ErrorKind::axis_argument,
       R"(
rearrange: the size of axis 'h' is given twice: 8 and 8
  b (h d) -> b h d
     ^)"},
      {axis_size_is_missing, repeat, "h w -> (h k) w", 1, {}, ErrorKind::axis_argument, R"(
repeat: new axis 'k' needs a size
  h w -> (h k) w
            ^
  help: pass it with the call, "k"_a = ...)"},
      {brace_is_not_closed, einsum, "{y + k, k -> y", 2, {}, ErrorKind::syntax, R"(
einsum: '{' is never closed
  {y + k, k -> y
  ^)"},
      {brace_closes_nothing, einsum, "y} -> y", 1, {}, ErrorKind::syntax, R"(
einsum: '}' closes nothing
  y} -> y
   ^)"},
      {brace_is_empty, einsum, "{} -> ", 1, {}, ErrorKind::syntax, R"(
einsum: braces '{ }' hold no index
  {} ->
  ^^
  help: terms such as 'y', '2*y' and '3' are joined by '+' and '-': '{2*y + ky - 1}')"},
      {brace_is_inside_brackets, softmax, "[{y}]", 1, {}, ErrorKind::syntax, R"(
softmax: braces are inside brackets
  [{y}]
   ^)"},
      {index_is_malformed, einsum, "{2y} -> y", 1, {}, ErrorKind::syntax, R"(
einsum: 'y' does not fit into an index in braces
  {2y} -> y
  ^ ^
  help: terms such as 'y', '2*y' and '3' are joined by '+' and '-': '{2*y + ky - 1}')"},
      {coefficient_is_no_number, einsum, "{y*2} -> y", 1, {}, ErrorKind::syntax, R"(
einsum: a number stands left of '*', or its name, and an axis right of it
  {y*2} -> y
    ^^
  help: terms such as 'y', '2*y' and '3' are joined by '+' and '-': '{2*y + ky - 1}')"},
      {number_is_missing, einsum, "{y*k} -> k", 1, {}, ErrorKind::axis_argument, R"(
einsum: number 'y' needs a value
  {y*k} -> k
   ^
  help: pass it with the call, "y"_n = ...; an axis stands right of '*')"},
      {number_is_an_axis,
       einsum,
       "{y + s}, s -> y",
       2,
       {{"s", 2, true}},
       ErrorKind::axis_argument,
       R"(
einsum: 's' is given as a number, and stands here for an axis
  {y + s}, s -> y
           ^
  help: give one of the two another name)"},
      {number_is_not_of_the_pattern,
       einsum,
       "{2*y} -> y",
       1,
       {{"y", 2}, {"s", 2, true}},
       ErrorKind::axis_argument,
       R"(
einsum: number 's' is given, which no braces of the pattern have
  {2*y} -> y)"},
      {number_is_given_twice,
       einsum,
       "{s*y} -> y",
       1,
       {{"s", 2, true}, {"y", 2}, {"s", 2, true}},
       ErrorKind::axis_argument,
       R"(
einsum: number 's' is given twice
  {s*y} -> y)"},
      {number_is_zero, einsum, "{s*y} -> y", 1, {{"s", 0, true}}, ErrorKind::syntax, R"(
einsum: a coefficient of 0 reads one place alone
  {s*y} -> y
   ^)"},
      {number_is_zero, einsum, "{0*y + k} -> k", 1, {}, ErrorKind::syntax, R"(
einsum: a coefficient of 0 reads one place alone
  {0*y + k} -> k
   ^)"},
      {brace_is_not_allowed, softmax, "{y} [k]", 1, {}, ErrorKind::pattern, R"(
softmax: braces '{ }' have no meaning here
  {y} [k]
  ^^^
  help: einsum, reduce, rearrange and map read at functions of indices)"},
      {sum_is_outside_parentheses, rearrange, "a + b -> b a", 1, {}, ErrorKind::syntax, R"(
rearrange: a sum of axes stands in parentheses: '(a + b)'
  a + b -> b a
    ^
  help: a function of indices stands in braces: '{y + ky}')"},
      {sum_is_outside_parentheses, reduce, "[a + b] -> a", 1, {}, ErrorKind::syntax, R"(
reduce: a sum of axes stands in parentheses: '(a + b)'
  [a + b] -> a
     ^
  help: a function of indices stands in braces: '{y + ky}')"},
      {piece_is_missing, rearrange, "(a + ) -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: a piece is missing beside '+'
  (a + ) -> a
     ^^^)"},
      {piece_is_missing, rearrange, "(a + + b) -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: a piece is missing beside '+'
  (a + + b) -> a
     ^^^)"},
      {piece_is_missing, rearrange, "(+ a) -> a", 1, {}, ErrorKind::syntax, R"(
rearrange: a piece is missing beside '+'
  (+ a) -> a
  ^^)"},
      {piece_is_several_axes, rearrange, "(a + b c) -> a b c", 1, {}, ErrorKind::syntax, R"(
rearrange: a piece of a sum is one axis, or a group of them
  (a + b c) -> a b c
      ^^^^
  help: write '(b c)')"},
      {comma_after_the_arrow, einsum, "a b -> a, b", 1, {}, ErrorKind::pattern, R"(
einsum: ',' after the arrow: einsum has one result
  a b -> a, b
          ^
  help: rearrange has several: it splits a sum of axes, '(a + b) c -> a c, b c')"},
      {call_has_one_result, rearrange, "(a + b) -> a, b", 1, {}, ErrorKind::pattern, R"(
rearrange: the pattern has several outputs, the call one result
  (a + b) -> a, b
            ^^^^^
  help: write "..."_p for an array of results; rearrange_all gives a vector)"},
      {sum_is_not_allowed, repeat, "(a + b) -> a b", 1, {}, ErrorKind::pattern, R"(
repeat: a sum of axes has no meaning here
  (a + b) -> a b
  ^^^^^^^
  help: rearrange joins and splits, einsum and reduce compute piece by piece)"},
      {piece_is_no_axis, einsum, "(a + _) -> a", 1, {}, ErrorKind::pattern, R"(
einsum: '_' is no piece of a sum
  (a + _) -> a
       ^
  help: a piece is a name, a number, or a group '(h d)' of them)"},
      {piece_is_no_axis, rearrange, "(a + (b + c)) -> a", 1, {}, ErrorKind::pattern, R"(
rearrange: '(b + c)' is no piece of a sum
  (a + (b + c)) -> a
       ^^^^^^^
  help: a piece is a name, a number, or a group '(h d)' of them)"},
      {piece_comes_from_nowhere,
       rearrange,
       "b c, b s c -> b (1 + s + 2) c",
       2,
       {},
       ErrorKind::pattern,
       R"(
rearrange: piece '2' comes from no operand
  b c, b s c -> b (1 + s + 2) c
                           ^
  help: a piece is what an operand, or a piece of it, names; a number takes an operand that names none)"},
      {piece_goes_nowhere, reduce, "b (1 + s) c -> b s c", 1, {}, ErrorKind::pattern, R"(
reduce: piece '1' goes to no output
  b (1 + s) c -> b s c
     ^
  help: rearrange splits a sum into several outputs, '(a + b) c -> a c, b c')"},
      {operand_goes_nowhere, rearrange, "a, b, c -> (a + b) c", 3, {}, ErrorKind::pattern, R"(
rearrange: operand 3 goes to no output
  a, b, c -> (a + b) c
       ^^^
  help: an output, or a piece of it, has all axes of its operand)"},
      {sums_have_too_many_cases,
       rearrange,
       "(a + b) (c + d) (e + f) (g + h) (i + j) (k + l) (m + n) (o + p) (q + r) -> (b + a) (d + c) "
       "(f + e) (h + g) (j + i) (l + k) (n + m) (p + o) (r + q)",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: the sums of axes have more than 256 cases
  ...) (e + f) (g + h) (i + j) (k + l) (m + n) (o + p) (q + r) -> (b + a) (d + c) (f + e) (h + g) (j + i) (l + ...
                                                       ^^^^^^^)"},
      {piece_is_placed, rearrange, "(a@data + b) -> (b + a)", 1, {}, ErrorKind::pattern, R"(
rearrange: 'a@data': a piece of a sum is not split over a mesh
  (a@data + b) -> (b + a)
   ^^^^^^
  help: reshard first)"},
      {sum_has_more_than_one_unknown_size,
       rearrange,
       "(a + b) -> (b + a)",
       1,
       {},
       ErrorKind::inference,
       R"(
rearrange: more than one size is unknown in '(a + b)'
  (a + b) -> (b + a)
  ^^^^^^^
  help: give the sizes of all pieces of the sum but one)"},
      {many_axes_are_not_allowed, unpack, "*a *", 1, {}, ErrorKind::pattern, R"(
unpack: unpack has '*' alone for many axes
  *a *
   ^)"},
      {name_is_of_one_axis_and_of_many, einsum, "*a b, a -> b", 2, {}, ErrorKind::pattern, R"(
einsum: 'a' is one axis here, and any number of them elsewhere
  *a b, a -> b
   ^    ^
  help: write '*a' everywhere)"},
      {brace_is_inside_a_group, reduce, "({y} 2) -> y", 1, {}, ErrorKind::pattern, R"(
reduce: braces are inside a group: they are a whole dimension
  ({y} 2) -> y
   ^^^
  help: split the dimension first, with rearrange)"},
      {brace_has_more_than_one_unknown_size,
       reduce,
       "{y + k} -> y",
       1,
       {},
       ErrorKind::inference,
       R"(
reduce: more than one size is unknown in '{y + k}'
  {y + k} -> y
  ^^^^^^^
  help: give the sizes of all axes of the braces but one)"},
      {group_has_more_than_one_unknown_size,
       rearrange,
       "b (h d) -> b h d",
       1,
       {},
       ErrorKind::inference,
       R"(
rearrange: more than one size is unknown in '(h d)'
  b (h d) -> b h d
    ^^^^^
  help: give the sizes of all axes of the group but one)"},
      {bracket_is_not_closed, softmax, "b [k", 1, {}, ErrorKind::syntax, R"(
softmax: '[' is never closed
  b [k
    ^)"},
      {bracket_closes_nothing, softmax, "b k]", 1, {}, ErrorKind::syntax, R"(
softmax: ']' closes nothing
  b k]
     ^)"},
      {brackets_are_empty, softmax, "b [ ]", 1, {}, ErrorKind::syntax, R"(
softmax: brackets '[ ]' hold no axis
  b [ ]
    ^^^)"},
      {brackets_are_nested, softmax, "b [h [w]]", 1, {}, ErrorKind::syntax, R"(
softmax: brackets are inside brackets
  b [h [w]]
       ^)"},
      {brackets_are_inside_a_group,
       from_diagonal,
       "b (h [w])",
       1,
       {{"h", 2}},
       ErrorKind::pattern,
       R"(
from_diagonal: brackets are inside a group: from_diagonal puts two axes in the place of one
  b (h [w])
       ^^^
  help: split the group first, with rearrange)"},
      {group_is_not_allowed, softmax, "b (h w) [c]", 1, {}, ErrorKind::pattern, R"(
softmax: a group '( )' has no meaning here
  b (h w) [c]
    ^^^^^
  help: a name says the same; '(h [d])' has brackets in a group)"},
      {group_has_more_than_one_unknown_size,
       softmax,
       "b (h [w])",
       1,
       {},
       ErrorKind::inference,
       R"(
softmax: more than one size is unknown in '(h [w])'
  b (h [w])
    ^^^^^^^
  help: give the sizes of all axes of the group but one)"},
      {group_is_inside_brackets, softmax, "b [(h w)]", 1, {}, ErrorKind::syntax, R"(
softmax: a group is inside brackets
  b [(h w)]
     ^
  help: name its axes one by one: '[h w]')"},
      {brackets_are_not_allowed, einsum, "b [k] -> b", 1, {}, ErrorKind::pattern, R"(
einsum: brackets '[ ]' have no meaning here
  b [k] -> b
    ^^^)"},
      {brackets_are_not_allowed, gather, "v d, [b] -> b d", 2, {}, ErrorKind::pattern, R"(
gather: the axis in brackets must be one of the first operand's
  v d, [b] -> b d
       ^^^)"},
      {brackets_are_not_allowed,
       scatter_add,
       "[b] d, b -> v d",
       2,
       {{"v", 3}},
       ErrorKind::pattern,
       R"(
scatter_add: the axis in brackets must be one of the output's
  [b] d, b -> v d
  ^^^)"},
      {brackets_are_missing, softmax, "b h q k", 1, {}, ErrorKind::pattern, R"(
softmax: the pattern has no axis in brackets
  b h q k
  ^^^^^^^
  help: put the axis of softmax in brackets: '[k]')"},
      {one_axis_in_brackets_is_wanted, cumsum, "b [h  w]", 1, {}, ErrorKind::pattern, R"(
cumsum: one name or number is wanted in brackets: cumsum goes along one axis
  b [h  w]
    ^^^^^^)"},
      {rows_and_columns_in_brackets_are_wanted, inverse, "b i [j]", 1, {}, ErrorKind::pattern, R"(
inverse: two names are wanted in brackets, the rows and the columns of a matrix
  b i [j]
      ^^^
  help: inverse(x, "b [i j]"))"},
      {rows_and_columns_in_brackets_are_wanted, solve, "n m, n -> m", 2, {}, ErrorKind::pattern, R"(
solve: two names are wanted in brackets, the rows and the columns of a matrix
  n m, n -> m
  ^^^
  help: solve(a, b, "[n m], [n] k -> [m] k"))"},
      {rows_in_brackets_are_wanted, solve, "[n m], [k] -> [m]", 2, {}, ErrorKind::pattern, R"(
solve: the second operand must have the rows of the matrix in brackets, '[n]'
  [n m], [k] -> [m]
   ^     ^^^)"},
      {columns_in_brackets_are_wanted, solve, "[n m], [n] -> m", 2, {}, ErrorKind::pattern, R"(
solve: the result must have the columns of the matrix in brackets, '[m]'
  [n m], [n] -> m
     ^         ^^)"},
      {axis_in_brackets_is_elsewhere, solve, "[n m], [n] -> [n]", 2, {}, ErrorKind::pattern, R"(
solve: axis 'n' is the rows of the matrix, which the result lacks
  [n m], [n] -> [n]
   ^             ^
  help: give one of the two another name)"},
      {axis_in_brackets_is_elsewhere, solve, "[n m], [n] m -> [m]", 2, {}, ErrorKind::pattern, R"(
solve: axis 'm' is the columns of the matrix, which the result has
  [n m], [n] m -> [m]
     ^       ^
  help: give one of the two another name)"},
      {two_axes_in_brackets_are_wanted, tril, "b [i] j", 1, {}, ErrorKind::pattern, R"(
tril: two names or numbers are wanted in brackets: tril is of rows and columns
  b [i] j
    ^^^)"},
      {axis_in_brackets_is_elsewhere, gather, "[v] d, b -> b v d", 2, {}, ErrorKind::pattern, R"(
gather: axis 'v' in brackets is the first operand's alone
  [v] d, b -> b v d
   ^            ^
  help: give one of the two another name)"},
      {axis_in_brackets_is_elsewhere,
       scatter_add,
       "b d, b -> [d]",
       2,
       {{"d", 3}},
       ErrorKind::pattern,
       R"(
scatter_add: axis 'd' in brackets is new: no operand has it
  b d, b -> [d]
    ^        ^
  help: give one of the two another name)"},
      {axis_size_is_missing, one_hot, "b -> b [v]", 1, {}, ErrorKind::axis_argument, R"(
one_hot: new axis 'v' needs a size
  b -> b [v]
          ^
  help: pass it with the call, "v"_a = ...)"},
      {axis_of_the_input_is_lost, gather, "[v] d, b -> b", 2, {}, ErrorKind::pattern, R"(
gather: axis 'd' is lost: the output lacks it
  [v] d, b -> b
      ^
  help: only the axis in brackets goes; reduce removes others)"},
      {arrow_is_not_wanted, softmax, "b [k] -> b k", 1, {}, ErrorKind::pattern, R"(
softmax: the pattern takes no '->'
  b [k] -> b k
        ^^
  help: it names the axes of the operand, nothing else)"},
      {mesh_axis_is_repeated, einsum, "b@x s@x -> b s", 1, {}, ErrorKind::pattern, R"(
einsum: a mesh axis splits one axis of a tensor, and that once
  b@x s@x -> b s
    ^   ^)"},
      {mesh_axis_is_repeated, place, "b@x@x", 1, {}, ErrorKind::pattern, R"(
place: a mesh axis splits one axis of a tensor, and that once
  b@x@x
    ^ ^)"},
      {inner_axis_of_a_group_is_placed,
       rearrange,
       "h d -> (h d@model)",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: 'd@model' is not the outermost axis of its group: parts of it are no parts of the group
  h d -> (h d@model)
          ^ ^^^^^^^
  help: write '(h@model d)', or rearrange first)"},
      {inner_axis_of_a_group_is_placed,
       rearrange,
       "h d -> 1 ((h@x d@y) ())",
       1,
       {},
       ErrorKind::pattern,
       R"(
rearrange: 'd@y' is not the outermost axis of its group: parts of it are no parts of the group
  h d -> 1 ((h@x d@y) ())
             ^   ^^^
  help: write '((h@x@y d) ())', or rearrange first)"},
      {inner_axis_of_a_group_is_placed, reduce, "(2 d@x) -> d", 1, {}, ErrorKind::pattern, R"(
reduce: 'd@x' is not the outermost axis of its group: parts of it are no parts of the group
  (2 d@x) -> d
   ^ ^^^
  help: write '@' behind the name of the group's outermost axis, or rearrange first)"},
      {axis_is_placed_differently, einsum, "b@x s, b@y -> b s", 2, {}, ErrorKind::pattern, R"(
einsum: axis 'b@y' is placed differently
  b@x s, b@y -> b s
  ^^^    ^^^
  help: an axis lies alike in all operands and in the result)"},
      {axes_are_in_another_order, reshard, "b@x s -> s b@x", 1, {}, ErrorKind::pattern, R"(
reshard: reshard keeps the order of the axes
  b@x s -> s b@x
  ^        ^
  help: rearrange changes it)"},
      {arrow_is_not_wanted, place, "b@x -> b", 1, {}, ErrorKind::pattern, R"(
place: the pattern takes no '->'
  b@x -> b
      ^^
  help: it says where each axis of the operand lies, nothing else)"},
      {arrow_is_missing, reshard, "b@x", 1, {}, ErrorKind::pattern, R"(
reshard: the pattern has no '->'
  b@x
     ^
  help: write the axes of the result after '->')"},
      {axis_is_repeated, reshard, "b@x b -> b", 1, {}, ErrorKind::pattern, R"(
reshard: axis 'b' is repeated
  b@x b -> b
  ^   ^)"},
      {number_is_not_allowed, place, "b@x 2", 1, {}, ErrorKind::pattern, R"(
place: a number has no meaning here
  b@x 2
      ^)"},
      {group_is_not_allowed, reshard, "(h d) -> (h@x d)", 1, {}, ErrorKind::pattern, R"(
reshard: a group '( )' has no meaning here
  (h d) -> (h@x d)
  ^^^^^)"},
      {number_of_operands_differs, cross_entropy, "b [v]", 2, {}, ErrorKind::arity, R"(
cross_entropy: the pattern describes 1 operand, cross_entropy takes 2
  b [v]
  ^^^^^)"},
  };
}

// What operands' types say of a pattern; `axes` in the notation of types.
struct TypeComplained {
  Complaint complaint;
  std::string_view text;
  std::vector<std::string_view> axes;
  ErrorKind kind;
  std::string_view expected;
  std::vector<int> dtypes{-1, -1};
};

std::vector<TypeComplained> type_complaint_table() {
  using enum Complaint;
  return {
      {operand_has_another_rank_than_the_pattern,
       "a b, b c -> a c",
       {"a b c", "d e"},
       ErrorKind::rank,
       R"(
einsum: operand 1 has, by its type, another number of axes than the pattern
  a b, b c -> a c
  ^^^)"},
      {axis_has_two_sizes, "a b, b c -> a c", {"x 3", "4 c"}, ErrorKind::size, R"(
einsum: 'b' has two sizes by the operands' types
  a b, b c -> a c
    ^  ^)"},
      {axis_has_two_types, "a b, b c -> a c", {"x y", "z c"}, ErrorKind::size, R"(
einsum: 'b' has two names by the operands' types
  a b, b c -> a c
    ^  ^)"},
      {axis_is_not_of_size_one, "a 1 -> a", {"x 3"}, ErrorKind::size, R"(
einsum: an axis of size 1 is wanted, the operand's type has another size there
  a 1 -> a
    ^)"},
      {group_has_another_size_than_its_axes, "(2 3) -> ", {"7"}, ErrorKind::size, R"(
einsum: '(2 3)' has another size by the operand's type than by its axes
  (2 3) ->
  ^^^^^)"},
      {group_cannot_be_split_evenly, "(a 4), a -> a", {"10", "x"}, ErrorKind::divisibility, R"(
einsum: axis '(a 4)' cannot be split evenly, by the operand's type
  (a 4), a -> a
  ^^^^^)"},
      {sum_has_another_size_than_its_pieces,
       "(a + b), a, b -> a",
       {"4", "2", "3"},
       ErrorKind::size,
       R"(
einsum: '(a + b)' has another size by the operand's type than by its pieces
  (a + b), a, b -> a
  ^^^^^^^)"},
      {brace_reads_nothing, "{y + k}, k -> y", {"4", "5"}, ErrorKind::size, R"(
einsum: '{y + k}' reads nothing inside, by the operand's type
  {y + k}, k -> y
  ^^^^^^^
  help: a constant '- p' reads p places before and behind the tensor)"},
      {operands_have_different_dtypes,
       "a, a ->",
       {"x", "x"},
       ErrorKind::dtype,
       R"(
einsum: operand 2 has another dtype than those before it
  a, a ->
  help: cast one with .to(dtype))",
       {0, 1}},
      {axis_is_placed_differently, "a b, b c -> a c", {"x y@m", "y c"}, ErrorKind::pattern, R"(
einsum: axis 'b' is placed differently
  a b, b c -> a c
    ^  ^
  help: an axis lies alike in all operands and in the result)"},
      {inner_axis_of_a_group_is_placed, "a b -> (a b)", {"x y@m"}, ErrorKind::pattern, R"(
einsum: 'b' is not the outermost axis of its group: parts of it are no parts of the group
  a b -> (a b)
            ^
  help: write '@' behind the name of the group's outermost axis, or rearrange first)"},
      {mesh_axis_is_repeated, "a, b -> a b", {"x@m", "y@m"}, ErrorKind::pattern, R"(
einsum: a mesh axis splits one axis of a tensor, and that once
  a, b -> a b
          ^ ^)"},
      {axis_has_two_sizes, "... a, ... a -> ... a", {"2 x", "3 x"}, ErrorKind::size, R"(
einsum: '... a' has two sizes by the operands' types
  ... a, ... a -> ... a
        ^^^^^^^)"},
  };
}

Mistake mistake_in(const Complained& row, ein::grammar::Reading& reading) {
  reading = ein::grammar::parse_pattern(row.text);
  if (reading.mistake) return reading.mistake;
  std::vector<std::string_view> names;
  std::vector<ein::grammar::GivenNumber> numbers;
  for (const AxisSize& size : row.sizes) {
    if (size.is_number)
      numbers.push_back({size.name, size.size, false});
    else
      names.push_back(size.name);
  }
  if (const Mistake mistake = ein::grammar::put_numbers(reading.buffer, row.text, numbers))
    return mistake;
  return ein::grammar::check_pattern(row.op, reading.buffer.pattern(row.text), row.operands, names,
                                     false, ein::grammar::LoneSums::refused,
                                     ein::grammar::Results::one);
}

TEST(Diagnostics, EveryComplaintHasItsWords) {
  std::set<Complaint> seen;
  const auto expect_words = [&](Complaint complaint, Operation op, const Pattern& pattern,
                                const Mistake& mistake, std::span<const AxisSize> sizes,
                                ErrorKind kind, std::string_view expected) {
    seen.insert(complaint);
    ASSERT_EQ(static_cast<int>(mistake.complaint), static_cast<int>(complaint)) << expected;
    const auto error = error_of([&] { ein::fail(op, pattern, mistake, sizes); });
    ASSERT_TRUE(error) << expected;
    EXPECT_EQ("\n" + std::string(error->what()), expected);
    EXPECT_EQ(static_cast<int>(error->kind()), static_cast<int>(kind)) << expected;
    // As many places as there are runs of carets, in the order of the text.
    const std::string text = error->what();
    std::size_t runs = 0;
    for (std::size_t i = text.find('\n'); i < text.size(); ++i)
      runs += text[i] == '^' && text[i - 1] != '^';
    EXPECT_EQ(error->spans().size(), runs) << expected;
    for (std::size_t i = 1; i < error->spans().size(); ++i) {
      EXPECT_GE(error->spans()[i].begin, error->spans()[i - 1].end) << expected;
    }
  };
  for (const Complained& row : complaint_table()) {
    ein::grammar::Reading reading;
    const Mistake mistake = mistake_in(row, reading);
    expect_words(row.complaint, row.op, reading.buffer.pattern(row.text), mistake, row.sizes,
                 row.kind, row.expected);
  }
  for (const TypeComplained& row : type_complaint_table()) {
    const auto reading = ein::grammar::parse_pattern(row.text);
    const Pattern pattern = reading.buffer.pattern(row.text);
    std::vector<ein::grammar::SpecReading> axes;
    for (std::string_view text : row.axes) axes.push_back(ein::grammar::read_shape_spec(text));
    std::vector<ein::grammar::OperandSpec> operands;
    for (std::size_t k = 0; k < axes.size(); ++k) operands.push_back({&axes[k], row.dtypes[k]});
    const Mistake mistake = ein::grammar::infer_type(Operation::einsum, pattern, operands).mistake;
    expect_words(row.complaint, Operation::einsum, pattern, mistake, {}, row.kind, row.expected);
  }
  const std::string_view type = "a b+ c";
  expect_words(Complaint::type_is_malformed, Operation::einsum, {type, {}, {}, 0},
               ein::grammar::read_shape_spec(type).mistake, {}, ErrorKind::syntax, R"(
einsum: the axes of an operand's type are malformed here
  a b+ c
      ^)");
  expect_words(
      Complaint::reduction_wants_a_floating_point_dtype, Operation::reduce, {"a ->", {}, {}, 0},
      {Complaint::reduction_wants_a_floating_point_dtype, {0, 1}, {}, 0}, {}, ErrorKind::dtype, R"(
reduce: the reduction is defined for floating-point dtypes only
  a ->
  ^
  help: cast first, x.to(ein::DType::f32))");
#define EIN_EXPECT_SEEN(name) \
  EXPECT_TRUE(seen.contains(Complaint::name)) << "no test of the words for " #name;
  EIN_FOR_EACH_COMPLAINT(EIN_EXPECT_SEEN)
#undef EIN_EXPECT_SEEN
}

// --- what no call may do ---

// Every call, however wrong, gives a result or an Error: never another exception, never a crash.
TEST(Diagnostics, NoCallEscapesWithAnythingButAnError) {
  const unsigned seed = 12 + ein::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  constexpr std::string_view words[] = {"a", "b", "c", "(",  ")",  "...", "1",     "2",   "[b]",
                                        "_", "*", ",", "->", "->", "a b", "(a b)", "b c", "a@x"};
  constexpr std::string_view dims[] = {"a",     "b",     "c",   "a", "b", "c",
                                       "(a b)", "(b c)", "...", "1", "_"};
  constexpr std::int64_t sizes[] = {0, 1, 2, 2, 2, 4, 6};
  constexpr std::int64_t given_sizes[] = {-1, 0, 1, 2, 3, tera, INT64_MAX};
  constexpr std::string_view names[] = {"a", "b", "c", "d"};
  int results = 0, errors = 0;
  for (int round = 0; round < static_cast<int>(ein::test::seeds_or(60'000)); ++round) {
    const std::size_t which = below(9);
    std::vector<Tensor> operands;
    for (std::size_t n = below(4); n > 0; --n) {
      Shape shape;
      for (std::size_t d = below(4); d > 0; --d) shape.push_back(sizes[below(std::size(sizes))]);
      operands.push_back(zeros(shape, static_cast<DType>(below(10) == 0 ? below(10) : 1)));
    }
    std::string text;
    const auto add = [&](auto& from) { text += std::string(from[below(std::size(from))]) + " "; };
    if (below(3) == 0) {
      for (std::size_t n = below(12); n > 0; --n) add(words);
    } else {
      // Something that may well fit the operands.
      for (std::size_t k = 0;
           k < (which == 0 ? operands.size() : std::min<std::size_t>(operands.size(), 1)); ++k) {
        if (k > 0) text += ", ";
        for (std::size_t d = 0; d < operands[k].rank(); ++d) add(dims);
      }
      text += "-> ";
      for (std::size_t n = below(4); n > 0; --n) below(4) ? add(names) : add(words);
    }
    std::vector<Shape> pieces;
    for (std::size_t n = below(4); n > 0; --n) {
      pieces.emplace_back();
      for (std::size_t d = below(3); d > 0; --d)
        pieces.back().push_back(given_sizes[below(std::size(given_sizes))]);
    }
    const AxisSize given{names[below(4)], given_sizes[below(std::size(given_sizes))]};
    const bool has_size = below(3) == 0;
    const auto reduction = static_cast<Reduction>(below(10));
    const Tensor x = operands.empty() ? zeros({2, 3}) : operands[0];
    const auto pattern = runtime(text);
    try {
      switch (which) {
        case 0:
          has_size ? ein::einsum(operands, pattern, given) : ein::einsum(operands, pattern);
          break;
        case 1:
          has_size ? ein::reduce(x, pattern, reduction, given) : ein::reduce(x, pattern, reduction);
          break;
        case 2:
          has_size ? ein::rearrange(x, pattern, given) : ein::rearrange(x, pattern);
          break;
        case 3:
          has_size ? ein::repeat(x, pattern, given) : ein::repeat(x, pattern);
          break;
        case 4:
          ein::rearrange(operands, pattern);
          break;
        case 5:
          ein::reduce(operands, pattern, reduction);
          break;
        case 6:
          ein::pack(operands, pattern);
          break;
        case 7:
          ein::unpack(x, pieces, pattern);
          break;
        default:
          ein::parse_shape(x, pattern);
          break;
      }
      ++results;
    } catch (const Error& error) {
      ++errors;
      ASSERT_NE(error.what(), std::string_view()) << text;
    } catch (const std::exception& other) {
      FAIL() << other.what() << " from \"" << text << "\"";
    }
  }
  EXPECT_GT(results, static_cast<int>(ein::test::at_least(1000)));
  EXPECT_GT(errors, static_cast<int>(ein::test::at_least(10'000)));
}

TEST(Diagnostics, ExtremePatternsAreAnswered) {
  // As many axes as a tensor may have, and more than it may have.
  std::string text, reversed;
  for (int i = 0; i < 1024; ++i) {
    text += "a" + std::to_string(i) + " ";
    reversed = "a" + std::to_string(i) + " " + reversed;
  }
  const Tensor x = ein::full(Shape(1024, 1), 7);
  EXPECT_EQ(ein::rearrange(x, runtime(text + "->" + reversed)).item(), 7);
  EXPECT_EQ(ein::reduce(x, runtime(text + "->"), Reduction::max).item(), 7);
  EXPECT_EQ(ein::to_string(x).size(), 2 * 1024u + 1);
  EXPECT_EQ(error_of([&] { ein::repeat(x, runtime("... -> 1 ...")); })->kind(), ErrorKind::rank);
  EXPECT_EQ(error_of([&] { zeros(Shape(100'000, 1)); })->kind(), ErrorKind::rank);
  // Many operands.
  const std::vector<Tensor> many(200, ein::full({2}, 1));
  std::string product;
  for (int i = 0; i < 200; ++i) product += i ? ", a" : "a";
  EXPECT_EQ(ein::einsum(many, runtime(product + "->")).item(), 2);
  // An intermediate result too large for any machine: a, b and c are 2^40 long without taking
  // memory.
  const Tensor ab = wide({tera, 1 << 20}), bc = wide({1 << 20, tera});
  const auto error =
      error_of([&] { ein::einsum(ab, bc, ein::ones({2}), runtime("a b, b c, d -> d a c")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::overflow);
}

}  // namespace
