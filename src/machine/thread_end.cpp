#include "machine/thread_end.hpp"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <new>

#include "machine/fork.hpp"

namespace ein {
namespace {

struct End {
  void (*destroy)();
  std::unique_ptr<End> before;
};
thread_local End* last_end = nullptr;  // its chain is the thread's

void destroy_all() {
  while (last_end) {
    const std::unique_ptr<End> end(last_end);
    last_end = end->before.release();
    end->destroy();
  }
}

/// Of the threads that own something. POSIX calls its destructor after those of thread_local
/// objects, and again where another key's destructor has made something anew.
pthread_key_t key_of_owners() {
  return made_once([] {
    pthread_key_t key;
    if (::pthread_key_create(&key, [](void*) { destroy_all(); }) != 0) throw std::bad_alloc();
    return key;
  });
}

std::atomic<bool> is_over{false};

}  // namespace

void at_thread_end(void (*destroy)()) {
  auto end = std::make_unique<End>(End{destroy, nullptr});
  if (!is_over && ::pthread_setspecific(key_of_owners(), &last_end) != 0 && !is_over)
    throw std::bad_alloc();
  end->before.reset(last_end);
  last_end = end.release();
}

void forget_thread_ends() {
  destroy_all();
  if (!is_over.exchange(true)) ::pthread_key_delete(key_of_owners());
}

}  // namespace ein
