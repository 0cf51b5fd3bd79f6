// What must hold of a program of nests, whichever pass made it.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "nest/attention.hpp"
#include "nest/nest.hpp"
#include "size/ask.hpp"
#include "size/size_scope.hpp"
#include "tensor/compute_type.hpp"

namespace ein {
namespace {

using Operand = LoopNest::Operand;

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    where_ = "buffers";
    verify_buffers();
    std::vector<bool> holds_values(program_.buffers.size(), false);
    std::fill_n(holds_values.begin(), program_.input_count, true);
    for (std::size_t n = 0; n < program_.nests.size(); ++n) {
      where_ = "nest " + std::to_string(n);
      const LoopNest& nest = program_.nests[n];
      verify(nest);
      for (const Operand& input : nest.inputs)
        require(holds_values[index(input.buffer)], "reads a buffer that nothing has written");
      holds_values[index(nest.output.buffer)] = true;
    }
    for (std::size_t r = 0; r < program_.results.size(); ++r) {
      where_ = "result " + std::to_string(r);
      verify(program_.results[r], holds_values);
    }
    if (!program_.groups.empty()) verify_groups();
  }

 private:
  static std::size_t index(int buffer) { return static_cast<std::size_t>(buffer); }

  void require(bool holds, const char* what) const {
    if (!holds) throw std::logic_error("program: " + where_ + ": " + what);
  }

  void verify_buffers() const {
    require(program_.input_count <= program_.buffers.size(), "more inputs than buffers");
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Program::Buffer& buffer = program_.buffers[b];
      require(buffer.elements >= 0, "negative size");
      require(!buffer.is_local || b >= program_.input_count, "a local input");
      require(buffer.memory < static_cast<int>(program_.buffers.size()), "memory of no buffer");
    }
  }

  // --- nests ---

  void verify(const LoopNest& nest) const {
    std::size_t ordered = 0;
    bool reduces = false;
    for (const LoopNest::NestAxis& axis : nest.axes) {
      require(axis.size >= 0, "an axis of negative size");
      require(!axis.ordered || !axis.reduced, "an ordered axis is reduced");
      ordered += axis.ordered;
      reduces |= axis.reduced;
    }
    const bool scans = nest.along == LoopNest::Along::scan;
    if (nest.is_matrix()) {
      verify_matrix(nest);
    } else if (nest.is_collective()) {
      require(nest.inputs.size() == 1 && nest.body.is_input() && ordered == 0 &&
                  nest.epilogue.steps.empty() && nest.inputs[0].dtype == nest.output.dtype &&
                  nest.combine.has_value() == combines(nest.collective),
              "a collective of something else than its input");
    } else {
      require(ordered == (nest.along == LoopNest::Along::nothing ? 0 : 1),
              "one ordered axis is wanted to scan or sort, and else none");
    }
    require(!scans || nest.inputs.size() == 1 ||
                (nest.inputs.size() == 2 && nest.combine == Combine::sum),
            "a scan has one input, and factors of a sum");
    require(nest.combine || !(reduces || scans), "values meet, and nothing says how they combine");
    require(nest.combine || nest.epilogue.steps.empty(), "an epilogue of what is not combined");
    require(is_compute_type(nest.compute), "no compute type");

    for (std::size_t i = 0; i < nest.inputs.size(); ++i) {
      verify(nest, nest.inputs[i]);
      require(i == 0 || !nest.inputs[i].is_indirect(), "only input 0 is gathered");
    }
    verify(nest, nest.output);
    if (nest.writes_at_position()) verify_one_position(nest);
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
      require(!nest.axes[a].reduced || ask_equal(nest.output.strides[a], 0),
              "the output moves along a reduced axis");

    require(!nest.body.steps.empty(), "no body");
    verify(nest, nest.body, nest.inputs.size());
    verify(nest, nest.epilogue, std::max<std::size_t>(nest.inputs.size(), 1));
    for (const ScalarStep& step : nest.epilogue.steps) {
      require(step.op != ScalarOp::index, "an epilogue asks for an index");
      if (step.op != ScalarOp::input || step.which == 0) continue;
      const Operand& read = nest.inputs[static_cast<std::size_t>(step.which)];
      for (std::size_t a = 0; a < nest.axes.size(); ++a)
        require(!nest.axes[a].reduced || ask_equal(read.strides[a], 0),
                "what an epilogue reads moves along a reduced axis");
    }
  }

  void verify_matrix(const LoopNest& nest) const {
    const MatrixFunctionInfo& row = info(nest.function);
    require(nest.inputs.size() == row.operands && nest.body.is_input() && !nest.combine,
            "a function of matrices has other inputs");
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o)
      require(nest.operand(o).dtype == nest.compute && !nest.operand(o).is_indirect(),
              "matrices of another dtype than they are computed in");
    int counts[static_cast<std::size_t>(MatrixAxis::packed) + 1] = {};
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      const MatrixAxis role = nest.axes[a].role;
      ++counts[static_cast<std::size_t>(role)];
      const bool is_loop = role == MatrixAxis::batch || role == MatrixAxis::right;
      require(!nest.axes[a].reduced && nest.axes[a].ordered == !is_loop,
              "the axes of matrices are ordered");
      require(role != MatrixAxis::right ||
                  (row.operands == 2 &&
                   (is_one(nest.axes[a].size) || ask_equal(nest.inputs[0].strides[a], 0))),
              "a matrix moves along the right sides");
    }
    const auto count = [&](MatrixAxis role) { return counts[static_cast<std::size_t>(role)]; };
    require(count(MatrixAxis::rows) == 1 && count(MatrixAxis::columns) == 1 &&
                count(MatrixAxis::packed) == (row.is_packed ? 1 : 0),
            "rows and columns are wanted, and parts where there are some");
  }

  void verify(const LoopNest& nest, const Operand& operand) const {
    if (operand.is_indirect()) {
      const auto p = static_cast<std::size_t>(operand.indirection.positions);
      require(p < nest.inputs.size(), "positions of no input");
      const Operand& positions = nest.inputs[p];
      require(!positions.is_indirect(), "positions that have positions");
      require(positions.dtype == DType::i64 || positions.dtype == DType::i32,
              "positions are i64 or i32");
      require(operand.indirection.count() >= 0, "positions along an axis of negative size");
    }
    verify_place(operand, nest.axes);
  }

  /// What is written without being combined is moved, all of it by one position.
  void verify_one_position(const LoopNest& nest) const {
    require(nest.inputs.size() == 2 && nest.body.is_input() &&
                nest.output.dtype == nest.inputs[0].dtype,
            "what is written at a position is an input as it is");
    for (const Size stride : nest.inputs[1].strides)
      require(ask_equal(stride, 0), "several positions of what is not combined");
  }

  void verify(const LoopNest& nest, const ScalarExpr& expr, std::size_t inputs) const {
    for (std::size_t s = 0; s < expr.steps.size(); ++s) {
      const ScalarStep& step = expr.steps[s];
      for (int i = 0; i < info(step.op).arity; ++i)
        require(step.args[i] >= 0 && static_cast<std::size_t>(step.args[i]) < s,
                "an expression refers ahead");
      if (step.op == ScalarOp::input)
        require(static_cast<std::size_t>(step.which) < inputs, "an expression of no input");
      if (step.op == ScalarOp::index)
        require(static_cast<std::size_t>(step.which) < nest.axes.size(), "the index of no axis");
    }
  }

  /// An operand over axes.
  void verify_place(const Operand& operand, const std::vector<LoopNest::NestAxis>& axes) const {
    require(index(operand.buffer) < program_.buffers.size(), "an operand in no buffer");
    const Program::Buffer& buffer = program_.buffers[index(operand.buffer)];
    require(operand.dtype == buffer.dtype, "an operand of another dtype than its buffer");
    require(operand.strides.size() == axes.size(), "one stride per axis is wanted");
    Size low = operand.offset, high = operand.offset;
    const auto walk = [&](Size size, Size stride) {
      (stride < 0 ? low : high) += (size - 1) * stride;
      return size > 0;
    };
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (!walk(axes[a].size, operand.strides[a])) return;  // nothing is accessed
    }
    if (operand.is_indirect() && !walk(operand.indirection.count(), operand.indirection.stride))
      return;
    require(low >= 0 && high < buffer.elements, "an access leaves its buffer");
  }

  // --- results ---

  void verify(const Program::Result& result, const std::vector<bool>& holds_values) const {
    std::vector<LoopNest::NestAxis> axes;
    for (const Size size : result.shape) axes.push_back({"", size});
    verify_place(result.operand(), axes);
    require(!program_.buffers[index(result.buffer)].is_local, "lies in a local buffer");
    require(holds_values[index(result.buffer)] || ask_equal(numel(result.shape), 0),
            "lies in a buffer that nothing has written");
  }

  // --- groups ---

  void verify_groups() {
    std::size_t next = 0;
    std::vector<std::size_t> group_of(program_.buffers.size(), none);  // of local buffers
    for (std::size_t g = 0; g < program_.groups.size(); ++g) {
      where_ = "group " + std::to_string(g);
      const Program::Group& group = program_.groups[g];
      require(group.first == next && group.count > 0 &&
                  group.count <= program_.nests.size() - group.first,
              "groups are to have all nests, in order");
      next += group.count;
      verify(group);
      for (std::size_t n = group.first; n < next; ++n) {
        const auto note = [&](const Operand& operand) {
          if (!program_.buffers[index(operand.buffer)].is_local) return;
          std::size_t& user = group_of[index(operand.buffer)];
          // The gradients of attention compute again what attention did not keep.
          const bool is_again = user < g && group.attention() && program_.groups[user].attention();
          require(user == none || user == g || is_again,
                  "shares a local buffer with another group");
          user = g;
        };
        for (const Operand& input : program_.nests[n].inputs) note(input);
        note(program_.nests[n].output);
      }
    }
    where_ = "groups";
    require(next == program_.nests.size(), "groups are to have all nests, in order");
  }

  void verify(const Program::Group& group) const {
    std::visit([&](const auto& form) { verify_form(group, form); }, group.form);
  }

  const LoopNest& nest(const Program::Group& group, std::size_t i) const {
    return program_.nests[group.first + i];
  }

  void verify_form(const Program::Group& group, const Program::Group::Blocks& blocks) const {
    require(blocks.count >= 1 && blocks.at_once >= 1, "no blocks");
    require(blocks.axes.empty() ? ask_equal(blocks.count, 1) : blocks.axes.size() == group.count,
            "one axis per nest is wanted to cut it into blocks");
    for (std::size_t i = 0; i < blocks.axes.size(); ++i) {
      require(blocks.axes[i] < nest(group, i).axes.size(), "blocks of no axis");
      const LoopNest::NestAxis& cut = nest(group, i).axes[blocks.axes[i]];
      require(!cut.reduced && !cut.ordered && ask_equal(cut.size % blocks.count, 0),
              "an axis does not fall into blocks");
    }
  }

  void verify_form(const Program::Group& group, const Program::Group::Rows& rows) const {
    for (std::size_t a = 0; a < rows.axes; ++a) {
      for (std::size_t i = 0; i < group.count; ++i) {
        const std::vector<LoopNest::NestAxis>& axes = nest(group, i).axes;
        require(a < axes.size() && !axes[a].reduced &&
                    ask_equal(axes[a].size, nest(group, 0).axes[a].size),
                "nests do not share their rows");
      }
    }
  }

  void verify_form(const Program::Group& group, const Program::Group::Repeated& repeated) const {
    require(repeated.each > 0 && group.count % repeated.each == 0,
            "nests beyond a whole repetition");
  }

  void verify_form(const Program::Group& group, const Program::Group::AsAttention& form) const {
    require(form != nullptr, "attention of nothing");
    verify_attention(group, *form);
  }

  /// What the group's nests read and write is what attention, or its gradients, read and write.
  void verify_attention(const Program::Group& group, const Attention& a) const {
    std::vector<const Operand*> read{&a.q, &a.k, &a.v}, written;
    if (a.gradients) {
      read = {&a.gradients->dout};
      written = {&a.gradients->delta};
      for (const auto* result : {&a.gradients->dq, &a.gradients->dk, &a.gradients->dv})
        if (*result) written.push_back(&**result);
    } else {
      written = {&a.out};
    }
    if (a.log_sums && !a.gradients) written.push_back(&*a.log_sums);
    for (const auto& operands : {read, written, read_by(a)})
      for (const Operand* operand : operands) verify_place(*operand, a.axes);
    const auto is_in = [](const std::vector<const Operand*>& operands, int buffer) {
      return std::any_of(operands.begin(), operands.end(),
                         [&](const Operand* operand) { return operand->buffer == buffer; });
    };
    std::vector<const Operand*> inputs, outputs;
    for (std::size_t n = group.first; n < group.first + group.count; ++n) {
      for (const Operand& input : program_.nests[n].inputs) inputs.push_back(&input);
      outputs.push_back(&program_.nests[n].output);
    }
    for (const Operand* operand : read)
      require(is_in(inputs, operand->buffer), "is attention on what its nests do not read");
    for (const Operand* operand : written)
      require(is_in(outputs, operand->buffer), "is attention whose results its nests do not write");
    for (const Operand* output : outputs)
      require(program_.buffers[index(output->buffer)].is_local || is_in(written, output->buffer),
              "is attention, and its nests write something else");
  }

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const Program& program_;
  std::string where_;
};

}  // namespace

void verify(const Program& program) {
  const SizeScopePause pause;
  Verifier(program).run();
}

}  // namespace ein
