// compile: a function of tensors traced into one graph, which then runs as one program.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ein/account.hpp>
#include <ein/axis.hpp>
#include <ein/cost.hpp>
#include <ein/detail/results.hpp>
#include <ein/graph.hpp>
#include <ein/memory_timeline.hpp>
#include <ein/step_bill.hpp>
#include <ein/tensor.hpp>

namespace ein {

/// What a compiled program holds, in bytes.
struct MemoryPlan {
  std::size_t arguments = 0;  ///< what each call is given
  std::size_t state =
      0;  ///< tensors from outside that it uses: parameters, optimizer state, constants
  std::size_t results = 0;    ///< what it returns
  std::size_t arena = 0;      ///< one block that all intermediate values share
  std::size_t workspace = 0;  ///< scratch memory of the kernel that wants most
  std::size_t unshared = 0;   ///< what the intermediate values would take if none shared memory
  /// The most that it holds at one time.
  std::size_t peak() const { return arguments + state + results + arena + workspace; }
};

/// The same of all lengths for which the latest program's plan holds, as formulas of the sizes that
/// types leave open. The arena's is that of lengths whose intermediate values have the same order
/// of sizes. What kernels want beside, the workspace, is known for numbers alone.
struct MemoryFormula {
  Size arguments = 0, state = 0, results = 0, arena = 0, unshared = 0;
};

/// The value of a formula of open sizes: `value_at(f.cost_formula().model, {"s"_a = 128})`. An
/// Error of kind `value` for a size that is not among them, of kind `overflow` beyond 63 bits.
std::int64_t value_at(Size formula, std::initializer_list<AxisSize> sizes);

namespace detail {

/// The programs of one function, of which some are kept: one for each signature, which is dtypes,
/// shapes and strides of arguments, NoGrad and Autocast around the call, and what the trace read of
/// modules and parameters; and for each of the lengths that types leave open.
class CompiledFunction {
 public:
  using Arguments = std::span<const Tensor>;
  using Function = TensorFunction;
  /// For each argument the text of its type, if it has one.
  using Types = std::span<const std::optional<std::string_view>>;
  class Program;

  CompiledFunction();
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&&) noexcept;
  CompiledFunction& operator=(CompiledFunction&&) noexcept;

  /// Traces function(context, ...) where the signature is new.
  std::vector<Tensor> run(Arguments arguments, Types types, Function function, const void* context);
  /// Makes the program that run() would use.
  void prepare(Arguments arguments, Types types, Function function, const void* context);
  void keep_at_most(std::size_t programs);

  // Of the program that ran last; an Error of kind `value` before there is one.
  Graph graph() const;
  Cost cost() const;
  MemoryPlan memory() const;
  CostOfLengths cost_formula() const;
  MemoryFormula memory_formula() const;
  MemoryTimeline timeline() const;
  StepBill bill() const;
  Account account() const;
  std::vector<Exchange> exchanges() const;
  std::string text() const;
  std::string dot() const;
  std::string svg() const;

 private:
  std::shared_ptr<const Program> latest() const;
  std::shared_ptr<Program> find(Arguments arguments, Types types, Function function,
                                const void* context);

  struct State;
  std::unique_ptr<State> state_;
};

[[noreturn]] void wrong_number_of_types(std::size_t types, std::size_t arguments);

/// The text of an argument's type; none of a Tensor.
template <class X>
constexpr std::optional<std::string_view> type_text() {
  if constexpr (requires { X::axes(); })
    return X::axes();
  else
    return std::nullopt;
}

}  // namespace detail

/// A compiled function. Its description is that of the program that ran last, and stays as it is
/// when others run; to ask before the first call is an Error of kind `value`. Threads may call one
/// function at the same time, and ask for its description meanwhile.
template <class F>
class Compiled {
 public:
  explicit Compiled(F f) : f_(std::move(f)) {}
  Compiled(F f, std::vector<std::string> types) : f_(std::move(f)), types_(std::move(types)) {}

  /// As f(arguments...), which returns nothing, a Tensor, a std::vector or a std::array of them.
  template <std::convertible_to<Tensor>... X>
  auto operator()(const X&... arguments) {
    using Result = detail::ResultOf<F, X...>;
    const std::array<Tensor, sizeof...(X)> given{arguments...};
    return detail::from_list<Result>(
        compiled_.run(given, types<X...>(), detail::tensor_function<F, X...>(), &f_));
  }

  /// Makes the program for arguments like these without running it, so that its description can be
  /// read.
  template <std::convertible_to<Tensor>... X>
  void prepare(const X&... arguments) {
    const std::array<Tensor, sizeof...(X)> given{arguments...};
    compiled_.prepare(given, types<X...>(), detail::tensor_function<F, X...>(), &f_);
  }

  /// The most programs that are kept, and the most plans; 16 if this is not called. The least
  /// recently used are dropped first. An Error of kind `value` for 0.
  void keep_at_most(std::size_t programs) { compiled_.keep_at_most(programs); }

  /// The graph after all passes, with the assignments that it makes.
  Graph graph() const { return compiled_.graph(); }
  /// The cost of one run, counted from the loop nests that run.
  Cost cost() const { return compiled_.cost(); }
  MemoryPlan memory() const { return compiled_.memory(); }
  /// What each process gives to collectives in one run, known before it; nothing without a mesh.
  std::vector<Exchange> exchanges() const { return compiled_.exchanges(); }
  /// Both as formulas of the sizes that types leave open, for all lengths that run by the same
  /// plan: text() begins with what these are.
  CostOfLengths cost_formula() const { return compiled_.cost_formula(); }
  MemoryFormula memory_formula() const { return compiled_.memory_formula(); }
  /// Which intermediate values the memory holds, from when to when: `timeline().svg()` draws it.
  MemoryTimeline timeline() const { return compiled_.timeline(); }
  /// The cost of one run and the memory it holds, by forward pass, backward pass, update and so on.
  StepBill bill() const { return compiled_.bill(); }
  /// bill() and memory() as a tree.
  Account account() const { return compiled_.account(); }
  /// The graph, the loop nests and, on the CPU, their schedules as text.
  std::string text() const { return compiled_.text(); }
  /// The graph in Graphviz's language: `dot -Tsvg` draws it.
  std::string dot() const { return compiled_.dot(); }
  /// The graph as a picture, which browsers show.
  std::string svg() const { return compiled_.svg(); }

 private:
  /// Those that compile() was given, or those of the arguments.
  template <class... X>
  std::array<std::optional<std::string_view>, sizeof...(X)> types() const {
    if (types_.empty()) return {detail::type_text<X>()...};
    if (types_.size() != sizeof...(X)) detail::wrong_number_of_types(types_.size(), sizeof...(X));
    std::array<std::optional<std::string_view>, sizeof...(X)> types;
    std::copy(types_.begin(), types_.end(), types.begin());
    return types;
  }

  F f_;
  std::vector<std::string> types_;
  detail::CompiledFunction compiled_;
};

/// Compiles a function of tensors. For each signature (dtypes, shapes, strides, NoGrad and Autocast
/// around the call, whether the modules that it asks train, and the parameters that it uses require
/// gradients) it is run once, on tensors without elements, and its calls become one graph: merged,
/// simplified, fused, with memory planned for all of it. Tensors from outside are its state: it
/// reads them anew in each run, and writes to them and to their views become assignments. What it
/// does besides happens only while it is traced. What no result and no state needs is not computed,
/// and an error of it, such as a position outside of an axis, is not found. Nor are all keys and
/// values that a causal mask hides read: NaN in them may not reach results as it does eagerly.
/// Gradients end with the trace; to leave some and use none is an Error, as to use one from
/// outside. Random numbers go on from run to run as they would without compile.
///
///     auto step = ein::compile([&](const ein::Tensor& x, const ein::Tensor& y) {
///       optimizer.zero_grad();
///       ein::Tensor loss = cross_entropy(model(x), y, "b s [v], b s");
///       loss.backward();
///       optimizer.step();
///       return loss;
///     });
template <class F>
Compiled<F> compile(F f) {
  return Compiled<F>(std::move(f));
}

/// The same for any length. A text for each argument says its axes as a type does (typed.hpp): an
/// axis with a number, `b=8`, has that size; one without may have any, and a name means one size in
/// all arguments. Arguments with a type, Float<"b=8 s c">, say so by themselves. The function is
/// traced once for all lengths that give the same answers to what it compares; one for which the
/// call makes no sense gets the Error that it would get without compile.
///
///     auto scores = ein::compile(f, {"b=8 s c", "b=8 s"});
template <class F>
Compiled<F> compile(F f, std::initializer_list<std::string_view> types) {
  return Compiled<F>(std::move(f), {types.begin(), types.end()});
}

/// The size of an axis of `x` by the name that it has in the types of the arguments of the compiled
/// function that is traced: a Size to compute with, in the sizes of patterns and of new tensors,
/// bounds of slices, and as a number beside tensors. An Error of kind `axis_argument` where no axis
/// of x has that name's size; `parse_shape(x, "b s c")["s"]` needs no types, and runs eagerly too.
Size size_of(const Tensor& x, std::string_view axis);

}  // namespace ein
