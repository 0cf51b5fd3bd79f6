#include "passes/find_attention.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "passes/attention_value.hpp"
#include "passes/nest_order.hpp"

namespace ein {
namespace {

using attention::Value;
using Operand = LoopNest::Operand;
using Strides = std::vector<std::int64_t>;

/// Sizes of heads that kernels are made for.
constexpr std::int64_t least_depth = 16, most_depth = 256, depth_step = 8;

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Who uses which buffer.
struct Uses {
  std::vector<std::vector<std::size_t>> readers, writers;

  explicit Uses(const Program& program)
      : readers(program.buffers.size()), writers(program.buffers.size()) {
    for (std::size_t n = 0; n < program.nests.size(); ++n) {
      for (const Operand& input : program.nests[n].inputs)
        readers[static_cast<std::size_t>(input.buffer)].push_back(n);
      writers[static_cast<std::size_t>(program.nests[n].output.buffer)].push_back(n);
    }
  }
};

/// A part that an operand has in attention, as one nest has it.
struct Part {
  std::size_t nest = 0;
  const Operand* operand = nullptr;
  Strides matrix;         // of the matrix of scores, along the nest's axes; 0 along the depth
  std::size_t depth = 0;  // that axis
};

struct Found {
  std::vector<std::size_t> forward, backward;  // nests
  std::vector<std::size_t> finished;           // those that do more to a result behind it
  std::vector<int> locals;
  Program::Attention attention;
};

/// Attention that begins with one product. The matrix of scores and all that is shaped like it are
/// contiguous, with the keys innermost; a value for each query lies like the matrix's rows. So an
/// axis of a nest is known by its stride in the matrix, whatever it was merged with.
class Match {
 public:
  Match(const Program& program, const Uses& uses, std::span<const int> kept)
      : program_(program), uses_(uses), kept_(kept), taken_(program.nests.size(), 0) {}

  std::optional<Found> run(std::size_t first) {
    if (!begin(first)) return std::nullopt;
    for (std::size_t n = first + 1; n < program_.nests.size(); ++n) {
      const LoopNest& nest = program_.nests[n];
      const bool reads = std::any_of(nest.inputs.begin(), nest.inputs.end(),
                                     [&](const Operand& x) { return known_.contains(x.buffer); });
      if (reads && !take(n)) return std::nullopt;
    }
    if (!out_ || !all_are_inside() || !find_axes()) return std::nullopt;
    return finish();
  }

 private:
  struct Known {
    Value value;
    bool is_row = false;  // one for each query
  };

  const LoopNest& nest(std::size_t n) const { return program_.nests[n]; }

  // --- shapes ---

  /// Whether these strides visit a contiguous array of `elements` once, in units of `unit`.
  static bool covers(const LoopNest& nest, const Strides& strides, std::int64_t unit,
                     std::int64_t elements) {
    std::map<std::int64_t, std::int64_t> sizes;
    for (std::size_t a = 0; a < strides.size(); ++a) {
      if (strides[a] != 0 && !sizes.emplace(strides[a], nest.axes[a].size).second) return false;
    }
    std::int64_t expected = unit;
    for (const auto& [stride, size] : sizes) {
      if (stride != expected) return false;
      expected *= size;
    }
    return expected == elements;
  }

  bool is_matrix(int buffer) const { return elements_of(buffer) == elements_; }
  std::int64_t elements_of(int buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)].elements;
  }

  /// Whether an operand is, at each point, of the row that the matrix is at.
  bool is_row_of(const LoopNest& nest, const Operand& operand, const Strides& matrix) const {
    if (operand.offset != 0) return false;
    for (std::size_t a = 0; a < matrix.size(); ++a) {
      if (matrix[a] == 1 ? nest.axes[a].size != keys_ || operand.strides[a] != 0
                         : matrix[a] % keys_ != 0 || operand.strides[a] != matrix[a] / keys_)
        return false;
    }
    return true;
  }

  static bool is_plain(const LoopNest& nest) {
    return nest.compute == DType::f32 && nest.along == LoopNest::Along::nothing &&
           !nest.is_scatter() && is_float(nest.output.dtype) &&
           std::all_of(nest.inputs.begin(), nest.inputs.end(), [](const Operand& input) {
             return !input.is_indirect() && is_float(input.dtype);
           });
  }
  /// A sum of products of the first two inputs.
  static bool is_product(const LoopNest& nest) {
    if (nest.combine != Combine::sum || nest.inputs.size() < 2 || nest.body.steps.size() != 3)
      return false;
    const std::vector<ScalarStep>& s = nest.body.steps;
    return s[0].op == ScalarOp::input && s[1].op == ScalarOp::input && s[2].op == ScalarOp::mul &&
           s[0].which + s[1].which == 1;
  }

  void note_axes(const LoopNest& nest, const Strides& matrix) {
    for (std::size_t a = 0; a < matrix.size(); ++a) {
      if (matrix[a] == 0) continue;
      boundaries_.insert(matrix[a]);
      boundaries_.insert(matrix[a] * nest.axes[a].size);
    }
  }

  // --- nests ---

  /// The product of two operands that gives a matrix, of which the second moves along the keys.
  struct MatrixProduct {
    Part rows, columns;
  };
  std::optional<MatrixProduct> matrix_product(std::size_t n) const {
    const LoopNest& p = nest(n);
    const Strides& matrix = p.output.strides;
    if (!is_plain(p) || !is_product(p) || p.output.offset != 0) return std::nullopt;
    std::vector<std::size_t> depth;
    std::size_t key = p.axes.size();
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (p.axes[a].reduced) depth.push_back(a);
      if (matrix[a] == 1) key = a;
    }
    if (depth.size() != 1 || key == p.axes.size() ||
        !covers(p, matrix, 1, elements_of(p.output.buffer)))
      return std::nullopt;
    const bool turned = p.inputs[0].strides[key] != 0;
    const Operand &rows = p.inputs[turned], &columns = p.inputs[!turned];
    if (rows.strides[key] != 0 || columns.strides[key] == 0) return std::nullopt;
    return MatrixProduct{{n, &rows, matrix, depth[0]}, {n, &columns, matrix, depth[0]}};
  }

  /// The value of a product's element after its epilogue.
  Value finished(const LoopNest& nest, const Value& combined, const Strides& matrix) {
    if (nest.epilogue.steps.empty()) return combined;
    std::vector<Value> inputs(std::max<std::size_t>(1, nest.inputs.size()));
    for (const ScalarStep& step : nest.epilogue.steps) {
      const auto i = static_cast<std::size_t>(step.which);
      if (step.op == ScalarOp::input && i > 0)
        inputs[i] = input_value(nest, nest.inputs[i], matrix);
    }
    inputs[0] = combined;
    return attention::evaluate(nest.epilogue, inputs, indices(nest, matrix), scores_);
  }

  bool begin(std::size_t n) {
    const std::optional<MatrixProduct> scores = matrix_product(n);
    if (!scores) return false;
    const LoopNest& p = nest(n);
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (p.output.strides[a] == 1) keys_ = p.axes[a].size;
    }
    elements_ = elements_of(p.output.buffer);
    if (keys_ < 2 || elements_ == keys_) return false;
    q_ = {scores->rows};
    k_ = {scores->columns};
    attention::Powers one{};
    one[attention::product] = 1;
    return learn(n, finished(p, Value::of(one), p.output.strides), p.output.strides, false);
  }

  /// Remembers what a nest writes.
  bool learn(std::size_t n, Value value, const Strides& matrix, bool is_row) {
    if (!value.is_known()) return false;
    const int buffer = nest(n).output.buffer;
    if (value.kind == Value::Kind::maximum) scores_ = value.scores;
    note(n, matrix, value.is_backward());
    if (is_row && value.kind == Value::Kind::polynomial) {
      int& row = value.is_backward() ? delta_ : total_;
      if (row < 0 && nest(n).output.dtype == DType::f32) row = buffer;
    }
    return known_.emplace(buffer, Known{std::move(value), is_row}).second;
  }
  void note(std::size_t n, const Strides& matrix, bool is_backward) {
    taken_[n] = 1;
    note_axes(nest(n), matrix);
    (is_backward ? found_.backward : found_.forward).push_back(n);
  }

  bool take(std::size_t n) {
    if (taken_[n]) return true;
    if (!is_plain(nest(n))) return false;
    return is_product(nest(n)) && use_of_matrix(n) ? take_product(n) : take_elementwise(n);
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
    if (matrix.offset != 0 || !covers(p, matrix.strides, 1, elements_)) return false;
    std::vector<std::size_t> depth;
    bool sums_keys = false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (matrix.strides[a] == 0) depth.push_back(a);
      if (matrix.strides[a] == 1) sums_keys = p.axes[a].reduced;
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
    const std::optional<double> gradient = attention::as_score_gradient(value);
    if (gradient && gradient_scale_.value_or(*gradient) != *gradient) return false;
    bool is_new = false;
    if (attention::is_probability(value)) {
      is_new = once(sums_keys ? out_ : dv_);
      (sums_keys ? v_ : dout_).push_back(factor);
    } else if (gradient) {
      gradient_scale_ = *gradient;
      is_new = once(sums_keys ? dq_ : dk_);
      (sums_keys ? k_ : q_).push_back(factor);
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
    } else if (elements_of(p.output.buffer) * keys_ == elements_) {
      for (std::int64_t& stride : matrix) stride *= keys_;
      is_row = true;
    }
    if (p.output.offset != 0 || !covers(p, matrix, is_row && !p.combine ? keys_ : 1, elements_))
      return false;
    if (is_row && !is_row_of(p, p.output, matrix)) return false;
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      if (p.axes[a].reduced != (p.combine.has_value() && matrix[a] == 1)) return false;
    }
    std::vector<Value> inputs;
    for (const Operand& input : p.inputs) {
      inputs.push_back(input_value(p, input, matrix));
      if (!inputs.back().is_known()) return false;
    }
    Value value = attention::evaluate(p.body, inputs, indices(p, matrix), scores_);
    if (p.combine) {
      value = *p.combine == Combine::sum   ? attention::sum_of(value)
              : *p.combine == Combine::max ? attention::maximum_of(value)
                                           : Value{};
      value = finished(p, value, matrix);
    }
    return learn(n, std::move(value), matrix, is_row);
  }

  /// What an index is: the key's, or that of the query.
  std::vector<Value> indices(const LoopNest& nest, const Strides& matrix) {
    std::vector<Value> values(nest.axes.size());
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      if (matrix[a] == 1 && nest.axes[a].size == keys_) {
        values[a] = {.kind = Value::Kind::position, .key = 1};
      } else if (matrix[a] > 1 && matrix[a] % keys_ == 0 && uses_index(nest, a)) {
        const std::pair axis{matrix[a], nest.axes[a].size};
        if (query_.value_or(axis) != axis) continue;
        query_ = axis;
        values[a] = {.kind = Value::Kind::position, .query = 1};
      }
    }
    return values;
  }
  static bool uses_index(const LoopNest& nest, std::size_t axis) {
    const auto uses = [&](const ScalarExpr& expr) {
      return std::any_of(expr.steps.begin(), expr.steps.end(), [&](const ScalarStep& step) {
        return step.op == ScalarOp::index && static_cast<std::size_t>(step.which) == axis;
      });
    };
    return uses(nest.body) || uses(nest.epilogue);
  }

  Value input_value(const LoopNest& nest, const Operand& input, const Strides& matrix) {
    if (!known_.contains(input.buffer) && !discover(input.buffer)) return {};
    const Known& known = known_.at(input.buffer);
    const bool is_in_step = known.is_row ? is_row_of(nest, input, matrix)
                                         : input.offset == 0 && input.strides == matrix;
    return is_in_step ? known.value : Value{};
  }

  /// A matrix from elsewhere: that of the gradient of the weights, as it is or converted.
  bool discover(int buffer) {
    const std::vector<std::size_t>& writers = uses_.writers[static_cast<std::size_t>(buffer)];
    if (writers.size() != 1 || !is_matrix(buffer) || total_ < 0) return false;
    if (!is_product(nest(writers[0]))) return !nest(writers[0]).combine && take(writers[0]);
    const std::optional<MatrixProduct> product = matrix_product(writers[0]);
    if (!product || nest(writers[0]).inputs.size() != 2) return false;
    dout_.push_back(product->rows);
    v_.push_back(product->columns);
    attention::Powers one{};
    one[attention::cotangent] = 1;
    const Strides& matrix = nest(writers[0]).output.strides;
    return learn(writers[0], finished(nest(writers[0]), Value::of(one), matrix), matrix, false);
  }

  // --- the whole ---

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

  /// The axes of the matrix, from the innermost: where any nest has a boundary there is one.
  bool find_axes() {
    if (*boundaries_.rbegin() != elements_) return false;
    for (auto at = boundaries_.begin(); std::next(at) != boundaries_.end(); ++at) {
      if (*std::next(at) % *at != 0) return false;
      axes_.push_back({*at, *std::next(at) / *at});
    }
    if (axes_.front() != std::pair{std::int64_t{1}, keys_}) return false;
    // Of those along which keys and values stand still, the one that is masked along, or the
    // longest.
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      if (query_ && axes_[i] != *query_) continue;
      if (stride_of(k_[0], i) != 0 || stride_of(v_[0], i) != 0) continue;
      if (query_axis_ == 0 || axes_[i].second > axes_[query_axis_].second) query_axis_ = i;
    }
    return query_axis_ != 0;
  }

  std::size_t axis_of(const Part& part, std::size_t i) const {
    std::size_t a = 0;
    while (part.matrix[a] == 0 || part.matrix[a] > axes_[i].first ||
           axes_[i].first >= part.matrix[a] * nest(part.nest).axes[a].size)
      ++a;
    return a;
  }
  std::int64_t stride_of(const Part& part, std::size_t i) const {
    const std::size_t a = axis_of(part, i);
    return part.operand->strides[a] * (axes_[i].first / part.matrix[a]);
  }
  bool is_reduced(const Part& part, std::size_t i) const {
    return nest(part.nest).axes[axis_of(part, i)].reduced;
  }

  /// The operand along all axes; `last`: depth is 0, width is 1.
  Operand operand(const Part& part, std::size_t last) const {
    Operand result{part.operand->buffer, part.operand->dtype, part.operand->offset};
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) result.strides.push_back(stride_of(part, i));
    }
    result.strides.push_back(stride_of(part, query_axis_));
    result.strides.push_back(stride_of(part, 0));
    result.strides.resize(result.strides.size() + 2, 0);
    result.strides[result.strides.size() - 2 + last] = part.operand->strides[part.depth];
    return result;
  }
  std::optional<Operand> operand(const std::vector<Part>& parts, std::size_t last) const {
    const Operand first = operand(parts[0], last);
    for (const Part& part : parts) {
      const Operand other = operand(part, last);
      if (other.buffer != first.buffer || other.dtype != first.dtype ||
          other.offset != first.offset || other.strides != first.strides ||
          depth_of(part) != depth_of(parts[0]))
        return std::nullopt;
    }
    return first;
  }
  std::int64_t depth_of(const Part& part) const { return nest(part.nest).axes[part.depth].size; }

  /// A value for each query, where that value of the nests lies.
  Operand row_operand(int buffer) const {
    Operand result{buffer, DType::f32};
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) result.strides.push_back(axes_[i].first / keys_);
    }
    result.strides.push_back(axes_[query_axis_].first / keys_);
    result.strides.resize(result.strides.size() + 3, 0);
    return result;
  }

  std::optional<Found> finish() {
    Program::Attention& a = found_.attention;
    for (std::size_t i = axes_.size(); i-- > 1;) {
      if (i != query_axis_) a.axes.push_back({"batch", axes_[i].second});
    }
    const std::int64_t depth = depth_of(q_[0]), width = depth_of(v_[0]);
    a.axes.push_back({"query", axes_[query_axis_].second});
    a.axes.push_back({"key", keys_});
    a.axes.push_back({"depth", depth});
    a.axes.push_back({"width", width});
    for (std::int64_t size : {depth, width}) {
      if (size < least_depth || size > most_depth || size % depth_step != 0) return std::nullopt;
    }
    const auto q = operand(q_, 0), k = operand(k_, 0), v = operand(v_, 1);
    if (!q || !k || !v || !scores_ || scores_->reach.value_or(0) < 0) return std::nullopt;
    a.q = *q;
    a.k = *k;
    a.v = *v;
    a.out = operand(*out_, 1);
    a.scale = scores_->scale;
    a.reach = scores_->reach;
    const std::size_t query = a.axes.size() - 4, key = query + 1;
    if (q->strides[key] != 0 || k->strides[query] != 0 || v->strides[query] != 0 ||
        a.out.strides[key] != 0 || depth_of(*out_) != width || !sums_along_keys(*out_))
      return std::nullopt;
    if (!found_.backward.empty() && !finish_gradients(query, key)) return std::nullopt;
    return std::move(found_);
  }

  bool finish_gradients(std::size_t query, std::size_t key) {
    Program::Attention& a = found_.attention;
    if (dout_.empty() || total_ < 0 || delta_ < 0) return false;
    // The gradients' nests do not read the result: what a caller's tensor holds may change before.
    if (static_cast<std::size_t>(a.out.buffer) < program_.input_count) return false;
    const auto dout = operand(dout_, 1);
    if (!dout || dout->strides[key] != 0 || depth_of(dout_[0]) != depth_of(v_[0])) return false;
    Program::Attention::Gradients g{
        gradient_scale_.value_or(1), *dout, row_operand(delta_), {}, {}, {}};
    if (dq_) {
      g.dq = operand(*dq_, 0);
      if (!sums_along_keys(*dq_) || depth_of(*dq_) != depth_of(q_[0])) return false;
    }
    for (const auto& [part, to, like] : {std::tuple{&dk_, &g.dk, &k_[0]}, {&dv_, &g.dv, &v_[0]}}) {
      if (!*part) continue;
      *to = operand(**part, part == &dv_);
      if ((*to)->strides[query] != 0 || depth_of(**part) != depth_of(*like)) return false;
      // Summed along the queries, and where keys and values stand still.
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        const bool still = stride_of(k_[0], i) == 0;
        if (still != (stride_of(v_[0], i) == 0) || is_reduced(**part, i) != still) return false;
      }
    }
    a.log_sums = row_operand(total_);
    a.gradients = std::move(g);
    std::erase_if(found_.locals, [&](int buffer) { return buffer == total_ || buffer == delta_; });
    return true;
  }

  bool sums_along_keys(const Part& part) const {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (is_reduced(part, i) != (i == 0)) return false;
    }
    return true;
  }

  const Program& program_;
  const Uses& uses_;
  std::span<const int> kept_;
  std::vector<char> taken_;
  Found found_;

  std::int64_t keys_ = 0, elements_ = 0;  // of a row, and of all, of the matrix
  std::map<int, Known> known_;            // by buffer
  std::optional<attention::Scores> scores_;
  int total_ = -1, delta_ = -1;  // in f32
  std::optional<double> gradient_scale_;
  std::vector<Part> q_, k_, v_, dout_;
  std::optional<Part> out_, dq_, dk_, dv_;

  std::set<std::int64_t> boundaries_;                           // strides in the matrix
  std::optional<std::pair<std::int64_t, std::int64_t>> query_;  // of the mask: stride and size
  std::vector<std::pair<std::int64_t, std::int64_t>> axes_;     // of the matrix
  std::size_t query_axis_ = 0;
};

/// Whether results lie apart from what is read while they are written.
bool are_apart(const NestOrder& order, const Program::Attention& a) {
  std::set<int> forward{order.memory_of(a.q.buffer), order.memory_of(a.k.buffer),
                        order.memory_of(a.v.buffer)};
  if (forward.contains(order.memory_of(a.out.buffer))) return false;
  if (!a.gradients) return true;
  forward.insert(order.memory_of(a.out.buffer));
  forward.insert(order.memory_of(a.gradients->dout.buffer));
  for (const auto* result : {&a.gradients->dq, &a.gradients->dk, &a.gradients->dv}) {
    if (*result && forward.contains(order.memory_of((*result)->buffer))) return false;
  }
  return true;
}

/// The first nests of the groups, of which the second is that of the gradients; none if there is no
/// place.
std::vector<std::size_t> place(NestOrder& order, const Found& found) {
  const Program::Attention& a = found.attention;
  if (!are_apart(order, a)) return {};
  const std::vector<NestOrder::Item> before = order.items();
  const std::optional<std::size_t> forward = order.gather(found.forward);
  if (!forward) return {};
  if (!a.gradients) return {*forward};
  const std::optional<std::size_t> backward = order.gather(found.backward);
  if (backward && order.keeps(*forward, *backward, {&a.q, &a.k, &a.v, &a.out}))
    return {*forward, *backward};
  order.restore(before);
  return {};
}

}  // namespace

namespace {

/// Makes two nests of a product and what finishes it, which is then a map.
void split_epilogue(Program& program, std::size_t n) {
  LoopNest& product = program.nests[n];
  LoopNest map = product;
  Operand between{.buffer = static_cast<int>(program.buffers.size()), .dtype = product.compute};
  between.strides.assign(product.axes.size(), 0);
  std::vector<std::size_t> kept;
  for (std::size_t a = 0; a < product.axes.size(); ++a) {
    if (!product.axes[a].reduced) kept.push_back(a);
  }
  std::stable_sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return product.output.strides[a] < product.output.strides[b];
  });
  std::int64_t elements = 1;
  for (std::size_t a : kept) {
    between.strides[a] = elements;
    elements *= product.axes[a].size;
  }
  program.buffers.push_back({elements, between.dtype});
  product.output = between;
  product.inputs.resize(2);
  product.epilogue = {};

  map.inputs.erase(map.inputs.begin());
  map.inputs[0] = between;
  std::vector<ScalarExpr> values{Ex::input(0), Ex::input(0)};
  for (std::size_t i = 1; i < map.inputs.size(); ++i)
    values.push_back(Ex::input(static_cast<int>(i)));
  map.body = substitute(map.epilogue, values);
  map.epilogue = {};
  map.combine.reset();
  for (LoopNest::NestAxis& axis : map.axes) {
    // Nothing moves along it any more.
    if (axis.reduced) axis.size = 1;
    axis.reduced = false;
  }
  simplify(map);
  program.nests.insert(program.nests.begin() + static_cast<std::ptrdiff_t>(n) + 1, std::move(map));
}

}  // namespace

void find_attention(Program& program, std::span<const int> kept, std::span<const int> memory) {
  Uses uses(program);
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    std::optional<Found> found = Match(program, uses, kept).run(n);
    if (!found || found->finished.empty()) continue;
    std::sort(found->finished.rbegin(), found->finished.rend());
    for (std::size_t finished : found->finished) split_epilogue(program, finished);
    uses = Uses(program);
  }
  NestOrder order(program, memory);
  std::map<std::size_t, Program::Attention> starts;  // by the first nest of a group
  for (std::size_t n = 0; n < program.nests.size(); ++n) {
    std::optional<Found> found = Match(program, uses, kept).run(n);
    if (!found) continue;
    const std::vector<std::size_t> firsts = place(order, *found);
    if (firsts.empty()) continue;
    if (firsts.size() > 1) starts.emplace(firsts[1], found->attention);
    found->attention.gradients.reset();
    starts.emplace(firsts[0], std::move(found->attention));
    for (int buffer : found->locals)
      program.buffers[static_cast<std::size_t>(buffer)].is_local = true;
  }
  std::vector<LoopNest> nests;
  program.groups.clear();
  for (const NestOrder::Item& item : order.items()) {
    Program::Group group{.first = nests.size(), .count = item.size()};
    const auto start = starts.find(item.front());
    if (start != starts.end()) group.attention = start->second;
    program.groups.push_back(std::move(group));
    for (std::size_t n : item) nests.push_back(std::move(program.nests[n]));
  }
  program.nests = std::move(nests);
}

}  // namespace ein
