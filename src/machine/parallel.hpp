// parallel_for: pieces of one operation on the shared thread pool.
#pragma once

#include <cstdint>
#include <type_traits>

#include <ein/parallel.hpp>

namespace ein::host {

/// A reference to a callable of a part, or of parts [begin, end), for the time of one call.
class Task {
 public:
  template <class F>
  Task(const F& f)
      : object_(&f), call_([](const void* object, std::int64_t begin, std::int64_t end) {
          const F& call = *static_cast<const F*>(object);
          if constexpr (std::is_invocable_v<const F&, std::int64_t, std::int64_t>) {
            call(begin, end);
          } else {
            for (; begin < end; ++begin) call(begin);
          }
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// Calls `task` once for each part in [0, parts), on the calling thread and the pool's, and returns
/// when all are done. Which thread runs which part is not fixed, so parts must not depend on it. A
/// thread takes up to `most` neighbouring parts at a time, and fewer towards the end, so that none
/// waits long for another. Inside a part, and while another thread's call has the pool, the calling
/// thread does all parts at once. The first exception of a part is thrown again here.
void parallel_for(std::int64_t parts, const Task& task, std::int64_t most = 1);
/// For a loop that waits for another thread.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Whether parallel_for shares parts out among threads here.
bool runs_in_parallel();
/// How many threads there are for num_threads(): fewer where the system starts no more.
int started_threads();

}  // namespace ein::host
