// parallel_for: pieces of one operation on the shared thread pool.
#pragma once

#include <cstdint>
#include <type_traits>

#include <ein/parallel.hpp>

namespace ein::host {

/// A reference to a callable, for the time of one call.
class Task {
 public:
  template <class F>
  Task(const F& f)
      : object_(&f), call_([](const void* object, std::int64_t part) {
          (*static_cast<const F*>(object))(part);
        }) {}
  void operator()(std::int64_t part) const { call_(object_, part); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t);
};

/// Calls task(part) once for each part in [0, parts), on the calling thread and the pool's, and
/// returns when all are done. Which thread runs which part is not fixed, so parts must not depend
/// on it. Inside a part, for one part, and while another thread's call has the pool, it is a plain
/// loop. The first exception of a part is thrown again here.
void parallel_for(std::int64_t parts, const Task& task);

}  // namespace ein::host
