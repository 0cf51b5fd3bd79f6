#include "cpu/kernel.hpp"

#include "cpu/parallel.hpp"
#include "cpu/rows.hpp"
#include "cpu/strided_copy.hpp"

namespace ein::host {
namespace {

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const LoopNest& nest)
      : from_(nest.inputs[0]), to_(nest.output), element_size_(static_cast<std::int64_t>(size_of(to_.dtype))),
        copy_(axes(nest), size_of(to_.dtype)) {}

  void run(const Run& run) const override {
    std::byte* to = run.buffers[static_cast<std::size_t>(to_.buffer)] + to_.offset * element_size_;
    const std::byte* from = run.buffers[static_cast<std::size_t>(from_.buffer)] + from_.offset * element_size_;
    parallel_for(copy_.parts(), [&](std::int64_t part) { copy_.run(to, from, part); });
  }

 private:
  static std::vector<CopyAxis> axes(const LoopNest& nest) {
    std::vector<CopyAxis> axes;
    for (std::size_t a = 0; a < nest.axes.size(); ++a) {
      axes.push_back({nest.axes[a].size, nest.output.strides[a], nest.inputs[0].strides[a]});
    }
    return axes;
  }

  LoopNest::Operand from_, to_;
  std::int64_t element_size_;
  StridedCopy copy_;
};

}  // namespace

std::unique_ptr<Kernel> make_copy_kernel(const LoopNest& nest) { return std::make_unique<CopyKernel>(nest); }

std::unique_ptr<Kernel> make_kernel(const LoopNest& nest) {
  if (nest.is_gather()) return make_gather_kernel(nest);
  if (nest.is_scatter()) return make_scatter_kernel(nest);
  if (nest.along == LoopNest::Along::scan) return make_scan_kernel(nest);
  if (nest.along == LoopNest::Along::argsort) return make_sort_kernel(nest);
  if (nest.is_copy() && nest.inputs[0].dtype == nest.output.dtype) return make_copy_kernel(nest);
  if (nest.sums_products()) return make_contract_kernel(nest);
  if (auto window = make_window_kernel(nest)) return window;
  if (auto rows = make_rows_kernel(nest)) return rows;
  if (auto rows = make_long_rows_kernel(nest)) return rows;
  if (auto columns = make_columns_kernel(nest)) return columns;
  if (nest.combine) return make_reduce_kernel(nest);
  return make_map_kernel(nest);
}

}  // namespace ein::host
