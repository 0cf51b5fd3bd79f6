#include "check.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include <ein/compile.hpp>
#include <ein/parallel.hpp>
#include "machine/float_mode.hpp"
#include "oracle/interpret.hpp"
#include "passes/complex.hpp"
#include "runtime/trace.hpp"
#include "situations.hpp"
#include "support/tensor_values.hpp"

namespace ein::attack {
namespace {

/// The function as ein::compile and a trace call it.
struct Context {
  const Program* program;
  std::vector<Tensor> states;
};
std::vector<Tensor> call(const void* context, std::span<const Tensor> arguments) {
  const auto& c = *static_cast<const Context*>(context);
  return run(*c.program, arguments, c.states);
}

std::vector<Tensor> make_inputs(const Program& program, bool states, std::size_t r,
                                Random& random) {
  std::vector<Tensor> tensors;
  for (const Input& input : program.inputs) {
    if (input.is_state != states) continue;
    const bool plain = program.seed % (states ? 4 : 3) != 0;
    tensors.push_back(plain
                          ? test::make_tensor(input.runs[r], input.shape, input.dtype)
                          : test::scattered_tensor(input.shape, input.dtype,
                                                   std::vector<bool>(input.shape.rank()), random));
    test::set_values(tensors.back(), input.runs[r]);
  }
  return tensors;
}

std::vector<Values> values_of(std::span<const Tensor> tensors) {
  std::vector<Values> values;
  for (const Tensor& x : tensors) values.push_back(test::get_values(x));
  return values;
}

std::string show(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}
std::string show(const Interval& x) {
  if (!x.has_numbers()) return "nan";
  return (x.is_point() ? show(x.low()) : "in [" + show(x.low()) + ", " + show(x.high()) + "]") +
         (x.nan() ? " or nan" : "");
}

std::string compare(const std::string& what, const Values& got,
                    const std::vector<Interval>& expected) {
  if (got.size() != expected.size())
    return what + " has " + std::to_string(got.size()) + " elements";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (expected[i].contains(got[i])) continue;
    return what + ", element " + std::to_string(i) + " is " + show(got[i]) + ", ought to be " +
           show(expected[i]);
  }
  return "";
}
bool same_bits(double a, double b) {
  return (a == b && std::signbit(a) == std::signbit(b)) || (a != a && b != b);
}

bool same_classes(const Cost& a, const Cost& b) {
  return a.mul == b.mul && a.add == b.add && a.div == b.div && a.compare == b.compare &&
         a.transcendental == b.transcendental && a.model == b.model &&
         a.matmul_only == b.matmul_only;
}

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program), random_(program.seed) {}

  Verdict run() {
    try {
      run_all();
    } catch (const Uncertain&) {
      verdict_.uncertain = true;
      if (verdict_.expected.empty()) {
        for (const Tensor& x : verdict_.results)
          verdict_.expected.emplace_back(test::count_of_values(x.shape(), x.dtype()),
                                         Interval::unknown());
      }
    } catch (const std::exception& error) {
      wrong(std::string("an exception: ") + error.what());
    }
    set_num_threads(1);
    return verdict_;
  }

 private:
  void wrong(const std::string& text) {
    if (verdict_.wrong.empty()) verdict_.wrong = text;
  }

  void run_all() {
    set_num_threads(1);
    eager_.program = compiled_.program = traced_.program = &program_;
    if (program_.error) return check_error();
    if (program_.steps.back().op && program_.steps.back().op->weight == 0) return run_eagerly();
    for (Context* context : {&eager_, &compiled_, &traced_})
      context->states = make_inputs(program_, true, 0, random_);
    {
      const std::vector<Tensor> arguments = make_inputs(program_, false, 0, random_);
      if (!trace(arguments)) return;
    }
    detail::CompiledFunction compiled;
    for (std::size_t r = 0; r < program_.run_count() && verdict_.wrong.empty(); ++r) {
      const std::vector<Tensor> arguments = make_inputs(program_, false, r, random_);
      const std::string number = r == 0 ? "" : " of run " + std::to_string(r + 1);
      if (r == 1 && program_.seed % 4 == 0) set_num_threads(2);
      const std::vector<Values> before = values_of(eager_.states);
      manual_seed(program_.seed + r);
      std::vector<Tensor> results;
      try {
        results = call(&eager_, arguments);
      } catch (const Error& error) {
        if (r == 0 || error.kind() != ErrorKind::value) throw;
        break;  // a matrix of other elements may be singular
      }
      if (r == 0) verdict_.results = results;
      const std::vector<std::vector<Interval>> expected = interpret(arguments, before, r);
      check_results("the eager result", number, results, expected);
      manual_seed(program_.seed + r);
      check_results("the compiled result", number, compiled.run(arguments, {}, call, &compiled_),
                    expected);
      check_states(number, expected);
      if (r == 0) {
        verdict_.expected = expected;
        verdict_.expected.resize(program_.outputs.size());
        for (const auto& output : verdict_.expected) {
          verdict_.elements += static_cast<std::int64_t>(output.size());
          verdict_.points += std::count_if(output.begin(), output.end(), [](const Interval& x) {
            return x.is_point() || !x.has_numbers();
          });
        }
        if (eager_.states.empty()) check_repetition(compiled, arguments);
      }
      // Where a sum's order made a difference, the next run begins with the same state all the
      // same.
      for (std::size_t s = 0; s < eager_.states.size(); ++s)
        test::set_values(compiled_.states[s], test::get_values(eager_.states[s]));
    }
    if (verdict_.wrong.empty()) check_lengths();
    const Cost nests = compiled.cost();
    const Cost graph = cost(compiled.graph());
    if (check_classes && !same_classes(graph, nests)) {
      wrong("the nests count model " + nests.model.to_string() + ", matmul_only " +
            nests.matmul_only.to_string() + "; the graph counts model " + graph.model.to_string() +
            ", matmul_only " + graph.matmul_only.to_string());
    }
  }

  /// The call and the compiled call are the Error that the program says.
  void check_error() {
    const std::vector<Tensor> arguments = make_inputs(program_, false, 0, random_);
    detail::CompiledFunction compiled;
    const auto expect = [&](const std::string& what, auto&& run) {
      try {
        run();
        wrong(what + " is no Error");
      } catch (const Error& error) {
        if (error.kind() != program_.error) wrong(what + " is another Error: " + error.what());
      }
    };
    expect("the eager call", [&] { call(&eager_, arguments); });
    expect("the compiled call", [&] { compiled.run(arguments, {}, call, &compiled_); });
  }

  /// A call that no graph has: its result is compared with NumPy's alone.
  void run_eagerly() {
    verdict_.results = call(&eager_, make_inputs(program_, false, 0, random_));
    for (const Tensor& x : verdict_.results) {
      const Values values = test::get_values(x);
      verdict_.expected.emplace_back(values.begin(), values.end());
    }
  }

  bool trace(std::span<const Tensor> arguments) {
    engine::Trace trace;
    std::vector<Tensor> traced;
    for (const Tensor& x : arguments) traced.push_back(trace.argument(x, x.shape(), x.strides()));
    try {
      graph_ = trace.finish(call(&traced_, traced));
    } catch (const Error& error) {
      // A view of what was assigned to has no value in a graph.
      if (std::string_view(error.what()).find("assigned to") == std::string_view::npos) throw;
      verdict_.refused = true;
      return false;
    }
    captured_ = trace.captured();
    for (const Assignment& a : graph_.assignments) graph_.outputs.push_back(a.value);
    if (has_complex(graph_)) graph_ = without_complex(graph_, "the call");
    verify(graph_);
    return true;
  }

  std::vector<std::vector<Interval>> interpret(std::span<const Tensor> arguments,
                                               const std::vector<Values>& states, std::size_t r) {
    for (std::size_t s = 0; s < states.size(); ++s) test::set_values(traced_.states[s], states[s]);
    std::vector<std::vector<Interval>> inputs;
    const auto add = [&](const Tensor& x) {
      inputs.emplace_back();
      for (double value : test::get_values(x)) inputs.back().push_back(Interval(value));
    };
    for (const Tensor& x : arguments) add(x);
    for (const Tensor& x : captured_) add(x);
    // Inputs come in the order in which the trace met them.
    std::vector<std::vector<Interval>> ordered;
    std::size_t captured = arguments.size();
    for (std::size_t i = 0, n = 0; i < graph_.ops.size(); ++i) {
      if (graph_.ops[i].kind != OpKind::input) continue;
      ordered.push_back(n < arguments.size() ? inputs[n] : inputs[captured++]);
      ++n;
    }
    Interval::begin(graph_);
    try {
      return Interpreter<Interval>::run(graph_, ordered, {program_.seed + r, 0});
    } catch (const Error& error) {
      // A matrix that is singular here and not by the rounding of the engine.
      if (error.kind() != ErrorKind::value) throw;
      std::vector<std::vector<Interval>> results;
      for (const ValueId output : graph_.outputs) {
        const auto elements = static_cast<std::size_t>(numel(graph_.op(output).shape));
        results.emplace_back(elements, Interval::unknown());
      }
      return results;
    }
  }

  void check_results(const std::string& what, const std::string& run,
                     std::span<const Tensor> results,
                     const std::vector<std::vector<Interval>>& expected) {
    for (std::size_t o = 0; o < program_.outputs.size(); ++o) {
      const Type& type = program_.types[static_cast<std::size_t>(program_.outputs[o])];
      const std::string name = what + " v" + std::to_string(program_.outputs[o]) + run;
      if (!(results[o].shape() == type.shape))
        return wrong(name + " has shape " + results[o].shape().to_string());
      if (results[o].dtype() != type.dtype)
        return wrong(name + " has dtype " + std::string(ein::name(results[o].dtype())));
      if (std::string text = compare(name, test::get_values(results[o]), expected[o]);
          !text.empty())
        return wrong(text);
    }
  }

  /// Which output of the traced graph is assigned to state s; none where nothing is.
  std::optional<std::size_t> output_assigned_to(std::size_t s) const {
    std::optional<std::size_t> assigned;
    for (std::size_t a = 0; a < graph_.assignments.size(); ++a) {
      std::size_t input = 0;
      for (ValueId id = 0; id < graph_.assignments[a].target; ++id)
        input += graph_.op(id).kind == OpKind::input;
      const std::size_t arguments = program_.inputs.size() - eager_.states.size();
      if (captured_[input - arguments].same_storage(traced_.states[s]))
        assigned = program_.outputs.size() + a;
    }
    return assigned;
  }

  void check_states(const std::string& run, const std::vector<std::vector<Interval>>& expected) {
    for (std::size_t s = 0; s < eager_.states.size(); ++s) {
      const std::optional<std::size_t> assigned = output_assigned_to(s);
      const std::string name = "state " + std::to_string(s) + " after the ";
      if (assigned) {
        wrong(compare(name + "eager run" + run, test::get_values(eager_.states[s]),
                      expected[*assigned]));
        wrong(compare(name + "compiled run" + run, test::get_values(compiled_.states[s]),
                      expected[*assigned]));
      } else {
        const Values a = test::get_values(eager_.states[s]),
                     b = test::get_values(compiled_.states[s]);
        if (!std::equal(a.begin(), a.end(), b.begin(), same_bits))
          wrong(name + "compiled run" + run + " is another than after the eager one");
      }
    }
  }

  void check_repetition(detail::CompiledFunction& compiled, std::span<const Tensor> arguments) {
    manual_seed(program_.seed);
    const std::vector<Tensor> first = compiled.run(arguments, {}, call, &compiled_);
    manual_seed(program_.seed);
    const std::vector<Tensor> second = compiled.run(arguments, {}, call, &compiled_);
    for (std::size_t o = 0; o < first.size(); ++o) {
      const Values a = test::get_values(first[o]), b = test::get_values(second[o]);
      if (!std::equal(a.begin(), a.end(), b.begin(), same_bits))
        wrong("the compiled result v" + std::to_string(program_.outputs[o]) +
              " differs from run to run");
    }
  }

  using Types = std::vector<std::optional<std::string_view>>;

  /// Whether a call takes more than some 64 MiB or 10^8 operations: where several axes have other
  /// lengths, their product soon does.
  bool is_large(std::span<const Tensor> arguments) {
    try {
      if (!trace(arguments)) return false;
    } catch (const Error&) {
      return false;  // at these lengths it is a mistake, which costs nothing
    }
    const Cost cost = ein::cost(graph_);
    return cost.model > 100'000'000 || cost.bytes_written > (64 << 20);
  }

  /// Compiled for any length, the program gives the bits that it gives when it is compiled for
  /// these lengths alone, or others that are right where sums are added up in another order; or it
  /// refuses the same: for the lengths of its inputs, and for others.
  void check_lengths() {
    const bool has_states = !compiled_.states.empty();
    std::vector<std::string> texts;
    std::set<std::int64_t> sizes;
    for (const Input& input : program_.inputs) {
      if (input.is_state) continue;
      std::string& text = texts.emplace_back();
      for (const std::int64_t size : input.shape) {
        text += (text.empty() ? "n" : " n") + std::to_string(size);
        sizes.insert(size);
      }
    }
    detail::CompiledFunction for_any;
    for (int attempt = 0; attempt < 4 && verdict_.wrong.empty(); ++attempt) {
      std::map<std::int64_t, std::int64_t> lengths;
      for (const std::int64_t size : sizes) {
        std::int64_t& length = lengths[size];
        length = size;
        if (attempt > 0 && random_() % 2 == 0) length = static_cast<std::int64_t>(random_() % 40);
      }
      std::vector<Tensor> arguments;
      for (const Input& input : program_.inputs) {
        if (input.is_state) continue;
        Shape shape = input.shape;
        for (Size& size : shape) size = lengths[size];
        if (test::count_of_values(shape, input.dtype) > 1 << 20) break;  // as is_large()
        Values values(test::count_of_values(shape, input.dtype));
        for (std::size_t i = 0; i < values.size(); ++i) {
          const Values& known = input.runs[0];
          values[i] = known.empty() ? 0 : known[i % known.size()];
        }
        arguments.push_back(random_() % 4 == 0
                                ? test::scattered_tensor(shape, input.dtype,
                                                         std::vector<bool>(shape.rank()), random_)
                                : test::make_tensor(values, shape, input.dtype));
        test::set_values(arguments.back(), values);
      }
      if (arguments.size() < texts.size() || is_large(arguments)) continue;
      const std::vector<Values> before = values_of(compiled_.states);
      const auto results_of = [&](detail::CompiledFunction& f, const Types& types) {
        for (std::size_t s = 0; s < before.size(); ++s)
          test::set_values(compiled_.states[s], before[s]);
        manual_seed(program_.seed);
        std::vector<Tensor> results;
        std::string error;
        try {
          results = f.run(arguments, types, call, &compiled_);
        } catch (const Error& e) {
          error = std::to_string(static_cast<int>(e.kind()));
        }
        for (const Tensor& state : compiled_.states) results.push_back(state.clone());
        return std::pair(std::move(results), error);
      };
      detail::CompiledFunction for_these;
      const auto [want, error] = results_of(for_these, {});
      const auto [got, other_error] = results_of(for_any, Types(texts.begin(), texts.end()));
      std::string where = " at";
      for (const auto& [size, length] : lengths)
        where += " n" + std::to_string(size) + " = " + std::to_string(length);
      if (error != other_error) {
        return wrong("for any length: error '" + other_error + "', for these '" + error + "'" +
                     where);
      }
      for (std::size_t o = 0; o < want.size(); ++o) {
        const Values a = test::get_values(want[o]), b = test::get_values(got[o]);
        if (want[o].shape() == got[o].shape() &&
            std::equal(a.begin(), a.end(), b.begin(), same_bits))
          continue;
        const std::string name = "for any length" + where + ": result " + std::to_string(o);
        if (want[o].shape() != got[o].shape())
          return wrong(name + " has shape " + got[o].shape().to_string());
        if (!trace(arguments)) return;
        const std::vector<std::vector<Interval>> expected = interpret(arguments, before, 0);
        const std::size_t outputs = program_.outputs.size();
        const auto output = o < outputs ? std::optional(o) : output_assigned_to(o - outputs);
        const std::string text = output ? compare(name, b, expected[*output]) : name + " differs";
        if (!text.empty() && !(adds_one_by_one() && are_close(want[o].dtype(), a, b)))
          return wrong(text);
        ++verdict_.reordered;
      }
    }
    for (std::size_t s = 0; has_states && s < compiled_.states.size(); ++s)
      test::set_values(compiled_.states[s], test::get_values(eager_.states[s]));
  }

  /// Whether a sum of few values is a formula of them where lengths are numbers: the bounds are
  /// those of its order, and it begins with 0.
  bool adds_one_by_one() const {
    return std::any_of(program_.steps.begin(), program_.steps.end(), [](const Step& step) {
      return step.op && step.op->name.starts_with("map ") && step.op->name.ends_with(" sum");
    });
  }
  static bool are_close(DType dtype, const Values& a, const Values& b) {
    const DType part = real_dtype(dtype);
    const double share = part == DType::f64 ? 1e-12 : part == DType::f32 ? 1e-5 : 0.02;
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
      return same_bits(x, y) || std::abs(x - y) <= share * std::max(std::abs(x), std::abs(y));
    });
  }

  /// The graph's classes of work and those of its nests are to be the same.
  static constexpr bool check_classes = true;

  const Program& program_;
  Random random_;
  Verdict verdict_;
  Context eager_, compiled_, traced_;
  Graph graph_;
  std::vector<Tensor> captured_;
};

// --- shrinking ---

/// The program without the steps that no output needs.
Program without_unread(Program program) {
  std::vector<char> is_needed(program.steps.size(), 0);
  for (int output : program.outputs) is_needed[static_cast<std::size_t>(output)] = 1;
  for (std::size_t v = program.steps.size(); v-- > 0;) {
    const Step& step = program.steps[v];
    if (step.op && step.op->writes) is_needed[v] = 1;
    if (!is_needed[v]) continue;
    for (int arg : step.args) is_needed[static_cast<std::size_t>(arg)] = 1;
  }
  Program less{program.seed, {}, {}, {}, {}};
  std::vector<int> place(program.steps.size(), -1);
  std::size_t input = 0;
  for (std::size_t v = 0; v < program.steps.size(); ++v) {
    const std::size_t own_input = program.steps[v].op ? 0 : input++;
    if (!is_needed[v]) continue;
    Step step = program.steps[v];
    for (int& arg : step.args) arg = place[static_cast<std::size_t>(arg)];
    if (!step.op) less.inputs.push_back(program.inputs[own_input]);
    place[v] = static_cast<int>(less.steps.size());
    less.steps.push_back(std::move(step));
    less.types.push_back(program.types[v]);
  }
  for (int output : program.outputs)
    less.outputs.push_back(place[static_cast<std::size_t>(output)]);
  return less;
}

/// The program with the value of a step given instead of computed.
std::optional<Program> with_input_for(const Program& program, std::size_t v) {
  if (!program.steps[v].op) return std::nullopt;
  for (const Step& step : program.steps) {
    if (step.op && step.op->writes) return std::nullopt;
  }
  Program given = program;
  Program asked = program;
  asked.outputs = {static_cast<int>(v)};
  Input input{program.types[v].shape, program.types[v].dtype, false, 0, {}};
  Random random(program.seed);
  const std::vector<Tensor> states = make_inputs(program, true, 0, random);
  for (std::size_t r = 0; r < program.run_count(); ++r) {
    manual_seed(program.seed + r);
    const std::vector<Tensor> arguments = make_inputs(program, false, r, random);
    try {
      input.runs.push_back(test::get_values(run(asked, arguments, states)[0]));
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  std::size_t before = 0;
  for (std::size_t u = 0; u < v; ++u) before += program.steps[u].op == nullptr;
  given.inputs.insert(given.inputs.begin() + static_cast<std::ptrdiff_t>(before), std::move(input));
  given.steps[v] = Step{};
  return given;
}

/// What is wrong without the numbers, so that a shrunk program has the same fault.
std::string kind_of(const std::string& wrong) {
  return wrong.substr(0, wrong.find_first_of("0123456789")).substr(0, 40);
}

}  // namespace

Verdict check(const Program& program) { return Checker(program).run(); }

Program shrunk(Program program) {
  const std::string kind = kind_of(check(program).wrong);
  const auto is_faulty = [&](const Program& p) {
    const std::string wrong = check(p).wrong;
    return !wrong.empty() && kind_of(wrong) == kind;
  };
  const auto try_it = [&](Program candidate) {
    if (!is_faulty(candidate)) return false;
    program = std::move(candidate);
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t o = program.outputs.size(); o-- > 0 && program.outputs.size() > 1;) {
      Program candidate = program;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<std::ptrdiff_t>(o));
      progress |= try_it(without_unread(candidate));
    }
    // A step's value as an output, with all that comes after it left out.
    for (std::size_t v = 0; v + 1 < program.steps.size(); ++v) {
      if (!program.steps[v].op) continue;
      Program candidate = program;
      candidate.outputs = {static_cast<int>(v)};
      candidate.steps.resize(v + 1);
      candidate.types.resize(v + 1);
      candidate = without_unread(candidate);
      if (candidate.steps.size() < program.steps.size() && try_it(candidate)) {
        progress = true;
        break;
      }
    }
    for (std::size_t v = program.steps.size(); v-- > 0;) {
      if (v >= program.steps.size()) continue;
      const std::optional<Program> candidate = with_input_for(program, v);
      if (!candidate || std::find(program.outputs.begin(), program.outputs.end(),
                                  static_cast<int>(v)) != program.outputs.end())
        continue;
      const Program less = without_unread(*candidate);
      const auto calls = [](const Program& p) {
        return std::count_if(p.steps.begin(), p.steps.end(), [](const Step& s) { return s.op; });
      };
      if (calls(less) < calls(program)) progress |= try_it(less);
    }
  }
  // Simpler values, an input at a time.
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    for (double value : {1.0, 2.0, 0.0}) {
      if (program.inputs[i].below > 0 && value > 0) continue;
      Program candidate = program;
      for (Values& run : candidate.inputs[i].runs)
        std::fill(run.begin(), run.end(), test::stored(value, candidate.inputs[i].dtype));
      if (try_it(candidate)) break;
    }
  }
  return program;
}

std::string outcome_of(const Program& program) {
  Random random(program.seed);
  std::string outcome;
  const auto add = [&](const char* what, const std::vector<Tensor>& tensors) {
    const InFloatMode usual{FloatMode()};
    for (const Values& values : values_of(tensors)) {
      outcome += what;
      for (const double x : values) outcome += x != x ? " nan" : " " + show(x);
      outcome += '\n';
    }
  };
  Context context{&program, {}};
  std::vector<Tensor> arguments;
  {
    const InFloatMode usual{FloatMode()};
    context.states = make_inputs(program, true, 0, random);
    arguments = make_inputs(program, false, 0, random);
  }
  detail::CompiledFunction compiled;
  for (const bool is_compiled : {false, true}) {
    manual_seed(program.seed);
    try {
      add(is_compiled ? "compiled" : "eager",
          is_compiled ? compiled.run(arguments, {}, call, &context) : call(&context, arguments));
    } catch (const Error& error) {
      outcome += std::string("an Error: ") + error.what() + '\n';
    }
    add("states", context.states);
  }
  return outcome;
}

}  // namespace ein::attack
