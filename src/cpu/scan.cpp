// Scans. Where lines along the scanned axis do not lie contiguously, many are scanned side by side.
// A running sum is one long chain, whose error grows with each step: floats are combined in f64, of
// which each result is rounded once.
#include <algorithm>
#include <type_traits>

#include "cpu/kernel.hpp"
#include "cpu/loops.hpp"
#include "cpu/strip.hpp"
#include "machine/parallel.hpp"
#include "nest/combine.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"

namespace ein::host {
namespace {

template <class C>
class ScanKernel final : public Kernel {
 public:
  explicit ScanKernel(const LoopNest& nest)
      : nest_(nest),
        axis_(axes_where(nest, [&](std::size_t a) { return nest.axes[a].ordered; }).at(0)),
        size_(nest.axes[axis_].size) {
    const LoopNest::Operand& input = nest_.inputs[0];
    std::size_t lane = no_axis;
    for (std::size_t a = 0; a < nest_.axes.size(); ++a) {
      if (a != axis_ && (lane == no_axis || nest_.output.strides[a] < nest_.output.strides[lane]))
        lane = a;
    }
    constexpr std::int64_t short_line = 32;
    const bool is_contiguous =
        ask_equal(input.strides[axis_], 1) &&
        (size_ >= short_line || lane == no_axis || nest_.axes[lane].size < size_);
    cut_ = cut(nest_, is_contiguous ? no_axis : lane, strip_size / 2);
    outer_ = Loops(nest_,
                   axes_where(nest_, [&](std::size_t a) { return a != axis_ && a != cut_.axis; }));
  }

  void run(const Run& run) const override {
    const std::int64_t pieces = cut_.pieces();
    const std::int64_t units = size_ == 0 ? 0 : outer_.count() * pieces;
    const std::int64_t units_per_part =
        std::max<std::int64_t>(1, elements_per_part / std::max<std::int64_t>(1, cut_.step * size_));
    parallel_for((units + units_per_part - 1) / units_per_part, [&](std::int64_t part) {
      Loops::Cursor cursor(outer_, nest_.axes.size());
      std::int64_t unit = part * units_per_part;
      const std::int64_t end = std::min(units, unit + units_per_part);
      cursor.seek(unit / pieces);
      for (; unit < end; ++unit) {
        const std::int64_t piece = unit % pieces;
        const Line from = line(nest_.inputs[0], run, cursor.offset(0), cut_.first(piece));
        const Line to =
            line(nest_.output, run, cursor.offset(nest_.inputs.size()), cut_.first(piece));
        const auto lanes = static_cast<std::size_t>(cut_.count(piece));
        if (nest_.inputs.size() == 2) {
          const Line factors = line(nest_.inputs[1], run, cursor.offset(1), cut_.first(piece));
          lanes == 1 ? recur_along_line(from, factors, to)
                     : recur_along_lanes(from, factors, to, lanes);
        } else {
          visit_combine(*nest_.combine, [&]<Combine op>(std::integral_constant<Combine, op>) {
            lanes == 1 ? scan_line<op>(from, to) : scan_lanes<op>(from, to, lanes);
          });
        }
        if (piece == pieces - 1) cursor.next();
      }
    });
  }

 private:
  /// A line of an operand, in the order in which it is scanned.
  struct Line {
    std::byte* first;
    std::int64_t step, bytes;  // in elements; bytes of an element
    std::int64_t lane_step;    // in elements, to the line beside it
    DType dtype;
    std::byte* at(std::int64_t i) const { return first + i * step * bytes; }
  };
  Line line(const LoopNest::Operand& operand, const Run& run, std::int64_t offset,
            std::int64_t lane) const {
    const auto bytes = static_cast<std::int64_t>(size_of(operand.dtype));
    const std::int64_t stride = operand.strides[axis_], lane_step = cut_.stride(operand);
    const std::int64_t skipped = lane * lane_step + (nest_.reverse ? (size_ - 1) * stride : 0);
    return {base(operand, run.buffers) + offset + skipped * bytes, nest_.reverse ? -stride : stride,
            bytes, lane_step, operand.dtype};
  }

  template <Combine op>
  void scan_line(const Line& from, const Line& to) const {
    C values[strip_size];
    C last{};
    for (std::int64_t i = 0; i < size_; i += strip_size) {
      const auto n = static_cast<std::size_t>(std::min(strip_size, size_ - i));
      load_as(from.at(i), from.dtype, static_cast<std::ptrdiff_t>(from.step), values, n);
      if (i > 0) values[0] = combined<op>(last, values[0]);
      for (std::size_t k = 1; k < n; ++k) values[k] = combined<op>(values[k - 1], values[k]);
      last = values[n - 1];
      store_from(values, n, to.at(i), to.dtype, static_cast<std::ptrdiff_t>(to.step));
    }
  }

  template <Combine op>
  void scan_lanes(const Line& from, const Line& to, std::size_t lanes) const {
    C last[strip_size / 2], values[strip_size / 2];
    for (std::int64_t i = 0; i < size_; ++i) {
      C* row = i == 0 ? last : values;
      load_as(from.at(i), from.dtype, static_cast<std::ptrdiff_t>(from.lane_step), row, lanes);
      if (i > 0) apply(info(op).operation, last, values, values, last, lanes);
      store_from(last, lanes, to.at(i), to.dtype, static_cast<std::ptrdiff_t>(to.lane_step));
    }
  }

  // Each result is its factor times the one before, plus its element.

  void recur_along_line(const Line& from, const Line& by, const Line& to) const {
    C values[strip_size], factors[strip_size];
    C last{};
    for (std::int64_t i = 0; i < size_; i += strip_size) {
      const auto n = static_cast<std::size_t>(std::min(strip_size, size_ - i));
      load_as(from.at(i), from.dtype, static_cast<std::ptrdiff_t>(from.step), values, n);
      load_as(by.at(i), by.dtype, static_cast<std::ptrdiff_t>(by.step), factors, n);
      for (std::size_t k = 0; k < n; ++k) {
        last = i == 0 && k == 0 ? values[0] : factors[k] * last + values[k];
        values[k] = last;
      }
      store_from(values, n, to.at(i), to.dtype, static_cast<std::ptrdiff_t>(to.step));
    }
  }

  void recur_along_lanes(const Line& from, const Line& by, const Line& to,
                         std::size_t lanes) const {
    C last[strip_size / 2], values[strip_size / 2], factors[strip_size / 2];
    for (std::int64_t i = 0; i < size_; ++i) {
      load_as(from.at(i), from.dtype, static_cast<std::ptrdiff_t>(from.lane_step),
              i == 0 ? last : values, lanes);
      if (i > 0) {
        load_as(by.at(i), by.dtype, static_cast<std::ptrdiff_t>(by.lane_step), factors, lanes);
        for (std::size_t k = 0; k < lanes; ++k) last[k] = factors[k] * last[k] + values[k];
      }
      store_from(last, lanes, to.at(i), to.dtype, static_cast<std::ptrdiff_t>(to.lane_step));
    }
  }

  LoopNest nest_;
  std::size_t axis_;  // the scanned one
  std::int64_t size_;
  Cut cut_;  // of the axis whose lines are scanned side by side, if any
  Loops outer_;
};

}  // namespace

std::unique_ptr<Kernel> make_scan_kernel(const LoopNest& nest) {
  // Floats in f64.
  const DType compute = is_floating(nest.compute) ? DType::f64 : nest.compute;
  return visit_compute_type(compute,
                            [&]<class C>(std::type_identity<C>) -> std::unique_ptr<Kernel> {
                              if constexpr (std::is_same_v<C, float>)
                                throw std::logic_error("scan: in f32");
                              else
                                return std::make_unique<ScanKernel<C>>(nest);
                            });
}

}  // namespace ein::host
