#include "passes/attention_match.hpp"

#include <algorithm>
#include <map>

#include "size/ask.hpp"

namespace ein::attention {
namespace {

using Operand = LoopNest::Operand;
using Strides = std::vector<Size>;

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Whether these strides visit a contiguous array of `elements` once, in units of `unit`.
bool covers(const LoopNest& nest, const Strides& strides, Size unit, Size elements) {
  std::map<Size, Size> sizes;
  for (std::size_t a = 0; a < strides.size(); ++a) {
    if (!ask_equal(strides[a], 0) && !sizes.emplace(strides[a], nest.axes[a].size).second)
      return false;
  }
  Size expected = unit;
  for (const auto& [stride, size] : sizes) {
    if (!ask_equal(stride, expected)) return false;
    expected *= size;
  }
  return ask_equal(expected, elements);
}

bool is_plain(const LoopNest& nest) {
  return nest.compute == DType::f32 && nest.along == LoopNest::Along::nothing &&
         !nest.is_scatter() && is_float(nest.output.dtype) &&
         std::none_of(nest.inputs.begin(), nest.inputs.end(),
                      [](const Operand& input) { return input.is_indirect(); });
}
/// A sum of products of the first two inputs.
bool is_product(const LoopNest& nest) {
  return nest.sums_products() && nest.body.steps[0].which + nest.body.steps[1].which == 1 &&
         is_float(nest.inputs[0].dtype) && is_float(nest.inputs[1].dtype);
}

/// How an operand moves along the matrix, however its axes are merged: for a stride of the matrix
/// the size and the operand's stride, from the innermost.
struct Lie {
  Size matrix, size, stride;
  friend bool operator==(const Lie& a, const Lie& b) {
    return ask_equal(a.matrix, b.matrix) && ask_equal(a.size, b.size) &&
           ask_equal(a.stride, b.stride);
  }
};
std::vector<Lie> lie_of(const LoopNest& nest, const Operand& operand, const Strides& matrix) {
  std::vector<Lie> axes;
  for (std::size_t a = 0; a < matrix.size(); ++a) {
    if (!ask_equal(matrix[a], 0) && !ask_equal(nest.axes[a].size, 1))
      axes.push_back({matrix[a], nest.axes[a].size, operand.strides[a]});
  }
  std::sort(axes.begin(), axes.end(),
            [](const Lie& a, const Lie& b) { return a.matrix < b.matrix; });
  std::vector<Lie> merged;
  for (const Lie& axis : axes) {
    const bool goes_on = !merged.empty() &&
                         ask_equal(axis.matrix, merged.back().matrix * merged.back().size) &&
                         ask_equal(axis.stride, merged.back().stride * merged.back().size);
    if (goes_on)
      merged.back().size *= axis.size;
    else
      merged.push_back(axis);
  }
  return merged;
}

class Matcher {
 public:
  Matcher(const Program& program, const Uses& uses, std::span<const int> kept)
      : program_(program), uses_(uses), kept_(kept), taken_(program.nests.size(), 0) {}

  std::optional<Match> run(std::size_t first) {
    if (!begin(first)) return std::nullopt;
    for (std::size_t n = first + 1; n < program_.nests.size(); ++n) {
      const LoopNest& nest = program_.nests[n];
      const bool reads = std::any_of(nest.inputs.begin(), nest.inputs.end(),
                                     [&](const Operand& x) { return known_.contains(x.buffer); });
      if (reads && !take(n)) return std::nullopt;
    }
    const bool lacks_result = !found_.out && found_.weights >= 0 && !found_.v.empty();
    if ((!found_.out && !lacks_result) || !all_are_inside()) return std::nullopt;
    return std::move(found_);
  }

 private:
  struct Known {
    Value value;
    bool is_row = false;       // one for each query
    bool is_backward = false;  // of the gradients' nests
  };

  const LoopNest& nest(std::size_t n) const { return program_.nests[n]; }

  // --- the matrix ---

  bool is_matrix(int buffer) const { return ask_equal(elements_of(buffer), found_.elements); }
  Size elements_of(int buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)].elements;
  }

  /// Whether an operand is, at each point, of the row that the matrix is at.
  bool is_row_of(const LoopNest& nest, const Operand& operand, const Strides& matrix) const {
    if (!ask_equal(operand.offset, 0)) return false;
    for (std::size_t a = 0; a < matrix.size(); ++a) {
      if (ask_equal(matrix[a], 1)
              ? !ask_equal(nest.axes[a].size, found_.keys) || !ask_equal(operand.strides[a], 0)
              : !ask_equal(matrix[a] % found_.keys, 0) ||
                    !ask_equal(operand.strides[a], matrix[a] / found_.keys))
        return false;
    }
    return true;
  }

  /// The product of two operands that gives a matrix, of which the second moves along the keys.
  struct MatrixProduct {
    Part rows, columns;
  };
  std::optional<MatrixProduct> matrix_product(std::size_t n) const {
    const LoopNest& p = nest(n);
    const Strides& matrix = p.output.strides;
    if (!is_plain(p) || !is_product(p) || !ask_equal(p.output.offset, 0)) return std::nullopt;
    std::vector<std::size_t> depth;
    std::size_t key = p.axes.size();
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (p.axes[a].reduced) depth.push_back(a);
      if (ask_equal(matrix[a], 1)) key = a;
    }
    if (depth.size() != 1 || key == p.axes.size() ||
        !covers(p, matrix, 1, elements_of(p.output.buffer)))
      return std::nullopt;
    const bool turned = !ask_equal(p.inputs[0].strides[key], 0);
    const Operand &rows = p.inputs[turned], &columns = p.inputs[!turned];
    if (!ask_equal(rows.strides[key], 0) || ask_equal(columns.strides[key], 0)) return std::nullopt;
    return MatrixProduct{{n, &rows, matrix, depth[0]}, {n, &columns, matrix, depth[0]}};
  }

  bool begin(std::size_t n) {
    const std::optional<MatrixProduct> scores = matrix_product(n);
    if (!scores) return false;
    const LoopNest& p = nest(n);
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (ask_equal(p.output.strides[a], 1)) found_.keys = p.axes[a].size;
    }
    found_.elements = elements_of(p.output.buffer);
    if (found_.keys < 2 || ask_equal(found_.elements, found_.keys)) return false;
    found_.q = {scores->rows};
    found_.k = {scores->columns};
    const Value one = Value::of(first_power(product));
    return learn(n, finished(n, one, p.output.strides), p.output.strides, false);
  }

  // --- what is known ---

  /// Remembers what a nest writes.
  bool learn(std::size_t n, Value value, const Strides& matrix, bool is_row) {
    if (!value.is_known()) return false;
    const int buffer = nest(n).output.buffer;
    if (value.kind == Value::Kind::maximum) found_.scores = value.scores;
    const bool is_backward =
        value.is_backward() ||
        std::any_of(nest(n).inputs.begin(), nest(n).inputs.end(), [&](const Operand& x) {
          const auto found = known_.find(x.buffer);
          return found != known_.end() && found->second.is_backward;
        });
    note(n, matrix, is_backward);
    if (!is_row && is_probability(value)) found_.weights = buffer;
    if (is_row && value.kind == Value::Kind::polynomial) {
      int& row = value.is_backward() ? found_.delta : found_.total;
      if (row < 0 && nest(n).output.dtype == DType::f32) row = buffer;
    }
    return known_.emplace(buffer, Known{std::move(value), is_row, is_backward}).second;
  }
  void note(std::size_t n, const Strides& matrix, bool is_backward) {
    taken_[n] = 1;
    note_axes(nest(n), matrix);
    (is_backward ? found_.backward : found_.forward).push_back(n);
  }
  void note_axes(const LoopNest& nest, const Strides& matrix) {
    for (std::size_t a = 0; a < matrix.size(); ++a) {
      if (ask_equal(matrix[a], 0)) continue;
      found_.boundaries.insert(matrix[a]);
      found_.boundaries.insert(matrix[a] * nest.axes[a].size);
    }
  }

  /// Whether nothing else has to do with what is in between.
  bool all_are_inside() {
    for (const auto& [buffer, known] : known_) {
      const auto b = static_cast<std::size_t>(buffer);
      const auto is_taken = [&](std::size_t n) { return taken_[n] != 0; };
      if (b < program_.input_count || uses_.writers[b].size() != 1 ||
          std::find(kept_.begin(), kept_.end(), buffer) != kept_.end() ||
          !std::all_of(uses_.readers[b].begin(), uses_.readers[b].end(), is_taken))
        return false;
      found_.locals.push_back(buffer);
    }
    return true;
  }

  // --- nests ---

  bool take(std::size_t n) {
    if (taken_[n]) return true;
    if (!is_plain(nest(n))) return false;
    if (!is_product(nest(n))) return take_elementwise(n);
    return use_of_matrix(n) ? take_product(n) : take_cotangent(n);
  }

  /// The input of a product that is a matrix, if the other is none.
  const Operand* use_of_matrix(std::size_t n) const {
    const Operand &a = nest(n).inputs[0], &b = nest(n).inputs[1];
    const auto is_known_matrix = [&](const Operand& x) {
      const auto found = known_.find(x.buffer);
      return found != known_.end() && !found->second.is_row;
    };
    if (is_known_matrix(a) == is_known_matrix(b)) return nullptr;
    return is_known_matrix(a) ? &a : &b;
  }

  /// A matrix times rows of queries or of keys.
  bool take_product(std::size_t n) {
    const LoopNest& p = nest(n);
    const Operand& matrix = *use_of_matrix(n);
    const Operand& other = &matrix == &p.inputs[0] ? p.inputs[1] : p.inputs[0];
    if (!ask_equal(matrix.offset, 0) || !covers(p, matrix.strides, 1, found_.elements))
      return false;
    std::vector<std::size_t> depth;
    bool sums_keys = false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (ask_equal(matrix.strides[a], 0)) depth.push_back(a);
      if (ask_equal(matrix.strides[a], 1)) sums_keys = p.axes[a].reduced;
    }
    if (depth.size() != 1 || p.axes[depth[0]].reduced) return false;
    const Part result{n, &p.output, matrix.strides, depth[0]},
        factor{n, &other, matrix.strides, depth[0]};
    const auto once = [&](std::optional<Part>& part) {
      if (part) return false;
      part = result;
      return true;
    };
    const Value& value = known_.at(matrix.buffer).value;
    const std::optional<ScoreGradient> gradient = as_score_gradient(value);
    if (gradient && found_.gradient.value_or(*gradient) != *gradient) return false;
    bool is_new = false;
    if (is_probability(value)) {
      is_new = once(sums_keys ? found_.out : found_.dv);
      (sums_keys ? found_.v : found_.dout).push_back(factor);
    } else if (gradient) {
      found_.gradient = *gradient;
      is_new = once(sums_keys ? found_.dq : found_.dk);
      (sums_keys ? found_.k : found_.q).push_back(factor);
    }
    if (!is_new) return false;
    if (!p.epilogue.steps.empty()) found_.finished.push_back(n);
    note(n, matrix.strides, gradient || !sums_keys);
    return true;
  }

  /// Values element by element, or combined along the keys.
  bool take_elementwise(std::size_t n) {
    const LoopNest& p = nest(n);
    Strides matrix = p.output.strides;
    bool is_row = false;
    if (p.combine) {
      const auto input = std::find_if(p.inputs.begin(), p.inputs.end(),
                                      [&](const Operand& x) { return is_matrix(x.buffer); });
      if (input == p.inputs.end()) return false;
      matrix = input->strides;
      is_row = true;
    } else if (ask_equal(elements_of(p.output.buffer) * found_.keys, found_.elements)) {
      for (Size& stride : matrix) stride *= found_.keys;
      is_row = true;
    }
    if (!ask_equal(p.output.offset, 0) ||
        !covers(p, matrix, is_row && !p.combine ? found_.keys : Size(1), found_.elements))
      return false;
    if (is_row && !is_row_of(p, p.output, matrix)) return false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (p.axes[a].reduced != (p.combine.has_value() && ask_equal(matrix[a], 1))) return false;
    }
    std::vector<Value> inputs;
    for (const Operand& input : p.inputs) {
      inputs.push_back(input_value(n, input, matrix));
      if (!inputs.back().is_known()) return false;
    }
    Value value = evaluate(p.body, inputs, indices(p, matrix), found_.scores);
    if (p.combine) {
      value = *p.combine == Combine::sum   ? sum_of(value)
              : *p.combine == Combine::max ? maximum_of(value)
                                           : Value{};
      value = finished(n, value, matrix);
    }
    return learn(n, std::move(value), matrix, is_row);
  }

  // --- values ---

  /// The value of a product's element after its epilogue.
  Value finished(std::size_t n, const Value& combined, const Strides& matrix) {
    const LoopNest& nest = this->nest(n);
    if (nest.epilogue.steps.empty()) return combined;
    std::vector<Value> inputs(std::max<std::size_t>(1, nest.inputs.size()));
    for (const ScalarStep& step : nest.epilogue.steps) {
      const auto i = static_cast<std::size_t>(step.which);
      if (step.op == ScalarOp::input && i > 0) inputs[i] = input_value(n, nest.inputs[i], matrix);
    }
    inputs[0] = combined;
    return evaluate(nest.epilogue, inputs, indices(nest, matrix), found_.scores);
  }

  /// What an index is: the key's, or that of the query.
  std::vector<Value> indices(const LoopNest& nest, const Strides& matrix) {
    std::vector<Value> values(nest.axes.size());
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (ask_equal(matrix[a], 1) && ask_equal(nest.axes[a].size, found_.keys)) {
        values[a] = {.kind = Value::Kind::position, .key = 1};
      } else if (matrix[a] > 1 && ask_equal(matrix[a] % found_.keys, 0) && asks_index(nest, a)) {
        const std::pair axis{matrix[a], nest.axes[a].size};
        if (!ask_equal(found_.query.value_or(axis), axis)) continue;
        found_.query = axis;
        values[a] = {.kind = Value::Kind::position, .query = 1};
      }
    }
    return values;
  }

  Value input_value(std::size_t n, const Operand& input, const Strides& matrix) {
    const LoopNest& nest = this->nest(n);
    if (is_beside(input.buffer) || (!known_.contains(input.buffer) && !discover(input.buffer)))
      return value_beside(n, input, matrix);
    const Known& known = known_.at(input.buffer);
    const bool is_in_step = known.is_row
                                ? is_row_of(nest, input, matrix)
                                : ask_equal(input.offset, 0) && ask_equal(input.strides, matrix);
    return is_in_step ? known.value : Value{};
  }

  /// An operand beside the product, such as a bias or a mask.
  Value value_beside(std::size_t n, const Operand& input, const Strides& matrix) {
    for (std::size_t a = 0; a < matrix.size(); ++a) {
      if (ask_equal(matrix[a], 0) && !ask_equal(input.strides[a], 0)) return {};
    }
    for (std::size_t i = 0; i < found_.operands.size(); ++i) {
      const Part& part = found_.operands[i];
      if (part.operand->buffer == input.buffer && ask_equal(part.operand->offset, input.offset) &&
          part.operand->dtype == input.dtype &&
          lie_of(nest(part.nest), *part.operand, part.matrix) == lie_of(nest(n), input, matrix))
        return Value::operand(i);
    }
    found_.operands.push_back({n, &input, matrix});
    return Value::operand(found_.operands.size() - 1);
  }
  bool is_beside(int buffer) const {
    return std::any_of(found_.operands.begin(), found_.operands.end(),
                       [&](const Part& part) { return part.operand->buffer == buffer; });
  }

  /// A matrix from elsewhere: that of the gradient of the weights, as it is or converted.
  bool discover(int buffer) {
    const std::vector<std::size_t>& writers = uses_.writers[static_cast<std::size_t>(buffer)];
    if (writers.size() != 1 || !is_matrix(buffer) || found_.total < 0) return false;
    if (is_product(nest(writers[0]))) return take_cotangent(writers[0]);
    return !nest(writers[0]).combine && take(writers[0]);
  }

  /// The product that gives the gradient of the weights.
  bool take_cotangent(std::size_t n) {
    if (found_.total < 0) return false;
    const std::optional<MatrixProduct> product = matrix_product(n);
    if (!product || !is_matrix(nest(n).output.buffer)) return false;
    found_.dout.push_back(product->rows);
    found_.v.push_back(product->columns);
    const Value one = Value::of(first_power(cotangent));
    const Strides& matrix = nest(n).output.strides;
    return learn(n, finished(n, one, matrix), matrix, false);
  }

  const Program& program_;
  const Uses& uses_;
  std::span<const int> kept_;
  std::vector<char> taken_;
  std::map<int, Known> known_;  // by buffer
  Match found_;
};

}  // namespace

Uses::Uses(const Program& program)
    : readers(program.buffers.size()), writers(program.buffers.size()) {
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    for (const Operand& input : program.nests[n].inputs)
      readers[static_cast<std::size_t>(input.buffer)].push_back(n);
    writers[static_cast<std::size_t>(program.nests[n].output.buffer)].push_back(n);
  }
}

std::optional<Match> match(const Program& program, const Uses& uses, std::span<const int> kept,
                           std::size_t first) {
  return Matcher(program, uses, kept).run(first);
}

}  // namespace ein::attention
