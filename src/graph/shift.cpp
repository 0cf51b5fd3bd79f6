// flip, roll and pad: elements in other places along some axes.
#include <algorithm>

#include "graph/named.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// A value with the dimensions of the first operand, some of them longer or shorter.
struct Resized {
  NamedValue value;
  Place place;
  std::vector<Axis> axes;

  explicit Resized(const NamedBuild& b)
      : value(b.operand(0)), place(b.full()), axes(b.solved().axes) {}

  std::size_t axis(std::size_t dim) const {
    return static_cast<std::size_t>(place.access[dim].terms[0].axis);
  }
  void resize(std::size_t dim, Size size) {
    place.shape[dim] = size;
    axes[axis(dim)].size = size;
  }
};

/// So many elements of `from` along dimension `dim`: those at `at`.
NamedValue part(NamedBuild& b, const Resized& from, std::size_t dim, const DimIndex& at,
                Size count) {
  Resized part = from;
  part.resize(dim, count);
  part.value.access[dim] = at;
  return b.reindex(part.value, part.place, part.axes);
}

DimIndex forwards(std::size_t axis, Size first) { return {first, {{static_cast<int>(axis), 1}}}; }
DimIndex backwards(std::size_t axis, Size first) { return {first, {{static_cast<int>(axis), -1}}}; }

/// The value in memory of its own, where nothing was to be moved.
NamedValue copied(NamedBuild& b, const Resized& from) {
  return b.map({from.value}, Ex::input(0), from.place, b.dtype(), compute_type(b.dtype()));
}

// --- roll ---

struct Shift {
  std::size_t dim;
  Size by;  // from 1 to the size - 1
};

/// `from`, which is sliced along earlier dimensions already, rolled along those left in `shifts`.
NamedValue rolled(NamedBuild& b, const Resized& from, std::span<const Shift> shifts) {
  if (shifts.empty()) return b.reindex(from.value, from.place, from.axes);
  const auto [dim, by] = shifts[0];
  const Size size = from.place.shape[dim];
  const std::pair<Size, Size> pieces[] = {{size - by, by}, {0, size - by}};  // begin, count
  std::vector<NamedValue> parts;
  for (const auto& [begin, count] : pieces) {
    Resized piece = from;
    piece.resize(dim, count);
    piece.value.access[dim].offset = begin;
    parts.push_back(rolled(b, piece, shifts.subspan(1)));
  }
  return b.concat(parts, dim, from.place);
}

/// `shift` modulo an axis's size.
Size moved_by(Size shift, Size size) {
  if (ask_equal(size, 0)) return 0;
  if (shift >= 0 && shift < size) return shift;
  if (shift < 0 && shift > -size) return shift + size;
  const Size rest = shift % size;
  return rest < 0 ? rest + size : rest;
}

// --- pad ---

/// What lies on one side of `from` along dimension `dim`: `count` elements, at least 1.
NamedValue padding(NamedBuild& b, const Resized& from, std::size_t dim, Size count, bool before) {
  const detail::NamedOptions& options = b.call().named;
  const Size size = from.place.shape[dim];
  const std::size_t axis = from.axis(dim);
  if (!options.pad_mode) {
    Resized filled = from;
    filled.resize(dim, count);
    const DType dtype = b.dtype();
    Op op = op_of(OpKind::map, {}, filled.place, dtype);
    op.expr = element(b, options.otherwise, dtype);
    op.compute = is_integral(dtype) ? compute_type(dtype) : DType::f64;
    op.axes = filled.axes;
    return b.add(std::move(op));
  }
  switch (*options.pad_mode) {
    case PadMode::reflect:
      return part(b, from, dim, backwards(axis, before ? count : size - 2), count);
    case PadMode::replicate:
      return part(b, from, dim, {before ? Size(0) : size - 1, {}}, count);
    case PadMode::wrap:
      return part(b, from, dim, forwards(axis, before ? size - count : Size(0)), count);
  }
  throw std::logic_error("pad: an unknown mode");
}

void require_padding(const NamedBuild& b, std::size_t dim, Size count) {
  const std::optional<PadMode> mode = b.call().named.pad_mode;
  const Size size = b.full().shape[dim];
  const auto complain = [&](const std::string& why) {
    b.complain(ErrorKind::value,
               "an axis of " + to_string(size) + " cannot be padded with " + to_string(count) +
                   " elements: " + why,
               b.marks_of_brackets());
  };
  if (count < 0) complain("at least 0 are wanted");
  if (ask_equal(count, 0)) return;
  if (mode == PadMode::reflect && count >= size)
    complain("PadMode::reflect adds fewer than the axis has");
  if (mode == PadMode::wrap && count > size)
    complain("PadMode::wrap adds no more than the axis has");
  if (mode == PadMode::replicate && ask_equal(size, 0))
    complain("PadMode::replicate has none to repeat");
}

}  // namespace

Graph build_flip(NamedBuild& b) {
  Resized x(b);
  bool moves = false;
  for (std::size_t dim : b.marked_dims()) {
    const Size size = x.place.shape[dim];
    if (size <= 1) continue;
    x.value.access[dim] = backwards(x.axis(dim), size - 1);
    moves = true;
  }
  return b.finish({moves ? b.reindex(x.value, x.place, x.axes) : copied(b, x)});
}

Graph build_roll(NamedBuild& b) {
  const std::vector<std::size_t> dims = b.marked_dims();
  const std::vector<Size> by = b.of_each_axis(b.call().named.numbers, "shifts");
  Resized x(b);
  std::vector<Shift> shifts;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Size shift = moved_by(by[i], x.place.shape[dims[i]]);
    if (!ask_equal(shift, 0)) shifts.push_back({dims[i], shift});
  }
  if (shifts.empty()) return b.finish({copied(b, x)});
  // Two pieces for each axis: of many axes that would be too many at once.
  constexpr std::size_t at_once = 4;
  for (std::span<const Shift> rest = shifts; !rest.empty();) {
    const std::size_t count = std::min(rest.size(), at_once);
    x.value = rolled(b, x, rest.first(count));
    rest = rest.subspan(count);
  }
  return b.finish({x.value});
}

Graph build_pad(NamedBuild& b) {
  const std::vector<std::size_t> dims = b.marked_dims();
  const std::span<const Size> numbers = b.call().named.numbers;
  const auto before_count = static_cast<std::size_t>(b.call().named.k);
  const std::vector<Size> before = b.of_each_axis(numbers.first(before_count), "sizes before"),
                          after = b.of_each_axis(numbers.subspan(before_count), "sizes after");
  Resized x(b);
  bool grows = false;
  // From the last axis on: what lies side by side is joined first.
  for (std::size_t i = dims.size(); i-- > 0;) {
    const std::size_t dim = dims[i];
    require_padding(b, dim, before[i]);
    require_padding(b, dim, after[i]);
    Size size;
    if (add_overflows(before[i], after[i], size) || add_overflows(size, x.place.shape[dim], size)) {
      b.complain(ErrorKind::overflow, "the size of the padded axis exceeds 63 bits",
                 b.marks_of_brackets());
    }
    std::vector<NamedValue> parts{x.value};
    if (before[i] > 0) parts.insert(parts.begin(), padding(b, x, dim, before[i], true));
    if (after[i] > 0) parts.push_back(padding(b, x, dim, after[i], false));
    x.resize(dim, size);
    x.value = b.concat(parts, dim, x.place);
    grows |= parts.size() > 1;
  }
  return b.finish({grows ? x.value : copied(b, x)});
}

}  // namespace ein
