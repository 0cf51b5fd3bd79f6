// What a thread owns, and when it is destroyed.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace ein {

/// Calls `destroy` when the calling thread ends, after the destructors of its thread_local objects,
/// the last `destroy` first. Neither these nor anything else of the library is destroyed with the
/// main thread.
void at_thread_end(void (*destroy)());

/// For when the library's static objects are destroyed: destroys what the calling thread owns. From
/// now on what other threads own stays, since the library may be unloaded before they end.
void forget_thread_ends();

/// What `make` gives, made by a thread's first call and destroyed when the thread ends. In place of
/// a thread_local object with a destructor, which functions of atexit() and destructors of other
/// objects would find destroyed; they find this one, or make another.
template <class Make>
std::invoke_result_t<Make>& made_once_by_thread(const Make& make) {
  static_assert(std::is_empty_v<Make> && std::is_class_v<Make>,
                "a lambda without captures: a thread has one value for each type of `make`");
  using T = std::invoke_result_t<Make>;
  thread_local T* made = nullptr;
  if (!made) {
    auto value = std::make_unique<T>(make());
    at_thread_end([] { delete std::exchange(made, nullptr); });
    made = value.release();
  }
  return *made;
}

}  // namespace ein
