// Row code against plain loops in double precision.
#include "cpu/row_code.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "cpu/strip.hpp"
#include "oracle/execute.hpp"
#include "size/size_scope.hpp"
#include "support/exact_steps.hpp"
#include "support/row_code.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

using Place = Schedule::Place;
using test::apply_exactly;

/// The instructions that code is made of, and the type that it computes in.
Isa tested = Isa::baseline;
DType computed = DType::f32;

class RowCodeOf : public testing::TestWithParam<std::tuple<Isa, DType>> {
 protected:
  void SetUp() override { std::tie(tested, computed) = GetParam(); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RowCodeOf);
INSTANTIATE_TEST_SUITE_P(, RowCodeOf,
                         testing::Combine(testing::ValuesIn(test::isas_with_row_code()),
                                          testing::Values(DType::f32, DType::f64)),
                         [](const auto& of) {
                           return std::string(name(std::get<0>(of.param))) + "_" +
                                  std::string(name(std::get<1>(of.param)));
                         });

/// Calls f(C()) with the type that is computed in.
template <class F>
void with_computed(const F& f) {
  computed == DType::f64 ? f(double()) : f(float());
}

std::byte* bytes_of(const auto& values) {
  return reinterpret_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(values.data())));
}

/// A part of these places and nests, with rows of `length`; places of f32 are of what is computed
/// in.
Schedule::Part part_of(std::vector<Place> places, std::vector<Schedule::RowNest> nests,
                       std::int64_t length) {
  Schedule::Part part;
  part.places = std::move(places);
  for (Place& place : part.places) {
    if (place.dtype == DType::f32) place.dtype = computed;
  }
  part.rows.nests = std::move(nests);
  part.rows.length = {length};
  part.rows.compute = computed;
  return part;
}

/// out[i] = op(in[i]) by compiled code.
std::vector<float> run_op(ScalarOp op, const std::vector<float>& in) {
  const auto n = static_cast<std::int64_t>(in.size());
  const Schedule::Part part =
      part_of({{.step = 1}, {.step = 1}},
              {{.inputs = {0}, .output = 1, .body = Ex::apply(op, Ex::input(0))}}, n);
  std::vector<float> out(in.size());
  std::byte* places[] = {reinterpret_cast<std::byte*>(const_cast<float*>(in.data())),
                         reinterpret_cast<std::byte*>(out.data())};
  (*RowCode::compile(part, tested))({places, n, 1, nullptr});
  return out;
}

double units_in_last_place(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want) || std::isinf(rounded) || want == 0) {
    return (std::isnan(want) && std::isnan(got)) || got == rounded
               ? 0
               : std::numeric_limits<double>::infinity();
  }
  const double next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  return std::abs(got - want) /
         std::max(next - std::abs(static_cast<double>(rounded)),
                  static_cast<double>(std::numeric_limits<float>::denorm_min()));
}

TEST_P(RowCodeOf, FunctionsOverTheirWholeRange) {
  if (computed == DType::f64) GTEST_SKIP() << "functions_test.cpp has those of f64";
  struct Case {
    ScalarOp op;
    double units;  // the most that results may be off
  };
  std::vector<float> points;
  for (std::uint64_t bits = 0; bits < 0x100000000ULL; bits += 9973)
    points.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float x = -20; x < 20; x += 0.0007F) points.push_back(x);
  for (float special :
       {0.F, -0.F, 1.F, -1.F, 4.F, -4.F, 0.625F, 88.7F, -103.9F, INFINITY, -INFINITY, NAN})
    points.push_back(special);
  for (const Case& c : {Case{ScalarOp::exp, 1.5},
                        {ScalarOp::log, 1.5},
                        {ScalarOp::tanh, 2.5},
                        {ScalarOp::erf, 2.5},
                        {ScalarOp::sqrt, 0.5001},
                        {ScalarOp::rsqrt, 1.5},
                        {ScalarOp::floor, 0},
                        {ScalarOp::ceil, 0},
                        {ScalarOp::round, 0},
                        {ScalarOp::trunc, 0}}) {
    const std::vector<float> got = run_op(c.op, points);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double off = units_in_last_place(got[i], apply_exactly(c.op, points[i], 0, 0));
      if (off > worst) worst = off, where = points[i];
    }
    EXPECT_LE(worst, c.units) << info(c.op).name << " of " << where;
    std::cout << info(c.op).name << ": " << worst << " units in the last place at " << where
              << '\n';
  }
}

/// Random parts: maps, reductions and scalars over a few places, several of which one nest writes
/// and others read; or one nest that combines short rows. Each place is a buffer.
class RandomPart {
 public:
  explicit RandomPart(std::mt19937& random) : random_(random) {
    length_ = pick(0, 3) == 0 ? pick(1, 20) : pick(0, 3) == 0 ? pick(1900, 5000) : pick(17, 400);
    part_.rows.length = {length_};
    part_.rows.compute = computed;
    const bool over_rows = length_ <= RowCode::target(tested).folded_registers *
                                          RowCode::target(tested).lanes(computed) &&
                           pick(0, 2) == 0;
    part_.rows.rows = {over_rows || length_ < 100 ? pick(1, over_rows ? 100 : 40) : pick(1, 5)};
    part_.rows.axes = {{.is_row = true}, {.is_along = true}};
    for (int i = pick(1, 4); i > 0; --i) {
      const DType dtype = any_dtype();
      const int step = pick(0, 5);
      add_place(dtype, RowCode::target(tested).reads(dtype, step, computed) ? step : 1,
                pick(0, 3) == 0);
    }
    for (int i = over_rows ? 1 : pick(1, 5); i > 0; --i) add_nest(over_rows);
  }

  void check() {
    auto of_other_rows = RowCode::compile(with_other_rows(), tested),
         code = RowCode::compile(part_, tested);
    ASSERT_NE(code, nullptr);
    shares_code_ = code == of_other_rows;
    Schedule schedule{.buffers = part_.places.size(), .scratch = {}, .steps = {{{}, {part_}}}};
    verify(schedule);
    DoubleBuffers want = values_;
    execute(schedule, want);
    auto memory = run(*code);
    // Code of its own gives the same bits.
    of_other_rows = code = nullptr;
    ASSERT_EQ(run(*RowCode::compile(part_, tested)), memory) << to_string(schedule);
    for (const Schedule::RowNest& nest : part_.rows.nests) {
      const DType dtype = part_.places[nest.output].dtype;
      for (std::size_t i = 0; i < want[nest.output].size(); ++i) {
        double got;
        load_as(memory[nest.output].data() + i * size_of(dtype), dtype, 1, &got, 1);
        const double w = want[nest.output][i];
        // bf16 has 8 bits, of which several nests may lose some; indices are numbers up to 50, and
        // are squared.
        const double tolerance = has_halves_ ? 0.05 : is_exact_ ? 1e-12 : 2e-4;
        ASSERT_TRUE(
            got == w ||
            (std::isfinite(w) && std::abs(got - w) <= tolerance * std::max(1.0, std::abs(w))) ||
            (std::isnan(w) && std::isnan(got)))
            << "element " << i << " is " << got << " and should be " << w << '\n'
            << to_string(schedule);
      }
    }
  }
  bool shares_code() const { return shares_code_; }

 private:
  std::vector<std::vector<std::byte>> run(const RowCode& code) const {
    std::vector<std::vector<std::byte>> memory = memory_;
    std::vector<std::byte*> places;
    std::vector<std::int64_t> row_steps;
    for (std::size_t p = 0; p < memory.size(); ++p) {
      const Place& place = part_.places[p];
      places.push_back(memory[p].data());
      row_steps.push_back(place.row_step * static_cast<std::int64_t>(size_of(place.dtype)));
    }
    const std::int64_t index[] = {0, 0};
    code({places.data(), length_, part_.rows.rows.size, index, row_steps.data()});
    return memory;
  }

  /// As it is, but for the length of a row and the way to the next.
  Schedule::Part with_other_rows() {
    Schedule::Part part = part_;
    part.rows.length = {pick(1, 4000)};
    for (Place& place : part.places) {
      if (place.row_step != 0) place.row_step += pick(1, 100);
    }
    return part;
  }

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  DType any_dtype() {
    const DType dtypes[] = {computed,   computed,  computed,       DType::bf16, DType::f16,
                            DType::i32, DType::u8, DType::boolean, DType::f32,  DType::i64};
    return dtypes[pick(0, computed == DType::f64 ? 9 : 7)];
  }
  std::size_t add_place(DType dtype, std::int64_t step, bool stands_still) {
    has_halves_ |= dtype == DType::bf16 || dtype == DType::f16;
    const std::int64_t row_step = stands_still ? 0
                                  : step == 0  ? pick(1, 3)
                                               : length_ * step + pick(0, 5);
    part_.places.push_back({.buffer = static_cast<int>(memory_.size()),
                            .dtype = dtype,
                            .row_step = row_step,
                            .step = step});
    const std::int64_t elements = (part_.rows.rows.size - 1) * row_step + (length_ - 1) * step + 1;
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(dtype));
    std::vector<double> values;
    for (std::int64_t i = 0; i < elements; ++i) {
      const bool is_whole = is_integral(dtype);
      const double value = is_whole ? pick(0, dtype == DType::boolean ? 1 : 3)
                                    : std::uniform_real_distribution<double>(0.5, 1.5)(random_);
      store_from(&value, 1, bytes.data() + static_cast<std::size_t>(i) * size_of(dtype), dtype, 1);
      double stored;
      load_as(bytes.data() + static_cast<std::size_t>(i) * size_of(dtype), dtype, 1, &stored, 1);
      values.push_back(stored);
    }
    memory_.push_back(std::move(bytes));
    values_.push_back(std::move(values));
    return memory_.size() - 1;
  }

  Ex any_value(int depth, std::size_t inputs, bool is_scalar) {
    if (depth == 0 || pick(0, 4) == 0) {
      if (!is_scalar && pick(0, 9) == 0) return Ex::index(pick(0, 1)) * 0.01;
      return pick(0, 4) == 0 ? Ex(0.25 * pick(1, 6))
                             : Ex::input(pick(0, static_cast<int>(inputs) - 1));
    }
    const Ex a = any_value(depth - 1, inputs, is_scalar),
             b = any_value(depth - 1, inputs, is_scalar);
    switch (pick(0, 13)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
      case 3:
        return a * b;
      case 4:
        return a * b + any_value(depth - 1, inputs, is_scalar);
      case 5:
        return any_value(depth - 1, inputs, is_scalar) - a * b;
      case 6:
        return a / (b * b + 1.0);
      case 7:
        return Ex::apply(ScalarOp::max, a, b);
      case 8:
        return Ex::apply(ScalarOp::min, a, b);
      case 9:
        return Ex::apply(ScalarOp::tanh, a);
      case 10: {
        constexpr ScalarOp functions[] = {ScalarOp::erf,  ScalarOp::sigmoid,
                                          ScalarOp::silu, ScalarOp::normal_cdf,
                                          ScalarOp::gelu, ScalarOp::gelu_slope};
        const ScalarOp function = functions[pick(0, 5)];
        return Ex::apply(
            RowCode::target(tested).has(function, computed) ? function : ScalarOp::silu, a * 0.5);
      }
      case 11:
        return Ex::apply(ScalarOp::exp, Ex::apply(ScalarOp::neg, Ex::apply(ScalarOp::abs, a)));
      case 12:
        return Ex::apply(ScalarOp::log, Ex::apply(ScalarOp::abs, a) + 1.0);
      // Not of numbers near each other, of which rounding decides.
      default:
        return Ex::apply(ScalarOp::where,
                         Ex::apply(ScalarOp::ge, Ex::index(1), Ex::index(0) + double(pick(0, 300))),
                         a, b);
    }
  }

  void add_nest(bool over_rows) {
    Schedule::RowNest nest;
    nest.is_scalar = !over_rows && pick(0, 4) == 0;
    const bool combines = over_rows || (!nest.is_scalar && pick(0, 2) == 0);
    for (int i = pick(1, 3); i > 0; --i)
      nest.inputs.push_back(
          static_cast<std::size_t>(pick(0, static_cast<int>(memory_.size()) - 1)));
    nest.body = any_value(pick(0, 3), nest.inputs.size(), nest.is_scalar);
    if (nest.is_scalar && std::any_of(nest.body.steps.begin(), nest.body.steps.end(),
                                      [](const ScalarStep& s) { return s.op == ScalarOp::index; }))
      nest.body = Ex::input(0) * 0.5;
    if (combines) {
      nest.combine = std::array{Combine::sum, Combine::sum, Combine::max,
                                Combine::min}[static_cast<std::size_t>(pick(0, 3))];
      if (nest.combine == Combine::sum)
        nest.body = Ex::of(nest.body) *
                    (1.0 / static_cast<double>(over_rows ? part_.rows.rows.size : Size(length_)));
      if (!over_rows && pick(0, 1) == 0) nest.epilogue = Ex::input(0) * 0.5 + 1.0;
    }
    if (over_rows) {
      nest.over = Schedule::Over::rows;
      nest.output = add_place(computed, 1, true);
      part_.rows.nests = {std::move(nest)};
      return;
    }
    constexpr DType narrower[] = {DType::bf16, DType::f16, DType::f32};
    const DType dtype =
        pick(0, 4) == 0 ? narrower[pick(0, computed == DType::f64 ? 2 : 1)] : computed;
    is_exact_ &= dtype == DType::f64;
    nest.output = add_place(dtype, nest.is_scalar || combines ? 0 : 1, false);
    part_.rows.nests.push_back(std::move(nest));
  }

  std::mt19937& random_;
  std::int64_t length_;
  Schedule::Part part_;
  std::vector<std::vector<std::byte>> memory_;  // of each place
  DoubleBuffers values_;
  bool has_halves_ = false, is_exact_ = computed == DType::f64, shares_code_ = false;
};

TEST_P(RowCodeOf, RandomParts) {
  const unsigned seed = 20261121 + test::first_seed();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  int shared = 0;
  for (unsigned i = 0; i < test::seeds_or(1000) && !testing::Test::HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    RandomPart part(random);
    part.check();
    shared += part.shares_code();
  }
  EXPECT_GT(shared, static_cast<int>(test::at_least(400)));
}

TEST_P(RowCodeOf, OneForAllLengths) {
  /// The sum of each row.
  const auto sums = [](Size length, Size row_step) {
    Schedule::Part part =
        part_of({{.row_step = row_step, .step = 1}, {.row_step = 1}},
                {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = Combine::sum}}, 0);
    part.rows.length = {length};
    part.rows.rows = {50};
    return RowCode::compile(part, tested);
  };
  const auto code = sums(100, 100);
  const std::int64_t run = 32 * 4 * RowCode::target(tested).lanes(computed);
  EXPECT_EQ(sums(run, 3000), code);
  EXPECT_NE(sums(100, 0), code);         // the same row again and again
  EXPECT_NE(sums(run + 1, 3000), code);  // of runs
  // As many rows of so few elements as a vector has lanes are added up at a time.
  const std::int64_t is_short = 4 * RowCode::target(tested).lanes(computed) - 2;
  const auto of_short_rows = sums(is_short, 100);
  EXPECT_NE(of_short_rows, code);
  EXPECT_NE(sums(is_short + 1, 100), of_short_rows);
  EXPECT_NE(sums(is_short, 101), of_short_rows);
  const Size s = Size::named("s");
  for (const std::int64_t length : {100, 5000}) {
    SizeScope scope({{s, length}}, SizeScope::Reading::is_guard);
    EXPECT_EQ(sums(s, s) == code, length == 100);
    EXPECT_EQ(sums(s, s), sums(length, length));
    EXPECT_FALSE(scope.guards().hold({{s, 5100 - length}}));
  }
}

TEST_P(RowCodeOf, ExtremesKeepNaN) {
  with_computed([&]<class C>(C) {
    for (Combine combine : {Combine::max, Combine::min, Combine::sum}) {
      for (std::size_t n : {1u, 15u, 70u, 300u}) {
        for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
          std::vector<C> in(n, 1);
          in[at] = NAN;
          C out = 0;
          const auto length = static_cast<std::int64_t>(n);
          const Schedule::Part part = part_of(
              {{.step = 1}, {}},
              {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = combine}}, length);
          std::byte* places[] = {reinterpret_cast<std::byte*>(in.data()),
                                 reinterpret_cast<std::byte*>(&out)};
          (*RowCode::compile(part, tested))({places, length, 1, nullptr});
          EXPECT_TRUE(std::isnan(out)) << n << ' ' << at;
        }
      }
    }
  });
}

TEST_P(RowCodeOf, ExtremesOfRowsKeepNaNInItsColumn) {
  const Target& target = RowCode::target(tested);
  const std::int64_t rows = 40, columns = std::min<std::int64_t>(
                                    20, target.folded_registers * target.lanes(computed));
  with_computed([&]<class C>(C) {
    for (Combine combine : {Combine::max, Combine::min, Combine::sum}) {
      for (std::int64_t at :
           {std::int64_t{0}, std::int64_t{17}, rows * columns * 4 / 5, rows * columns - 1}) {
        std::vector<C> in(static_cast<std::size_t>(rows * columns), 1),
            out(static_cast<std::size_t>(columns));
        in[static_cast<std::size_t>(at)] = NAN;
        Schedule::Part part = part_of({{.row_step = columns, .step = 1}, {.step = 1}},
                                      {{.inputs = {0},
                                        .output = 1,
                                        .body = Ex::input(0),
                                        .combine = combine,
                                        .over = Schedule::Over::rows}},
                                      columns);
        part.rows.rows = {rows};
        std::byte* places[] = {reinterpret_cast<std::byte*>(in.data()),
                               reinterpret_cast<std::byte*>(out.data())};
        (*RowCode::compile(part, tested))({places, columns, rows, nullptr});
        for (std::int64_t c = 0; c < columns; ++c)
          EXPECT_EQ(std::isnan(out[static_cast<std::size_t>(c)]), c == at % columns)
              << at << ' ' << c;
      }
    }
  });
}

TEST_P(RowCodeOf, LongSumsLoseLittle) {
  // The longest row that schedules combine, and one that calls of any length may have.
  const std::int64_t longest = RowCode::target(tested).longest_combined_row;
  with_computed([&]<class C>(C) {
    const auto sum = RowCode::compile(
        part_of({{.step = 1}, {}},
                {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = Combine::sum}},
                longest),
        tested);
    for (const std::int64_t length : {longest, std::int64_t{5'000'003}}) {
      std::vector<C> in(static_cast<std::size_t>(length));
      std::mt19937 random(1);
      long double want = 0;
      for (C& x : in) want += x = std::uniform_real_distribution<C>(0, 1)(random);
      C out = 0;
      std::byte* places[] = {bytes_of(in), reinterpret_cast<std::byte*>(&out)};
      (*sum)({places, length, 1, nullptr});
      EXPECT_LE(std::abs(out - want), want * 2.5L * std::numeric_limits<C>::epsilon()) << length;
    }
  });
}

/// Rows of a large matrix: from the first to the last of those that are combined together are more
/// bytes than the 2^31 that an address of code reaches.
TEST_P(RowCodeOf, RowsFarApart) {
  with_computed([&]<class C>(C) {
    constexpr std::int64_t rows = 40, length = 52, row_bytes = 160'000'000;
    // Of pages that are only read there is one.
    void* const memory = mmap(nullptr, rows * row_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::vector<C> want, sums(rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      C* const row = reinterpret_cast<C*>(static_cast<std::byte*>(memory) + r * row_bytes);
      for (std::int64_t i = 0; i < length; ++i) row[i] = static_cast<C>(r + i % 3);
      want.push_back(static_cast<C>(52 * r + 51));
    }
    Schedule::Part part = part_of(
        {{.row_step = row_bytes / static_cast<std::int64_t>(sizeof(C)), .step = 1},
         {.row_step = 1}},
        {{.inputs = {0}, .output = 1, .body = Ex::input(0), .combine = Combine::sum}}, length);
    part.rows.rows = {rows};
    std::byte* places[] = {static_cast<std::byte*>(memory), bytes_of(sums)};
    const std::int64_t row_steps[] = {row_bytes, sizeof(C)};
    (*RowCode::compile(part, tested))({places, length, rows, nullptr, row_steps});
    EXPECT_EQ(sums, want);
    munmap(memory, rows * row_bytes);
  });
}

/// Several vectors at a time give what one does: of rows of every length, in place, and of a sum.
TEST_P(RowCodeOf, InterleavedVectors) {
  with_computed([&]<class C>(C) {
    std::mt19937 random(2);
    std::vector<C> in(300);
    for (C& x : in) x = std::normal_distribution<C>(0, 3)(random);
    for (const ScalarOp op :
         {ScalarOp::exp, ScalarOp::log, ScalarOp::tanh, ScalarOp::sigmoid, ScalarOp::silu,
          ScalarOp::normal_cdf, ScalarOp::gelu, ScalarOp::gelu_slope}) {
      SCOPED_TRACE(info(op).name);
      const Ex value = Ex::apply(op, Ex::input(0));
      const auto code =
          RowCode::compile(part_of({{.step = 1}, {.step = 1}},
                                   {{.inputs = {0}, .output = 1, .body = value * Ex(3.0)}}, 300),
                           tested);
      const auto sum = RowCode::compile(
          part_of({{.step = 1}, {}},
                  {{.inputs = {0}, .output = 1, .body = value, .combine = Combine::sum}}, 300),
          tested);
      std::vector<C> want(in.size());
      for (std::size_t i = 0; i < in.size(); ++i) {
        std::byte* places[] = {bytes_of(in) + i * sizeof(C), bytes_of(want) + i * sizeof(C)};
        (*code)({places, 1, 1, nullptr});
      }
      for (std::size_t n = 1; n <= in.size(); ++n) {
        std::vector<C> got = in;
        std::byte* places[] = {bytes_of(got), bytes_of(got)};
        (*code)({places, static_cast<std::int64_t>(n), 1, nullptr});
        ASSERT_EQ(std::memcmp(got.data(), want.data(), n * sizeof(C)), 0) << n;
        ASSERT_TRUE(n == in.size() || got[n] == in[n]) << n;
        if (op == ScalarOp::log) continue;  // NaN of negative numbers
        C total = 0;
        long double exact = 0, size = 0;
        for (std::size_t i = 0; i < n; ++i) {
          C one = 0;
          std::byte* single[] = {bytes_of(in) + i * sizeof(C), reinterpret_cast<std::byte*>(&one)};
          (*sum)({single, 1, 1, nullptr});
          exact += one;
          size += std::abs(one);
        }
        std::byte* all[] = {bytes_of(in), reinterpret_cast<std::byte*>(&total)};
        (*sum)({all, static_cast<std::int64_t>(n), 1, nullptr});
        ASSERT_LE(std::abs(total - exact), size * 8 * std::numeric_limits<C>::epsilon()) << n;
      }
    }
  });
}

/// Of all bf16, code that reads only these gives what code does that reads them as f32.
TEST(RowCode, NaNsOfBf16) {
  computed = DType::f32;
  std::vector<std::uint16_t> in(0x10000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)  // a conversion would make NaN quiet
    wide[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16);
  const auto run = [&](const Ex& body, DType dtype, const void* from) {
    std::vector<std::uint16_t> out(in.size());
    const auto code =
        RowCode::compile(part_of({{.dtype = dtype, .step = 1}, {.dtype = DType::bf16, .step = 1}},
                                 {{.inputs = {0}, .output = 1, .body = body}}, std::ssize(in)),
                         tested);
    std::byte* places[] = {static_cast<std::byte*>(const_cast<void*>(from)), bytes_of(out)};
    (*code)({places, std::ssize(in), 1, nullptr});
    return out;
  };
  const Ex x = Ex::input(0), turned = Ex::apply(ScalarOp::neg, x),
           rounded = Ex::apply(ScalarOp::as_bf16, x * Ex(3.0));
  for (const Isa isa : test::isas_with_row_code()) {
    tested = isa;
    for (const Ex& body :
         {turned, Ex::apply(ScalarOp::abs, x), x + Ex(1.0), x * x, x / x,
          Ex::apply(ScalarOp::max, x, Ex(0.0)), Ex::apply(ScalarOp::where, x, x, turned),
          Ex::apply(ScalarOp::sqrt, x), Ex::apply(ScalarOp::round, x), Ex::apply(ScalarOp::exp, x),
          Ex::apply(ScalarOp::log, x), Ex::apply(ScalarOp::tanh, x), Ex::apply(ScalarOp::silu, x),
          Ex::apply(ScalarOp::gelu, x), rounded + x, Ex::apply(ScalarOp::as_bf16, turned) * x}) {
      EXPECT_EQ(run(body, DType::bf16, in.data()), run(body, DType::f32, wide.data()))
          << name(isa) << ' ' << to_string(ScalarExpr(body));
    }
  }
}

/// Numbers of every size and kind, and in f64 those near which bf16, f16 and f32 round.
template <class C>
std::vector<C> numbers_of_all_kinds(std::size_t count) {
  using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
  std::mt19937_64 random(7);
  std::vector<C> numbers{C(0), C(-0.0), C(INFINITY), C(-INFINITY), C(NAN), C(1), C(-1)};
  const auto add = [&](double x) { numbers.push_back(static_cast<C>(x)); };
  while (numbers.size() < count) {
    const Bits bits = static_cast<Bits>(random());
    numbers.push_back(std::bit_cast<C>(bits));
    // Of a few bits, half-way between two of a narrower type, and next to that.
    const int exponent = static_cast<int>(random() % 300) - 155;
    const double few = std::ldexp(static_cast<double>(random() % (1 << 12)), exponent);
    const double many = std::ldexp(static_cast<double>((random() % (1 << 25)) | 1), exponent);
    for (const double x : {few, many}) {
      for (const double near : {x, std::nextafter(x, 0.0), std::nextafter(x, INFINITY)})
        add(random() % 2 == 0 ? near : -near);
    }
  }
  return numbers;
}

/// Element for element what `convert` gives, also in tails, where nothing else may be touched.
TEST_P(RowCodeOf, Conversions) {
  const auto copy = [](DType from, DType to) {
    return part_of({{.dtype = from, .step = 1}, {.dtype = to, .step = 1}},
                   {{.inputs = {0}, .output = 1, .body = Ex::input(0)}}, 64);
  };
  with_computed([&]<class C>(C) {
    const std::vector<C> numbers = numbers_of_all_kinds<C>(20000);
    const auto same = [](C a, C b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64,
                              DType::i32, DType::u8, DType::boolean}) {
      SCOPED_TRACE(name(dtype));
      const std::size_t size = size_of(dtype);
      Schedule::Part load = copy(dtype, computed), store = copy(computed, dtype);
      load.places[0].dtype = store.places[1].dtype = dtype;
      const auto loads = RowCode::compile(load, tested), stores = RowCode::compile(store, tested);
      ASSERT_EQ(loads != nullptr, RowCode::target(tested).reads(dtype, 1, computed));
      ASSERT_EQ(stores != nullptr, RowCode::target(tested).writes(dtype, computed));
      // Of any bits, in pieces of every length.
      std::vector<std::byte> bytes(20000 * size);
      std::mt19937 random(8);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      std::vector<C> got(20000 + 64), want(20000);
      load_as(bytes.data(), dtype, 1, want.data(), want.size());
      for (std::size_t i = 0, n = 1; loads && i + n <= want.size(); i += n, n = n % 70 + 1) {
        std::fill(got.begin(), got.end(), C(7));
        std::byte* places[] = {bytes.data() + i * size, bytes_of(got)};
        (*loads)({places, static_cast<std::int64_t>(n), 1, nullptr});
        for (std::size_t j = 0; j < n; ++j)
          ASSERT_TRUE(same(got[j], want[i + j])) << got[j] << " and not " << want[i + j];
        ASSERT_EQ(got[n], C(7));
      }
      std::vector<std::byte> stored(numbers.size() * size), rounded(stored.size());
      store_from(numbers.data(), numbers.size(), rounded.data(), dtype, 1);
      for (std::size_t i = 0, n = 1; stores && i + n <= numbers.size(); i += n, n = n % 70 + 1) {
        std::fill(stored.begin(), stored.end(), std::byte(0x55));
        std::byte* places[] = {bytes_of(numbers) + i * sizeof(C), stored.data()};
        (*stores)({places, static_cast<std::int64_t>(n), 1, nullptr});
        for (std::size_t j = 0; j < n; ++j)
          ASSERT_EQ(std::memcmp(stored.data() + j * size, rounded.data() + (i + j) * size, size), 0)
              << std::hexfloat << numbers[i + j];
        ASSERT_TRUE((n * size) == stored.size() || stored[n * size] == std::byte(0x55));
      }
      if (!loads || !stores) continue;
      // Rounded to the dtype and read again in the same loop, and element by element.
      for (const bool is_scalar : {false, true}) {
        Schedule::Part both = part_of({{}, {}, {}},
                                      {{.inputs = {0}, .output = 1, .body = Ex::input(0)},
                                       {.inputs = {1}, .output = 2, .body = Ex::input(0)}},
                                      static_cast<std::int64_t>(numbers.size()));
        for (Place& place : both.places) (is_scalar ? place.row_step : place.step) = 1;
        for (Schedule::RowNest& nest : both.rows.nests) nest.is_scalar = is_scalar;
        both.places[1].dtype = dtype;
        std::vector<C> again(numbers.size()), exact(numbers.size());
        load_as(rounded.data(), dtype, 1, exact.data(), exact.size());
        std::byte* places[] = {bytes_of(numbers), stored.data(), bytes_of(again)};
        const std::int64_t steps[] = {static_cast<std::int64_t>(sizeof(C)),
                                      static_cast<std::int64_t>(size),
                                      static_cast<std::int64_t>(sizeof(C))};
        const auto n = static_cast<std::int64_t>(numbers.size());
        (*RowCode::compile(both, tested))(
            {places, is_scalar ? 1 : n, is_scalar ? n : 1, nullptr, steps});
        ASSERT_EQ(stored, rounded) << is_scalar;
        for (std::size_t i = 0; i < again.size(); ++i)
          ASSERT_TRUE(same(again[i], exact[i])) << again[i] << " and not " << exact[i];
      }
    }
  });
}

/// Rounding as a step gives what storing an element and loading it gives, in strips too.
TEST_P(RowCodeOf, RoundedSteps) {
  with_computed([&]<class C>(C) {
    const std::vector<C> numbers = numbers_of_all_kinds<C>(20000);
    const auto n = static_cast<std::int64_t>(numbers.size());
    const auto expect = [&]<class T>(ScalarOp op, T) {
      const auto code = RowCode::compile(
          part_of({{.step = 1}, {.step = 1}},
                  {{.inputs = {0}, .output = 1, .body = Ex::apply(op, Ex::input(0))}}, n),
          tested);
      std::vector<C> got(numbers.size()), in_strips(numbers.size());
      std::byte* places[] = {bytes_of(numbers), bytes_of(got)};
      (*code)({places, n, 1, nullptr});
      apply<C>(op, numbers.data(), nullptr, nullptr, in_strips.data(), numbers.size());
      std::vector<C> want;
      for (const C x : numbers) want.push_back(convert<C>(convert<T>(x)));
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(C)), 0) << info(op).name;
      EXPECT_EQ(std::memcmp(in_strips.data(), want.data(), want.size() * sizeof(C)), 0)
          << info(op).name;
    };
    expect(ScalarOp::as_bf16, bf16());
    expect(ScalarOp::as_f16, f16());
  });
}

TEST_P(RowCodeOf, WhatItLacksIsNotCompiled) {
  const auto part = part_of(
      {{.step = 1}, {.step = 1}},
      {{.inputs = {0}, .output = 1, .body = Ex::apply(ScalarOp::pow, Ex::input(0), Ex::input(0))}},
      64);
  EXPECT_EQ(RowCode::compile(part, tested), nullptr);
  const auto copy = [](Place from, Place to) {
    return part_of({std::move(from), std::move(to)},
                   {{.inputs = {0}, .output = 1, .body = Ex::input(0)}}, 64);
  };
  EXPECT_EQ(RowCode::compile(copy({.dtype = DType::u64, .step = 1}, {.step = 1}), tested), nullptr);
  EXPECT_EQ(
      RowCode::compile(copy({.dtype = DType::f64, .step = 1}, {.step = 1}), tested) == nullptr,
      computed == DType::f32);
  EXPECT_EQ(RowCode::compile(copy({.step = 1}, {.dtype = DType::i64, .step = 1}), tested), nullptr);
  EXPECT_EQ(RowCode::compile(copy({.step = 3}, {.step = 1}), tested), nullptr);
  EXPECT_EQ(RowCode::compile(copy({.dtype = DType::bf16, .step = 2}, {.step = 1}), tested),
            nullptr);
  EXPECT_EQ(RowCode::compile(copy({.step = 1}, {.step = 2}), tested), nullptr);  // written
}

void expect_near(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = test::get_values(got), b = test::get_values(want);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 2e-5 * std::max(1.0, std::abs(b[i]))) << i;
}

/// Chains whose nests share rows, compiled, against the same calls in double precision one by one.
TEST(RowCode, CompiledChains) {
  SKIP_WITHOUT_ROW_CODE;
  manual_seed(5);
  for (const auto& [rows, columns] :
       {std::pair{300, 333}, {64, 1024}, {2048, 65}, {7, 5000}, {4096, 16}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const Tensor x = randn({rows, columns}), y = randn({rows, columns}), w = randn({columns}),
                 b = randn({columns});
    const auto wide = [](const Tensor& t) { return t.to(DType::f64); };
    const auto chain = [](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
      const Tensor h = layer_norm(x + y, w, b, "r [c]");
      return softmax(gelu(h) * 2.0 + x, "r [c]");
    };
    expect_near(compile(chain)(x, y, w, b), chain(wide(x), wide(y), wide(w), wide(b)));
    const auto gradient = [&](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
      const Tensor from = x.detach().requires_grad(true);
      std::vector<Tensor> inputs{from};
      return gradients(chain(from, y, w, b), y, inputs)[0];
    };
    expect_near(compile(gradient)(x, y, w, b), gradient(wide(x), wide(y), wide(w), wide(b)));
  }
}

/// Results too large for the caches, which are written past them, while the next nests read them
/// too.
TEST(RowCode, LargeResults) {
  SKIP_WITHOUT_ROW_CODE;
  manual_seed(6);
  const Tensor x = randn({4096, 768}), y = randn({4096, 768}), w = randn({768}), b = randn({768});
  const auto both = [](const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& b) {
    const Tensor h = x + y;
    return std::vector<Tensor>{h, layer_norm(h, w, b, "r [c]"), rearrange(h, "r c -> r c")};
  };
  auto compiled = compile(both);
  const std::vector<Tensor> want =
      both(x.to(DType::f64), y.to(DType::f64), w.to(DType::f64), b.to(DType::f64));
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> got = compiled(x, y, w, b);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) expect_near(got[i], want[i]);
  }
}

}  // namespace
}  // namespace ein::host
