#include "situations.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include <ein/parallel.hpp>
#include "support/float_modes.hpp"

namespace ein::attack {
namespace {

/// Of a child that runs the program.
std::string outcome_in_child(const Program& program) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const std::string outcome = outcome_of(program);
    for (std::size_t at = 0; at < outcome.size();) {
      const ssize_t put = ::write(ends[1], outcome.data() + at, outcome.size() - at);
      if (put <= 0) ::_exit(1);
      at += static_cast<std::size_t>(put);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string outcome;
  std::vector<char> buffer(1 << 16);
  for (ssize_t got; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    outcome.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? outcome : "the child ends with status " + std::to_string(status);
}

/// Where two outcomes begin to differ.
std::string difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const std::size_t begin = a.rfind('\n', at) + 1;
  return "\"" + a.substr(begin, 80) + "\" is \"" + (begin < b.size() ? b.substr(begin, 80) : "") +
         "\"";
}

}  // namespace

std::string wrong_in_a_mode(const Program& program) {
  static const std::vector<test::NamedMode> modes = test::all_float_modes();
  const test::NamedMode& named = modes[program.seed % modes.size()];
  const InFloatMode restored(FloatMode::of_this_thread());
  set_num_threads(1);
  named.mode.use();
  const std::string of_one = outcome_of(program);
  FloatMode().use();
  set_num_threads(2);  // whose threads begin in the usual mode
  named.mode.use();
  for (int run = 0; run < 2; ++run) {
    const std::string of_two = outcome_of(program);
    if (of_two != of_one)
      return "rounding " + named.name + ", on two threads " + difference(of_one, of_two);
    if (FloatMode::of_this_thread() != named.mode) return "the mode is another after it";
  }
  return "";
}

std::string wrong_in_a_child(const Program& program) {
  set_num_threads(2);
  const std::string here = outcome_of(program), there = outcome_in_child(program);
  return here == there ? "" : "in a child of fork() " + difference(here, there);
}

}  // namespace ein::attack
