// Reductions down columns: the kept axis lies side by side in memory, and row after row is combined into one row of
// results. The rows are cut into chunks by shape alone, so that results do not depend on the threads; and sums are
// cascaded, in runs of at most 32.
#include <algorithm>

#include "cpu/combine.hpp"
#include "cpu/loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_code.hpp"
#include "cpu/rows.hpp"

namespace ein::host {
namespace {

using Operand = LoopNest::Operand;

constexpr std::int64_t least_points = 2048, least_columns = 16;
/// Results at a time: they stay near, and a row is read in long pieces.
constexpr std::int64_t most_columns = 16384;
/// Rows that are added up before they are added to what there is.
constexpr std::int64_t rows_at_once = 4;
constexpr std::int64_t rows_in_run = 32, most_rows_in_chunk = rows_in_run * rows_in_run;

struct Axes {
  std::size_t columns = no_axis, rows = no_axis;
};

std::optional<Axes> axes_of(const LoopNest& nest) {
  Axes axes;
  std::int64_t points = 1;
  for (std::size_t a = 0; a < nest.axes.size(); ++a) {
    const LoopNest::NestAxis& axis = nest.axes[a];
    points *= axis.size;
    if (axis.size == 0) return std::nullopt;
    if (axis.reduced) {
      if (axes.rows != no_axis) return std::nullopt;
      axes.rows = a;
    } else if (nest.output.strides[a] == 1) {
      axes.columns = a;
    }
  }
  if (axes.rows == no_axis || axes.columns == no_axis || points < least_points || nest.axes[axes.columns].size < least_columns)
    return std::nullopt;
  bool moves = false;
  for (const Operand& input : nest.inputs) {
    const std::int64_t step = input.strides[axes.columns];
    if (step != 0 && step != 1) return std::nullopt;
    moves |= step == 1 && input.strides[axes.rows] != 0;
  }
  return moves ? std::optional(axes) : std::nullopt;
}

class ColumnsKernel final : public Kernel {
 public:
  ColumnsKernel(const LoopNest& nest, Axes axes)
      : nest_(nest), axes_(axes), columns_(cut(nest, axes.columns, most_columns)),
        chunks_(cut(nest, axes.rows, std::clamp<std::int64_t>(4 * elements_per_part / columns_.step, rows_in_run, most_rows_in_chunk))),
        outer_(nest, axes_where(nest, [&](std::size_t a) { return a != axes.columns && a != axes.rows; })) {
    one_ = compile(1);
    const bool tells_rows_apart = std::any_of(nest.body.steps.begin(), nest.body.steps.end(), [&](const ScalarStep& step) {
      return step.op == ScalarOp::index && static_cast<std::size_t>(step.which) == axes.rows;
    });
    if (!tells_rows_apart) several_ = compile(rows_at_once);

    RowProgram add;
    add.places = {{DType::f32, 1, columns_.step}, {DType::f32, 1, 0}};
    add.nests = {{.inputs = {0, 1}, .output = 1, .body = combined(*nest.combine, Ex::input(0), 1)}};
    add.length = columns_.step;
    add_ = RowCode::compile(add);

    const auto inputs = nest.inputs.size();
    RowProgram finish;
    RowProgram::Nest last{.output = std::max<std::size_t>(1, inputs), .body = nest.epilogue.steps.empty() ? ScalarExpr(Ex::input(0)) : nest.epilogue};
    finish.places.push_back({DType::f32, 1, 0});
    for (std::size_t i = 1; i < inputs; ++i) finish.places.push_back({nest.inputs[i].dtype, nest.inputs[i].strides[axes.columns], 0});
    for (std::size_t i = 0; i < finish.places.size(); ++i) last.inputs.push_back(i);
    finish.places.push_back({nest.output.dtype, 1, 0});
    finish.nests = {last};
    finish.length = columns_.step;
    finish.along_axis = axes.columns;
    finish_ = RowCode::compile(finish);
  }

  bool is_ready() const { return one_ && add_ && finish_; }

  std::size_t workspace_bytes(int /*threads*/) const override {
    return static_cast<std::size_t>(tiles() * chunks_.pieces() * columns_.step) * sizeof(float);
  }

  void run(const Run& run) const override {
    auto* const partials = reinterpret_cast<float*>(run.workspace);
    const std::int64_t chunks = chunks_.pieces();
    const auto of_tile = [&](std::int64_t tile) { return partials + tile * chunks * columns_.step; };
    parallel_for(tiles() * chunks, [&](std::int64_t part) {
      combine_chunk(run, part / chunks, part % chunks, of_tile(part / chunks) + part % chunks * columns_.step);
    });
    parallel_for(tiles(), [&](std::int64_t tile) {
      // Runs of runs, in place, until one row is left.
      float* const rows = of_tile(tile);
      for (std::int64_t count = chunks; count > 1;) {
        std::int64_t runs = 0;
        for (std::int64_t first = 0; first < count; first += rows_in_run, ++runs) {
          float* const sum = rows + runs * columns_.step;
          if (runs != first) std::copy_n(rows + first * columns_.step, columns_.step, sum);
          if (const std::int64_t others = std::min(rows_in_run, count - first) - 1; others > 0) add(rows + (first + 1) * columns_.step, others, sum);
        }
        count = runs;
      }
      finish(run, tile, rows);
    });
  }

 private:
  /// Combines so many rows at a time with a row of results, the last place.
  std::unique_ptr<const RowCode> compile(std::int64_t rows) const {
    RowProgram program;
    RowProgram::Nest nest;
    std::vector<Ex> values;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<ScalarExpr> of_row;
      for (const Operand& input : nest_.inputs) {
        nest.inputs.push_back(program.places.size());
        of_row.push_back(Ex::input(static_cast<int>(program.places.size())));
        program.places.push_back({input.dtype, input.strides[axes_.columns], rows * input.strides[axes_.rows]});
      }
      values.push_back(Ex::of(rows == 1 ? nest_.body : substitute(nest_.body, of_row)));
    }
    while (values.size() > 1) {
      const std::size_t half = values.size() / 2;
      for (std::size_t v = 0; v < half; ++v) values[v] = Ex::apply(scalar_op(*nest_.combine), values[2 * v], values[2 * v + 1]);
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
    }
    nest.output = program.places.size();
    nest.inputs.push_back(nest.output);
    nest.body = combined(*nest_.combine, values[0], nest.output);
    program.places.push_back({DType::f32, 1, 0});
    program.nests = {nest};
    program.length = columns_.step;
    program.along_axis = axes_.columns;
    program.row_axis = axes_.rows;
    return RowCode::compile(program);
  }

  std::int64_t tiles() const { return outer_.count() * columns_.pieces(); }

  void add(float* rows, std::int64_t count, float* sum) const {
    std::byte* places[] = {reinterpret_cast<std::byte*>(rows), reinterpret_cast<std::byte*>(sum)};
    (*add_)({places, columns_.step, count, nullptr});
  }

  static std::int64_t bytes(const Operand& operand) { return static_cast<std::int64_t>(size_of(operand.dtype)); }

  void combine_chunk(const Run& run, std::int64_t tile, std::int64_t chunk, float* result) const {
    Loops::Cursor cursor(outer_, nest_.axes.size());
    cursor.seek(tile / columns_.pieces());
    const std::int64_t column = columns_.first(tile % columns_.pieces()), columns = columns_.count(tile % columns_.pieces());
    const std::int64_t begin = chunks_.first(chunk), end = begin + chunks_.count(chunk);
    float one_run[most_columns];
    for (std::int64_t row = begin; row < end; row += rows_in_run) {
      float* const into = row == begin ? result : one_run;
      std::fill_n(into, columns_.step, identity<float>(*nest_.combine));
      const std::int64_t rows = std::min(rows_in_run, end - row), together = several_ ? rows / rows_at_once * rows_at_once : 0;
      if (together > 0) combine_rows(run, cursor, *several_, rows_at_once, row, together, column, columns, into);
      if (together < rows) combine_rows(run, cursor, *one_, 1, row + together, rows - together, column, columns, into);
      if (into != result) add(one_run, 1, result);
    }
  }

  /// By code that takes `at_once` of them.
  void combine_rows(const Run& run, Loops::Cursor& cursor, const RowCode& code, std::int64_t at_once, std::int64_t row, std::int64_t rows,
                    std::int64_t column, std::int64_t columns, float* into) const {
    const std::size_t inputs = nest_.inputs.size();
    SmallArray<std::byte*, 32> places(static_cast<std::size_t>(at_once) * inputs + 1);
    for (std::int64_t r = 0; r < at_once; ++r) {
      for (std::size_t i = 0; i < inputs; ++i) {
        const Operand& input = nest_.inputs[i];
        const std::int64_t elements = column * input.strides[axes_.columns] + (row + r) * input.strides[axes_.rows];
        places[static_cast<std::size_t>(r) * inputs + i] = base(input, run.buffers) + cursor.offset(i) + elements * bytes(input);
      }
    }
    places[places.size() - 1] = reinterpret_cast<std::byte*>(into);
    cursor.index()[axes_.columns] = column;
    cursor.index()[axes_.rows] = row;
    code({places.data(), columns, rows / at_once, cursor.index().data()});
  }

  void finish(const Run& run, std::int64_t tile, float* results) const {
    Loops::Cursor cursor(outer_, nest_.axes.size());
    cursor.seek(tile / columns_.pieces());
    const std::int64_t column = columns_.first(tile % columns_.pieces());
    cursor.index()[axes_.columns] = column;
    const std::size_t inputs = std::max<std::size_t>(1, nest_.inputs.size());
    SmallArray<std::byte*, 16> places(inputs + 1);
    places[0] = reinterpret_cast<std::byte*>(results);
    for (std::size_t i = 1; i <= inputs; ++i) {
      const Operand& operand = i < inputs ? nest_.inputs[i] : nest_.output;
      places[i] = base(operand, run.buffers) + cursor.offset(i < inputs ? i : nest_.inputs.size()) + column * operand.strides[axes_.columns] * bytes(operand);
    }
    (*finish_)({places.data(), columns_.count(tile % columns_.pieces()), 1, cursor.index().data()});
  }

  LoopNest nest_;
  Axes axes_;
  Cut columns_, chunks_;
  Loops outer_;
  std::unique_ptr<const RowCode> one_, several_, add_, finish_;  // add_: rows of partial results to one
};

}  // namespace

std::unique_ptr<Kernel> make_columns_kernel(const LoopNest& nest) {
  if (!is_f32_reduction(nest)) return nullptr;
  const auto axes = axes_of(nest);
  if (!axes) return nullptr;
  auto kernel = std::make_unique<ColumnsKernel>(nest, *axes);
  return kernel->is_ready() ? std::move(kernel) : nullptr;
}

}  // namespace ein::host
