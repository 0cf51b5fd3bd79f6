// Strips of integers: which bits they have, and that results are those of 64.
#include "cpu/strip_type.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "cpu/kernel.hpp"
#include "nest/combine.hpp"
#include "support/seeds.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

using enum DType;

Ex in(int which) { return Ex::input(which); }
Ex number(std::int64_t value) { return Ex::integer(value); }
Ex of(ScalarOp op, const Ex& a, const Ex& b) { return Ex::apply(op, a, b); }

Ex choice(const Ex& condition, const Ex& a, const Ex& b) { return where(condition, a, b); }

StripType type_of(const Ex& body, const std::vector<DType>& inputs, DType output,
                  std::optional<Combine> combine = {}, const ScalarExpr& epilogue = {}) {
  Schedule::Part part;
  Schedule::RowNest nest{.body = body, .combine = combine, .epilogue = epilogue};
  for (DType dtype : inputs) {
    nest.inputs.push_back(part.places.size());
    part.places.push_back({.dtype = dtype});
  }
  nest.output = part.places.size();
  part.places.push_back({.dtype = output});
  part.rows.nests.push_back(nest);
  part.rows.compute = i64;
  return strip_type(part);
}
DType bits_of(const Ex& body, const std::vector<DType>& inputs, DType output) {
  return type_of(body, inputs, output).dtype;
}

TEST(StripType, ArithmeticNeedsTheBitsThatAreStored) {
  using enum ScalarOp;
  for (ScalarOp op : {add, sub, mul, bit_and, bit_or, bit_xor}) {
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i8, i8}, i8), i8);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u8, u8}, u8), i8);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u16, i16}, i16), i16);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u32, u32}, u32), i32);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i32, i32}, i32), i32);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u32, u32}, i64), i64);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i64, i64}, i64), i64);
  }
  EXPECT_EQ(bits_of(in(0) + in(1), {i8, i8}, i64), i16);
  EXPECT_EQ(bits_of(in(0) * in(1), {i8, i8}, i64), i16);
  EXPECT_EQ(bits_of(in(0) * in(1), {u8, u8}, i64), i32);
  EXPECT_EQ(bits_of(in(0) + in(1), {i32, i32}, i64), i64);
  EXPECT_EQ(bits_of(in(0) + in(1), {i32, i32}, f64), i64);
  EXPECT_EQ(bits_of(in(0) + in(1), {i32, i32}, boolean), i64);
  EXPECT_EQ(bits_of(in(0) + in(1), {i16, i16}, boolean), i32);
  EXPECT_EQ(bits_of(in(0) + number(1000), {i8}, i8), i8);
}

TEST(StripType, OtherOperationsNeedTheirArgumentsWhole) {
  using enum ScalarOp;
  for (ScalarOp op : {lt, le, eq, ne, logical_and}) {
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i8, i8}, boolean), i8);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u8, i8}, boolean), i16);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u16, u16}, boolean), i32);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i32, i32}, boolean), i32);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u32, u32}, boolean), i64);
    EXPECT_EQ(bits_of(of(op, in(0) + in(1), in(1)), {i32, i32}, boolean), i64);
    EXPECT_TRUE(type_of(of(op, in(0), in(1)), {i32, i32}, boolean).is_truth);
  }
  for (ScalarOp op : {ScalarOp::max, ScalarOp::min, remainder, shift_right, pow}) {
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {i32, i32}, i32), i32);
    EXPECT_EQ(bits_of(of(op, in(0) * in(0), in(1)), {i32, i32}, i32), i64);
    EXPECT_EQ(bits_of(of(op, in(0) * in(0), in(1)), {i8, i8}, i8), i16);
    EXPECT_EQ(bits_of(of(op, in(0), in(1)), {u8, u8}, u8), i16);
  }
  const Ex magnitude = Ex::apply(ScalarOp::abs, in(0));
  EXPECT_EQ(bits_of(magnitude, {i8}, i8), i8);
  EXPECT_EQ(bits_of(magnitude, {i8}, i16), i16);
  EXPECT_EQ(bits_of(of(lt, magnitude, in(1)), {i32, i32}, boolean), i64);  // |-2^31| is 2^31
}

TEST(StripType, Ranges) {
  using enum ScalarOp;
  EXPECT_EQ(bits_of(of(ScalarOp::max, of(bit_and, in(0), number(127)), number(5)), {u32}, i32), i8);
  EXPECT_EQ(bits_of(of(lt, of(shift_right, in(0), number(3)), number(4)), {u8}, boolean), i16);
  EXPECT_EQ(bits_of(of(shift_left, in(0), number(40)), {i32}, i32), i32);
  EXPECT_EQ(bits_of(of(lt, of(shift_left, in(0), number(7)), number(4)), {i8}, boolean), i16);
  EXPECT_EQ(bits_of(of(lt, of(shift_left, in(0), number(24)), number(4)), {i8}, boolean), i32);
  EXPECT_EQ(bits_of(of(lt, of(shift_left, in(0), number(25)), number(4)), {i8}, boolean), i64);
  EXPECT_EQ(bits_of(of(remainder, in(0), number(7)) * number(18), {i16}, i64), i16);
  EXPECT_EQ(bits_of(choice(in(0), in(1), in(2)), {boolean, i8, i8}, i8), i8);
  EXPECT_EQ(bits_of(choice(in(0), in(1), in(2)), {boolean, i32, i32}, i32), i32);
  EXPECT_EQ(bits_of(choice(in(0), in(1), in(2)), {u32, i32, i32}, i32), i64);
  EXPECT_EQ(bits_of(of(lt, in(0), number(std::int64_t{1} << 40)), {i32}, boolean), i64);
  EXPECT_EQ(bits_of(of(lt, Ex::index(0), in(0)), {i32}, boolean), i64);
  EXPECT_EQ(bits_of(Ex::index(0) + in(0), {i8}, i8), i8);
  EXPECT_EQ(bits_of(in(0) + in(1), {f32, i8}, i8), i64);
}

TEST(StripType, ConversionsAreOneLoop) {
  EXPECT_EQ(bits_of(in(0), {i32}, i8), i8);
  EXPECT_EQ(bits_of(in(0), {boolean}, i32), i32);
  EXPECT_EQ(bits_of(in(0), {boolean}, i64), i64);
  EXPECT_EQ(bits_of(in(0), {i32}, boolean), i32);
  EXPECT_EQ(bits_of(in(0), {i64}, i32), i64);
}

TEST(StripType, Combinations) {
  const auto sum = [](DType dtype, DType output) {
    return type_of(in(0), {dtype}, output, Combine::sum);
  };
  EXPECT_EQ(sum(i8, i64).dtype, i32);
  EXPECT_EQ(sum(i8, i64).most, INT32_MAX / 128);
  EXPECT_EQ(sum(boolean, i64).most, INT32_MAX);
  EXPECT_EQ(sum(u16, i64).most, INT32_MAX / 65535);
  EXPECT_EQ(sum(i32, i64).dtype, i64);
  EXPECT_EQ(sum(u32, i64).dtype, i64);
  EXPECT_EQ(sum(i32, i32).dtype, i32);
  EXPECT_EQ(sum(i32, i32).most, INT64_MAX);
  EXPECT_EQ(sum(i64, i32).dtype, i64);
  EXPECT_EQ(sum(i32, boolean).dtype, i64);
  EXPECT_EQ(type_of(in(0), {i32}, i32, Combine::sum, in(0) * number(3)).dtype, i64);
  EXPECT_EQ(type_of(in(0) * in(1), {i8, i8}, i64, Combine::sum).dtype, i32);
  EXPECT_EQ(type_of(in(0) * in(1), {i16, i16}, i64, Combine::sum).dtype, i64);
  for (Combine combine : {Combine::max, Combine::min, Combine::any, Combine::all}) {
    EXPECT_EQ(type_of(in(0), {i8}, i8, combine).dtype, i8);
    EXPECT_EQ(type_of(in(0), {u8}, u8, combine).dtype, i16);
    EXPECT_EQ(type_of(in(0), {i32}, i64, combine).dtype, i32);
    EXPECT_EQ(type_of(in(0), {u32}, u32, combine).dtype, i64);
  }
  EXPECT_EQ(type_of(in(0), {i8}, i64, Combine::prod).dtype, i64);
}

/// The value of an expression in 64 bits that wrap, step by step.
std::int64_t value_of(const ScalarExpr& expr, const std::vector<std::int64_t>& inputs,
                      const std::vector<std::int64_t>& indices) {
  using enum ScalarOp;
  SmallArray<std::int64_t, 128> values(expr.steps.size());
  std::size_t s = 0;
  for (const ScalarStep& step : expr.steps) {
    const auto arg = [&](int i) {
      return step.args[i] < 0 ? 0 : values[static_cast<std::size_t>(step.args[i])];
    };
    const std::int64_t a = arg(0), b = arg(1), c = arg(2);
    const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    const auto which = static_cast<std::size_t>(step.which);
    std::int64_t result = 0;
    switch (step.op) {
      case input:
        result = inputs[which];
        break;
      case constant:
        result = step.integer;
        break;
      case ScalarOp::index:
        result = indices[which];
        break;
      case neg:
        result = static_cast<std::int64_t>(0 - u(a));
        break;
      case ScalarOp::abs:
        result = a < 0 ? static_cast<std::int64_t>(0 - u(a)) : a;
        break;
      case logical_not:
        result = a == 0;
        break;
      case add:
        result = static_cast<std::int64_t>(u(a) + u(b));
        break;
      case sub:
        result = static_cast<std::int64_t>(u(a) - u(b));
        break;
      case mul:
        result = static_cast<std::int64_t>(u(a) * u(b));
        break;
      case remainder:
        result = b == 0 || b == -1 ? 0 : a % b;
        if (result != 0 && (result < 0) != (b < 0)) result += b;
        break;
      case pow:
        result = b >= 0 || a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
        for (std::int64_t i = 0; i < b; ++i) result = static_cast<std::int64_t>(u(result) * u(a));
        break;
      case ScalarOp::min:
        result = std::min(a, b);
        break;
      case ScalarOp::max:
        result = std::max(a, b);
        break;
      case lt:
        result = a < b;
        break;
      case le:
        result = a <= b;
        break;
      case gt:
        result = a > b;
        break;
      case ge:
        result = a >= b;
        break;
      case eq:
        result = a == b;
        break;
      case ne:
        result = a != b;
        break;
      case logical_and:
        result = a != 0 && b != 0;
        break;
      case logical_or:
        result = a != 0 || b != 0;
        break;
      case bit_and:
        result = a & b;
        break;
      case bit_or:
        result = a | b;
        break;
      case bit_xor:
        result = a ^ b;
        break;
      case shift_left:
        result = b < 0 || b >= 64 ? 0 : static_cast<std::int64_t>(u(a) << b);
        break;
      case shift_right:
        result = a >> (b < 0 || b >= 64 ? 63 : b);
        break;
      case where:
        result = a != 0 ? b : c;
        break;
      default:
        throw std::logic_error("an operation that integers lack");
    }
    values[s++] = result;
  }
  return values[s - 1];
}

/// A nest of integers over (rows, columns); the columns may be reduced, or the rows.
struct Case {
  ScalarExpr body;
  std::vector<DType> inputs;
  std::vector<int> lies;  // of each input: row-major, column-major, a value for each column, or row
  DType output = i64;
  std::optional<Combine> combine{};
  bool reduces_rows = false;
  ScalarExpr epilogue{};
  std::int64_t rows = 1, columns = 1;
  unsigned seed = 0;  // of the numbers
};

LoopNest nest_of(const Case& test) {
  LoopNest nest;
  nest.compute = i64;
  nest.axes = {{"r", test.rows, test.combine && test.reduces_rows},
               {"c", test.columns, test.combine && !test.reduces_rows}};
  nest.body = test.body;
  nest.combine = test.combine;
  nest.epilogue = test.epilogue;
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    const std::vector<Size> strides[] = {{test.columns, 1}, {1, test.rows}, {0, 1}, {1, 0}};
    nest.inputs.push_back(
        {.buffer = static_cast<int>(i), .dtype = test.inputs[i], .strides = strides[test.lies[i]]});
  }
  nest.output = {.buffer = static_cast<int>(test.inputs.size()), .dtype = test.output};
  nest.output.strides = !test.combine       ? std::vector<Size>{test.columns, 1}
                        : test.reduces_rows ? std::vector<Size>{0, 1}
                                            : std::vector<Size>{1, 0};
  return nest;
}

/// Where the element of an operand at a point is.
std::size_t at(const LoopNest::Operand& operand, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(static_cast<std::int64_t>(operand.strides[0]) * row +
                                  static_cast<std::int64_t>(operand.strides[1]) * column);
}

/// Numbers near 0 and near the ends of the dtype.
std::vector<std::byte> numbers(std::mt19937_64& random, DType dtype, std::size_t n) {
  std::vector<std::byte> bytes(n * size_of(dtype));
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bits = random();
      const auto small = static_cast<std::int64_t>(bits >> 32) % 4 - 2;
      std::int64_t value = static_cast<std::int64_t>(bits);
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        const std::int64_t ends[] = {static_cast<std::int64_t>(Limits::min()),
                                     static_cast<std::int64_t>(Limits::max()), 0};
        if (bits % 4 != 0)
          value = static_cast<std::int64_t>(static_cast<std::uint64_t>(ends[bits % 4 - 1]) +
                                            static_cast<std::uint64_t>(small));
      }
      const T element = convert<T>(value);
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof element);
    }
  });
  return bytes;
}

std::int64_t element(const std::vector<std::byte>& bytes, DType dtype, std::size_t i) {
  return visit(dtype, [&]<class T>(std::type_identity<T>) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
    return convert<std::int64_t>(value);
  });
}

/// The result's bytes as they must be.
std::vector<std::byte> reference(const LoopNest& nest,
                                 const std::vector<std::vector<std::byte>>& buffers,
                                 std::size_t results) {
  std::vector<std::int64_t> values(results);
  std::vector<bool> begun(results);
  std::vector<std::int64_t> inputs(nest.inputs.size());
  for (std::int64_t r = 0; r < nest.axes[0].size; ++r) {
    for (std::int64_t c = 0; c < nest.axes[1].size; ++c) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = element(buffers[i], nest.inputs[i].dtype, at(nest.inputs[i], r, c));
      std::int64_t value = value_of(nest.body, inputs, {r, c});
      const std::size_t place = at(nest.output, r, c);
      if (nest.combine == Combine::any || nest.combine == Combine::all) value = value != 0;
      if (begun[place])
        value = value_of(Ex::apply(info(*nest.combine).operation, in(0), in(1)),
                         {values[place], value}, {});
      values[place] = value;
      begun[place] = true;
    }
  }
  std::vector<std::byte> bytes(results * size_of(nest.output.dtype));
  visit(nest.output.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < results; ++i) {
      const bool is_plain = nest.epilogue.steps.empty();
      const T stored = convert<T>(is_plain ? values[i] : value_of(nest.epilogue, {values[i]}, {}));
      std::memcpy(bytes.data() + i * sizeof(T), &stored, sizeof stored);
    }
  });
  return bytes;
}

/// What is wrong with the kernel's results; empty where nothing is.
std::string mistake(const Case& test) {
  LoopNest nest = nest_of(test);
  std::mt19937_64 random(test.seed);
  std::vector<std::vector<std::byte>> buffers;
  for (DType dtype : test.inputs)
    buffers.push_back(numbers(random, dtype, static_cast<std::size_t>(test.rows * test.columns)));
  const std::int64_t results = !test.combine       ? test.rows * test.columns
                               : test.reduces_rows ? test.columns
                                                   : test.rows;
  const auto want = reference(nest, buffers, static_cast<std::size_t>(results));
  buffers.emplace_back(want.size());
  simplify(nest);
  const auto kernel = make_kernel(nest);
  std::vector<std::byte> workspace(kernel->workspace_bytes(1) + 64);
  void* aligned = workspace.data();
  std::size_t space = workspace.size();
  std::align(64, space - 64, aligned, space);
  std::vector<std::byte*> addresses;
  for (auto& buffer : buffers) addresses.push_back(buffer.data());
  kernel->run({addresses, static_cast<std::byte*>(aligned)});
  const auto& got = buffers.back();
  if (got == want) return {};
  std::size_t first = 0;
  while (element(got, test.output, first) == element(want, test.output, first) &&
         first + 1 < static_cast<std::size_t>(results))
    ++first;
  return to_string(nest) + "element " + std::to_string(first) + " is " +
         std::to_string(element(got, test.output, first)) + ", not " +
         std::to_string(element(want, test.output, first)) + ", of numbers " +
         std::to_string(test.seed);
}

/// Simpler cases, one step each.
std::vector<Case> simpler(const Case& test) {
  std::vector<Case> cases;
  const auto with = [&](auto change) {
    cases.push_back(test);
    change(cases.back());
  };
  for (std::size_t s = 0; s + 1 < test.body.steps.size(); ++s) {
    with([&](Case& c) {
      c.body.steps.resize(s + 1);
      c.body = Ex::of(c.body);
    });
  }
  if (!test.epilogue.steps.empty()) with([](Case& c) { c.epilogue = {}; });
  if (test.rows > 1) with([](Case& c) { c.rows /= 2; });
  if (test.columns > 1) with([](Case& c) { c.columns /= 2; });
  for (std::size_t i = 0; i < test.lies.size(); ++i) {
    if (test.lies[i] != 0) with([&](Case& c) { c.lies[i] = 0; });
  }
  return cases;
}

std::string simplest_mistake(Case test) {
  std::string text = mistake(test);
  for (bool is_simpler = !text.empty(); is_simpler;) {
    is_simpler = false;
    for (const Case& next : simpler(test)) {
      const std::string found = mistake(next);
      if (found.empty()) continue;
      test = next, text = found, is_simpler = true;
      break;
    }
  }
  return text;
}

class RandomCase {
 public:
  explicit RandomCase(unsigned seed) : random_(seed) {
    test_.seed = seed;
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      test_.inputs.push_back(dtype());
      test_.lies.push_back(pick(0, 2) == 0 ? pick(1, 3) : 0);
    }
    test_.body = expression(pick(0, 5), inputs);
    is_body_ = false;
    test_.output = pick(0, 9) == 0 ? f32 : pick(0, 4) == 0 ? i64 : dtype();
    const bool is_long = pick(0, 9) == 0;
    test_.rows = pick(1, is_long ? 5 : 60);
    test_.columns = is_long ? pick(1000, 9000) : pick(1, 60);
    if (pick(0, 1) == 0) std::swap(test_.rows, test_.columns);
    if (pick(0, 1) == 0) return;
    test_.combine = static_cast<Combine>(pick(0, 5));
    test_.reduces_rows = pick(0, 1) == 0;
    if (pick(0, 3) == 0) test_.epilogue = expression(pick(1, 2), 1);
  }
  Case take() { return std::move(test_); }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  DType dtype() {
    constexpr DType dtypes[] = {i8, i8, u8, u8, i16, u16, i32, i32, u32, boolean, boolean, i64};
    return dtypes[pick(0, 11)];
  }
  Ex leaf(int inputs) {
    constexpr std::int64_t constants[] = {0,
                                          1,
                                          -1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          100,
                                          127,
                                          128,
                                          -128,
                                          255,
                                          -129,
                                          32767,
                                          32768,
                                          -32768,
                                          65535,
                                          1000000,
                                          INT32_MAX,
                                          INT32_MIN,
                                          std::int64_t{1} << 31,
                                          std::int64_t{1} << 40};
    if (pick(0, 2) == 0) return number(constants[pick(0, std::size(constants) - 1)]);
    if (is_body_ && pick(0, 9) == 0) return Ex::index(pick(0, 1));
    return in(pick(0, inputs - 1));
  }
  Ex expression(int depth, int inputs) {
    using enum ScalarOp;
    if (depth == 0) return pick(0, 4) == 0 ? leaf(inputs) : in(pick(0, inputs - 1));
    const Ex a = expression(depth - 1, inputs), b = expression(pick(0, depth - 1), inputs);
    constexpr ScalarOp binary[] = {
        add, sub, mul, add, sub, mul,         remainder,  ScalarOp::min, ScalarOp::max, lt,
        le,  gt,  ge,  eq,  ne,  logical_and, logical_or, bit_and,       bit_or,        bit_xor};
    switch (pick(0, 9)) {
      case 0:
        return Ex::apply(pick(0, 1) == 0 ? neg : pick(0, 1) == 0 ? ScalarOp::abs : logical_not, a);
      case 1:
        return choice(a, b, leaf(inputs));
      case 2:
        return of(pick(0, 1) == 0 ? shift_left : shift_right, a, leaf(inputs));
      case 3:
        return of(pow, a, number(pick(-2, 5)));
      case 4:
        return of(binary[pick(0, 19)], leaf(inputs), a);
      default:
        return of(binary[pick(0, 19)], a, b);
    }
  }

  std::mt19937 random_;
  Case test_;
  bool is_body_ = true;
};

TEST(StripType, RandomNestsGiveTheBitsOf64) {
  std::size_t narrow = 0, combined = 0;
  test::for_seeds(2000, [&](unsigned seed) {
    const Case test = RandomCase(seed).take();
    const bool is_narrow =
        type_of(Ex::of(test.body), test.inputs, test.output, test.combine, test.epilogue).dtype !=
        i64;
    narrow += is_narrow;
    combined += is_narrow && test.combine;
    ASSERT_EQ(simplest_mistake(test), "");
  });
  std::cout << narrow << " in less than 64 bits, " << combined << " of them reductions\n";
  EXPECT_GE(narrow, test::at_least(500));
  EXPECT_GE(combined, test::at_least(200));
}

/// Sums of more elements than 32 bits have room for, along rows and down.
TEST(StripType, SumsThatLeave32Bits) {
  const std::int64_t many = 100'003, few = 3;
  for (DType dtype : {i16, u16}) {
    const std::int64_t value = dtype == i16 ? -32768 : 65535;
    for (bool is_tall : {false, true}) {
      const Shape shape = is_tall ? Shape{many, few} : Shape{few, many};
      const Tensor x = full(shape, value, dtype);
      const Tensor sums =
          is_tall ? reduce(x, "a b -> b", Reduction::sum) : reduce(x, "a b -> a", Reduction::sum);
      EXPECT_EQ(sums.to_vector<std::int64_t>(),
                std::vector<std::int64_t>(static_cast<std::size_t>(few), many * value));
    }
  }
}

}  // namespace
}  // namespace ein::host
