// A program that calls everything at an end of it or of a thread: exits FOLDER END fresh|used
// It prints "in main" if the library is used before the end, "at the end", and exits with 0.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "support/all_calls.hpp"

namespace {

// No objects with destructors: they are used to the end.
const char* folder = nullptr;
std::string_view end;
bool is_used = false;

void call_everything(const char* when) {
  const std::string failure = ein::test::failing_call(folder);
  std::printf("%s%s%s\n", when, failure.empty() ? "" : ": ", failure.c_str());
  std::fflush(stdout);
  if (!failure.empty()) ::_exit(1);
}

void use() {
  if (is_used) call_everything("in main");
}
void at_end() { call_everything("at the end"); }

/// Calls everything when it is destroyed, where it is made at all.
struct Ending {
  bool is_meant = true;
  ~Ending() {
    if (is_meant) at_end();
  }
};

struct Global : Ending {
  Global() : Ending{false} {}
} global;

void in_thread(void (*body)()) { std::thread(body).join(); }

pthread_key_t new_key() {
  pthread_key_t key;
  if (::pthread_key_create(&key, [](void*) { at_end(); }) != 0) ::_exit(3);
  return key;
}

const struct {
  std::string_view name;
  void (*meet)();
} ends[] = {
    {"static object",
     [] {
       global.is_meant = true;
       use();
     }},
    {"later static object",
     [] {
       use();
       static const Ending ending;
     }},
    {"atexit",
     [] {
       std::atexit(at_end);
       use();
     }},
    {"later atexit",
     [] {
       use();
       std::atexit(at_end);
     }},
    {"quick_exit",
     [] {
       std::at_quick_exit(at_end);
       use();
       std::quick_exit(0);
     }},
    {"thread_local object",
     [] {
       thread_local const Ending ending;
       use();
     }},
    {"later thread_local object",
     [] {
       use();
       thread_local const Ending ending;
     }},
    {"thread_local object of a thread",
     [] {
       in_thread([] {
         thread_local const Ending ending;
         use();
       });
     }},
    {"later thread_local object of a thread",
     [] {
       in_thread([] {
         use();
         thread_local const Ending ending;
       });
     }},
    {"key of a thread",
     [] {
       static const pthread_key_t key = new_key();  // before the library's
       in_thread([] {
         ::pthread_setspecific(key, "");
         use();
       });
     }},
    {"later key of a thread",
     [] {
       in_thread([] {
         use();
         ::pthread_setspecific(new_key(), "");
       });
     }},
    {"exit in a thread",
     [] {
       std::atexit(at_end);
       in_thread([] {
         use();
         std::exit(0);
       });
     }},
    {"exit beside a thread",
     [] {
       std::atexit(at_end);
       std::thread([] {
         while (ein::test::failing_call(folder) == "") {
         }
         ::_exit(4);
       }).detach();
       use();
     }},
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 2;
  folder = words[1];
  end = words[2];
  is_used = words[3] == std::string_view("used");
  for (const auto& [name, meet] : ends) {
    if (name != end) continue;
    meet();
    return 0;
  }
  return 2;
}
