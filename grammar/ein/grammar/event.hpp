// The rules of the grammar whose match means something.
#pragma once

#include <ein/compiler.hpp>

#include <cstdint>

namespace ein::grammar {

#define EIN_EVENTS(event)                                                                         \
  event(name) event(mesh_axis) event(axis_size) event(number) event(ellipsis) event(unnamed)      \
      event(packed) event(many) event(open) event(close) event(open_bracket) event(close_bracket) \
          event(open_brace) event(close_brace) event(times) event(plus) event(minus) event(colon) \
              event(comma) event(arrow) event(pattern) event(spec_name) event(spec_number)        \
                  event(spec_unnamed) event(spec_open) event(spec_variadic) event(spec_times)     \
                      event(spec_plus) event(spec_minus) event(spec_fixed_size) event(spec_size)  \
                          event(shape_spec)

enum class Event : std::uint8_t {
  none,
#define EIN_EVENT(rule) rule,
  EIN_EVENTS(EIN_EVENT)
#undef EIN_EVENT
};

}  // namespace ein::grammar
