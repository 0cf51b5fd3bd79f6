// A kernel being written: its arguments, its lines, and the index arithmetic in them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit.hpp"
#include "schedule/steps.hpp"

namespace ein::codegen {

using AxisList = std::vector<std::size_t>;

/// The name of a dtype's elements in kernels.
std::string element_type(DType dtype);
/// The type of elements of `bytes` bytes that are only moved.
std::string moved_type(std::size_t bytes);

/// Whether indices below the product of these sizes are sure to fit into 32 bits.
bool is_narrow(std::span<const Size> sizes);
/// The same of the places in an operand, or in every operand of a nest.
bool has_narrow_places(const LoopNest::Operand& operand, std::span<const LoopNest::NestAxis> axes);
bool has_narrow_places(const LoopNest& nest);
/// Of both, for the points of a nest.
bool is_narrow(const LoopNest& nest);

Size size_of_axes(const LoopNest& nest, const AxisList& axes);

/// All axes of a nest but these.
AxisList other_axes(const LoopNest& nest, std::initializer_list<std::size_t> but);
/// The axis that a nest scans or sorts along.
std::size_t ordered_axis(const LoopNest& nest);

/// Axes ordered by decreasing stride in `operand`, so that the last is the innermost.
AxisList by_stride(AxisList axes, const LoopNest::Operand& operand);

inline std::string axis_name(std::size_t axis) { return "i" + std::to_string(axis); }
inline std::string input_name(std::size_t input) { return "x" + std::to_string(input); }

/// A number; or for a formula a word that stands for the argument with its value, until the kernel
/// is finished.
std::string text_of(Size value);
/// Unsigned.
inline std::string count(Size value) { return text_of(value) + (value.is_number() ? "u" : ""); }

/// `value`, an unsigned expression, divided by `n`, modulo it, and times it.
std::string divided(const std::string& value, Size n);
std::string modulo(const std::string& value, Size n);
std::string times(const std::string& value, Size n);
/// `a + b`, of which a 0 is left out.
std::string added(const std::string& a, const std::string& b);

/// The head of a loop over [begin, end) by `step`.
std::string loop(const std::string& type, const std::string& name, const std::string& begin,
                 const std::string& end, const std::string& step);

/// Whether nothing that pointer `p` of a kernel reads is written through another, and nothing that
/// it writes is read or written through another. `memory` says, as Program::Buffer does, which
/// buffers share theirs.
bool is_apart(const KernelSource& kernel, std::size_t p, std::span<const int> memory = {});
/// Which buffers of a program share their memory, as is_apart wants it.
std::vector<int> memory_of(const Program& program);
/// Takes `__restrict__` from a kernel of which a pointer has it that is not apart.
void unrestrict_shared(KernelSource& kernel, std::span<const int> memory);

class Writer {
 public:
  /// `narrow`: indices are of 32 bits. With `blocks` of them on a multiprocessor a kernel may use
  /// as many registers as those leave each other; otherwise the compiler may spare more than is
  /// good.
  Writer(std::string name, unsigned threads, bool narrow, unsigned blocks = 0);

  // --- arguments, in the order of the calls ---
  void map(const std::string& name, TensorMap map);  // these come first
  void input(const LoopNest& nest, std::size_t input, const std::string& type);
  void output(const LoopNest& nest, const std::string& type);
  /// Scratch memory `offset` bytes into the nest's, of which `bytes` are used from there on.
  void workspace(const std::string& type, const std::string& name, Size offset, Size bytes);
  /// An operand by another name; `type` is that of its elements.
  void pointer(const std::string& type, const std::string& name, const LoopNest::Operand& operand);
  void fault();
  /// The first argument: entries for each of some tensors, and numbers for each.
  void table(std::size_t tensors, std::size_t entries);
  void table_entry(const LoopNest::Operand& operand);
  void table_numbers(const std::vector<Size>& numbers);
  /// The number of the stream: seedN and streamN are its arguments.
  std::size_t stream(const KernelSource::Stream& stream);
  /// The name of an argument that is a number of this type with these bits.
  std::string constant(DType type, std::uint64_t bits);

  // --- lines ---
  void line(const std::string& text = {});
  /// A line that ends with a brace; what follows is indented.
  void open(const std::string& text);
  /// A loop to be unrolled.
  void open_unrolled(const std::string& loop) {
    line("#pragma unroll");
    open(loop);
  }
  void close(const std::string& text = "}");

  // --- indices ---
  const std::string& index_type() const { return index_; }
  std::string unsigned_type() const { return narrow_ ? "u32" : "u64"; }
  /// An integer of the index type, written so that arithmetic with it stays there.
  std::string number(Size value) const;
  /// A formula that may be negative, as i64.
  std::string value_of(Size formula) { return size_argument(formula, "i64"); }
  /// Declares the index of each axis at point number `linear`, an unsigned product or quotient, of
  /// their product; the last axis is the innermost.
  void indices(const LoopNest& nest, const AxisList& axes, const std::string& linear);
  /// Declares the number of this thread (`per_block` of them to a block) or block, times `step`.
  void thread_number(const std::string& name, std::int64_t per_block, std::int64_t step = 1);
  void block_number(const std::string& name);
  std::string block_number() const;
  /// Where an operand's element lies, in terms of the axes' indices.
  std::string place(const LoopNest::Operand& operand, const AxisList& axes) const;
  std::string place(const LoopNest::Operand& operand) const;

  /// The kernel, launched with so many blocks.
  KernelSource finish(Size blocks);

 private:
  void argument(const std::string& type, const std::string& name, int buffer, Size offset);
  void restrict_pointers();
  std::string size_argument(Size size, const std::string& type);
  void name_sizes();

  KernelSource kernel_;
  std::string index_;
  bool narrow_;
  unsigned blocks_;
  std::vector<std::string> arguments_, constant_arguments_, size_arguments_;
  struct Pointer {
    std::optional<std::size_t> argument{};  // none in a table
  };
  std::vector<Pointer> pointers_;  // of each buffer
  std::string body_;
  std::size_t depth_ = 1;
};

}  // namespace ein::codegen
