// Many tensors in one launch: the nests of a chain on each of them, a thread for some neighbours.
// Tensors' addresses and sizes come in a table.
#include <algorithm>
#include <map>

#include "codegen/elements.hpp"
#include "codegen/forms.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// What the driver takes as parameters before CUDA 12.1.
constexpr std::size_t parameter_bytes = 4096;

using Operand = LoopNest::Operand;

/// The same place of each tensor's chain: a tensor, or a single number.
struct Slot {
  std::vector<const Operand*> operands;  // of each tensor
  bool moves = false, is_local = false, is_written = false;
  bool is_same = true;  // for all tensors: no entry of the table
};

class ManyWriter {
 public:
  /// `nests`: chains of `each`, one after the other.
  ManyWriter(const Program& program, std::span<const LoopNest> nests, std::size_t each)
      : nests_(nests), each_(each), tensors_(nests.size() / each) {
    for (std::size_t n = 0; n < each_; ++n) {
      for (std::size_t i = 0; i < nests_[n].inputs.size(); ++i) slot_of_input(program, n, i);
      slot_of_output(program, n);
    }
  }

  /// Bytes of the table for a tensor more.
  std::size_t bytes_per_tensor() const {
    std::size_t entries = 2;  // elements, first block
    for (const Slot& slot : slots_) entries += !slot.is_local && !slot.is_same;
    return 8 * entries;
  }
  std::size_t bytes_beside() const {
    std::size_t sizes = 0;
    for (const LoopNest& nest : nests_.first(each_)) {
      for (const ScalarStep& step : nest.body.steps) sizes += step.op == ScalarOp::size;
    }
    return 8 * (slots_.size() + sizes);
  }

  KernelSource write(const std::string& suffix) {
    const LoopNest& first = nests_[0];
    const std::int64_t width = pack_width();
    const bool narrow = std::all_of(nests_.begin(), nests_.end(),
                                    [](const LoopNest& nest) { return is_narrow(nest); });
    Writer w("many_" + std::string(name(first.output.dtype)) + suffix, block_threads, narrow);
    std::vector<const Slot*> in_table;
    for (Slot& slot : slots_) {
      if (!slot.is_local && !slot.is_same) in_table.push_back(&slot);
    }
    std::vector<Size> elements, first_blocks;
    Size blocks = 0;
    for (std::size_t t = 0; t < tensors_; ++t) {
      const LoopNest& nest = nests_[t * each_];
      const Size count = nest.axes.empty() ? Size(1) : nest.axes[0].size;
      elements.push_back(count);
      first_blocks.push_back(blocks);
      blocks += ceil_div(ceil_div(count, width), block_threads);
    }
    w.table(tensors_, in_table.size());
    for (std::size_t t = 0; t < tensors_; ++t) {
      for (const Slot* slot : in_table) w.table_entry(*slot->operands[t]);
    }
    w.table_numbers(elements);
    w.table_numbers(first_blocks);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      if (!slot.is_local && slot.is_same)
        w.pointer(type_of(slot), pointer_name(s), *slot.operands[0]);
    }
    w.block_number("block");
    w.line("const int tensor = table.tensor_of(block);");
    w.line("const u64 element = ((block - table.first_block[tensor]) * " +
           std::to_string(block_threads) + "u + threadIdx.x) * " + std::to_string(width) + "u;");
    w.line("if (element >= table.elements[tensor]) return;");
    w.line("const i64 remaining = table.elements[tensor] - element;");
    for (std::size_t s = 0, entry = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      if (slot.is_local || slot.is_same) continue;
      const std::string type = type_of(slot) + "*";
      w.line(type + " " + pointer_name(s) + " = static_cast<" + type + ">(table.at[tensor][" +
             std::to_string(entry++) + "])" + (slot.moves ? " + element" : "") + ";");
    }
    write_chain(w, width);
    return w.finish(blocks);
  }

 private:
  static std::string pointer_name(std::size_t slot) { return "t" + std::to_string(slot); }
  static std::string value_name(std::size_t slot) { return "a" + std::to_string(slot); }
  static std::string element_of(const Slot& slot) { return element_type(slot.operands[0]->dtype); }
  static std::string type_of(const Slot& slot) {
    return (slot.is_written ? "" : "const ") + element_of(slot);
  }

  const Operand& operand(std::size_t tensor, std::size_t nest, std::size_t input) const {
    const LoopNest& n = nests_[tensor * each_ + nest];
    return input < n.inputs.size() ? n.inputs[input] : n.output;
  }

  /// The slot of an operand; what lies at one place in every chain is one slot.
  std::size_t slot_of(const Program& program, std::size_t nest, std::size_t input) {
    const Operand& first = operand(0, nest, input);
    const bool moves = !nests_[nest].axes.empty() && !ask_equal(first.strides[0], 0);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Operand& other = *slots_[s].operands[0];
      if (other.buffer == first.buffer && always_equal(other.offset, first.offset) &&
          slots_[s].moves == moves)
        return s;
    }
    Slot slot{.operands = {}, .moves = moves};
    for (std::size_t t = 0; t < tensors_; ++t) {
      const Operand& here = operand(t, nest, input);
      slot.operands.push_back(&here);
      slot.is_same &= here.buffer == first.buffer && always_equal(here.offset, first.offset);
    }
    slot.is_same &= !moves;
    slot.is_local = program.buffers[static_cast<std::size_t>(first.buffer)].is_local;
    slots_.push_back(std::move(slot));
    return slots_.size() - 1;
  }
  void slot_of_input(const Program& program, std::size_t nest, std::size_t input) {
    of_inputs_[{nest, input}] = slot_of(program, nest, input);
  }
  void slot_of_output(const Program& program, std::size_t nest) {
    const std::size_t slot = slot_of(program, nest, nests_[nest].inputs.size());
    of_outputs_.push_back(slot);
    slots_[slot].is_written = true;
  }

  /// Contiguous elements per thread: one access of 16 bytes in the widest dtype, if all tensors are
  /// aligned to 16 bytes.
  std::int64_t pack_width() const {
    if (nests_[0].axes.empty()) return 1;
    std::size_t largest = 1;
    for (const Slot& slot : slots_) {
      if (slot.moves) largest = std::max(largest, size_of(slot.operands[0]->dtype));
    }
    auto width = static_cast<std::int64_t>(16 / largest);
    for (const Slot& slot : slots_) {
      for (const Operand* operand : slot.operands) {
        while (slot.moves && !ask_equal(operand->offset % width, 0)) width /= 2;
      }
    }
    return width;
  }

  void write_chain(Writer& w, std::int64_t width) {
    const DType compute = nests_[0].compute;
    const std::string type = element_type(compute), count = std::to_string(width);
    std::vector<char> is_known(slots_.size(), 0);
    for (std::size_t n = 0; n < each_; ++n) {
      const LoopNest& nest = nests_[n];
      ElementText at{std::vector<std::string>(nest.inputs.size())};
      for (std::size_t i : inputs_of(nest.body)) {
        const std::size_t s = of_inputs_.at({n, i});
        const Slot& slot = slots_[s];
        at.inputs[i] = value_name(s) + (slot.moves ? "[j]" : "");
        if (is_known[s]) continue;
        is_known[s] = 1;
        if (slot.moves) {
          w.line(type + " " + value_name(s) + "[" + count + "];");
          w.line("load(" + value_name(s) + ", " + pointer_name(s) + ", remaining);");
        } else {
          w.line("const " + type + " " + value_name(s) + " = " +
                 converted("*" + pointer_name(s), slot.operands[0]->dtype, compute) + ";");
        }
      }
      const std::size_t s = of_outputs_[n];
      const Slot& slot = slots_[s];
      if (!is_known[s]) w.line(type + " " + value_name(s) + "[" + count + "];");
      is_known[s] = 1;
      w.open_unrolled("for (int j = 0; j < " + count + "; ++j) {");
      const std::string value = write_expression(w, nest.body, compute, at);
      // What is read again is what was stored.
      w.line(value_name(s) + "[j] = " +
             converted(converted(value, compute, nest.output.dtype), nest.output.dtype, compute) +
             ";");
      w.close();
      if (!slot.is_local) {
        w.line("store(" + pointer_name(s) + ", " + value_name(s) + ", remaining);");
      }
    }
  }

  std::span<const LoopNest> nests_;
  std::size_t each_, tensors_;
  std::vector<Slot> slots_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> of_inputs_;  // by nest and input
  std::vector<std::size_t> of_outputs_;                                   // by nest
};

}  // namespace

Kernels emit_many(const Program& program, const Program::Group& group, const Context& context) {
  const std::span<const LoopNest> nests(program.nests.data() + group.first, group.count);
  const std::size_t each = group.repeated()->each;
  const ManyWriter all(program, nests, each);
  const std::size_t most = each * ((parameter_bytes - all.bytes_beside()) / all.bytes_per_tensor());
  Kernels kernels;
  for (std::size_t begin = 0; begin < nests.size(); begin += most) {
    const auto some = nests.subspan(begin, std::min(most, nests.size() - begin));
    const std::string part = begin > 0 ? "_from_" + std::to_string(begin / each) : "";
    kernels.push_back(ManyWriter(program, some, each).write(part + context.suffix));
  }
  return kernels;
}

}  // namespace ein::codegen
