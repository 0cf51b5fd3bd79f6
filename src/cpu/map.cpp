// Maps: nests that combine nothing, in strips along one axis.
#include <algorithm>
#include <stdexcept>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/strip.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

template <class C>
class MapKernel final : public Kernel {
 public:
  explicit MapKernel(const LoopNest& nest)
      : nest_(nest),
        body_(nest.body, nest.inputs),
        strip_axis_(host::strip_axis(nest, false, nest.output)),
        row_axis_(body_.draws() ? no_axis
                                : host::row_axis(nest, strip_axis_, nest.output, strip_size)),
        length_(strip_axis_ == no_axis ? 1 : nest.axes[strip_axis_].size),
        cut_(row_axis_ == no_axis
                 ? host::cut(nest, strip_axis_, strip_size)
                 : host::cut(nest, row_axis_, strip_size / std::max<std::int64_t>(1, length_))),
        outer_(nest, axes_where(
                         nest, [&](std::size_t a) { return a != strip_axis_ && a != row_axis_; })) {
    for (const LoopNest::Operand& input : nest_.inputs) {
      steps_.push_back(step(input, strip_axis_));
      row_steps_.push_back(step(input, row_axis_));
    }
  }

  void run(const Run& run) const override {
    const std::int64_t units = length_ == 0 ? 0 : outer_.count() * cut_.pieces();
    if (units == 0) return;
    const std::int64_t unit = row_axis_ == no_axis ? cut_.step : cut_.step * length_;
    const std::int64_t units_per_part = std::max<std::int64_t>(1, elements_per_part / unit);
    parallel_for((units + units_per_part - 1) / units_per_part, [&](std::int64_t part) {
      run_units(run, part * units_per_part, std::min(units, (part + 1) * units_per_part));
    });
  }

 private:
  static std::int64_t step(const LoopNest::Operand& operand, std::size_t axis) {
    return axis == no_axis ? 0 : operand.strides[axis];
  }

  void run_units(const Run& run, std::int64_t begin, std::int64_t end) const {
    C* scratch = strip_scratch<C>(body_.scratch_size());
    const std::size_t inputs = nest_.inputs.size();
    SmallArray<const std::byte*, 16> from(inputs);
    Loops::Cursor cursor(outer_, nest_.axes.size());
    const std::int64_t pieces = cut_.pieces();
    cursor.seek(begin / pieces);
    std::int64_t piece = begin % pieces;
    const LoopNest::Operand& output = nest_.output;
    const auto out_bytes = static_cast<std::int64_t>(size_of(output.dtype));
    const std::int64_t out_step = step(output, strip_axis_), out_row_step = step(output, row_axis_);
    const auto row_length = row_axis_ == no_axis ? 0 : static_cast<std::size_t>(length_);
    const bool in_place = output.dtype == dtype_of<C> && out_step == 1 &&
                          (row_length == 0 || out_row_step == length_);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = cut_.first(piece);
      const auto n =
          static_cast<std::size_t>(cut_.count(piece)) * std::max<std::size_t>(1, row_length);
      for (std::size_t i = 0; i < inputs; ++i) {
        const LoopNest::Operand& input = nest_.inputs[i];
        from[i] = base(input, run.buffers) + cursor.offset(i) +
                  first * cut_.stride(input) * static_cast<std::int64_t>(size_of(input.dtype));
      }
      if (strip_axis_ != no_axis) cursor.index()[strip_axis_] = row_length == 0 ? first : 0;
      if (row_axis_ != no_axis) cursor.index()[row_axis_] = first;
      const std::int64_t position = cursor.offset(inputs) / out_bytes + first * cut_.stride(output);
      std::byte* to = base(output, run.buffers) + position * out_bytes;
      C* into = in_place ? reinterpret_cast<C*>(to) : nullptr;
      const C* values = body_.evaluate({from, steps_, row_steps_, row_length, cursor.index(),
                                        strip_axis_, row_axis_, position, out_step, run.random},
                                       n, scratch, into);
      if (values != into)
        store_strip(values, n, row_length, to, output.dtype, out_step, out_row_step);
      if (++piece == pieces) {
        piece = 0;
        cursor.next();
      }
    }
  }

  LoopNest nest_;
  StripExpr<C> body_;
  std::size_t strip_axis_,
      row_axis_;         // a strip is a piece of the one, or all of it for some points of the other
  std::int64_t length_;  // of strip_axis_
  Cut cut_;
  Loops outer_;
  std::vector<std::int64_t> steps_, row_steps_;
};

}  // namespace

std::unique_ptr<Kernel> make_map_kernel(const LoopNest& nest) {
  return visit_compute_type(nest.compute,
                            [&]<class C>(std::type_identity<C>) -> std::unique_ptr<Kernel> {
                              return std::make_unique<MapKernel<C>>(nest);
                            });
}

}  // namespace ein::host
