// Pictures of patterns that are texts.
#include <ein/draw.hpp>

#include <span>

#include "draw/call.hpp"
#include "draw/mistake.hpp"
#include "ein/grammar/parse.hpp"

namespace ein::draw {
namespace {

std::string drawn(Operation op, std::string_view pattern, std::initializer_list<Shape> shapes,
                  std::initializer_list<AxisSize> sizes, Reduction reduction = Reduction::sum) {
  grammar::Reading reading = grammar::parse_pattern(pattern);
  PatternCall call{.op = op, .pattern = reading.buffer.pattern(pattern), .sizes = sizes};
  call.reduction = reduction;
  if (reading.mistake) fail(op, call.pattern, reading.mistake, {});
  require_numbers(op, reading.buffer, pattern, call.sizes);
  call.pattern = reading.buffer.pattern(pattern);
  return to_svg(call, std::span(shapes.begin(), shapes.end()));
}

}  // namespace

std::string rearrange(std::string_view pattern, std::initializer_list<Shape> shapes,
                      std::initializer_list<AxisSize> sizes) {
  return drawn(Operation::rearrange, pattern, shapes, sizes);
}
std::string repeat(std::string_view pattern, std::initializer_list<Shape> shapes,
                   std::initializer_list<AxisSize> sizes) {
  return drawn(Operation::repeat, pattern, shapes, sizes);
}
std::string reduce(std::string_view pattern, Reduction reduction,
                   std::initializer_list<Shape> shapes, std::initializer_list<AxisSize> sizes) {
  return drawn(Operation::reduce, pattern, shapes, sizes, reduction);
}
std::string einsum(std::string_view pattern, std::initializer_list<Shape> shapes,
                   std::initializer_list<AxisSize> sizes) {
  return drawn(Operation::einsum, pattern, shapes, sizes);
}

std::string mistake(const Error& error) { return to_svg(error); }

}  // namespace ein::draw
