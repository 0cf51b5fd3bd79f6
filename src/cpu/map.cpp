// Maps: nests that combine nothing, in strips along one axis.
#include <algorithm>
#include <stdexcept>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/strip.hpp"
#include "tensor/convert.hpp"

namespace ein::cpu {
namespace {

template <class C>
class MapKernel final : public Kernel {
 public:
  explicit MapKernel(const LoopNest& nest)
      : nest_(nest), body_(nest.body, nest.inputs), strip_axis_(cpu::strip_axis(nest, false, nest.output)),
        outer_(nest, axes_where(nest, [&](std::size_t a) { return a != strip_axis_; })) {
    length_ = strip_axis_ == no_axis ? 1 : nest.axes[strip_axis_].size;
    strips_ = (length_ + strip_size - 1) / strip_size;
    for (const LoopNest::Operand& input : nest_.inputs) steps_.push_back(step(input));
  }

  void run(std::span<std::byte* const> buffers) const override {
    const std::int64_t units = outer_.count() * strips_;
    if (units == 0) return;
    const std::int64_t unit = std::min(length_, strip_size);
    const std::int64_t units_per_part = std::max<std::int64_t>(1, elements_per_part / unit);
    parallel_for((units + units_per_part - 1) / units_per_part, [&](std::int64_t part) {
      run_units(buffers, part * units_per_part, std::min(units, (part + 1) * units_per_part));
    });
  }

 private:
  std::int64_t step(const LoopNest::Operand& operand) const {
    return strip_axis_ == no_axis ? 0 : operand.strides[strip_axis_];
  }

  void run_units(std::span<std::byte* const> buffers, std::int64_t begin, std::int64_t end) const {
    C* scratch = strip_scratch<C>(body_.scratch_size());
    body_.prepare(scratch);
    const std::size_t inputs = nest_.inputs.size();
    std::vector<const std::byte*> from(inputs);
    Loops::Cursor cursor(outer_, nest_.axes.size());
    cursor.seek(begin / strips_);
    std::int64_t strip = begin % strips_;
    const auto out_bytes = static_cast<std::int64_t>(size_of(nest_.output.dtype));
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = strip * strip_size;
      const auto n = static_cast<std::size_t>(std::min(strip_size, length_ - first));
      for (std::size_t i = 0; i < inputs; ++i) {
        const LoopNest::Operand& input = nest_.inputs[i];
        from[i] = base(input, buffers) + cursor.offset(i) + first * steps_[i] * static_cast<std::int64_t>(size_of(input.dtype));
      }
      if (strip_axis_ != no_axis) cursor.index()[strip_axis_] = first;
      const std::int64_t position = cursor.offset(inputs) / out_bytes + first * step(nest_.output);
      const C* values = body_.evaluate(
          {from, steps_, cursor.index(), strip_axis_, position, step(nest_.output)}, n, scratch);
      store_from(values, n, base(nest_.output, buffers) + position * out_bytes, nest_.output.dtype,
                 static_cast<std::ptrdiff_t>(step(nest_.output)));
      if (++strip == strips_) {
        strip = 0;
        cursor.next();
      }
    }
  }

  LoopNest nest_;
  StripExpr<C> body_;
  std::size_t strip_axis_;
  Loops outer_;
  std::int64_t length_, strips_;
  std::vector<std::int64_t> steps_;
};

}  // namespace

std::unique_ptr<Kernel> make_map_kernel(const LoopNest& nest) {
  switch (nest.compute) {
    case DType::f32: return std::make_unique<MapKernel<float>>(nest);
    case DType::f64: return std::make_unique<MapKernel<double>>(nest);
    case DType::i64: return std::make_unique<MapKernel<std::int64_t>>(nest);
    default: throw std::logic_error("map: not a type to compute in");
  }
}

}  // namespace ein::cpu
