// The errors of functions of an element: each engine of the CPU, on each instruction set of this
// processor, against a wider type.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "cpu/level.hpp"
#include "cpu/row_code.hpp"
#include "oracle/interpret.hpp"
#include "passes/short_forms.hpp"
#include "support/reference_functions.hpp"
#include "support/row_code.hpp"
#include "tensor/convert.hpp"

namespace ein::test {

/// The nearest bf16 or f16.
inline float rounded(float x, DType dtype) {
  using namespace detail;
  return dtype == DType::bf16 ? expand<format_of<bf16>>(round_to<format_of<bf16>>(x))
                              : expand<format_of<f16>>(round_to<format_of<f16>>(x));
}

/// out[i] = f(in[i]); at most `batch` elements.
template <class C>
using Run = std::function<void(const C* in, C* out, std::size_t n)>;
constexpr std::size_t batch = 1000;

template <class C>
struct Engine {
  std::string name;  // "strips" or "row code" and an instruction set, or "interpreter"
  Run<C> run;
};

/// Between elements of `dtype`, which are converted exactly to numbers of C.
template <class C>
Run<C> row_code(ScalarOp op, host::Isa isa, DType dtype) {
  Schedule::Part part;
  part.rows.compute = dtype_of<C>;
  part.places = {{.dtype = dtype, .step = 1}, {.dtype = dtype, .step = 1}};
  ScalarExpr body = Ex::apply(op, Ex::input(0));
  body.steps.back().short_form = dtype != dtype_of<C> && has_short_form(op);
  part.rows.nests = {{.inputs = {0}, .output = 1, .body = body}};
  part.rows.length = {static_cast<std::int64_t>(batch)};
  const std::shared_ptr<const host::RowCode> code = host::RowCode::compile(part, isa);
  return [code, dtype](const C* in, C* out, std::size_t n) {
    alignas(64) C all[batch];
    alignas(64) std::byte from[batch * sizeof(C)], to[batch * sizeof(C)];
    std::copy_n(in, n, all);
    std::fill(all + n, all + batch, C(1));
    store_from(all, batch, from, dtype, 1);
    std::byte* places[] = {from, to};
    (*code)({places, static_cast<std::int64_t>(batch), 1, nullptr});
    load_as(to, dtype, 1, out, n);
  };
}

inline Run<double> interpreter(ScalarOp op) {
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

/// Strips of every instruction set of this build and processor, then row code of every one, on
/// elements of `dtype`.
template <class C>
std::vector<Engine<C>> engines(ScalarOp op, DType dtype = dtype_of<C>) {
  std::vector<Engine<C>> result;
  for (const host::Level* level : host::levels_here()) {
    result.push_back(
        {"strips " + std::string(host::name(level->isa)), [=](const C* in, C* out, std::size_t n) {
           if constexpr (std::is_same_v<C, float>) {
             if (dtype != DType::f32) {
               if (has_short_form(op))
                 level->apply_short_form(op, in, out, n);
               else
                 level->strips<C>().apply(op, in, nullptr, nullptr, out, n);
               for (std::size_t i = 0; i < n; ++i) out[i] = rounded(out[i], dtype);
               return;
             }
           }
           level->strips<C>().apply(op, in, nullptr, nullptr, out, n);
         }});
  }
  for (const host::Isa isa : isas_with_row_code()) {
    if (host::RowCode::target(isa).has(op, dtype_of<C>))
      result.push_back({"row code " + std::string(host::name(isa)), row_code<C>(op, isa, dtype)});
  }
  return result;
}

/// What an engine makes of a function.
template <class C>
struct Found {
  double worst = 0;  // in units in the last place
  C at = 0;
  std::int64_t turns = 0;  // how often results go the wrong way
  C turned_at = 0;
  std::int64_t outside = 0;  // how many are beyond the bounds of the function
  C outside_at = 0;

  void merge(const Found& other) {
    if (other.worst > worst) worst = other.worst, at = other.at;
    if (other.turns > 0) turned_at = other.turned_at;
    if (other.outside > 0) outside_at = other.outside_at;
    turns += other.turns;
    outside += other.outside;
  }
};
template <class C>
struct Result {
  const Function* function;
  std::string engine;
  Found<C> found;
};

/// A few points in increasing order, and what a function is there.
template <class C>
struct Points {
  const C* x;
  std::size_t n;
  Wide<C> exact[batch];
  Wide<C> per_unit[batch];    // 1 / the unit in the last place of the C that is nearest to `exact`,
                              // or to the size of its terms
  DType dtype = dtype_of<C>;  // in which there are fewer numbers, if it is bf16 or f16

  void compute(const Function& f) {
    using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
    using Limits = std::numeric_limits<C>;
    constexpr int mantissa_bits = Limits::digits - 1, mask = 2 * Limits::max_exponent - 1;
    const int left_out = dtype == DType::bf16 ? 16 : dtype == DType::f16 ? 13 : 0;
    const int least = dtype == DType::f16 ? -14 : Limits::min_exponent - 1;
    for (std::size_t i = 0; i < n; ++i) {
      exact[i] = f.exact(x[i]);
      const auto size = static_cast<C>(
          f.terms ? static_cast<Wide<C>>(f.terms(static_cast<double>(x[i]))) : exact[i]);
      const auto bits = std::bit_cast<Bits>(size);
      const int biased = std::clamp(static_cast<int>(bits >> mantissa_bits) & mask, 1, mask - 1);
      const int exponent = std::max(least, biased - (Limits::max_exponent - 1)) + left_out;
      if constexpr (sizeof(C) == 4)
        per_unit[i] = std::bit_cast<double>(std::uint64_t(1023 + mantissa_bits - exponent) << 52);
      else
        per_unit[i] = std::ldexp(1.0L, mantissa_bits - exponent);
    }
  }
};

/// The C that is nearest to x, or of these the bf16 or f16.
template <class C>
C number_of(Wide<C> x, DType dtype) {
  const C nearest = static_cast<C>(x);
  if constexpr (std::is_same_v<C, float>) {
    if (dtype != DType::f32) return rounded(nearest, dtype);
  }
  return nearest;
}

/// How far a result is off where that is `off` units by subtraction, which infinity and NaN are not
/// made for.
template <class C>
double settle(C got, Wide<C> exact, Wide<C> off, DType dtype) {
  const C nearest = number_of<C>(exact, dtype);
  if (got == nearest && std::isinf(got)) return 0;
  if (std::isnan(exact) && std::isnan(got)) return 0;
  return std::isfinite(off) ? static_cast<double>(off) : std::numeric_limits<double>::infinity();
}

/// results[i + 1] is what an engine made of point i, results[0] of the point before, or NaN.
template <class C>
Found<C> measure(const Function& f, const Points<C>& points, const C* results) {
  Found<C> found;
  const C* const y = results + 1;
  Wide<C> off[batch];
  for (std::size_t i = 0; i < points.n; ++i)
    off[i] = std::abs(static_cast<Wide<C>>(y[i]) - points.exact[i]) * points.per_unit[i];
  for (std::size_t i = 0; i < points.n; ++i) {
    if (off[i] <= static_cast<Wide<C>>(found.worst)) continue;
    const double units = settle(y[i], points.exact[i], off[i], points.dtype);
    if (units > found.worst) found.worst = units, found.at = points.x[i];
  }
  const C least = number_of<C>(f.least, points.dtype), most = number_of<C>(f.most, points.dtype);
  for (std::size_t i = 0; i < points.n; ++i) {
    if (y[i] < least || y[i] > most) ++found.outside, found.outside_at = points.x[i];
  }
  if (f.course == Course::neither) return found;
  for (std::size_t i = 0; i < points.n; ++i) {
    const C from = f.course == Course::rises ? y[i - 1] : y[i],
            to = f.course == Course::rises ? y[i] : y[i - 1];
    // 1 / sqrt(x) goes from -infinity at -0 to infinity at 0.
    if (to < from && !(std::isinf(from) && std::isinf(to)))
      ++found.turns, found.turned_at = points.x[i];
  }
  return found;
}

/// A function and the engines that are to be measured.
template <class C>
struct Subject {
  const Function* function;
  std::vector<Engine<C>> engines;
  DType dtype = dtype_of<C>;
};
/// All functions, or that of this name, in all engines; the C library's once.
template <class C>
std::vector<Subject<C>> subjects_of(std::string_view only = "") {
  std::vector<Subject<C>> subjects;
  for (const Function& f : functions()) {
    if (!only.empty() && info(f.op).name != only) continue;
    subjects.push_back({&f, engines<C>(f.op)});
    if (calls_library<C>(f.op)) subjects.back().engines.resize(1);
  }
  return subjects;
}

/// Of bf16 or f16; not the C library's, of which errors in f32 are nothing in fewer bits.
inline std::vector<Subject<float>> subjects_of_16_bits(DType dtype, std::string_view only = "") {
  std::vector<Subject<float>> subjects;
  for (const Function& f : functions()) {
    if ((only.empty() || info(f.op).name == only) && !calls_library<float>(f.op))
      subjects.push_back({&f, engines<float>(f.op, dtype), dtype});
  }
  return subjects;
}

/// Adds to found[e] what engine e makes of the points, which increase.
template <class C>
void measure(const Subject<C>& subject, const std::vector<C>& x, std::vector<Found<C>>& found) {
  const std::size_t count = subject.engines.size();
  // The result before the batch, then those of the batch.
  std::vector<std::array<C, batch + 1>> results(count);
  for (auto& of_engine : results) of_engine[0] = std::numeric_limits<C>::quiet_NaN();
  Points<C> points;
  points.dtype = subject.dtype;
  for (std::size_t i = 0; i < x.size(); i += batch) {
    points.x = x.data() + i;
    points.n = std::min(batch, x.size() - i);
    points.compute(*subject.function);
    std::vector<Found<C>> here(count);
    for (std::size_t e = 0; e < count; ++e) {
      subject.engines[e].run(points.x, results[e].data() + 1, points.n);
      // Many engines agree to the bit.
      std::size_t same = 0;
      while (same < e &&
             std::memcmp(results[same].data(), results[e].data(), (points.n + 1) * sizeof(C)) != 0)
        ++same;
      here[e] = same < e ? here[same] : measure(*subject.function, points, results[e].data());
      found[e].merge(here[e]);
    }
    for (auto& of_engine : results) of_engine[0] = of_engine[points.n];
  }
}

/// Calls `part(i)` for i below `count`, several at once.
inline void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& part) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (std::int64_t i; (i = next++) < count;) part(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Is told how many parts are done.
using Progress = std::function<void(std::int64_t done, std::int64_t parts)>;
/// Measures all subjects on the points of `parts` parts; those of each part increase.
template <class C>
std::vector<Result<C>> measure(const std::vector<Subject<C>>& subjects, std::int64_t parts,
                               const std::function<std::vector<C>(std::int64_t)>& points,
                               const Progress& progress = {}) {
  std::vector<std::vector<std::vector<Found<C>>>> found(static_cast<std::size_t>(parts));
  std::mutex mutex;
  std::int64_t count = 0;
  in_threads(parts, [&](std::int64_t part) {
    const std::vector<C> x = points(part);
    std::vector<std::vector<Found<C>>>& here = found[static_cast<std::size_t>(part)];
    for (const Subject<C>& subject : subjects) {
      here.emplace_back(subject.engines.size());
      measure(subject, x, here.back());
    }
    const std::lock_guard lock(mutex);
    if (++count; progress) progress(count, parts);
  });
  std::vector<Result<C>> results;
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    for (std::size_t e = 0; e < subjects[s].engines.size(); ++e) {
      results.push_back({subjects[s].function, subjects[s].engines[e].name, {}});
      for (const auto& part : found) results.back().found.merge(part[s][e]);
    }
  }
  return results;
}

/// Numbers of every size, more of them where functions bend, and runs of neighbours, in increasing
/// order.
template <class C>
std::vector<C> some_points(std::uint64_t seed, std::size_t count) {
  using Bits = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
  std::mt19937_64 random(seed);
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
  std::sort(points.begin(), points.end());
  return points;
}

/// The floats from -infinity to infinity are numbered from 0 on, and -0 comes before 0.
constexpr std::int64_t float_count = std::int64_t{0xFF000000} + 2;
inline float float_of(std::int64_t number) {
  return std::bit_cast<float>(number <= 0x7F800000
                                  ? 0xFF800000U - static_cast<std::uint32_t>(number)
                                  : static_cast<std::uint32_t>(number - 0x7F800001));
}
constexpr std::int64_t float_part = 1 << 20, float_parts = (float_count - 1) / float_part + 1;

/// Of a part of the floats, all, and the first of the next part, so that these two are compared; or
/// one in so many of them, side by side.
inline std::vector<float> floats(std::int64_t part, std::int64_t one_in) {
  const std::int64_t count = float_part / one_in + 1;
  std::int64_t begin = part * float_part;
  if (one_in > 1) {
    std::mt19937_64 random(static_cast<std::uint64_t>(part));
    begin += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(float_part - count));
  }
  std::vector<float> points;
  for (std::int64_t i = begin; i < std::min(begin + count, float_count); ++i)
    points.push_back(float_of(i));
  return points;
}

/// On all numbers of bf16 or f16.
inline std::vector<Result<float>> measure_16_bits(const std::vector<Subject<float>>& subjects,
                                                  DType dtype) {
  std::vector<float> points;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = dtype == DType::bf16 ? detail::expand<detail::format_of<bf16>>(bits)
                                         : detail::expand<detail::format_of<f16>>(bits);
    if (!std::isnan(x)) points.push_back(x);
  }
  std::sort(points.begin(), points.end(),
            [](float x, float y) { return x != y ? x < y : std::signbit(x) && !std::signbit(y); });
  return measure<float>(subjects, 1, [&](std::int64_t) { return points; });
}
/// On one in so many of all floats.
inline std::vector<Result<float>> measure_floats(const std::vector<Subject<float>>& subjects,
                                                 std::int64_t one_in,
                                                 const Progress& progress = {}) {
  return measure<float>(
      subjects, float_parts, [one_in](std::int64_t part) { return floats(part, one_in); },
      progress);
}
/// On so many doubles, a multiple of `double_part`.
constexpr std::int64_t double_part = 100'000;
inline std::vector<Result<double>> measure_doubles(const std::vector<Subject<double>>& subjects,
                                                   std::int64_t count,
                                                   const Progress& progress = {}) {
  constexpr std::uint64_t seed = 20261124;
  return measure<double>(
      subjects, count / double_part,
      [](std::int64_t part) {
        return some_points<double>(seed + static_cast<std::uint64_t>(part), double_part);
      },
      progress);
}

}  // namespace ein::test
