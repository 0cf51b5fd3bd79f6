// Reductions. Strips run along a kept axis (each element of a strip its own result) or along a reduced
// one (a strip becomes one number), whichever the input's layout favours. Sums are cascaded: runs of at
// most 32 partial sums are added in a row, then runs of those, so the error grows with the logarithm of
// the number of elements. Work is cut by shape alone, so that results do not depend on the threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/strip.hpp"
#include "tensor/convert.hpp"

namespace ein::cpu {
namespace {

template <class C>
C identity(Combine combine) {
  using Limits = std::numeric_limits<C>;
  switch (combine) {
    case Combine::sum:
    case Combine::any: return C(0);
    case Combine::prod:
    case Combine::all: return C(1);
    case Combine::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Combine::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  throw std::logic_error("reduce: unknown combination");
}

ScalarOp scalar_op(Combine combine) {
  switch (combine) {
    case Combine::sum: return ScalarOp::add;
    case Combine::prod: return ScalarOp::mul;
    case Combine::max: return ScalarOp::max;
    case Combine::min: return ScalarOp::min;
    case Combine::any: return ScalarOp::logical_or;
    case Combine::all: return ScalarOp::logical_and;
  }
  throw std::logic_error("reduce: unknown combination");
}

/// One strip to one number: sixteen lanes side by side, then the lanes in pairs.
template <class C>
C combine_strip(Combine combine, const C* values, std::size_t n) {
  constexpr std::size_t lanes = 16;
  const ScalarOp op = scalar_op(combine);
  C lane[strip_size];
  std::fill_n(lane, lanes, identity<C>(combine));
  std::size_t width = lanes;
  const auto fold = [&](auto f) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) lane[l] = f(lane[l], values[i + l]);
    }
    for (std::size_t l = 0; i + l < n; ++l) lane[l] = f(lane[l], values[i + l]);
  };
  if constexpr (std::is_floating_point_v<C>) {
    if (combine == Combine::sum) {
      fold([](C a, C b) { return a + b; });
    } else if (combine == Combine::max) {
      fold([](C a, C b) { return a != a || a > b ? a : b; });
    } else if (combine == Combine::min) {
      fold([](C a, C b) { return a != a || a < b ? a : b; });
    } else {
      std::size_t i = 0;
      for (; i < n; i += lanes) apply(op, lane, values + i, values + i, lane, std::min(lanes, n - i));
    }
  } else {
    for (std::size_t i = 0; i < n; i += lanes) apply(op, lane, values + i, values + i, lane, std::min(lanes, n - i));
  }
  for (width /= 2; width > 0; width /= 2) apply(op, lane, lane + width, lane + width, lane, width);
  return lane[0];
}

/// Combines any number of strips of the same length, in a cascade.
template <class C>
class Cascade {
 public:
  static constexpr std::size_t run = 32;
  static constexpr std::size_t levels = 13;  // 32^13 > 2^63 strips

  /// Elements of memory for strips of n.
  static std::size_t scratch_size(std::size_t n) { return levels * n; }

  Cascade(Combine combine, std::size_t n, C* memory) : combine_(combine), op_(scalar_op(combine)), n_(n), memory_(memory) {
    clear(0);
  }
  void add(const C* values) {
    apply(op_, memory_, values, values, memory_, n_);
    for (std::size_t level = 0; ++count_[level] == run && level + 1 < levels; ++level) {
      if (level == top_) clear(++top_);
      C* sums = memory_ + level * n_;
      C* above = sums + n_;
      apply(op_, above, sums, sums, above, n_);
      clear(level);
    }
  }
  /// The combination of all strips added; the cascade is used up.
  const C* result() {
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
      : nest_(nest), combine_(*nest.combine), body_(nest.body, nest.inputs),
        epilogue_(nest.epilogue.steps.empty() ? ScalarExpr(Ex::input(0)) : nest.epilogue, std::vector{combined()}),
        tile_axis_(cpu::strip_axis(nest, false, nest.output)), reduced_axis_(cpu::strip_axis(nest, true, nest.inputs[0])),
        along_reduced_(choose_direction()),
        tiles_over_(nest, axes_where(nest, [&](std::size_t a) { return !nest.axes[a].reduced && a != tile_axis_; })),
        reduced_over_(nest, axes_where(nest, [&](std::size_t a) {
                        return nest.axes[a].reduced && !(along_reduced_ && a == reduced_axis_);
                      })) {
    tile_length_ = tile_axis_ == no_axis ? 1 : nest.axes[tile_axis_].size;
    tile_strips_ = (tile_length_ + strip_size - 1) / strip_size;
    reduced_length_ = along_reduced_ ? nest.axes[reduced_axis_].size : 1;
    reduced_strips_ = (reduced_length_ + strip_size - 1) / strip_size;
    tiles_ = tiles_over_.count() * tile_strips_;
    units_ = reduced_over_.count() * reduced_strips_;
    const std::int64_t tile = std::min(tile_length_, strip_size);
    const std::int64_t unit = tile * std::min(reduced_length_, strip_size);
    // Few results of many elements: the reduced range is cut as well, and the pieces combined after.
    if (tiles_ > 0 && tiles_ < 16) chunks_ = std::clamp<std::int64_t>(units_ * unit / elements_per_part, 1, 64);
    tiles_per_part_ = std::max<std::int64_t>(1, elements_per_part / std::max<std::int64_t>(1, unit * units_));
  }

  void run(std::span<std::byte* const> buffers) const override {
    if (tiles_ == 0) return;
    if (chunks_ == 1) {
      parallel_for((tiles_ + tiles_per_part_ - 1) / tiles_per_part_, [&](std::int64_t part) {
        Worker worker(*this, buffers);
        const std::int64_t end = std::min(tiles_, (part + 1) * tiles_per_part_);
        for (std::int64_t tile = part * tiles_per_part_; tile < end; ++tile) {
          worker.finish(tile, worker.reduce(tile, 0, units_));
        }
      });
      return;
    }
    std::vector<C> partial(static_cast<std::size_t>(tiles_ * chunks_ * strip_size));
    const auto partial_of = [&](std::int64_t tile, std::int64_t chunk) {
      return partial.data() + (tile * chunks_ + chunk) * strip_size;
    };
    parallel_for(tiles_ * chunks_, [&](std::int64_t part) {
      Worker worker(*this, buffers);
      const std::int64_t tile = part / chunks_, chunk = part % chunks_;
      const C* values = worker.reduce(tile, units_ * chunk / chunks_, units_ * (chunk + 1) / chunks_);
      std::copy_n(values, tile_size(tile), partial_of(tile, chunk));
    });
    Worker worker(*this, buffers);
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {
      Cascade<C> cascade(combine_, tile_size(tile), worker.cascade_memory());
      for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) cascade.add(partial_of(tile, chunk));
      worker.finish(tile, cascade.result());
    }
  }

 private:
  /// What the epilogue reads: the combined values.
  static LoopNest::Operand combined() { return {.dtype = dtype_of<C>}; }

  bool choose_direction() const {
    if (reduced_axis_ == no_axis) return false;
    if (tile_axis_ == no_axis) return true;
    const auto easy = [&](std::size_t axis) {
      return nest_.inputs[0].strides[axis] <= 1 && nest_.axes[axis].size >= 16;
    };
    if (easy(tile_axis_) != easy(reduced_axis_)) return easy(reduced_axis_);
    return nest_.axes[reduced_axis_].size > nest_.axes[tile_axis_].size;
  }

  std::size_t tile_size(std::int64_t tile) const {
    return static_cast<std::size_t>(std::min(strip_size, tile_length_ - tile % tile_strips_ * strip_size));
  }

  /// What one thread needs for the tiles it works on.
  class Worker {
   public:
    Worker(const ReduceKernel& kernel, std::span<std::byte* const> buffers)
        : k_(kernel), buffers_(buffers), tiles_(kernel.tiles_over_, kernel.nest_.axes.size()),
          reduced_(kernel.reduced_over_, kernel.nest_.axes.size()), from_(kernel.nest_.inputs.size()) {
      const std::size_t strip = static_cast<std::size_t>(strip_size);
      C* memory = strip_scratch<C>(k_.body_.scratch_size() + k_.epilogue_.scratch_size() + strip +
                                   Cascade<C>::scratch_size(strip) + Cascade<C>::scratch_size(1));
      body_ = memory;
      epilogue_ = body_ + k_.body_.scratch_size();
      results_ = epilogue_ + k_.epilogue_.scratch_size();
      scalars_ = results_ + strip;
      cascade_ = scalars_ + Cascade<C>::scratch_size(1);
      k_.body_.prepare(body_);
      k_.epilogue_.prepare(epilogue_);
      for (const LoopNest::Operand& input : k_.nest_.inputs) {
        tile_steps_.push_back(k_.tile_axis_ == no_axis ? 0 : input.strides[k_.tile_axis_]);
        if (k_.along_reduced_) reduced_steps_.push_back(input.strides[k_.reduced_axis_]);
      }
    }

    C* cascade_memory() const { return cascade_; }

    /// The combination over units [begin, end) of the reduced range, for each result of a tile.
    const C* reduce(std::int64_t tile, std::int64_t begin, std::int64_t end) {
      tiles_.seek(tile / k_.tile_strips_);
      const std::int64_t first = tile % k_.tile_strips_ * strip_size;
      const std::size_t n = k_.tile_size(tile);
      if (!k_.along_reduced_) return reduce_rows(first, n, begin, end);
      for (std::size_t j = 0; j < n; ++j) results_[j] = reduce_one(first + static_cast<std::int64_t>(j), begin, end);
      return results_;
    }

    /// Applies the epilogue to a tile's combined values and stores them.
    void finish(std::int64_t tile, const C* values) {
      tiles_.seek(tile / k_.tile_strips_);
      const LoopNest::Operand& output = k_.nest_.output;
      const std::int64_t first = tile % k_.tile_strips_ * strip_size;
      const std::int64_t step = k_.tile_axis_ == no_axis ? 0 : output.strides[k_.tile_axis_];
      const auto* in = reinterpret_cast<const std::byte*>(values);
      const std::int64_t contiguous = 1;
      const C* out = k_.epilogue_.evaluate({{&in, 1}, {&contiguous, 1}, {}}, k_.tile_size(tile), epilogue_);
      std::byte* to = base(output, buffers_) + tiles_.offset(k_.nest_.inputs.size()) +
                      first * step * static_cast<std::int64_t>(size_of(output.dtype));
      store_from(out, k_.tile_size(tile), to, output.dtype, static_cast<std::ptrdiff_t>(step));
    }

   private:
    /// Sets from_ to the inputs' addresses `along` elements into the strip axis whose steps are given.
    void locate(std::int64_t tile_first, std::int64_t reduced_first) {
      for (std::size_t i = 0; i < from_.size(); ++i) {
        const LoopNest::Operand& input = k_.nest_.inputs[i];
        std::int64_t elements = tile_first * tile_steps_[i];
        if (k_.along_reduced_) elements += reduced_first * reduced_steps_[i];
        from_[i] = base(input, buffers_) + tiles_.offset(i) + reduced_.offset(i) +
                   elements * static_cast<std::int64_t>(size_of(input.dtype));
      }
    }

    const C* reduce_rows(std::int64_t first, std::size_t n, std::int64_t begin, std::int64_t end) {
      Cascade<C> cascade(k_.combine_, n, cascade_);
      if (begin < end) reduced_.seek(begin);
      for (std::int64_t unit = begin; unit < end; ++unit, reduced_.next()) {
        locate(first, 0);
        cascade.add(k_.body_.evaluate({from_, tile_steps_, {}}, n, body_));
      }
      return cascade.result();
    }

    C reduce_one(std::int64_t at, std::int64_t begin, std::int64_t end) {
      Cascade<C> cascade(k_.combine_, 1, scalars_);
      if (begin < end) reduced_.seek(begin / k_.reduced_strips_);
      std::int64_t strip = begin < end ? begin % k_.reduced_strips_ : 0;
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t first = strip * strip_size;
        const auto n = static_cast<std::size_t>(std::min(strip_size, k_.reduced_length_ - first));
        locate(at, first);
        const C value = combine_strip(k_.combine_, k_.body_.evaluate({from_, reduced_steps_, {}}, n, body_), n);
        cascade.add(&value);
        if (++strip == k_.reduced_strips_) {
          strip = 0;
          reduced_.next();
        }
      }
      return *cascade.result();
    }

    const ReduceKernel& k_;
    std::span<std::byte* const> buffers_;
    Loops::Cursor tiles_, reduced_;
    std::vector<const std::byte*> from_;
    std::vector<std::int64_t> tile_steps_, reduced_steps_;
    C *body_, *epilogue_, *results_, *scalars_, *cascade_;
  };

  LoopNest nest_;
  Combine combine_;
  StripExpr<C> body_, epilogue_;
  std::size_t tile_axis_, reduced_axis_;
  bool along_reduced_;
  Loops tiles_over_, reduced_over_;
  std::int64_t tile_length_, tile_strips_, reduced_length_, reduced_strips_;
  std::int64_t tiles_, units_, chunks_ = 1, tiles_per_part_;
};

}  // namespace

std::unique_ptr<Kernel> make_reduce_kernel(const LoopNest& nest) {
  switch (nest.compute) {
    case DType::f32: return std::make_unique<ReduceKernel<float>>(nest);
    case DType::f64: return std::make_unique<ReduceKernel<double>>(nest);
    case DType::i64: return std::make_unique<ReduceKernel<std::int64_t>>(nest);
    default: throw std::logic_error("reduce: not a type to compute in");
  }
}

}  // namespace ein::cpu
