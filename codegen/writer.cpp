#include "codegen/writer.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "codegen/vocabulary.hpp"
#include "size/ask.hpp"

namespace ein::codegen {

std::string element_type(DType dtype) {
  switch (dtype) {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                \
    return cuda;
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  case DType::dtype:                                                  \
    break;
#include <ein/detail/dtypes.hpp>
  }
  throw std::logic_error("element_type: kernels have no complex numbers");
}

std::string moved_type(std::size_t bytes) { return "u" + std::to_string(8 * bytes); }

Size size_of_axes(const LoopNest& nest, const AxisList& axes) {
  Size n = 1;
  for (std::size_t a : axes) n *= nest.axes[a].size;
  return n;
}

AxisList other_axes(const LoopNest& nest, std::initializer_list<std::size_t> but) {
  AxisList axes;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    if (std::find(but.begin(), but.end(), a) == but.end()) axes.push_back(a);
  }
  return axes;
}

std::size_t ordered_axis(const LoopNest& nest) {
  std::size_t axis = 0;
  while (!nest.axes[axis].ordered) ++axis;
  return axis;
}

namespace {
// Far enough below 2^31 that a block's worth of threads beyond the end does no harm.
constexpr std::int64_t narrow_limit = 1 << 30;
}  // namespace

bool is_narrow(std::span<const Size> sizes) {
  Size product = 1;
  for (Size size : sizes) {
    // Factors so small that their product does not overflow.
    if (!(size < narrow_limit)) return false;
    product *= size;
    if (!(product < narrow_limit)) return false;
  }
  return true;
}

bool has_narrow_places(const LoopNest::Operand& operand, std::span<const LoopNest::NestAxis> axes) {
  Size reach = 0;
  const auto add = [&](Size stride, Size size) {
    if (always_equal(stride, 0)) return true;
    const Size factors[] = {magnitude(stride), size};
    if (!is_narrow(factors)) return false;
    reach += factors[0] * size;
    return true;
  };
  if (!add(operand.indirection.stride, operand.indirection.size)) return false;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!add(operand.strides[a], axes[a].size)) return false;
  }
  return reach < narrow_limit;
}

bool has_narrow_places(const LoopNest& nest) {
  return has_narrow_places(nest.output, nest.axes) &&
         std::all_of(nest.inputs.begin(), nest.inputs.end(), [&](const LoopNest::Operand& input) {
           return has_narrow_places(input, nest.axes);
         });
}

bool is_narrow(const LoopNest& nest) {
  std::vector<Size> sizes;
  for (const LoopNest::NestAxis& axis : nest.axes) sizes.push_back(axis.size);
  return is_narrow(sizes) && has_narrow_places(nest);
}

namespace {
/// In the text of a formula, about its number.
constexpr char size_mark = '$';
}  // namespace

std::string text_of(Size value) {
  const std::string word = std::to_string(value.word());
  return value.is_number() ? word : size_mark + word + size_mark;
}

std::string divided(const std::string& value, Size n) {
  return is_one(n) ? value : value + " / " + count(n);
}

std::string modulo(const std::string& value, Size n) {
  return is_one(n) ? "0u" : value + " % " + count(n);
}

std::string times(const std::string& value, Size n) {
  return is_one(n) || value == "0u" ? value : value + " * " + count(n);
}

std::string added(const std::string& a, const std::string& b) {
  const auto is_zero = [](const std::string& x) { return x == "0" || x == "0u"; };
  return is_zero(b) ? a : is_zero(a) ? b : a + " + " + b;
}

std::string loop(const std::string& type, const std::string& name, const std::string& begin,
                 const std::string& end, const std::string& step) {
  return "for (" + type + " " + name + " = " + begin + "; " + name + " < " + end + "; " + name +
         " += " + step + ") {";
}

AxisList by_stride(AxisList axes, const LoopNest::Operand& operand) {
  std::sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    const Size x = magnitude(operand.strides[a]), y = magnitude(operand.strides[b]);
    return !ask_equal(x, y) ? x > y : a < b;
  });
  return axes;
}

bool is_apart(const KernelSource& kernel, std::size_t p, std::span<const int> memory) {
  const auto memory_of = [&](int buffer) {
    const auto b = static_cast<std::size_t>(buffer);
    return buffer >= 0 && b < memory.size() && memory[b] >= 0 ? memory[b] : buffer;
  };
  const int own = memory_of(kernel.buffers[p]);
  for (std::size_t q = 0; q < kernel.buffers.size(); ++q) {
    if (q == p || memory_of(kernel.buffers[q]) != own) continue;
    // Parts of the workspace that begin at different places do not overlap.
    if (own == workspace_buffer && !always_equal(kernel.offsets[q], kernel.offsets[p])) continue;
    if (kernel.pointers[p].is_written || kernel.pointers[q].is_written) return false;
  }
  return !kernel.pointers[p].is_written ||
         std::none_of(kernel.maps.begin(), kernel.maps.end(),
                      [&](const TensorMap& map) { return memory_of(map.buffer) == own; });
}

void unrestrict_shared(KernelSource& kernel, std::span<const int> memory) {
  bool are_apart = true;
  for (std::size_t p = 0; p < kernel.pointers.size(); ++p)
    are_apart &= !kernel.pointers[p].is_restricted || is_apart(kernel, p, memory);
  if (are_apart) return;
  constexpr std::string_view word = "__restrict__ ";
  const auto body = [&] {
    return kernel.text.find(") {\n", kernel.text.find(kernel.name + "(", kernel.kernel_begin));
  };
  for (std::size_t at; (at = kernel.text.find(word, kernel.kernel_begin)) < body();)
    kernel.text.erase(at, word.size());
  for (KernelSource::Pointer& pointer : kernel.pointers) pointer.is_restricted = false;
}

Writer::Writer(std::string name, unsigned threads, bool narrow, unsigned blocks)
    : index_(narrow ? "int" : "i64"), narrow_(narrow), blocks_(blocks) {
  kernel_.name = std::move(name);
  kernel_.block[0] = threads;
}

void Writer::argument(const std::string& type, const std::string& name, int buffer, Size offset) {
  pointers_.push_back({.argument = arguments_.size()});
  kernel_.pointers.push_back({.is_written = !type.starts_with("const ")});
  arguments_.push_back(type + "* " + name);
  kernel_.buffers.push_back(buffer);
  kernel_.offsets.push_back(offset);
}

void Writer::map(const std::string& name, TensorMap map) {
  assert(kernel_.buffers.empty());
  arguments_.push_back("const __grid_constant__ TensorMap " + name);
  kernel_.maps.push_back(std::move(map));
}

void Writer::input(const LoopNest& nest, std::size_t i, const std::string& type) {
  pointer("const " + type, input_name(i), nest.inputs[i]);
}

void Writer::output(const LoopNest& nest, const std::string& type) {
  pointer(type, "y", nest.output);
}

void Writer::workspace(const std::string& type, const std::string& name, Size offset, Size bytes) {
  argument(type, name, workspace_buffer, offset);
  kernel_.workspace_bytes = std::max(kernel_.workspace_bytes, offset + bytes);
}

void Writer::pointer(const std::string& type, const std::string& name,
                     const LoopNest::Operand& operand) {
  argument(type, name, operand.buffer, operand.offset * size_of(operand.dtype));
}

void Writer::fault() {
  kernel_.checks_positions = true;
  arguments_.push_back("Fault* fault");
}

void Writer::table(std::size_t tensors, std::size_t entries) {
  arguments_.push_back("const Table<" + std::to_string(tensors) + ", " + std::to_string(entries) +
                       "> table");
}

void Writer::table_entry(const LoopNest::Operand& operand) {
  ++kernel_.table.pointers;
  pointers_.push_back({});
  kernel_.pointers.push_back({.is_written = true});  // as far as is known here
  kernel_.buffers.push_back(operand.buffer);
  kernel_.offsets.push_back(operand.offset * size_of(operand.dtype));
}

void Writer::table_numbers(const std::vector<Size>& numbers) {
  std::vector<Size>& all = kernel_.table.numbers;
  all.insert(all.end(), numbers.begin(), numbers.end());
}

std::size_t Writer::stream(const KernelSource::Stream& stream) {
  const auto found = std::find(kernel_.streams.begin(), kernel_.streams.end(), stream);
  const auto number = static_cast<std::size_t>(found - kernel_.streams.begin());
  if (found == kernel_.streams.end()) {
    kernel_.streams.push_back(stream);
    const std::string digits = std::to_string(number);
    arguments_.push_back("u64 seed" + digits);
    arguments_.push_back("u64 stream" + digits);
  }
  return number;
}

std::string Writer::constant(DType type, std::uint64_t bits) {
  const std::string name = "c" + std::to_string(kernel_.constants.size());
  constant_arguments_.push_back("const " + element_type(type) + " " + name);
  kernel_.constants.push_back(bits);
  return name;
}

void Writer::line(const std::string& text) {
  if (!text.empty()) body_.append(2 * depth_, ' ') += text;
  body_ += '\n';
}

void Writer::open(const std::string& text) {
  line(text);
  ++depth_;
}

void Writer::close(const std::string& text) {
  --depth_;
  line(text);
}

std::string Writer::number(Size value) const {
  if (!value.is_number()) return index_ + "(" + text_of(value) + ")";
  return text_of(value) + (narrow_ ? "" : "ll");
}

void Writer::indices(const LoopNest& nest, const AxisList& axes, const std::string& linear) {
  Size below = 1;
  bool is_whole = false;  // an axis further out cannot move
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Size size = nest.axes[axes[i]].size;
    std::string value = "0";
    if (!is_one(size) && !is_whole) {
      const bool is_outermost =
          std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](std::size_t a) { return is_one(nest.axes[a].size); });
      value = divided(linear, below);
      if (!is_outermost) value = modulo(value, size);
      is_whole = is_outermost;
    }
    line("const " + index_ + " " + axis_name(axes[i]) + " = " + value + ";");
    below *= size;
  }
}

std::string Writer::block_number() const {
  return narrow_ ? "blockIdx.x" : "(blockIdx.y * u64(gridDim.x) + blockIdx.x)";
}

void Writer::thread_number(const std::string& name, std::int64_t per_block, std::int64_t step) {
  const std::string value = times(block_number(), per_block) + " + threadIdx.x";
  line("const " + unsigned_type() + " " + name + " = " +
       (step > 1 ? times("(" + value + ")", step) : value) + ";");
}

void Writer::block_number(const std::string& name) {
  line("const " + unsigned_type() + " " + name + " = " + block_number() + ";");
}

std::string Writer::place(const LoopNest::Operand& operand, const AxisList& axes) const {
  std::string sum;
  for (std::size_t a : axes) {
    const Size stride = operand.strides[a];
    if (always_equal(stride, 0)) continue;
    if (!sum.empty()) sum += stride < 0 ? " - " : " + ";
    if (sum.empty() && stride < 0) sum += "-";
    sum += axis_name(a);
    const Size size = magnitude(stride);
    if (!is_one(size)) sum += " * " + number(size);
  }
  return sum.empty() ? "0" : sum;
}

std::string Writer::place(const LoopNest::Operand& operand) const {
  AxisList all(operand.strides.size());
  for (std::size_t a = 0; a < all.size(); ++a) all[a] = a;
  return place(operand, all);
}

/// The compiler may take it that what a restricted pointer reads is written through no other, and
/// then loads it past the cache that writes go to (ld.global.nc).
void Writer::restrict_pointers() {
  for (std::size_t p = 0; p < pointers_.size(); ++p) {
    if (!pointers_[p].argument || !is_apart(kernel_, p)) continue;
    kernel_.pointers[p].is_restricted = true;
    std::string& argument = arguments_[*pointers_[p].argument];
    argument.insert(argument.find("* ") + 2, "__restrict__ ");
  }
}

std::string Writer::size_argument(Size size, const std::string& type) {
  std::size_t number = 0;
  const auto argument = [&] { return "const " + type + " size" + std::to_string(number); };
  while (number < kernel_.sizes.size() &&
         !(always_equal(kernel_.sizes[number], size) && size_arguments_[number] == argument()))
    ++number;
  if (number == kernel_.sizes.size()) {
    kernel_.sizes.push_back(size);
    size_arguments_.push_back(argument());
  }
  return "size" + std::to_string(number);
}

/// Names the formulas in the text; their arguments come last, after those of constants.
void Writer::name_sizes() {
  std::string text;
  for (std::string_view rest = body_;;) {
    const std::size_t begin = rest.find(size_mark);
    text += rest.substr(0, begin);
    if (begin == rest.npos) break;
    const std::size_t end = rest.find(size_mark, begin + 1);
    const Size size = Size::of_word(std::stoll(std::string(rest.substr(begin + 1, end))));
    text += size_argument(size, unsigned_type());
    rest.remove_prefix(end + 1);
  }
  body_ = std::move(text);
  for (const auto& last : {constant_arguments_, size_arguments_})
    arguments_.insert(arguments_.end(), last.begin(), last.end());
}

KernelSource Writer::finish(Size blocks) {
  kernel_.blocks = blocks;
  name_sizes();
  restrict_pointers();
  std::string text =
      "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(kernel_.block[0]) +
      (blocks_ > 0 ? ", " + std::to_string(blocks_) : "") + ")\n" + kernel_.name + "(";
  std::string row;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::string argument = arguments_[i] + (i + 1 < arguments_.size() ? "," : ") {");
    if (i > 0) {
      const std::size_t used = row.empty() ? kernel_.name.size() + 1 : 0;
      if (used + row.size() + argument.size() > 96) {
        text += row + "\n    ";
        row.clear();
      } else {
        row += ' ';
      }
    }
    row += argument;
  }
  if (arguments_.empty()) row = ") {";
  text += row + "\n" + body_ + "}\n";
  const std::string vocabulary = vocabulary_for(text);
  kernel_.kernel_begin = vocabulary.size();
  kernel_.text = vocabulary + text;
  return std::move(kernel_);
}

}  // namespace ein::codegen
