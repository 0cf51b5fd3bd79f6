// Reductions along rows so long, or so few, that several threads share each: a row is cut into pieces by its length
// alone, so that results do not depend on the threads.
#include <algorithm>

#include "cpu/combine.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_code.hpp"
#include "cpu/rows.hpp"

namespace ein::host {
namespace {

using Operand = LoopNest::Operand;

constexpr std::int64_t elements_in_piece = elements_per_part / 2;

class LongRowsKernel final : public Kernel {
 public:
  LongRowsKernel(const LoopNest& nest, std::size_t along)
      : nest_(nest), along_(along), pieces_(cut(nest, along, elements_in_piece)),
        outer_(nest, axes_where(nest, [&](std::size_t a) { return a != along; })) {
    const std::size_t inputs = nest.inputs.size();
    RowProgram program;
    RowProgram::Nest piece{.output = inputs, .body = nest.body, .combine = nest.combine};
    for (std::size_t i = 0; i < inputs; ++i) {
      program.places.push_back({nest.inputs[i].dtype, nest.inputs[i].strides[along]});
      piece.inputs.push_back(i);
    }
    program.places.push_back({DType::f32, 0});
    program.nests = {piece};
    program.length = pieces_.step;
    program.along_axis = along;
    of_piece_ = RowCode::compile(program);

    // Input 0 is what the pieces gave; the others are the epilogue's.
    RowProgram all;
    RowProgram::Nest last{.output = std::max<std::size_t>(1, inputs), .body = Ex::input(0), .combine = nest.combine, .epilogue = nest.epilogue};
    all.places.push_back({DType::f32, 1});
    for (std::size_t i = 1; i < inputs; ++i) all.places.push_back({nest.inputs[i].dtype, 0});
    for (std::size_t i = 0; i < all.places.size(); ++i) last.inputs.push_back(i);
    all.places.push_back({nest.output.dtype, 0});
    all.nests = {last};
    all.length = pieces_.pieces();
    of_all_ = RowCode::compile(all);
  }

  bool is_ready() const { return of_piece_ && of_all_; }

  std::size_t workspace_bytes(int /*threads*/) const override { return static_cast<std::size_t>(outer_.count() * pieces_.pieces()) * sizeof(float); }

  void run(const Run& run) const override {
    auto* const partials = reinterpret_cast<float*>(run.workspace);
    const std::int64_t pieces = pieces_.pieces();
    parallel_for(outer_.count() * pieces, [&](std::int64_t part) {
      const std::int64_t piece = part % pieces, first = pieces_.first(piece);
      call(*of_piece_, run, part / pieces, first, pieces_.count(piece), [&](Places& places) {
        for (std::size_t i = 0; i < nest_.inputs.size(); ++i) {
          const Operand& input = nest_.inputs[i];
          places[i] += first * input.strides[along_] * static_cast<std::int64_t>(size_of(input.dtype));
        }
        places[nest_.inputs.size()] = reinterpret_cast<std::byte*>(partials + part);
      });
    });
    for (std::int64_t row = 0; row < outer_.count(); ++row) {
      call(*of_all_, run, row, 0, pieces, [&](Places& places) { places[0] = reinterpret_cast<std::byte*>(partials + row * pieces); });
    }
  }

 private:
  using Places = SmallArray<std::byte*, 16>;

  /// With the operands of a row as places, which `move` changes.
  template <class Move>
  void call(const RowCode& code, const Run& run, std::int64_t row, std::int64_t first, std::int64_t length, const Move& move) const {
    Loops::Cursor cursor(outer_, nest_.axes.size());
    cursor.seek(row);
    cursor.index()[along_] = first;
    const std::size_t inputs = nest_.inputs.size();
    Places places(std::max<std::size_t>(1, inputs) + 1);
    for (std::size_t i = 0; i < inputs; ++i) places[i] = base(nest_.inputs[i], run.buffers) + cursor.offset(i);
    places[places.size() - 1] = base(nest_.output, run.buffers) + cursor.offset(inputs);
    move(places);
    code({places.data(), length, 1, cursor.index().data()});
  }

  LoopNest nest_;
  std::size_t along_;
  Cut pieces_;
  Loops outer_;
  std::unique_ptr<const RowCode> of_piece_, of_all_;
};

}  // namespace

std::unique_ptr<Kernel> make_long_rows_kernel(const LoopNest& nest) {
  if (!is_f32_reduction(nest)) return nullptr;
  const std::vector<std::size_t> reduced = axes_where(nest, [&](std::size_t a) { return nest.axes[a].reduced; });
  if (reduced.size() != 1) return nullptr;
  const std::int64_t length = nest.axes[reduced[0]].size;
  if (length <= 2 * elements_in_piece || length > elements_in_piece * longest_combined_row) return nullptr;
  for (const Operand& input : nest.inputs) {
    if (!RowCode::can_step(input.dtype, input.strides[reduced[0]])) return nullptr;
  }
  for (const LoopNest::NestAxis& axis : nest.axes) {
    if (axis.size == 0) return nullptr;
  }
  auto kernel = std::make_unique<LongRowsKernel>(nest, reduced[0]);
  return kernel->is_ready() ? std::move(kernel) : nullptr;
}

}  // namespace ein::host
