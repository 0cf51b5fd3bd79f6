// Operands that meet by the names of their axes, when a call runs.
#include <ein/typed_ops.hpp>

#include <string>

#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "runtime/trace.hpp"

namespace ein::detail {
namespace {

std::size_t place_of(std::int8_t place, std::size_t rank) {
  return place >= 0 ? static_cast<std::size_t>(place)
                    : rank - static_cast<std::size_t>(-int{place});
}

/// The word of a type that says dimension `place`.
std::string word_of(std::string_view axes, std::int8_t place) {
  const grammar::SpecReading spec = grammar::read_shape_spec(axes);
  const grammar::SpecDim& dim = spec.dims[place_of(place, spec.dims.size())];
  return std::string(spec.text_of(dim.span));
}

[[noreturn]] void fail(const char* what, const MeetingOperands& operands, const std::string& axis,
                       Size of_a, Size of_b) {
  const auto line = [](const char* number, std::string_view axes, const Tensor& x) {
    return std::string("\n  operand ") + number + ": \"" + std::string(axes) + "\" " +
           x.shape().to_string();
  };
  throw Error(ErrorKind::size,
              std::string(what) + ": " + axis + " has two sizes: " + to_string(of_a) +
                  " in operand 1, " + to_string(of_b) + " in operand 2" +
                  line("1", operands.axes_a, operands.a) + line("2", operands.axes_b, operands.b));
}

}  // namespace

void require_meeting(const char* what, const StaticMeeting& meeting,
                     const MeetingOperands& operands) {
  const Shape &a = operands.a.shape(), &b = operands.b.shape();
  const engine::Trace* const trace = engine::Trace::active();
  const bool is_of_map = trace && !trace->remembers();
  for (const StaticMeeting::Pair& pair : meeting.pairs()) {
    const Size of_a = a[place_of(pair.of_a, a.rank())], of_b = b[place_of(pair.of_b, b.rank())];
    // A function that map was given sees operands without an axis that others have: 1 there.
    if (is_of_map && (is_one(of_a) || is_one(of_b))) continue;
    if (of_a != of_b)
      fail(what, operands, "axis '" + word_of(operands.axes_a, pair.of_a) + "'", of_a, of_b);
  }
  if (!meeting.has_open_pair) return;
  // Those under `...`, of which both have as many.
  const std::size_t open_a = open_dimensions(operands.a, operands.axes_a),
                    open_b = open_dimensions(operands.b, operands.axes_b);
  const auto first_of = [](std::string_view axes) {
    const grammar::SpecReading spec = grammar::read_shape_spec(axes);
    std::size_t first = 0;
    while (!spec.dims[first].is_open()) ++first;
    return first;
  };
  const std::size_t first_a = first_of(operands.axes_a), first_b = first_of(operands.axes_b);
  if (open_a != open_b)
    fail(what, operands, "the number of axes under '...'", static_cast<std::int64_t>(open_a),
         static_cast<std::int64_t>(open_b));
  for (std::size_t d = 0; d < open_a; ++d) {
    if (a[first_a + d] != b[first_b + d])
      fail(what, operands, "an axis under '...'", a[first_a + d], b[first_b + d]);
  }
}

std::size_t open_dimensions(const Tensor& x, std::string_view axes) {
  if (axes.find_first_of(".*") == axes.npos) return 0;
  const grammar::SpecReading spec = grammar::read_shape_spec(axes);
  return spec.is_open() ? x.rank() + 1 - spec.dims.size() : 0;
}

Tensor read_as(const Tensor& x, std::string_view read, std::size_t ones) {
  const std::size_t mark = read.find('#');
  if (mark == read.npos) return rearrange(x, runtime(read));
  std::string text(read.substr(0, mark));
  for (std::size_t i = 0; i < ones; ++i) text += i == 0 ? "1" : " 1";
  text += read.substr(mark + 1);
  return rearrange(x, runtime(text));
}

}  // namespace ein::detail
