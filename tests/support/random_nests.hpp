// Random maps and reductions, and groups of them, with what their buffers hold.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "nest/nest.hpp"
#include "oracle/execute.hpp"
#include "schedule/target.hpp"
#include "tensor/convert.hpp"

namespace ein::test {

/// A target on which nests of a few dozen elements already take every road that large ones take on
/// a processor.
inline Target small_target() {
  Target target;
  target.has = [](ScalarOp op, DType) { return op != ScalarOp::pow; };
  target.combines = [](Combine) { return true; };
  target.reads = [](DType dtype, Size step, DType compute) {
    return step == 0 || step == 1 || (step == 2 && dtype == compute);
  };
  target.writes = [](DType dtype, DType) { return is_floating(dtype); };
  target.combines_together = [](Combine combine) { return combine == Combine::sum; };
  target.register_bytes = 16;
  target.strip = 16;
  target.few_units = 3, target.most_pieces = 5;
  target.least_points = 8;
  target.elements_per_unit = 24;
  target.least_rows = 3;
  target.longest_combined_row = 40;
  target.most_columns = 12;
  target.least_rows_in_unit = 2, target.most_rows_in_unit = 5;
  target.folded_registers = 2;
  target.most_window_points = 4, target.most_window_inputs = 8;
  target.least_turned_elements = 16, target.least_turned_size = 3, target.line_bytes = 16;
  target.elements_per_block = 16, target.most_elements_per_block = 64, target.most_blocks = 32;
  target.least_run = 2;
  target.least_in_half = 2, target.most_in_half = 8;
  return target;
}

/// A target on which nests of a few dozen elements already take every road that large ones take on
/// a device.
inline GpuTarget small_gpu() {
  GpuTarget target;
  target.busy_threads = 64, target.busy_blocks = 12;
  target.threads = 16, target.most_threads = 32, target.warp = 4;
  target.run_length = 2;
  target.most_unrolled = 8, target.most_unrolled_alone = 4;
  return target;
}

/// Buffers as bytes and as the same numbers in double precision.
struct NestMemory {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<DType> dtypes;
  DoubleBuffers values;

  int add(std::mt19937& random, DType dtype, std::int64_t elements) {
    std::vector<std::byte> of_bytes(static_cast<std::size_t>(elements) * size_of(dtype));
    std::vector<double> of_values;
    for (std::int64_t i = 0; i < elements; ++i) {
      const double value = dtype == DType::f64
                               ? std::uniform_real_distribution<double>(-1, 1)(random)
                               : std::uniform_real_distribution<float>(-1, 1)(random);
      std::byte* const at = of_bytes.data() + static_cast<std::size_t>(i) * size_of(dtype);
      store_from(&value, 1, at, dtype, 1);
      double stored;
      load_as(at, dtype, 1, &stored, 1);
      of_values.push_back(stored);
    }
    bytes.push_back(std::move(of_bytes));
    dtypes.push_back(dtype);
    values.push_back(std::move(of_values));
    return static_cast<int>(bytes.size()) - 1;
  }
  double value(int buffer, std::size_t element) const {
    const auto b = static_cast<std::size_t>(buffer);
    double value;
    load_as(bytes[b].data() + element * size_of(dtypes[b]), dtypes[b], 1, &value, 1);
    return value;
  }
  std::vector<Size> elements() const {
    std::vector<Size> elements;
    for (const auto& buffer : values) elements.push_back(static_cast<std::int64_t>(buffer.size()));
    return elements;
  }
};

class RandomNest {
 public:
  LoopNest nest;
  NestMemory memory;

  /// With one axis of up to `longest` points, and short ones, `most` points in all; `is_long`: the
  /// long axis is reduced, and there is at most one other.
  RandomNest(std::mt19937& random, int longest, std::int64_t most, bool is_long,
             std::span<const DType> dtypes)
      : random_(random), dtypes_(dtypes) {
    const int rank = is_long ? pick(1, 2) : pick(1, 4);
    std::int64_t points = 1;
    for (int a = 0; a < rank; ++a) {
      const std::int64_t size = std::min<std::int64_t>(
          most / points, a == 0 ? pick(std::max(1, longest / 30), longest) : pick(1, 18));
      points *= size;
      nest.axes.push_back({std::string(1, static_cast<char>('a' + a)), size});
    }
    nest.axes[0].reduced = is_long;
    std::shuffle(nest.axes.begin(), nest.axes.end(), random_);
    if (is_long || pick(0, 2) > 0) combine(is_long, rank);
    // All with the same axis innermost, as rows are; mostly.
    std::vector<std::size_t> order(nest.axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    const int inputs = pick(0, 20) == 0 ? 0 : pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      if (pick(0, 3) == 0)
        std::shuffle(order.begin(), order.end() - (pick(0, 2) == 0 ? 0 : 1), random_);
      nest.inputs.push_back(operand(order, pick(0, 3) == 0 && i > 0, false));
    }
    nest.output = operand(order, false, true);
    const int axis = pick(0, rank - 1);
    if (inputs == 0) {
      nest.body = Ex::index(axis) * 0.0005;
    } else {
      const Ex x = Ex::input(0), y = Ex::input(inputs > 1 ? 1 : 0),
               z = Ex::input(inputs > 2 ? 2 : 0);
      const Ex bodies[] = {
          x,
          x * y,
          (x - y) * z + x,
          Ex::apply(ScalarOp::exp, Ex::apply(ScalarOp::neg, Ex::apply(ScalarOp::abs, x))) * y,
          Ex::apply(ScalarOp::where, Ex::apply(ScalarOp::lt, Ex::index(axis), Ex(longest / 6.0)), x,
                    y * z),
          Ex::apply(ScalarOp::tanh, x + y) / (z * z + 1.0)};
      nest.body = bodies[pick(0, 5)];
    }
    if (nest.combine && pick(0, 1) == 0) {
      nest.epilogue = Ex::input(0) * 0.5 + 2.0;
      if (pick(0, 1) == 0) {
        while (nest.inputs.size() < 2) nest.inputs.push_back(operand(order, false, false));
        nest.inputs.push_back(operand(order, false, true));
        nest.epilogue = Ex::input(0) * Ex::input(static_cast<int>(nest.inputs.size()) - 1) + 1.0;
      }
    }
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void combine(bool is_long, int rank) {
    if (!is_long) nest.axes[static_cast<std::size_t>(pick(0, rank - 1))].reduced = true;
    if (!is_long && rank > 2 && pick(0, 2) == 0) {  // a window of several axes
      for (LoopNest::NestAxis& axis : nest.axes) {
        axis.reduced = axis.size < 20;
        if (axis.reduced) axis.size = pick(1, 3);
      }
    }
    nest.combine =
        std::array{Combine::sum, Combine::sum,  Combine::max,
                   Combine::min, Combine::prod, Combine::any}[static_cast<std::size_t>(pick(0, 5))];
  }

  LoopNest::Operand operand(const std::vector<std::size_t>& order, bool repeats, bool is_result) {
    const DType dtype =
        dtypes_[static_cast<std::size_t>(pick(0, static_cast<int>(dtypes_.size()) - 1))];
    LoopNest::Operand operand{
        .dtype = dtype, .offset = pick(0, 5), .strides = std::vector<Size>(nest.axes.size(), 0)};
    std::int64_t stride = !is_result && pick(0, 5) == 0 ? 2 : 1;
    for (std::size_t k = order.size(); k-- > 0;) {
      const LoopNest::NestAxis& axis = nest.axes[order[k]];
      if ((is_result && axis.reduced) || (repeats && pick(0, 1) == 0)) continue;
      operand.strides[order[k]] = stride;
      stride *= axis.size + (pick(0, 3) == 0 ? pick(1, 3) : 0);
    }
    operand.buffer = memory.add(random_, dtype, operand.offset + stride);
    return operand;
  }

  std::mt19937& random_;
  std::span<const DType> dtypes_;
};

/// Nests one after the other over a matrix: maps, reductions of its rows and its columns, what
/// follows on them. With `wide` most are of f64, some between them of f32.
class RandomChain {
 public:
  Program program;
  NestMemory memory;

  RandomChain(std::mt19937& random, int rows, int columns, bool wide = false)
      : random_(random), rows_(rows), columns_(columns), wide_(wide) {
    program.input_count = static_cast<std::size_t>(pick(1, 3));
    for (std::size_t i = 0; i < program.input_count; ++i)
      add_value(pick(0, 4) == 0 ? Form::row_values : Form::matrix);
    for (int n = pick(2, 7); n > 0; --n) add_nest();
  }

 private:
  enum class Form { matrix, row_values, column_values };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::vector<Size> strides(Form form) const {
    switch (form) {
      case Form::matrix:
        return {columns_, 1};
      case Form::row_values:
        return {1, 0};
      case Form::column_values:
        return {0, 1};
    }
    return {};
  }
  int add_value(Form form) {
    const std::int64_t elements = form == Form::matrix       ? rows_ * columns_
                                  : form == Form::row_values ? rows_
                                                             : columns_;
    const DType dtype = form == Form::matrix && pick(0, 5) == 0 ? DType::bf16
                        : wide_ && pick(0, 4) > 0               ? DType::f64
                                                                : DType::f32;
    program.buffers.push_back({elements, dtype});
    forms_.push_back(form);
    return memory.add(random_, dtype, elements);
  }
  LoopNest::Operand operand(int buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return {.buffer = buffer, .dtype = program.buffers[b].dtype, .strides = strides(forms_[b])};
  }

  void add_nest() {
    LoopNest nest;
    nest.axes = {{"i", rows_}, {"j", columns_}};
    const int inputs = pick(1, 3), last = static_cast<int>(program.buffers.size()) - 1;
    bool has_matrix = false;
    for (int i = 0; i < inputs; ++i) {
      const int buffer = pick(0, 2) == 0 ? pick(0, last) : std::max(0, last - pick(0, 1));
      has_matrix |= forms_[static_cast<std::size_t>(buffer)] == Form::matrix;
      nest.inputs.push_back(operand(buffer));
    }
    const Ex x = Ex::input(0), y = Ex::input(inputs > 1 ? 1 : 0), z = Ex::input(inputs > 2 ? 2 : 0);
    const Ex bodies[] = {x + y, x * y - z, Ex::apply(ScalarOp::tanh, x) * z,
                         Ex::apply(ScalarOp::max, x, y), x * 0.5};
    nest.body = bodies[pick(0, 4)];
    Form form = Form::matrix;
    if (has_matrix && pick(0, 2) == 0) {
      form = pick(0, 2) == 0 ? Form::column_values : Form::row_values;
      nest.axes[form == Form::row_values ? 1 : 0].reduced = true;
      nest.combine = pick(0, 3) == 0 ? Combine::max : Combine::sum;
      if (nest.combine == Combine::sum) nest.body = Ex::of(nest.body) * 0.1;
      if (pick(0, 1) == 0) nest.epilogue = Ex::input(0) * 0.25 + 0.5;
    } else if (!has_matrix && pick(0, 1) == 0) {
      // Of single values, if all are of rows.
      const auto is_of_row = [&](const LoopNest::Operand& input) {
        return forms_[static_cast<std::size_t>(input.buffer)] == Form::row_values;
      };
      if (std::all_of(nest.inputs.begin(), nest.inputs.end(), is_of_row)) {
        form = Form::row_values;
        nest.axes.pop_back();
        for (LoopNest::Operand& input : nest.inputs) input.strides.pop_back();
      }
    }
    nest.output = operand(add_value(form));
    nest.output.strides.resize(nest.axes.size());
    for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
      if (nest.operand(o).dtype == DType::f64) nest.compute = DType::f64;
    }
    program.nests.push_back(std::move(nest));
  }

  std::mt19937& random_;
  std::int64_t rows_, columns_;
  bool wide_;
  std::vector<Form> forms_;  // of each buffer
};

}  // namespace ein::test
