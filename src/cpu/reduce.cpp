// Reductions. Strips run along a kept axis (each element of a strip its own result) or along a
// reduced one (a strip becomes one number), whichever the input's layout favours. Short kept axes
// make the rows of a strip: over another kept axis, or over a reduced one, and then the rows are
// combined at the end. Sums are cascaded: runs of at most 32 partial sums are added in a row, then
// runs of those, so the error grows with the logarithm of the number of elements. Work is cut by
// shape alone, so that results do not depend on the threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/strip.hpp"
#include "nest/combine.hpp"
#include "schedule/rows_of.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

/// The sum of `lanes` numbers, which is a power of two, by halves. The recursion unrolls it.
template <std::size_t lanes, class C>
C sum_lanes(C* lane) {
  if constexpr (lanes == 1) {
    return lane[0];
  } else {
    for (std::size_t l = 0; l < lanes / 2; ++l) lane[l] += lane[l + lanes / 2];
    return sum_lanes<lanes / 2>(lane);
  }
}

/// An input that needs no evaluation is combined in longer strips: memory that is read without a
/// break past the end of a page comes twice as fast.
constexpr std::int64_t plain_strip_size = 4 * strip_size;

/// The sum of a strip of floats, in 32 lanes side by side, each in runs of 32.
template <class C>
C sum_strip(const C* values, std::size_t n) {
  constexpr std::size_t lanes = 32, run = 32 * lanes;
  const auto add_run = [&](C* lane, std::size_t i) {
    const std::size_t end = std::min(n, i + run);
    for (; i + lanes <= end; i += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) lane[l] += values[i + l];
    }
    for (std::size_t l = 0; i < end; ++i, ++l) lane[l] += values[i];
  };
  C total[lanes] = {};
  add_run(total, 0);
  for (std::size_t i = run; i < n; i += run) {
    C lane[lanes] = {};
    add_run(lane, i);
    for (std::size_t l = 0; l < lanes; ++l) total[l] += lane[l];
  }
  return sum_lanes<lanes>(total);
}

/// The largest of a strip, or the smallest; NaN if there is one.
template <Combine combine, class C>
C extreme_of_strip(const C* values, std::size_t n) {
  constexpr std::size_t lanes = 32;
  const auto pick = [](C a, C b) {
    return a != a || (combine == Combine::max ? a > b : a < b) ? a : b;
  };
  C lane[lanes];
  std::fill_n(lane, lanes, identity<C>(combine));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = pick(values[i + l], lane[l]);
  }
  for (std::size_t l = 0; i < n; ++i, ++l) lane[l] = pick(values[i], lane[l]);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lane[l] = pick(lane[l + half], lane[l]);
  }
  return lane[0];
}

/// One strip to one number.
template <class C>
C combine_strip(Combine combine, const C* values, std::size_t n) {
  if (combine == Combine::max) return extreme_of_strip<Combine::max>(values, n);
  if (combine == Combine::min) return extreme_of_strip<Combine::min>(values, n);
  if constexpr (std::is_floating_point_v<C>) {
    if (combine == Combine::sum) return sum_strip(values, n);
  }
  // Others by halves.
  if (n == 0) return identity<C>(combine);
  C half[plain_strip_size / 2 + 1];
  if (n == 1) {  // still to be made 0 or 1 by `any` and `all`
    half[0] = identity<C>(combine);
    apply(scalar_op(combine), half, values, values, half, 1);
    return half[0];
  }
  for (; n > 1; n = (n + 1) / 2, values = half) {
    const C* upper = values + (n + 1) / 2;
    apply(scalar_op(combine), values, upper, upper, half, n / 2);
    if (n % 2 == 1) half[n / 2] = values[n / 2];
  }
  return half[0];
}

/// Combines any number of strips of the same length, in a cascade.
template <class C>
class Cascade {
 public:
  static constexpr std::size_t run = 32;
  static constexpr std::size_t levels = 13;  // 32^13 > 2^63 strips

  /// Elements of memory for strips of n.
  static std::size_t scratch_size(std::size_t n) { return levels * n; }

  Cascade(Combine combine, std::size_t n, C* memory)
      : combine_(combine), op_(scalar_op(combine)), n_(n), memory_(memory) {
    clear(0);
  }
  void add(const C* values) { add(values, n_); }
  /// Of the last strip the end may be missing.
  void add(const C* values, std::size_t n) {
    apply(op_, memory_, values, values, memory_, n);
    for (std::size_t level = 0; ++count_[level] == run && level + 1 < levels; ++level) {
      if (level == top_) clear(++top_);
      C* sums = memory_ + level * n_;
      C* above = sums + n_;
      apply(op_, above, sums, sums, above, n_);
      clear(level);
    }
  }
  /// The combination of all strips added; the cascade is used up.
  C* result() {
    for (std::size_t level = 1; level <= top_; ++level) {
      const C* below = memory_ + (level - 1) * n_;
      C* sums = memory_ + level * n_;
      apply(op_, sums, below, below, sums, n_);
    }
    return memory_ + top_ * n_;
  }

 private:
  void clear(std::size_t level) {
    std::fill_n(memory_ + level * n_, n_, identity<C>(combine_));
    count_[level] = 0;
  }

  Combine combine_;
  ScalarOp op_;
  std::size_t n_;
  C* memory_;
  std::size_t count_[levels] = {};
  std::size_t top_ = 0;
};

template <class C>
class ReduceKernel final : public Kernel {
 public:
  explicit ReduceKernel(const LoopNest& nest)
      : nest_(nest),
        combine_(*nest.combine),
        body_(nest.body, nest.inputs),
        epilogue_(nest.epilogue.steps.empty() ? ScalarExpr(Ex::input(0)) : nest.epilogue,
                  epilogue_inputs(nest)),
        tile_axis_(host::strip_axis(nest, false, guide())),
        reduced_axis_(host::strip_axis(nest, true, guide())),
        along_reduced_(choose_direction()),
        row_axis_(choose_rows()),
        rows_are_reduced_(row_axis_ != no_axis && nest.axes[row_axis_].reduced) {
    tile_length_ = tile_axis_ == no_axis ? 1 : nest.axes[tile_axis_].size;
    const std::int64_t rows = strip_size / std::max<std::int64_t>(1, tile_length_);
    if (along_reduced_) {
      const bool is_plain = body_.is_plain_input() && nest.inputs[0].strides[reduced_axis_] == 1;
      reduced_cut_ = cut(nest, reduced_axis_, is_plain ? plain_strip_size : strip_size);
      std::int64_t elements = 1;  // of one result
      for (const LoopNest::NestAxis& axis : nest.axes)
        elements *= axis.reduced ? std::max<std::int64_t>(1, axis.size) : 1;
      results_inside_ = kept_lies_inside();
      kept_cut_ = cut(nest, tile_axis_,
                      results_inside_
                          ? strip_size
                          : std::clamp<std::int64_t>(elements_per_part / elements, 1, strip_size));
    } else if (rows_are_reduced_) {
      reduced_cut_ = cut(nest, row_axis_, rows);
    } else {
      const bool is_plain = body_.is_plain_input() && stride(nest.inputs[0], tile_axis_) == 1;
      kept_cut_ = row_axis_ == no_axis
                      ? cut(nest, tile_axis_, is_plain ? plain_strip_size : strip_size)
                      : cut(nest, row_axis_, rows);
    }
    const auto is_looped = [&](std::size_t a) {
      return a != kept_cut_.axis && a != reduced_cut_.axis &&
             (row_axis_ == no_axis || a != tile_axis_);
    };
    tiles_over_ = Loops(nest, axes_where(nest, [&](std::size_t a) {
                          return !nest.axes[a].reduced && is_looped(a);
                        }));
    reduced_over_ = Loops(nest, axes_where(nest, [&](std::size_t a) {
                            return nest.axes[a].reduced && is_looped(a);
                          }));
    tiles_ = tile_length_ == 0 ? 0 : tiles_over_.count() * kept_cut_.pieces();
    units_ = reduced_over_.count() * reduced_cut_.pieces();
    const std::int64_t unit =
        kept_cut_.step * reduced_cut_.step * (row_axis_ == no_axis ? 1 : tile_length_);
    // Few results of many elements: the reduced range is cut as well, and the pieces combined
    // after.
    const double elements_per_tile =
        static_cast<double>(unit) * static_cast<double>(units_);  // may exceed 63 bits
    const auto parts =
        static_cast<std::int64_t>(elements_per_tile / static_cast<double>(elements_per_part));
    if (tiles_ > 0 && tiles_ < 16)
      chunks_ = std::clamp<std::int64_t>(parts, 1, std::clamp<std::int64_t>(units_, 1, 64));
    tiles_per_part_ = static_cast<std::int64_t>(
        std::max(1.0, static_cast<double>(elements_per_part) / std::max(1.0, elements_per_tile)));
    for (const LoopNest::Operand& input : epilogue_inputs(nest)) {
      epilogue_steps_.push_back(stride(input, tile_axis_));
      epilogue_row_steps_.push_back(stride(input, kept_cut_.axis));
    }
    epilogue_steps_[0] = 1;  // the combined values lie side by side
    epilogue_row_steps_[0] = tile_length_;
    for (const LoopNest::Operand& input : nest_.inputs) {
      steps_.push_back(stride(input, along_reduced_ ? reduced_axis_ : tile_axis_));
      row_steps_.push_back(stride(input, along_reduced_ ? kept_cut_.axis : row_axis_));
    }
  }

  /// A strip of partial results for each chunk of each tile.
  std::size_t workspace_bytes(int /*threads*/) const override {
    return chunks_ == 1 ? 0 : static_cast<std::size_t>(tiles_ * chunks_ * tile_size()) * sizeof(C);
  }

  void run(const Run& run) const override {
    if (tiles_ == 0) return;
    if (chunks_ == 1) {
      parallel_for((tiles_ + tiles_per_part_ - 1) / tiles_per_part_, [&](std::int64_t part) {
        Worker worker(*this, run.buffers);
        const std::int64_t end = std::min(tiles_, (part + 1) * tiles_per_part_);
        for (std::int64_t tile = part * tiles_per_part_; tile < end; ++tile) {
          worker.finish(tile, worker.reduce(tile, 0, units_));
        }
      });
      return;
    }
    const auto partial_of = [&](std::int64_t tile, std::int64_t chunk) {
      return reinterpret_cast<C*>(run.workspace) + (tile * chunks_ + chunk) * tile_size();
    };
    parallel_for(tiles_ * chunks_, [&](std::int64_t part) {
      Worker worker(*this, run.buffers);
      const std::int64_t tile = part / chunks_, chunk = part % chunks_;
      const C* values =
          worker.reduce(tile, units_ * chunk / chunks_, units_ * (chunk + 1) / chunks_);
      std::copy_n(values, results_of(tile), partial_of(tile, chunk));
    });
    Worker worker(*this, run.buffers);
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {
      Cascade<C> cascade(combine_, results_of(tile), worker.cascade_memory());
      for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) cascade.add(partial_of(tile, chunk));
      worker.finish(tile, cascade.result());
    }
  }

 private:
  /// The operand whose layout decides how to walk; a body of constants alone has no input.
  const LoopNest::Operand& guide() const {
    return nest_.inputs.empty() ? nest_.output : nest_.inputs[0];
  }

  /// What the epilogue reads: the combined values and inputs of the nest.
  static std::vector<LoopNest::Operand> epilogue_inputs(const LoopNest& nest) {
    std::vector<LoopNest::Operand> inputs = nest.inputs;
    inputs.resize(std::max<std::size_t>(1, inputs.size()));
    inputs[0] = {.dtype = dtype_of<C>, .strides = std::vector<std::int64_t>(nest.axes.size(), 0)};
    return inputs;
  }

  static std::int64_t stride(const LoopNest::Operand& operand, std::size_t axis) {
    return axis == no_axis ? 0 : operand.strides[axis];
  }

  bool choose_direction() const {
    if (reduced_axis_ == no_axis) return false;
    if (tile_axis_ == no_axis) return true;
    const auto stride = [&](std::size_t axis) { return guide().strides[axis]; };
    const bool tile_is_easy = stride(tile_axis_) == 1;
    const bool reduced_is_easy = stride(reduced_axis_) <= 1 && nest_.axes[reduced_axis_].size >= 16;
    if (tile_is_easy != reduced_is_easy) return reduced_is_easy;
    const std::int64_t reduced_stride = std::abs(stride(reduced_axis_)),
                       tile_stride = std::abs(stride(tile_axis_));
    if (!tile_is_easy && reduced_stride != tile_stride &&
        std::min(nest_.axes[reduced_axis_].size, nest_.axes[tile_axis_].size) >= 16) {
      return reduced_stride < tile_stride;
    }
    return nest_.axes[reduced_axis_].size > nest_.axes[tile_axis_].size;
  }

  /// Whether the kept axis, of enough results, lies within a reduced axis that is not walked in
  /// strips: memory is then read in order if each step of that axis adds to all results.
  bool kept_lies_inside() const {
    if (tile_axis_ == no_axis || nest_.axes[tile_axis_].size < 8) return false;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      const bool is_looped = nest_.axes[a].reduced && a != reduced_axis_ && nest_.axes[a].size > 1;
      if (is_looped && std::abs(guide().strides[a]) > std::abs(guide().strides[tile_axis_]))
        return true;
    }
    return false;
  }

  std::size_t choose_rows() const {
    if (along_reduced_) return no_axis;
    return host::row_axis(nest_, tile_axis_, guide(), strip_size);
  }

  /// The most results of a tile.
  std::int64_t tile_size() const { return std::max(strip_size, kept_cut_.step); }
  /// A tile is what one strip gives: so many results.
  std::size_t results_of(std::int64_t tile) const {
    const std::int64_t count = kept_cut_.count(tile % kept_cut_.pieces());
    return static_cast<std::size_t>(row_axis_ == no_axis ? count : count * tile_length_);
  }
  std::size_t row_length() const {
    return row_axis_ == no_axis ? 0 : static_cast<std::size_t>(tile_length_);
  }

  /// What one thread needs for the tiles it works on.
  class Worker {
   public:
    Worker(const ReduceKernel& kernel, std::span<std::byte* const> buffers)
        : k_(kernel),
          buffers_(buffers),
          tiles_(kernel.tiles_over_, kernel.nest_.axes.size()),
          reduced_(kernel.reduced_over_, kernel.nest_.axes.size()),
          from_(kernel.epilogue_steps_.size()) {
      const auto strip = static_cast<std::size_t>(k_.tile_size());
      C* memory = strip_scratch<C>(k_.body_.scratch_size() + k_.epilogue_.scratch_size() + strip +
                                   Cascade<C>::scratch_size(strip) + Cascade<C>::scratch_size(1));
      body_ = memory;
      epilogue_ = body_ + k_.body_.scratch_size();
      results_ = epilogue_ + k_.epilogue_.scratch_size();
      scalars_ = results_ + strip;
      cascade_ = scalars_ + Cascade<C>::scratch_size(1);
    }

    C* cascade_memory() const { return cascade_; }

    /// The combination over units [begin, end) of the reduced range, for each result of a tile.
    const C* reduce(std::int64_t tile, std::int64_t begin, std::int64_t end) {
      tiles_.seek(tile / k_.kept_cut_.pieces());
      const std::int64_t first = k_.kept_cut_.first(tile % k_.kept_cut_.pieces());
      const std::size_t results = k_.results_of(tile);
      if (!k_.along_reduced_) return reduce_strips(first, results, begin, end);
      if (end - begin == 1) {
        reduce_short(first, results, begin);
      } else if (k_.results_inside_) {
        Cascade<C> cascade(k_.combine_, results, cascade_);
        for (std::int64_t unit = begin; unit < end; ++unit) {
          reduce_short(first, results, unit);
          cascade.add(results_);
        }
        return cascade.result();
      } else {
        for (std::size_t j = 0; j < results; ++j)
          results_[j] = reduce_one(first + static_cast<std::int64_t>(j), begin, end);
      }
      return results_;
    }

    /// Applies the epilogue to a tile's combined values and stores them.
    void finish(std::int64_t tile, const C* values) {
      tiles_.seek(tile / k_.kept_cut_.pieces());
      const LoopNest::Operand& output = k_.nest_.output;
      const std::int64_t first = k_.kept_cut_.first(tile % k_.kept_cut_.pieces());
      const std::size_t all = k_.results_of(tile),
                        row_length = k_.rows_are_reduced_ ? 0 : k_.row_length();
      for (std::size_t done = 0; done < all; done += strip_size) {
        const std::size_t n = std::min<std::size_t>(strip_size, all - done);
        const std::int64_t at =
            first + static_cast<std::int64_t>(done);  // rows fill one strip at most
        from_[0] = reinterpret_cast<const std::byte*>(values + done);
        for (std::size_t i = 1; i < from_.size(); ++i) {
          const LoopNest::Operand& input = k_.nest_.inputs[i];
          from_[i] =
              base(input, buffers_) + tiles_.offset(i) +
              at * k_.kept_cut_.stride(input) * static_cast<std::int64_t>(size_of(input.dtype));
        }
        const C* out = k_.epilogue_.evaluate(
            {from_, k_.epilogue_steps_, k_.epilogue_row_steps_, row_length}, n, epilogue_);
        std::byte* to =
            base(output, buffers_) + tiles_.offset(k_.nest_.inputs.size()) +
            at * k_.kept_cut_.stride(output) * static_cast<std::int64_t>(size_of(output.dtype));
        store_strip(out, n, row_length, to, output.dtype, stride(output, k_.tile_axis_),
                    stride(output, k_.row_axis_));
      }
    }

   private:
    /// The values of the body at a unit of the reduced range, `at` elements into kept_cut_.
    const C* strip(std::int64_t at, std::int64_t reduced_first, std::size_t n) {
      return strip(at, reduced_first, n, k_.row_length());
    }
    const C* strip(std::int64_t at, std::int64_t reduced_first, std::size_t n,
                   std::size_t row_length) {
      for (std::size_t i = 0; i < k_.nest_.inputs.size(); ++i) {
        const LoopNest::Operand& input = k_.nest_.inputs[i];
        const std::int64_t elements =
            at * k_.kept_cut_.stride(input) + reduced_first * k_.reduced_cut_.stride(input);
        from_[i] = base(input, buffers_) + tiles_.offset(i) + reduced_.offset(i) +
                   elements * static_cast<std::int64_t>(size_of(input.dtype));
      }
      return k_.body_.evaluate({from_, k_.steps_, k_.row_steps_, row_length}, n, body_);
    }

    /// Calls f(first, count) with the piece of reduced_cut_ of each unit.
    template <class F>
    void for_units(std::int64_t begin, std::int64_t end, F&& f) {
      if (begin == end) return;
      const std::int64_t pieces = k_.reduced_cut_.pieces();
      reduced_.seek(begin / pieces);
      std::int64_t piece = begin % pieces;
      for (std::int64_t unit = begin; unit < end; ++unit) {
        f(k_.reduced_cut_.first(piece), static_cast<std::size_t>(k_.reduced_cut_.count(piece)));
        if (++piece == pieces) {
          piece = 0;
          reduced_.next();
        }
      }
    }

    const C* reduce_strips(std::int64_t at, std::size_t results, std::int64_t begin,
                           std::int64_t end) {
      std::size_t rows = k_.rows_are_reduced_ ? static_cast<std::size_t>(k_.reduced_cut_.step) : 1;
      Cascade<C> cascade(k_.combine_, rows * results, cascade_);
      for_units(begin, end, [&](std::int64_t first, std::size_t count) {
        const std::size_t n = k_.rows_are_reduced_ ? count * results : results;
        cascade.add(strip(at, first, n), n);
      });
      C* combined = cascade.result();
      const ScalarOp op = scalar_op(k_.combine_);
      for (; rows > 1; rows = (rows + 1) / 2) {
        const C* upper = combined + (rows + 1) / 2 * results;
        apply(op, combined, upper, upper, combined, rows / 2 * results);
      }
      return combined;
    }

    /// A row of the reduced axis for each result, as many rows to a strip as it holds.
    void reduce_short(std::int64_t at, std::size_t results, std::int64_t unit) {
      for_units(unit, unit + 1, [&](std::int64_t first, std::size_t n) {
        if (k_.body_.is_plain_input() && k_.steps_[0] == 1) {
          // Combined where they lie.
          const C* values = strip(at, first, n);
          const std::int64_t step = k_.kept_cut_.stride(k_.nest_.inputs[0]);
          for (std::size_t j = 0; j < results; ++j)
            results_[j] =
                combine_strip(k_.combine_, values + static_cast<std::int64_t>(j) * step, n);
          return;
        }
        const std::size_t rows =
            n == 0 ? results : std::max<std::size_t>(1, static_cast<std::size_t>(strip_size) / n);
        for (std::size_t j = 0; j < results; j += rows) {
          const std::size_t count = std::min(rows, results - j);
          const C* values =
              strip(at + static_cast<std::int64_t>(j), first, n * count, count > 1 ? n : 0);
          for (std::size_t r = 0; r < count; ++r)
            results_[j + r] = combine_strip(k_.combine_, values + r * n, n);
        }
      });
    }

    C reduce_one(std::int64_t at, std::int64_t begin, std::int64_t end) {
      // The cascade is for numbers one at a time too slow a way to combine them, so strips of them
      // come between.
      Cascade<C> cascade(k_.combine_, 1, scalars_);
      C partial[strip_size];
      std::size_t partials = 0;
      const auto flush = [&] {
        const C value = combine_strip(k_.combine_, partial, partials);
        cascade.add(&value);
        partials = 0;
      };
      for_units(begin, end, [&](std::int64_t first, std::size_t n) {
        partial[partials++] = combine_strip(k_.combine_, strip(at, first, n), n);
        if (partials == std::size(partial)) flush();
      });
      if (partials > 0) flush();
      return *cascade.result();
    }

    const ReduceKernel& k_;
    std::span<std::byte* const> buffers_;
    Loops::Cursor tiles_, reduced_;
    SmallArray<const std::byte*, 16> from_;
    C *body_, *epilogue_, *results_, *scalars_, *cascade_;
  };

  LoopNest nest_;
  Combine combine_;
  StripExpr<C> body_, epilogue_;
  std::size_t tile_axis_, reduced_axis_;
  bool along_reduced_, results_inside_ = false;
  std::size_t row_axis_;
  bool rows_are_reduced_;
  Cut kept_cut_, reduced_cut_;
  Loops tiles_over_, reduced_over_;
  std::int64_t tile_length_;
  std::vector<std::int64_t> steps_,
      row_steps_;  // of the inputs, along a strip and between its rows
  std::vector<std::int64_t> epilogue_steps_, epilogue_row_steps_;  // of what the epilogue reads
  std::int64_t tiles_, units_, chunks_ = 1, tiles_per_part_;
};

}  // namespace

std::unique_ptr<Kernel> make_reduce_kernel(const LoopNest& nest) {
  if (asks_index(nest.body) || asks_index(nest.epilogue))
    throw std::logic_error("reduce: an index in what is combined");
  return visit_compute_type(nest.compute,
                            [&]<class C>(std::type_identity<C>) -> std::unique_ptr<Kernel> {
                              return std::make_unique<ReduceKernel<C>>(nest);
                            });
}

}  // namespace ein::host
