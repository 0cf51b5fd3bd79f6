// Functions of an element in every engine of the CPU, against long double: values at the ends,
// bounds, rises and falls, and the largest error in units in the last place.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ein/compile.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include "cpu/row_code.hpp"
#include "cpu/strip.hpp"
#include "nest/interpret.hpp"
#include "nest/random.hpp"
#include "support/row_code.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// 1 / (1 + e^-x), x / (1 + e^-x) and so on in a wide type, with the limits at the ends.
template <class T>
T logistic(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : T(1)) / (T(1) + e);
}
template <class T>
T normal(T x) {
  return std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
}
template <class T>
T times_gate(T x, T gate) {
  return x == -std::numeric_limits<T>::infinity() ? -T(0) : x * gate;
}

/// By Newton's method on erf, or where that is flat on erfc.
template <class T>
T inverse_of_erf(T y) {
  const long double x = y, size = std::abs(x);
  if (!(size < 1))
    return size == 1 ? static_cast<T>(x) * std::numeric_limits<T>::infinity()
                     : std::numeric_limits<T>::quiet_NaN();
  long double v = std::abs(random::normal_quantile(static_cast<double>((1 - size) / 2))) /
                  std::numbers::sqrt2_v<long double>;
  for (int i = 0; i < 4; ++i) {
    const long double error = size < 0.5 ? std::erf(v) - size : (1 - size) - std::erfc(v);
    v -= error * std::exp(v * v) / (2 * std::numbers::inv_sqrtpi_v<long double>);
  }
  return static_cast<T>(std::copysign(v, x));
}

enum class Course { rises, falls, neither };

struct Function {
  ScalarOp op;
  Course course;
  double least, most;  // of its values
  double units;        // the most that results may be off, in units in the last place
  double (*wide)(double);
  long double (*wider)(long double);
  struct At {
    double x, y;
  };
  std::vector<At> values;  // to the bit, but for NaN
};

#define EIN_BOTH(formula) \
  [](double x) -> double { return formula; }, [](long double x) -> long double { return formula; }

const std::vector<Function>& functions() {
  using enum Course;
  constexpr double inf = infinity, nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<Function> all{
      {ScalarOp::exp,
       rises,
       0,
       inf,
       1.5,
       EIN_BOTH(std::exp(x)),
       {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, 0}, {-1e30, 0}, {1e30, inf}}},
      {ScalarOp::log,
       rises,
       -inf,
       inf,
       1.5,
       EIN_BOTH(std::log(x)),
       {{0, -inf}, {-0.0, -inf}, {1, 0}, {inf, inf}, {-inf, nan}, {-1, nan}, {-1e-30, nan}}},
      {ScalarOp::tanh,
       rises,
       -1,
       1,
       2,
       EIN_BOTH(std::tanh(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, 1}, {-inf, -1}, {1e30, 1}, {-30, -1}}},
      {ScalarOp::erf,
       rises,
       -1,
       1,
       2,
       EIN_BOTH(std::erf(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, 1}, {-inf, -1}, {1e30, 1}, {-7, -1}}},
      {ScalarOp::sigmoid,
       rises,
       0,
       1,
       2,
       EIN_BOTH(logistic(x)),
       {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, 0}, {1e30, 1}, {-1e30, 0}}},
      {ScalarOp::silu,
       neither,
       -0.27846456,
       inf,
       2,
       EIN_BOTH(times_gate(x, logistic(x))),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -0.0}, {1e30, 1e30}, {-1e30, -0.0}}},
      {ScalarOp::normal_cdf,
       neither,
       0,
       1,
       2,
       EIN_BOTH(normal(x)),
       {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, 0}, {1e30, 1}, {-1e30, 0}}},
      {ScalarOp::gelu,
       neither,
       -0.16997123,
       inf,
       2,
       EIN_BOTH(times_gate(x, normal(x))),
       {{0, 0},
        {-0.0, -0.0},
        {inf, inf},
        {-inf, -0.0},
        {1e30, 1e30},
        {-1e10, -0.0},
        {-1e30, -0.0}}},
      {ScalarOp::sqrt,
       rises,
       -0.0,
       inf,
       0.5001,
       EIN_BOTH(std::sqrt(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-1, nan}, {-inf, nan}, {4, 2}}},
      {ScalarOp::rsqrt,
       falls,
       -inf,
       inf,
       1.5,
       EIN_BOTH(1 / std::sqrt(x)),
       {{0, inf}, {-0.0, -inf}, {inf, 0}, {-1, nan}, {4, 0.5}}},
      {ScalarOp::exp2,
       rises,
       0,
       inf,
       2,
       EIN_BOTH(std::exp2(x)),
       {{0, 1}, {-0.0, 1}, {10, 1024}, {inf, inf}, {-inf, 0}}},
      {ScalarOp::expm1,
       rises,
       -1,
       inf,
       2,
       EIN_BOTH(std::expm1(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -1}, {-1e30, -1}}},
      {ScalarOp::log2,
       rises,
       -inf,
       inf,
       2,
       EIN_BOTH(std::log2(x)),
       {{0, -inf}, {1, 0}, {1024, 10}, {inf, inf}, {-1, nan}}},
      {ScalarOp::log1p,
       rises,
       -inf,
       inf,
       2,
       EIN_BOTH(std::log1p(x)),
       {{0, 0}, {-0.0, -0.0}, {-1, -inf}, {inf, inf}, {-2, nan}}},
      {ScalarOp::sin,
       neither,
       -1,
       1,
       2,
       EIN_BOTH(std::sin(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::cos,
       neither,
       -1,
       1,
       2,
       EIN_BOTH(std::cos(x)),
       {{0, 1}, {-0.0, 1}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::tan,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(std::tan(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, nan}, {-inf, nan}}},
      {ScalarOp::asin,
       neither,
       -1.5707964,
       1.5707964,
       2,
       EIN_BOTH(std::asin(x)),
       {{0, 0}, {-0.0, -0.0}, {2, nan}, {inf, nan}}},
      {ScalarOp::acos,
       neither,
       0,
       3.1415928,
       2,
       EIN_BOTH(std::acos(x)),
       {{1, 0}, {2, nan}, {-inf, nan}}},
      {ScalarOp::atan,
       rises,
       -1.5707964,
       1.5707964,
       2,
       EIN_BOTH(std::atan(x)),
       {{0, 0}, {-0.0, -0.0}}},
      {ScalarOp::sinh,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(std::sinh(x)),
       {{0, 0}, {-0.0, -0.0}, {inf, inf}, {-inf, -inf}}},
      {ScalarOp::cosh,
       neither,
       1,
       inf,
       2,
       EIN_BOTH(std::cosh(x)),
       {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, inf}}},
      {ScalarOp::erfinv,
       neither,
       -inf,
       inf,
       2,
       EIN_BOTH(inverse_of_erf(x)),
       {{0, 0}, {-0.0, -0.0}, {1, inf}, {-1, -inf}, {2, nan}, {inf, nan}}},
      {ScalarOp::floor,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::floor(x)),
       {{0, 0}, {-0.0, -0.0}, {0.5, 0}, {-0.5, -1}, {inf, inf}, {1e30, 1e30}}},
      {ScalarOp::ceil,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::ceil(x)),
       {{0, 0}, {-0.0, -0.0}, {0.5, 1}, {-0.5, -0.0}, {-inf, -inf}}},
      {ScalarOp::round,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::nearbyint(x)),
       {{0.5, 0}, {1.5, 2}, {2.5, 2}, {-0.5, -0.0}, {-1.5, -2}, {inf, inf}}},
      {ScalarOp::trunc,
       rises,
       -inf,
       inf,
       0,
       EIN_BOTH(std::trunc(x)),
       {{0.5, 0}, {-0.5, -0.0}, {-1.5, -1}, {inf, inf}}}};
  return all;
}

/// How far `got` is from `want`, in units in the last place of the nearest C.
template <class C, class Wide>
double units(C got, Wide want) {
  const C nearest = static_cast<C>(want);
  if (got == nearest || (std::isnan(want) && std::isnan(got))) return 0;
  if (!std::isfinite(nearest) || !std::isfinite(got)) return infinity;
  const C size = std::abs(nearest), next = std::nextafter(size, std::numeric_limits<C>::infinity());
  const C unit = std::isfinite(next) ? next - size : size - std::nextafter(size, C(0));
  return static_cast<double>(std::abs(static_cast<Wide>(got) - want) / static_cast<Wide>(unit));
}

/// out[i] = f(in[i]); at most `batch` elements.
template <class C>
using Run = std::function<void(const C* in, C* out, std::size_t n)>;
constexpr std::size_t batch = 1000;

template <class C>
struct Engine {
  std::string name;
  Run<C> run;
};

template <class C>
Run<C> row_code(ScalarOp op, host::Isa isa) {
  Schedule::Part part;
  part.rows.compute = dtype_of<C>;
  part.places = {{.dtype = dtype_of<C>, .step = 1}, {.dtype = dtype_of<C>, .step = 1}};
  part.rows.nests = {{.inputs = {0}, .output = 1, .body = Ex::apply(op, Ex::input(0))}};
  part.rows.length = {static_cast<std::int64_t>(batch)};
  const std::shared_ptr<const host::RowCode> code = host::RowCode::compile(part, isa);
  return [code](const C* in, C* out, std::size_t n) {
    alignas(64) C from[batch], to[batch];
    std::copy_n(in, n, from);
    std::fill(from + n, from + batch, C(1));
    std::byte* places[] = {reinterpret_cast<std::byte*>(from), reinterpret_cast<std::byte*>(to)};
    (*code)({places, static_cast<std::int64_t>(batch), 1, nullptr});
    std::copy_n(to, n, out);
  };
}

Run<double> interpreter(ScalarOp op) {
  Graph graph;
  graph.ops.push_back(
      {.kind = OpKind::input, .dtype = DType::f64, .shape = {static_cast<std::int64_t>(batch)}});
  Op map{.kind = OpKind::map,
         .inputs = {0},
         .axes = {{"i", static_cast<std::int64_t>(batch)}},
         .reads = {{{0, {{0, 1}}}}},
         .write = {{0, {{0, 1}}}},
         .expr = Ex::apply(op, Ex::input(0))};
  map.shape = graph.ops[0].shape;
  map.dtype = map.compute = DType::f64;
  graph.ops.push_back(map);
  graph.outputs = {1};
  return [graph](const double* in, double* out, std::size_t n) {
    std::vector<double> from(in, in + n);
    from.resize(batch, 1);
    const std::vector<double> to = Interpreter<>::run(graph, {from}).at(0);
    std::copy_n(to.data(), n, out);
  };
}

template <class C>
std::vector<Engine<C>> engines(ScalarOp op) {
  std::vector<Engine<C>> result{{"strips", [op](const C* in, C* out, std::size_t n) {
                                   host::apply<C>(op, in, nullptr, nullptr, out, n);
                                 }}};
  for (const host::Isa isa : test::isas_with_row_code()) {
    if (host::RowCode::target(isa).has(op, dtype_of<C>))
      result.push_back({"row code " + std::string(host::name(isa)), row_code<C>(op, isa)});
  }
  if constexpr (std::is_same_v<C, double>) result.push_back({"interpreter", interpreter(op)});
  return result;
}

/// What one engine makes of a function.
template <class C>
struct Found {
  double worst = 0;  // in units in the last place
  C at = 0;
  std::int64_t turns = 0;  // how often results go the wrong way
  C turned_at = 0;
  C least = std::numeric_limits<C>::infinity(), most = -std::numeric_limits<C>::infinity();

  void merge(const Found& other) {
    if (other.worst > worst) worst = other.worst, at = other.at;
    if (other.turns > 0) turned_at = other.turned_at;
    turns += other.turns;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

/// Runs on points in increasing order; `before` is the last result of those before them, or NaN.
template <class C, class Wide>
void measure(const Function& f, const Run<C>& run, const C* points, const Wide* exact,
             std::size_t n, C& before, Found<C>& found) {
  C results[batch];
  run(points, results, n);
  for (std::size_t i = 0; i < n; ++i) {
    const C y = results[i];
    const double off = units(y, exact[i]);
    if (off > found.worst) found.worst = off, found.at = points[i];
    const bool turns =
        f.course == Course::rises ? y < before : f.course == Course::falls && y > before;
    const bool is_pole =
        std::isinf(y) &&
        std::isinf(before);  // 1 / sqrt(x) goes from -infinity at -0 to infinity at 0
    if (turns && !is_pole) ++found.turns, found.turned_at = points[i];
    if (y < found.least) found.least = y;
    if (y > found.most) found.most = y;
    before = y;
  }
}

template <class C>
void expect_right(const Function& f, const Engine<C>& engine, const Found<C>& found) {
  const std::string what =
      std::string(info(f.op).name) + " of f" + std::to_string(8 * sizeof(C)) + ", " + engine.name;
  EXPECT_LE(found.worst, sizeof(C) == 4 && f.units >= 2 ? 2.5 : f.units)
      << what << ", at " << found.at;
  EXPECT_EQ(found.turns, 0) << what << ", at " << found.turned_at;
  EXPECT_GE(found.least, static_cast<C>(f.least)) << what;
  EXPECT_LE(found.most, static_cast<C>(f.most)) << what;
}

/// The points in increasing order on each side of 0, and of each run of neighbours apart.
template <class C, class Wide>
void check(const Function& f, std::vector<C> points, Wide (*exact)(Wide)) {
  std::sort(points.begin(), points.end());
  std::vector<Wide> wanted(points.size());
  std::transform(points.begin(), points.end(), wanted.begin(),
                 [&](C x) { return exact(static_cast<Wide>(x)); });
  for (const Engine<C>& engine : engines<C>(f.op)) {
    Found<C> found;
    C before = std::numeric_limits<C>::quiet_NaN();
    for (std::size_t i = 0; i < points.size(); i += batch) {
      measure(f, engine.run, points.data() + i, wanted.data() + i,
              std::min(batch, points.size() - i), before, found);
    }
    expect_right(f, engine, found);
  }
}

/// Numbers of every size, more of them where functions bend, and runs of neighbours.
template <class C>
std::vector<C> some_points(std::mt19937_64& random, std::size_t count) {
  using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
  std::vector<C> points;
  const auto any = [&] { return std::bit_cast<C>(static_cast<Bits>(random())); };
  const auto uniform = [&](double low, double high) {
    return static_cast<C>(std::uniform_real_distribution<double>(low, high)(random));
  };
  while (points.size() < count) {
    const C center = random() % 3 == 0   ? any()
                     : random() % 2 == 0 ? uniform(-3, 3)
                                         : uniform(sizeof(C) == 4 ? -110 : -760, 50);
    if (std::isnan(center)) continue;
    C x = center;
    const std::size_t run = random() % 4 == 0 ? 50 : 1;
    for (std::size_t i = 0; i < run && !std::isinf(x);
         ++i, x = std::nextafter(x, std::numeric_limits<C>::infinity()))
      points.push_back(x);
  }
  return points;
}

TEST(Functions, ValuesAtTheEnds) {
  const auto check = [&]<class C>(C) {
    for (const Function& f : functions()) {
      std::vector<Function::At> values = f.values;
      values.push_back(
          {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()});
      for (const Engine<C>& engine : engines<C>(f.op)) {
        for (const auto& [x, y] : values) {
          // In vectors, and in what is left over of them.
          for (std::size_t n : {std::size_t{1}, std::size_t{21}}) {
            const std::vector<C> in(n, static_cast<C>(x));
            std::vector<C> out(n);
            engine.run(in.data(), out.data(), n);
            for (C got : out) {
              const C want = static_cast<C>(y);
              ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                           : got == want && std::signbit(got) == std::signbit(want))
                  << info(f.op).name << "(" << x << ") is " << got << " and not " << want << ", "
                  << engine.name << " of f" << 8 * sizeof(C);
            }
          }
        }
      }
    }
  };
  check(1.F);
  check(1.0);
}

template <class C, class Wide>
void check_all(unsigned seed, std::size_t count, Wide (*Function::*exact)(Wide)) {
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const std::vector<C> points = some_points<C>(random, count);
  for (const Function& f : functions()) check(f, points, f.*exact);
}
TEST(Functions, FloatsAreNearBoundedAndOrdered) {
  check_all<float>(20261122, 1'000'000, &Function::wide);
}
TEST(Functions, DoublesAreNearBoundedAndOrdered) {
  check_all<double>(20261123, 300'000, &Function::wider);
}

/// Calls `part(i)` for i below `count`, several at once.
void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& part) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i; (i = next++) < count;) part(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <class C>
void print_row(const Function& f, const Engine<C>& engine, const Found<C>& found) {
  std::printf("| %s | f%zu | %s | %.2f | %.9g |\n", std::string(info(f.op).name).c_str(),
              8 * sizeof(C), engine.name.c_str(), found.worst, static_cast<double>(found.at));
  std::fflush(stdout);
}

/// Whether to take all numbers, which takes ten minutes; otherwise each 251st part of them: each
/// 256th would begin near a power of two.
bool takes_all() { return std::getenv("EIN_EVERY_NUMBER") != nullptr; }

TEST(Functions, SlowEveryFloat) {
  const std::int64_t every = takes_all() ? 1 : 251;
  constexpr std::int64_t part_size = 1 << 20;
  for (const Function& f : functions()) {
    const std::vector<Engine<float>> all = engines<float>(f.op);
    constexpr std::int64_t parts = (std::int64_t{0xFF000000} + 2) / part_size +
                                   1;  // of the numbers from -infinity to infinity
    std::vector<std::vector<Found<float>>> found(static_cast<std::size_t>(parts),
                                                 std::vector<Found<float>>(all.size()));
    in_threads(parts, [&](std::int64_t part) {
      if (part % every != 0) return;
      std::vector<float> points;
      std::vector<double> wanted;
      std::vector<float> before(all.size(), std::numeric_limits<float>::quiet_NaN());
      // One more than the part has: its first result is compared with the last of the part before.
      const std::int64_t end = std::min((part + 1) * part_size + 1, std::int64_t{0xFF000000} + 2);
      for (std::int64_t i = part * part_size; i < end;) {
        points.clear();
        wanted.clear();
        for (; i < end && points.size() < batch; ++i) {
          // -infinity is number 0, and -0 comes before 0.
          const auto bits = i <= 0x7F800000 ? 0xFF800000U - static_cast<std::uint32_t>(i)
                                            : static_cast<std::uint32_t>(i - 0x7F800001);
          points.push_back(std::bit_cast<float>(bits));
          wanted.push_back(f.wide(static_cast<double>(points.back())));
        }
        for (std::size_t e = 0; e < all.size(); ++e) {
          measure(f, all[e].run, points.data(), wanted.data(), points.size(), before[e],
                  found[static_cast<std::size_t>(part)][e]);
        }
      }
    });
    for (std::size_t e = 0; e < all.size(); ++e) {
      Found<float> whole;
      for (const auto& part : found) whole.merge(part[e]);
      print_row(f, all[e], whole);
      expect_right(f, all[e], whole);
    }
  }
}

TEST(Functions, SlowManyDoubles) {
  constexpr std::int64_t part_size = 1'000'000;
  const std::int64_t parts = takes_all() ? 100 : 1;
  constexpr std::uint64_t seed = 20261124;
  std::cout << "seed " << seed << '\n';
  for (const Function& f : functions()) {
    std::vector<Engine<double>> all = engines<double>(f.op);
    all.pop_back();  // the interpreter
    std::vector<std::vector<Found<double>>> found(static_cast<std::size_t>(parts),
                                                  std::vector<Found<double>>(all.size()));
    in_threads(parts, [&](std::int64_t part) {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(part));
      std::vector<double> points = some_points<double>(random, part_size);
      std::sort(points.begin(), points.end());
      long double wanted[batch];
      std::vector<double> before(all.size(), std::numeric_limits<double>::quiet_NaN());
      for (std::size_t i = 0; i < points.size(); i += batch) {
        const std::size_t n = std::min(batch, points.size() - i);
        for (std::size_t j = 0; j < n; ++j)
          wanted[j] = f.wider(static_cast<long double>(points[i + j]));
        for (std::size_t e = 0; e < all.size(); ++e) {
          measure(f, all[e].run, points.data() + i, wanted, n, before[e],
                  found[static_cast<std::size_t>(part)][e]);
        }
      }
    });
    for (std::size_t e = 0; e < all.size(); ++e) {
      Found<double> whole;
      for (const auto& part : found) whole.merge(part[e]);
      print_row(f, all[e], whole);
      expect_right(f, all[e], whole);
    }
  }
}

/// The public functions where they once had garbage: short and long tensors take different engines.
TEST(Functions, TailsOfGates) {
  const std::vector<double> far{-5.652190, -6, -8, -10, -104, -1e4, -1e10, -1e30, -3e38, -infinity};
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (std::int64_t repeats : {1, 400}) {
      const Tensor x = (zeros({repeats, 1}, DType::f64) + from_vector(far))
                           .view({repeats * std::ssize(far)})
                           .to(dtype);
      const std::vector<double> points = test::get_values(x);
      for (const bool is_compiled : {false, true}) {
        const auto values = [&](Tensor (*f)(const Tensor&)) {
          return test::get_values(is_compiled ? compile([f](const Tensor& t) { return f(t); })(x)
                                              : f(x));
        };
        const std::vector<double> g = values(gelu), s = values(silu), e = values(erf);
        for (std::size_t i = 0; i < points.size(); ++i) {
          const double tolerance = dtype == DType::bf16 ? 0.01 : 1e-6,
                       subnormal = dtype == DType::bf16 ? 1e-40 : 2e-45;
          const double of_gelu = times_gate(points[i], normal(points[i])),
                       of_silu = times_gate(points[i], logistic(points[i]));
          EXPECT_NEAR(g[i], of_gelu, std::max(std::abs(of_gelu) * tolerance, subnormal))
              << points[i];
          EXPECT_NEAR(s[i], of_silu, std::max(std::abs(of_silu) * tolerance, subnormal))
              << points[i];
          EXPECT_TRUE(std::signbit(g[i]) && std::signbit(s[i])) << points[i];
          EXPECT_EQ(e[i], dtype == DType::f64 ? std::erf(points[i]) : -1) << points[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace ein
