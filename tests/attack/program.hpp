// Program: a random composition of operations, as data: it can be run, shrunk, and written as C++
// or for peers.py.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

namespace ein::attack {

using Values = std::vector<double>;

struct Step;
class Maker;

/// A row of the table of operations.
struct Operation {
  std::string name;
  /// Chooses the step's arguments and what else it says; false where nothing fits.
  bool (*make)(Maker&, Step&);
  Tensor (*run)(const Step&, std::span<const Tensor>);
  /// Call in C++ and in the words of peers.py: $0, $1 are arguments, $p the pattern, $h what
  /// follows it, $w whole numbers, $w0 the first of them, $n0 the first number, $d the dtype. Empty
  /// where no peer has it.
  std::string cpp;
  std::string peer;
  int weight = 4;       // how often it is chosen for a program; 0: for single calls alone
  bool writes = false;  // to its first argument, a state, which is its value
};
const std::vector<Operation>& operations();
/// Whether NumPy has it, as a function or by indexing, and not just a formula for its values.
bool is_in_numpy(const Operation& op);

/// One value of a program: an input, or the result of a call on earlier values.
struct Step {
  const Operation* op = nullptr;  // null: an input
  std::vector<int> args{};
  std::string pattern{};
  std::vector<std::pair<std::string, std::int64_t>> sizes{};
  std::vector<std::int64_t> whole{};
  std::vector<Scalar> numbers{};
  DType dtype = DType::f32;
  std::optional<DType> as{};  // what ein::as says after the pattern
};

struct Input {
  Shape shape;
  DType dtype = DType::f32;
  bool is_state = false;       // a tensor from outside instead of an argument
  std::int64_t below = 0;      // if not 0: positions along an axis of this size
  std::vector<Values> runs{};  // its values in each run; of a state, in the first
};

struct Type {
  Shape shape;
  DType dtype = DType::f32;
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Input> inputs;  // in the order of their steps
  std::vector<Step> steps;
  std::vector<Type> types;   // of the steps' values
  std::vector<int> outputs;  // steps
  /// The last step, which has no value, is this Error. Of single calls alone.
  std::optional<ErrorKind> error{};
  bool differentiates() const;
  std::size_t run_count() const { return inputs.empty() ? 1 : inputs.front().runs.size(); }
};

/// The outputs of a run. `arguments` and `states` are the inputs, in their order.
std::vector<Tensor> run(const Program& program, std::span<const Tensor> arguments,
                        std::span<const Tensor> states);

std::string to_cpp(const Program& program);
/// The steps in the words of peers.py, one each; empty where no peer has it.
std::vector<std::string> to_peer(const Program& program);

Program make_program(std::uint64_t seed);
/// A single call that NumPy has, every operation and dtype as often as any other, small tensors;
/// maybe on dtypes or values that are an Error.
Program make_call(std::uint64_t seed);

/// A program of a few small tensors of f64, whose operations have slopes.
Program make_smooth(std::uint64_t seed);
/// Whether an operation may be in such a program.
bool is_smooth(const Operation& op);

/// The values of the steps; gradients flow through them to the arguments that require them.
std::vector<Tensor> values_of_steps(const Program& program, std::span<const Tensor> arguments,
                                    std::span<const Tensor> states);

/// A call whose pattern has braces, and gradients of its result.
Program make_of_windows(std::uint64_t seed);
bool is_of_windows(const Operation& op);

using Random = std::mt19937_64;

/// What a row of the table asks for while a program grows.
class Maker {
 public:
  enum class Kind { any, single, smooth, windows };
  explicit Maker(std::uint64_t seed, Kind kind = Kind::any);
  Program make();
  /// Whether the program is a single call.
  bool is_single() const { return kind_ == Kind::single; }

  std::int64_t below(std::int64_t n) {
    return n <= 1 ? 0 : std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class T, std::size_t N>
  T one_of(const T (&list)[N]) {
    return list[below(static_cast<std::int64_t>(N))];
  }

  const Type& type(int value) const { return program_.types[static_cast<std::size_t>(value)]; }
  const Shape& shape(int value) const { return type(value).shape; }
  DType dtype(int value) const { return type(value).dtype; }

  /// A value, rather a late one; -1 where none is as wanted.
  template <class Wanted>
  int value(Wanted wanted) {
    std::vector<int> found;
    for (int v = 0; v < static_cast<int>(program_.types.size()); ++v) {
      if (!is_stale_[static_cast<std::size_t>(v)] && wanted(v)) found.push_back(v);
    }
    if (found.empty()) return -1;
    const auto n = static_cast<std::int64_t>(found.size());
    return found[static_cast<std::size_t>(std::max(below(n), below(n)))];
  }
  int value() {
    return value([](int) { return true; });
  }
  /// One of floats; for a single call of any dtype, as others are an Error that is wanted.
  int floating() {
    return value([&](int v) { return is_single() || is_floating(dtype(v)); });
  }
  int input(const Shape& shape, DType dtype, std::int64_t positions_below = 0,
            bool is_state = false);
  /// A value of this type, or a new input.
  int like(const Shape& shape, DType dtype);
  /// A value that broadcasts with `shape`, or a new input.
  int beside(int other);

  bool is_state(int value) const { return input_kind(value) == 2; }
  bool is_argument(int value) const { return input_kind(value) == 1; }
  /// The state is written to: earlier views of it are not read any more, as compiled functions
  /// cannot.
  void assign(int state);

  std::int64_t size();
  DType any_dtype();
  /// `dtype`; for a single call now and then another.
  DType rather(DType dtype) { return is_single() && chance(25) ? any_dtype() : dtype; }
  Scalar number(DType beside);

  /// A side of a pattern for this shape: names for its dimensions, some of them split. Appends to
  /// `names` and `sizes`.
  struct Axis {
    std::string name;
    std::int64_t size;
  };
  std::string side(const Shape& shape, std::vector<Axis>& axes, Step& step, bool may_split,
                   bool may_repeat);
  std::string joined(std::vector<std::string> names, bool may_group);
  std::vector<std::string> shuffled(std::vector<std::string> names);
  std::vector<std::string> some(const std::vector<Axis>& axes, int percent);

 private:
  Values values(const Input& input);
  double extreme(DType dtype);
  const Operation& some_operation();
  /// Whether an operand is an earlier value; of a single call that would be its other operand.
  bool reuses(int percent) { return chance(is_single() ? 10 : percent); }
  int input_kind(int value) const;  // 0: none
  void add(Step step, Tensor value);

  Random random_;
  Program program_;
  std::vector<Tensor> values_;
  std::vector<bool> is_stale_;
  DType dtype_ = DType::f32;
  int flavour_ = 0;
  Kind kind_;
};

}  // namespace ein::attack
