// Maps and reductions in strips. A reduction along rows makes one number of each strip, and a
// cascade of those; one that combines rows takes strips of a row, or of several short ones, into a
// cascade. A cascade adds runs of 32 and then those sums, so the error of a sum grows with the
// logarithm of the number of elements. The first position of an element is looked for in memory.
#include "cpu/strip_rows.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "cpu/first_equal.hpp"
#include "cpu/strip.hpp"
#include "cpu/strip_loops.hpp"
#include "cpu/strip_type.hpp"
#include "nest/combine.hpp"
#include "nest/first_found.hpp"
#include "nest/skipped_sum.hpp"
#include "schedule/target.hpp"
#include "size/ask.hpp"
#include "tensor/compute_type.hpp"
#include "tensor/convert.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

static_assert(Target().strip == strip_size);

/// Combines any number of strips of the same length, in a cascade.
template <class C>
class Cascade {
 public:
  static constexpr std::size_t levels = 13;  // run_length^13 > 2^63 strips

  /// Elements of memory for strips of n.
  static std::size_t scratch_size(std::size_t n) { return levels * n; }

  Cascade(Combine combine, std::size_t n, C* memory)
      : combine_(combine), op_(info(combine).operation), n_(n), memory_(memory) {
    clear(0);
  }
  void add(const C* values) { add(values, n_); }
  /// Of the last strip the end may be missing.
  void add(const C* values, std::size_t n) {
    apply(op_, memory_, values, values, memory_, n);
    for (std::size_t level = 0; ++count_[level] == run_length && level + 1 < levels; ++level) {
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

/// Evaluates the body in B, and combines as many of its values in B as fit it; the rest is in C.
template <class B, class C>
class StripRowsIn final : public StripRows {
 public:
  StripRowsIn(const Schedule::Part& part, const StripType& type)
      : nest_(part.rows.nests[0]),
        most_(type.most),
        output_(operand(part, nest_.output)),
        inputs_(operands(part)),
        body_(nest_.body, dtypes(false)),
        epilogue_(nest_.epilogue.steps.empty() ? ScalarExpr(Ex::input(0)) : nest_.epilogue,
                  dtypes(true)),
        asks_index_(asks_index(nest_.body) || asks_index(nest_.epilogue)),
        draws_(draws(nest_.body)),
        skipped_(skipped_sum(nest_.body, nest_.combine)) {
    // 0 and 1 as bytes are bool as it is stored.
    if (type.is_truth && output_.dtype == DType::boolean && !nest_.combine)
      output_.dtype = DType::i8;
    for (std::size_t a = 0; a < part.rows.axes.size(); ++a) {
      if (part.rows.axes[a].is_along) axis_ = a;
      if (part.rows.axes[a].is_row) row_axis_ = a;
    }
    found_ = first_found(nest_.body, nest_.combine);
    if (found_ && !(found_->axis == axis_ && are_compared(part.rows.compute))) found_.reset();
  }

  void run(const Call& call) const override {
    Worker worker(*this, call);
    if (!nest_.combine)
      worker.map();
    else if (nest_.over == Schedule::Over::row)
      worker.reduce_along();
    else
      worker.reduce_down();
  }

 private:
  /// Whether elements that are looked for are equal where their values in `compute` are.
  bool are_compared(DType compute) const {
    const DType x = inputs_[found_->x].dtype;
    return x == inputs_[found_->value].dtype && finds_first_equal(x) &&
           is_floating(x) == is_floating(compute) && size_of(x) <= size_of(compute);
  }

  struct Operand {
    std::size_t place;
    DType dtype;
    std::int64_t element_bytes;
  };
  static Operand operand(const Schedule::Part& part, std::size_t p) {
    const Schedule::Place& place = part.places[p];
    return {p, place.dtype, static_cast<std::int64_t>(size_of(place.dtype))};
  }
  std::vector<Operand> operands(const Schedule::Part& part) const {
    std::vector<Operand> inputs;
    for (std::size_t p : nest_.inputs) inputs.push_back(operand(part, p));
    return inputs;
  }
  /// Of what the body reads, or the epilogue, whose input 0 is the combined value.
  std::vector<LoopNest::Operand> dtypes(bool of_epilogue) const {
    std::vector<LoopNest::Operand> result;
    for (const Operand& input : inputs_) result.push_back({.dtype = input.dtype});
    if (!of_epilogue) return result;
    result.resize(std::max<std::size_t>(1, result.size()));
    result[0].dtype = dtype_of<C>;
    return result;
  }

  /// Points of the part: `count` lines of `length` elements from a point on, along the rows or
  /// down.
  struct Lines {
    std::int64_t row, element, count, length;
    bool is_down = false;

    std::size_t size() const { return static_cast<std::size_t>(count * length); }
    std::size_t line() const { return count > 1 ? static_cast<std::size_t>(length) : 0; }
  };

  class Worker {
   public:
    Worker(const StripRowsIn& rows, const Call& call)
        : of_(rows),
          call_(call),
          from_(call.steps.row.size() - 1),
          longest_(call.steps.element[0] == 1 && rows.body_.is_plain_input() ? plain_strip_size
                                                                             : strip_size),
          index_(rows.asks_index_ ? call.index.size() : 0),
          combine_(rows.nest_.combine.value_or(Combine::sum)) {
      const bool combines = of_.nest_.combine.has_value();
      const auto longest = static_cast<std::size_t>(combines ? longest_ : 0);
      const std::size_t of_epilogue = combines ? of_.epilogue_.scratch_size() + strip_size : 0,
                        of_body = of_.body_.scratch_size() + Cascade<B>::scratch_size(longest);
      if constexpr (is_one_type) {
        body_ = strip_scratch<B>(of_body + of_epilogue);
        epilogue_ = body_ + of_body;
      } else {
        body_ = strip_scratch<B>(of_body + strip_size);
        narrow_results_ = body_ + of_body;
        epilogue_ = strip_scratch<C>(of_epilogue + Cascade<C>::scratch_size(1) + 2 * longest);
        totals_ = epilogue_ + of_epilogue;
      }
      cascade_ = body_ + of_.body_.scratch_size();
      results_ = epilogue_ + of_.epilogue_.scratch_size();
    }

    void map() {
      const bool is_down = call_.length == 1;  // one column
      const std::int64_t lines = is_down ? 1 : call_.rows,
                         length = is_down ? call_.rows : call_.length;
      const std::int64_t at_once = lines == 1 || of_.draws_ ? 1 : lines_at_once(length);
      const Operand& out = of_.output_;
      const std::int64_t step = is_down ? out_row_step() : out_step(),
                         line_step = is_down ? out_step() : out_row_step();
      for (std::int64_t line = 0; line < lines; line += at_once) {
        const std::int64_t count = std::min(at_once, lines - line);
        const bool in_place =
            holds<B>(out.dtype) && step == 1 && (count == 1 || line_step == length);
        for (std::int64_t first = 0; first < length; first += strip_size) {
          const Lines here{is_down ? first : line, is_down ? 0 : first, count,
                           std::min(strip_size, length - first), is_down};
          std::byte* const to =
              call_.places[out.place] + bytes(from_.size(), here.row, here.element);
          B* const into = in_place ? reinterpret_cast<B*>(to) : nullptr;
          const B* const values = evaluate(here, into);
          if (values != into)
            store_strip(values, here.size(), here.line(), to, out.dtype, step, line_step);
        }
      }
    }

    void reduce_along() {
      const std::int64_t length = call_.length, at_once = std::min(strip_size, call_.rows),
                         together = longest_ > strip_size ? at_once : lines_at_once(length);
      for (std::int64_t row = 0; row < call_.rows; row += at_once) {
        const std::int64_t count = std::min(at_once, call_.rows - row);
        if (are_zeros(row, 0, count, true)) {
          std::fill_n(results_, count, C(0));
        } else if (is_found()) {
          find(row, count, results_);
        } else if (length > longest_ || of_.skipped_) {
          for (std::int64_t r = 0; r < count; ++r)
            results_[r] = are_zeros(row + r, 0, 1, true) ? C(0) : reduce_row(row + r);
        } else {
          for (std::int64_t r = 0; r < count; r += together)
            reduce_short({row + r, 0, std::min(together, count - r), length}, results_ + r);
        }
        finish(results_, row, count, true);
      }
    }

    void reduce_down() {
      for (std::int64_t first = 0; first < call_.length; first += longest_) {
        const std::int64_t length = std::min(longest_, call_.length - first);
        if (are_zeros(0, first, length, false)) {
          std::fill_n(results_, length, C(0));
          finish(results_, first, length, false);
        } else {
          finish(combine_rows(first, length), first, length, false);
        }
      }
    }

   private:
    /// Whether the sums of `count` rows, or of `count` elements of all rows, are known to be 0.
    bool are_zeros(std::int64_t row, std::int64_t element, std::int64_t count, bool of_rows) const {
      if (!of_.skipped_) return false;
      const auto [input, value] = *of_.skipped_;
      const std::int64_t by_row = call_.steps.row[input], by_element = call_.steps.element[input];
      if ((of_rows ? by_element : by_row) != 0) return false;
      const Operand& operand = of_.inputs_[input];
      const auto n = static_cast<std::size_t>(count);
      double found[strip_size];
      load_as(call_.places[operand.place] + bytes(input, row, element), operand.dtype,
              of_rows ? by_row : by_element, found, n);
      return std::all_of(found, found + n, [value = value](double x) { return x == value; });
    }

    /// Whether rows give the first position of an element, which lies along them.
    bool is_found() const {
      return of_.found_ && call_.steps.element[of_.found_->x] == 1 &&
             call_.steps.element[of_.found_->value] == 0 &&
             where_none_is() >= static_cast<C>(call_.index[of_.found_->axis] + call_.length);
    }
    C where_none_is() const {
      return std::is_integral_v<C> ? static_cast<C>(of_.found_->otherwise.integer)
                                   : static_cast<C>(of_.found_->otherwise.real);
    }
    void find(std::int64_t row, std::int64_t count, C* results) const {
      const auto& [x, value, axis, otherwise] = *of_.found_;
      const auto first_of = [&](std::size_t input) {
        return call_.places[of_.inputs_[input].place] + bytes(input, row, 0);
      };
      std::int64_t places[strip_size];
      first_equal({first_of(x), first_of(value), call_.steps.row[x], call_.steps.row[value], count,
                   call_.length},
                  of_.inputs_[x].dtype, places);
      for (std::int64_t r = 0; r < count; ++r)
        results[r] = places[r] < call_.length ? static_cast<C>(call_.index[axis] + places[r])
                                              : where_none_is();
    }

    /// How far into operand o a point lies; the output is behind the inputs.
    std::int64_t bytes(std::size_t o, std::int64_t row, std::int64_t element) const {
      const Operand& operand = o < of_.inputs_.size() ? of_.inputs_[o] : of_.output_;
      return (row * call_.steps.row[o] + element * call_.steps.element[o]) * operand.element_bytes;
    }
    std::int64_t out_step() const { return call_.steps.element.back(); }
    std::int64_t out_row_step() const { return call_.steps.row.back(); }

    /// How many lines make a strip.
    static std::int64_t lines_at_once(std::int64_t length) {
      return std::max<std::int64_t>(1, strip_size / length);
    }

    /// The body's values.
    const B* evaluate(const Lines& lines, B* into = nullptr) {
      for (std::size_t i = 0; i < of_.inputs_.size(); ++i) {
        from_[i] = call_.places[of_.inputs_[i].place] + bytes(i, lines.row, lines.element);
      }
      return of_.body_.evaluate(at(lines), lines.size(), body_, into);
    }

    StripPlace at(const Lines& lines) {
      const auto& [row, element, count, length, is_down] = lines;
      if (of_.asks_index_) {
        std::copy(call_.index.begin(), call_.index.end(), index_.begin());
        if (of_.axis_ != none) index_[of_.axis_] += element;
        if (of_.row_axis_ != none) index_[of_.row_axis_] += row;
      }
      const Operand& out = of_.output_;
      StripPlace place{{from_.data(), from_.size()},
                       std::span(call_.steps.element).first(from_.size()),
                       std::span(call_.steps.row).first(from_.size())};
      place.row_length = lines.line();
      place.index = {index_.data(), index_.size()};
      place.strip_axis = of_.axis_, place.row_axis = of_.row_axis_;
      if (of_.draws_)
        place.position =
            (call_.places[out.place] + bytes(from_.size(), row, element) - call_.first) /
            out.element_bytes;
      place.position_step = out_step();
      place.random = call_.random;
      if (is_down) {
        std::swap(place.steps, place.row_steps);
        std::swap(place.strip_axis, place.row_axis);
        place.position_step = out_row_step();
      }
      return place;
    }

    /// The rows' elements from `first` on combined into one row.
    const C* combine_rows(std::int64_t first, std::int64_t length) {
      if constexpr (is_one_type) {
        return combine_rows(0, call_.rows, first, length);
      } else {
        const auto n = static_cast<std::size_t>(length);
        for (std::int64_t row = 0; row < call_.rows; row += of_.most_) {
          const B* const some =
              combine_rows(row, std::min(of_.most_, call_.rows - row), first, length);
          std::copy_n(some, n, row == 0 ? totals_ : totals_ + n);
          if (row > 0) apply(info(combine_).operation, totals_, totals_ + n, totals_, totals_, n);
          if (call_.rows - row <= of_.most_) break;
        }
        return totals_;
      }
    }

    /// The same for `count` rows.
    const B* combine_rows(std::int64_t first_row, std::int64_t count, std::int64_t first,
                          std::int64_t length) {
      const B* from = cascade_;
      const std::int64_t together = std::min(count, lines_at_once(length)), end = first_row + count;
      if (together == count && together > 1) {
        from = evaluate({first_row, first, together, length});
      } else {
        Cascade<B> cascade(combine_, static_cast<std::size_t>(together * length), cascade_);
        for (std::int64_t row = first_row; row < end; row += together) {
          const Lines lines{row, first, std::min(together, end - row), length};
          cascade.add(evaluate(lines), lines.size());
        }
        from = cascade.result();
      }
      // The strip's rows by halves.
      for (std::int64_t rows = together; rows > 1; rows = (rows + 1) / 2, from = cascade_) {
        const B* const upper = from + (rows + 1) / 2 * length;
        apply(info(combine_).operation, from, upper, upper, cascade_,
              static_cast<std::size_t>(rows / 2 * length));
        if (rows % 2 == 1 && from != cascade_)
          std::copy_n(from + rows / 2 * length, length, cascade_ + rows / 2 * length);
      }
      return from;
    }

    void reduce_short(const Lines& rows, C* results) {
      const B* values = nullptr;
      std::int64_t step = rows.length;
      if (longest_ > strip_size) {  // combined where they lie
        values = evaluate({rows.row, 0, 1, rows.length});
        step = call_.steps.row[0];
      } else {
        values = evaluate(rows);
      }
      combine(values, step, rows.length, rows.count, results);
    }

    void combine(const B* values, std::int64_t step, std::int64_t length, std::int64_t count,
                 C* results) {
      const auto n = static_cast<std::size_t>(length);
      if constexpr (is_one_type) {
        combine_strips(combine_, values, step, n, count, results);
      } else {
        combine_strips(combine_, values, step, n, count, narrow_results_);
        std::copy_n(narrow_results_, count, results);
      }
    }

    C reduce_row(std::int64_t row) {
      // The cascade is for numbers one at a time too slow a way to combine them, so strips of them
      // come between.
      C* memory;
      if constexpr (is_one_type)
        memory = cascade_;
      else
        memory = totals_;
      Cascade<C> cascade(combine_, 1, memory);
      C partial[strip_size];
      std::size_t partials = 0;
      const auto flush = [&] {
        C value;
        combine_strips(combine_, partial, 0, partials, 1, &value);
        cascade.add(&value);
        partials = 0;
      };
      for (std::int64_t first = 0; first < call_.length; first += longest_) {
        const std::int64_t length = std::min(longest_, call_.length - first);
        combine(evaluate({row, first, 1, length}), 0, length, 1, &partial[partials++]);
        if (partials == std::size(partial)) flush();
      }
      if (partials > 0) flush();
      return *cascade.result();
    }

    /// Applies the epilogue to `count` combined values and stores them: those of rows from `first`
    /// on, or of elements.
    void finish(const C* values, std::int64_t first, std::int64_t count, bool of_rows) {
      const Operand& out = of_.output_;
      for (std::int64_t done = 0; done < count; done += strip_size) {
        const std::int64_t n = std::min(strip_size, count - done), at_first = first + done;
        const Lines here{of_rows ? at_first : 0, of_rows ? 0 : at_first, 1, n, of_rows};
        for (std::size_t i = 1; i < of_.inputs_.size(); ++i) {
          from_[i] = call_.places[of_.inputs_[i].place] + bytes(i, here.row, here.element);
        }
        from_[0] = reinterpret_cast<const std::byte*>(values + done);
        StripPlace place = at(here);
        SmallArray<std::int64_t, 16> steps(place.steps.size());
        std::copy(place.steps.begin(), place.steps.end(), steps.begin());
        steps[0] = 1;  // the combined values lie side by side
        place.steps = {steps.data(), steps.size()};
        const C* const results = of_.epilogue_.evaluate(place, here.size(), epilogue_);
        store_strip(results, here.size(), 0,
                    call_.places[out.place] + bytes(from_.size(), here.row, here.element),
                    out.dtype, of_rows ? out_row_step() : out_step(), 0);
      }
    }

    const StripRowsIn& of_;
    const Call& call_;
    SmallArray<const std::byte*, 16> from_;
    std::int64_t longest_;  // strip of a row that is combined
    SmallArray<std::int64_t, 16> index_;
    Combine combine_;
    B *body_, *cascade_, *narrow_results_ = nullptr;
    C *epilogue_, *results_, *totals_ = nullptr;
  };

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr bool is_one_type = std::is_same_v<B, C>;

  Schedule::RowNest nest_;
  std::int64_t most_;  // values that may be combined in B
  Operand output_;
  std::vector<Operand> inputs_;
  StripExpr<B> body_;
  StripExpr<C> epilogue_;
  bool asks_index_, draws_;
  std::optional<SkippedSum> skipped_;
  std::optional<FirstFound> found_;
  std::size_t axis_ = none, row_axis_ = none;
};

}  // namespace

StripRows::Steps::Steps(const Schedule::Part& part, SizesAt& sizes) {
  const Schedule::RowNest& nest = part.rows.nests[0];
  for (const std::size_t input : nest.inputs) {
    element.push_back(sizes(part.places[input].step));
    row.push_back(sizes(part.places[input].row_step));
  }
  element.resize(std::max<std::size_t>(1, element.size()));
  row.resize(element.size());
  element.push_back(sizes(part.places[nest.output].step));
  row.push_back(sizes(part.places[nest.output].row_step));
}

std::unique_ptr<const StripRows> StripRows::make(const Schedule::Part& part) {
  const StripType type = strip_type(part);
  using Rows = std::unique_ptr<const StripRows>;
  const auto narrow = [&]<class B>(std::type_identity<B>) -> Rows {
    return std::make_unique<StripRowsIn<B, std::int64_t>>(part, type);
  };
  if (type.dtype == DType::i8) return narrow(std::type_identity<std::int8_t>{});
  if (type.dtype == DType::i16) return narrow(std::type_identity<std::int16_t>{});
  if (type.dtype == DType::i32) return narrow(std::type_identity<std::int32_t>{});
  return visit_compute_type(type.dtype, [&]<class C>(std::type_identity<C>) -> Rows {
    return std::make_unique<StripRowsIn<C, C>>(part, type);
  });
}

}  // namespace ein::host
