#include "runtime/setting.hpp"

#include "runtime/tape.hpp"
#include "runtime/trace.hpp"

namespace ein::detail {

std::int64_t Setting::read() const {
  const std::int64_t value = this->value();
  if (engine::Trace* const trace = engine::Trace::active())
    trace->note_read({shared_from_this(), value});
  engine::Watch::note({shared_from_this(), value});
  return value;
}

void Setting::set(std::int64_t value) {
  if (engine::Trace* const trace = engine::Trace::active()) trace->note_set(*this);
  value_.store(value, std::memory_order_relaxed);
}

}  // namespace ein::detail
