// How a random program grows: each step is run at once, so that the next one knows shapes and
// dtypes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "program.hpp"
#include "support/tensor_values.hpp"

namespace ein::attack {

bool Program::differentiates() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.op && step.op->name.starts_with("gradient");
  });
}

std::vector<Tensor> values_of_steps(const Program& program, std::span<const Tensor> arguments,
                                    std::span<const Tensor> states) {
  std::vector<Tensor> values;
  std::size_t input = 0, argument = 0, state = 0;
  for (const Step& step : program.steps) {
    if (!step.op) {
      const Input& given = program.inputs[input++];
      values.push_back(given.is_state ? states[state++] : arguments[argument++]);
      continue;
    }
    std::vector<Tensor> args;
    for (int arg : step.args) args.push_back(values[static_cast<std::size_t>(arg)]);
    values.push_back(step.op->run(step, args));
  }
  return values;
}

std::vector<Tensor> run(const Program& program, std::span<const Tensor> arguments,
                        std::span<const Tensor> states) {
  std::optional<EnableGrad> enabled;
  std::vector<Tensor> given(arguments.begin(), arguments.end());
  if (program.differentiates()) {
    enabled.emplace();
    for (Tensor& x : given) {
      if (has_gradients(x.dtype())) x = detail::differentiable(x);
    }
  }
  const std::vector<Tensor> values = values_of_steps(program, given, states);
  std::vector<Tensor> outputs;
  for (int output : program.outputs) {
    const Tensor& x = values[static_cast<std::size_t>(output)];
    outputs.push_back(x.requires_grad() ? x.detach() : x);
  }
  return outputs;
}

Maker::Maker(std::uint64_t seed, Kind kind) : random_(seed * 0x9E3779B97F4A7C15u + 1), kind_(kind) {
  program_.seed = seed;
  constexpr DType usual[] = {DType::f32,     DType::f32,    DType::f32,   DType::f32, DType::f64,
                             DType::bf16,    DType::f16,    DType::i64,   DType::i32, DType::u8,
                             DType::boolean, DType::f8e4m3, DType::f8e5m2};
  constexpr DType of_windows[] = {DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16};
  dtype_ = kind == Kind::smooth    ? DType::f64
           : kind == Kind::single  ? one_of(all_dtypes)
           : kind == Kind::windows ? one_of(of_windows)
           : chance(90)            ? one_of(usual)
                                   : one_of(real_dtypes);
  flavour_ = static_cast<int>(below(4));
}

std::int64_t Maker::size() {
  constexpr std::int64_t small[] = {1, 1, 2, 2, 3, 3, 4, 5, 7, 8},
                         edges[] = {15, 16, 17, 31, 32, 33, 63, 64, 65},
                         large[] = {127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025};
  constexpr std::int64_t few[] = {1, 2, 2, 3, 3, 4};
  if (kind_ == Kind::smooth) return chance(3) ? 0 : one_of(few);
  const std::int64_t kind = below(is_single() ? 78 : 100);
  return kind < 4 ? 0 : kind < 76 ? one_of(small) : kind < 95 ? one_of(edges) : one_of(large);
}

DType Maker::any_dtype() {
  if (kind_ == Kind::smooth || kind_ == Kind::windows) return dtype_;
  if (is_single()) return one_of(all_dtypes);
  return chance(60) ? dtype_ : one_of(real_dtypes);
}

Scalar Maker::number(DType beside) {
  constexpr int whole[] = {0, 0, 1, 1, 2, 2, 3, -1, -2, 7, 100};
  constexpr double fractions[] = {0.5,  0.1,  -0.0,  0.0,   1.5, -3.25,
                                  1e-3, 1e10, -1e10, 1e-40, 1.0, 2.0};
  constexpr double special[] = {INFINITY, -INFINITY, NAN};
  constexpr std::int64_t beyond[] = {127,  128,   255,    300,
                                     -129, 70000, -40000, std::int64_t{1} << 40};
  constexpr double moderate[] = {0, 1, 2, -1, 0.5, 1.5, 3, -0.25};
  if (kind_ == Kind::smooth) return Scalar(one_of(moderate));
  if (is_single() && chance(10)) return Scalar(one_of(beyond));
  if (chance(is_integral(beside) ? 90 : 40)) return Scalar(one_of(whole));
  return Scalar(chance(8) ? one_of(special) : one_of(fractions));
}

/// A limit of the range of integers, or a number near it, as far as doubles hold it.
double Maker::extreme(DType dtype) {
  const double limit = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)) - 1);
  const double step = std::max(1.0, std::ldexp(limit, -52));
  const double candidates[] = {-limit, -limit + step, limit - step, limit / 2, -limit / 2, -step};
  return one_of(candidates);  // a negative one without a sign is 2^bits more
}

Values Maker::values(const Input& input) {
  Values values(test::count_of_values(input.shape, input.dtype));
  std::normal_distribution<double> normal;
  constexpr double special[] = {0.0,    -0.0, 1.0,   -1.0,  INFINITY, -INFINITY, NAN,  1e-40,
                                -1e-42, 1e30, -1e30, 65504, 1e-7,     3.5,       -88.5};
  const int flavour = chance(70) ? flavour_ : static_cast<int>(below(4));
  const double scale = chance(80) ? 1 : std::ldexp(1.0, static_cast<int>(below(40)) - 20);
  const double common = static_cast<double>(below(7) - 3);
  for (double& x : values) {
    if (input.below > 0)
      x = static_cast<double>(below(input.below));
    else if (input.dtype == DType::boolean)
      x = static_cast<double>(below(2));
    else if (is_single() && is_integral(input.dtype) && chance(8))
      x = extreme(input.dtype);
    else if (is_unsigned(input.dtype))
      x = static_cast<double>(below(chance(90) ? 5 : 256));
    else if (is_integral(input.dtype))
      x = static_cast<double>(chance(95) ? below(7) - 3 : below(100000) - 50000);
    else if (kind_ == Kind::smooth)
      x = chance(50) ? static_cast<double>(below(5) - 2) / 2 : normal(random_);
    else if (flavour == 0)
      x = static_cast<double>(below(9) - 4) / 2;
    else if (flavour == 1)
      x = normal(random_) * scale;
    else if (flavour == 2)
      x = chance(35) ? one_of(special) : static_cast<double>(below(9) - 4) / 2;
    else
      x = chance(80) ? common : normal(random_);
    x = test::stored(x, input.dtype);
  }
  return values;
}

int Maker::input(const Shape& shape, DType dtype, std::int64_t positions_below, bool is_state) {
  Input input{shape, dtype, is_state, positions_below, {}};
  for (int r = 0; r < 2; ++r) input.runs.push_back(values(input));
  const Tensor x = test::make_tensor(input.runs[0], shape, dtype);
  program_.inputs.push_back(std::move(input));
  add({}, is_state || !has_gradients(dtype) ? x : detail::differentiable(x));
  return static_cast<int>(program_.steps.size()) - 1;
}

void Maker::add(Step step, Tensor value) {
  program_.steps.push_back(std::move(step));
  program_.types.push_back({value.shape(), value.dtype()});
  values_.push_back(std::move(value));
  is_stale_.push_back(false);
}

int Maker::input_kind(int value) const {
  if (program_.steps[static_cast<std::size_t>(value)].op) return 0;
  const auto number = std::count_if(program_.steps.begin(), program_.steps.begin() + value,
                                    [](const Step& step) { return !step.op; });
  return program_.inputs[static_cast<std::size_t>(number)].is_state ? 2 : 1;
}

void Maker::assign(int state) {
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const bool is_handle = static_cast<int>(v) == state ||
                           (program_.steps[v].op && !program_.steps[v].args.empty() &&
                            program_.steps[v].args[0] == state && program_.steps[v].op->writes);
    if (!is_handle && values_[v].same_storage(values_[static_cast<std::size_t>(state)]))
      is_stale_[v] = true;
  }
}

int Maker::like(const Shape& shape, DType dtype) {
  const int found =
      reuses(60) ? value([&](int v) { return this->shape(v) == shape && this->dtype(v) == dtype; })
                 : -1;
  return found >= 0 ? found : input(shape, rather(dtype));
}

int Maker::beside(int other) {
  const Shape wanted = shape(other);
  const auto fits = [&](int v) {
    const Shape& has = shape(v);
    for (std::size_t d = 1; d <= std::min(has.rank(), wanted.rank()); ++d) {
      const std::int64_t m = has[has.rank() - d], n = wanted[wanted.rank() - d];
      if (m != n && m != 1 && n != 1) return false;
    }
    return true;
  };
  const int found = reuses(65) ? value(fits) : -1;
  if (found >= 0) return found;
  Shape made;
  const std::size_t skipped =
      chance(25) ? static_cast<std::size_t>(below(static_cast<std::int64_t>(wanted.rank()) + 1))
                 : 0;
  for (std::size_t d = skipped; d < wanted.rank(); ++d)
    made.push_back(chance(20) ? Size(1) : wanted[d]);
  return input(made, chance(70) ? dtype(other) : any_dtype());
}

std::string Maker::side(const Shape& shape, std::vector<Axis>& axes, Step& step, bool may_split,
                        bool may_repeat) {
  std::vector<std::string> items, used;
  const auto known = [&](std::int64_t size) -> std::string {
    std::vector<std::string> fitting;
    for (const Axis& axis : axes) {
      const bool repeated = std::find(used.begin(), used.end(), axis.name) != used.end();
      if (axis.size == size && (!repeated || (may_repeat && chance(15))))
        fitting.push_back(axis.name);
    }
    return fitting.empty() || !chance(65) ? ""
                                          : fitting[static_cast<std::size_t>(
                                                below(static_cast<std::int64_t>(fitting.size())))];
  };
  const auto fresh = [&](std::int64_t size) {
    axes.push_back(
        {std::string(1, static_cast<char>('a' + axes.size() % 26)) + (axes.size() >= 26 ? "2" : ""),
         size});
    return axes.back().name;
  };
  const auto name = [&](std::int64_t size) {
    std::string text = may_repeat ? known(size) : "";
    if (text.empty()) text = fresh(size);
    used.push_back(text);
    return text;
  };
  for (std::int64_t n : shape) {
    if (n == 1 && chance(20)) {
      items.push_back("1");
      continue;
    }
    std::int64_t factor = 0;
    for (std::int64_t f : {2, 3, 5, 8}) {
      if (n > 0 && n % f == 0 && (factor == 0 || chance(50))) factor = f;
    }
    if (!may_split || factor == 0 || !chance(15)) {
      items.push_back(name(n));
      continue;
    }
    const std::string outer = fresh(n / factor), inner = fresh(factor);
    step.sizes.emplace_back(inner, factor);
    items.push_back("(" + outer + " " + inner + ")");
  }
  return joined(items, false);
}

std::string Maker::joined(std::vector<std::string> names, bool may_group) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!text.empty()) text += " ";
    if (may_group && i + 1 < names.size() && chance(15)) {
      text += "(" + names[i] + " " + names[i + 1] + ")";
      ++i;
    } else {
      text += names[i];
    }
  }
  return text;
}

std::vector<std::string> Maker::shuffled(std::vector<std::string> names) {
  if (chance(60)) std::shuffle(names.begin(), names.end(), random_);
  return names;
}

std::vector<std::string> Maker::some(const std::vector<Axis>& axes, int percent) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    if (chance(percent)) names.push_back(axis.name);
  }
  return names;
}

const Operation& Maker::some_operation() {
  const std::vector<Operation>& all = operations();
  // Of windows first one, then gradients.
  const bool has_windows =
      kind_ == Kind::windows && std::any_of(program_.steps.begin(), program_.steps.end(),
                                            [](const Step& step) { return step.op; });
  const auto weight = [&](const Operation& op) {
    if (kind_ == Kind::windows)
      return (has_windows ? op.name == "gradient" : is_of_windows(op)) ? op.weight : 0;
    return is_single() ? is_in_numpy(op) : kind_ == Kind::smooth && !is_smooth(op) ? 0 : op.weight;
  };
  std::int64_t weights = 0;
  for (const Operation& op : all) weights += weight(op);
  std::int64_t ticket = below(weights);
  std::size_t chosen = 0;
  while ((ticket -= weight(all[chosen])) >= 0) ++chosen;
  return all[chosen];
}

Program Maker::make() {
  Shape first;
  // Every 25th has operands that are turned, cut into groups and shared out to threads.
  const bool is_few = kind_ == Kind::smooth;
  const bool is_wide = kind_ == Kind::any && program_.seed % 25 == 24;
  const std::int64_t most_elements = is_few ? 24 : is_single() ? 100 : is_wide ? 1 << 20 : 60000;
  constexpr std::int64_t lengths[] = {33, 100, 127, 200, 257, 300, 1000, 4800};
  if (is_wide) first = {one_of(lengths), one_of(lengths)};
  if (numel(first) > 4 * most_elements) first[1] = lengths[0];
  for (std::int64_t d = is_wide ? below(2) : below(8) == 0 ? 0 : 1 + below(3); d > 0; --d)
    first.push_back(numel(first) > most_elements / 30 ? 1 + below(3) : size());
  if (kind_ != Kind::windows) input(first, dtype_);
  const std::int64_t wanted = is_single()              ? 1
                              : kind_ == Kind::windows ? 1 + below(3)
                                                       : 1 + below(is_wide || is_few ? 4
                                                                   : chance(80)      ? 6
                                                                                     : 14);
  std::optional<EnableGrad> enabled;
  if (!is_single()) enabled.emplace();
  for (std::int64_t tries = 0, made = 0; (is_single() || tries < 60) && made < wanted; ++tries) {
    const Program program = program_;
    const std::size_t count = values_.size();
    Step step{.op = &some_operation()};
    const Operation* op = step.op;
    try {
      if (op->make(*this, step) && program_.inputs.size() < 10) {
        std::vector<Tensor> args;
        for (int arg : step.args) args.push_back(values_[static_cast<std::size_t>(arg)]);
        Tensor result = op->run(step, args);
        const bool is_small =
            std::all_of(program_.inputs.begin(), program_.inputs.end(), [&](const Input& given) {
              return kind_ == Kind::any || kind_ == Kind::windows ||
                     numel(given.shape) <= (is_few ? 24 : 400);
            });
        if (is_small && result.numel() <= most_elements) {
          if (op->writes) assign(step.args[0]);
          add(std::move(step), std::move(result));
          ++made;
          continue;
        }
      }
    } catch (const Error& error) {
      // Not defined for these operands: of dtypes and values, a single call that NumPy may take.
      const ErrorKind kind = error.kind();
      if (is_single() &&
          (kind == ErrorKind::dtype || kind == ErrorKind::value || kind == ErrorKind::reduction)) {
        program_.error = kind;
        program_.steps.push_back(std::move(step));
        program_.types.emplace_back();
        program_.outputs = {static_cast<int>(program_.types.size()) - 1};
        return std::move(program_);
      }
    }
    program_ = program;
    values_.resize(count);
    is_stale_.resize(count);
  }
  // What nothing reads, and now and then something else.
  std::vector<char> is_read(values_.size(), 0);
  for (const Step& step : program_.steps) {
    for (int arg : step.args) is_read[static_cast<std::size_t>(arg)] = 1;
  }
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    const auto i = static_cast<std::size_t>(v);
    if (program_.steps[i].op && !is_stale_[i] && (!is_read[i] || chance(10)))
      program_.outputs.push_back(v);
  }
  return std::move(program_);
}

Program make_program(std::uint64_t seed) { return Maker(seed).make(); }
Program make_call(std::uint64_t seed) { return Maker(seed, Maker::Kind::single).make(); }
Program make_of_windows(std::uint64_t seed) { return Maker(seed, Maker::Kind::windows).make(); }
Program make_smooth(std::uint64_t seed) { return Maker(seed, Maker::Kind::smooth).make(); }

}  // namespace ein::attack
