// Sorting: the places of a line's values in order. A value becomes an unsigned key that orders as
// it does, with its place beside it. Long lines are sorted by the bytes of the keys, from the
// lowest.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "machine/parallel.hpp"
#include "size/ask.hpp"

namespace ein::host {
namespace {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// Keys order as values do. The zeros of both signs have one key, and so has every NaN: the
/// greatest.
template <class T>
KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (is_floating(dtype_of<T>)) {
    using Number = std::conditional_t<sizeof(T) == 8, double, float>;
    const Number x = convert<Number>(value);
    if (x != x) return std::numeric_limits<Key>::max();
    const Key bits = std::bit_cast<Key>(x + Number(0));  // -0 + 0 is +0
    return bits & sign ? ~bits : bits | sign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(value) ^ sign;
  } else {
    return value;
  }
}

/// A key and its place: in one word, where both fit.
struct Narrow {
  std::uint64_t word;
  Narrow() = default;
  Narrow(std::uint32_t key, std::int64_t place)
      : word(std::uint64_t{key} << 32 | static_cast<std::uint64_t>(place)) {}
  static constexpr std::size_t key_bytes = 4;
  std::size_t key_byte(std::size_t i) const { return word >> (32 + 8 * i) & 0xFF; }
  std::int64_t place() const { return static_cast<std::int64_t>(word & 0xFFFFFFFF); }
  friend bool operator<(Narrow a, Narrow b) { return a.word < b.word; }
};
struct Wide {
  std::uint64_t key;
  std::int64_t at;
  static constexpr std::size_t key_bytes = 8;
  std::size_t key_byte(std::size_t i) const { return key >> (8 * i) & 0xFF; }
  std::int64_t place() const { return at; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.key != b.key ? a.key < b.key : a.at < b.at;
  }
};

/// Sorts n entries that lie in the order of their places; returns where they are then, here or in
/// `spare`.
template <class Entry>
Entry* sorted(Entry* entries, Entry* spare, std::int64_t n) {
  constexpr std::int64_t few = 256;
  if (n <= few) {
    std::sort(entries, entries + n);
    return entries;
  }
  std::int64_t counts[Entry::key_bytes][256] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < Entry::key_bytes; ++b) ++counts[b][entries[i].key_byte(b)];
  }
  for (std::size_t b = 0; b < Entry::key_bytes; ++b) {
    std::int64_t* next = counts[b];
    if (next[entries[0].key_byte(b)] == n) continue;  // all have the same byte
    std::int64_t before = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) before += std::exchange(next[byte], before);
    for (std::int64_t i = 0; i < n; ++i) spare[next[entries[i].key_byte(b)]++] = entries[i];
    std::swap(entries, spare);
  }
  return entries;
}

template <class T, class Entry>
class SortKernel final : public Kernel {
 public:
  explicit SortKernel(const LoopNest& nest)
      : nest_(nest),
        axis_(axes_where(nest, [&](std::size_t a) { return nest.axes[a].ordered; }).at(0)),
        size_(nest.axes[axis_].size),
        lines_(nest, axes_where(nest, [&](std::size_t a) { return a != axis_; })) {
    const std::int64_t lines = size_ == 0 ? 0 : lines_.count();
    // A line costs some times as much as its elements.
    const std::int64_t lines_per_part =
        std::max<std::int64_t>(1, elements_per_part / 8 / std::max<std::int64_t>(1, size_));
    constexpr std::int64_t most_parts = 16;  // each has memory for a line
    parts_ = std::min(most_parts, lines / lines_per_part + (lines % lines_per_part != 0));
  }

  std::size_t workspace_bytes(int /*threads*/) const override {
    return static_cast<std::size_t>(parts_) * part_bytes();
  }

  void run(const Run& run) const override {
    const std::int64_t lines = lines_.count();
    parallel_for(parts_, [&](std::int64_t part) {
      auto* entries =
          reinterpret_cast<Entry*>(run.workspace + static_cast<std::size_t>(part) * part_bytes());
      Loops::Cursor cursor(lines_, nest_.axes.size());
      const auto begin_of = [&](std::int64_t p) {
        return lines / parts_ * p + std::min(lines % parts_, p);
      };
      std::int64_t line = begin_of(part);
      cursor.seek(line);
      for (; line < begin_of(part + 1); ++line, cursor.next()) {
        sort_line(reinterpret_cast<const T*>(base(nest_.inputs[0], run.buffers) + cursor.offset(0)),
                  entries, base(nest_.output, run.buffers) + cursor.offset(1));
      }
    });
  }

 private:
  std::size_t part_bytes() const {
    return aligned_bytes(2 * static_cast<std::size_t>(size_) * sizeof(Entry));
  }

  void sort_line(const T* from, Entry* entries, std::byte* out) const {
    const std::int64_t step = nest_.inputs[0].strides[axis_],
                       out_step = nest_.output.strides[axis_];
    const KeyOf<T> flip = nest_.reverse ? std::numeric_limits<KeyOf<T>>::max() : 0;
    for (std::int64_t i = 0; i < size_; ++i) entries[i] = Entry{key_of(from[i * step]) ^ flip, i};
    entries = sorted(entries, entries + size_, size_);
    auto* places = reinterpret_cast<std::int64_t*>(out);
    for (std::int64_t i = 0; i < size_; ++i) places[i * out_step] = entries[i].place();
  }

  LoopNest nest_;
  std::size_t axis_;
  std::int64_t size_;  // of a line
  Loops lines_;
  std::int64_t parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_sort_kernel(const LoopNest& nest) {
  std::unique_ptr<Kernel> kernel;
  Size longest = 0;
  for (const LoopNest::NestAxis& axis : nest.axes) longest = std::max(longest, axis.size);
  visit(nest.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (sizeof(T) < 8) {
      if (longest <= std::int64_t{1} << 32) {
        kernel = std::make_unique<SortKernel<T, Narrow>>(nest);
        return;
      }
    }
    kernel = std::make_unique<SortKernel<T, Wide>>(nest);
  });
  return kernel;
}

}  // namespace ein::host
