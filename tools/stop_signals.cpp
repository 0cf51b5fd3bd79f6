#include "stop_signals.hpp"

#include <signal.h>

namespace ein::command {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM};
volatile sig_atomic_t received = 0;

void set_all(void (*handler)(int)) {
  for (const int signal : signals) {
    struct sigaction before = {}, action = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;  // what is written meanwhile is written whole
    ::sigaction(signal, &action, nullptr);
  }
}

void receive(int signal) {
  received = signal;
  set_all(SIG_DFL);
}

}  // namespace

void wait_for_stop_signal() { set_all(receive); }
int stop_signal() { return received; }

}  // namespace ein::command
