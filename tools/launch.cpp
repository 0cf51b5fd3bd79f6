// ein launch: one program as several processes, which exchange values through shared memory.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ein/error.hpp>

#include "graph/diagnostic.hpp"
#include "io/number.hpp"
#include "machine/system.hpp"
#include "mesh/shm.hpp"
#include "subcommands.hpp"
#include "words.hpp"

extern char** environ;

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein launch -n 4 -- ./program --its arguments
  ein launch -n 2 -- sh -c 'echo I am $EIN_RANK of $EIN_SIZE'

Where there are as many processors as processes, each process gets its part of them, and computes on
as many threads. Each process has EIN_RANK (from 0 on), EIN_SIZE and EIN_SHM in its environment. Process 0 has the
standard input; the output of all of them is the launcher's. Signals to the launcher go to all.
Where a process is ended by a signal or gives no sign of life, the others have 10 seconds to end;
what is then left is killed.

Exit code: 0 if that is every process's, or else the one of the process that failed first, 128 plus
the number of the signal where one ended it; 2 for a mistake in the call; 1 where the program cannot
be started.)";

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{10};

/// Signals that are waited for instead of being taken, while one of these lives.
class WaitedSignals {
 public:
  WaitedSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
      ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, nullptr);  // one that is ignored leaves nothing to wait for
  }
  ~WaitedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  const sigset_t& before() const { return before_; }
  /// The next one, if it comes within a second.
  std::optional<siginfo_t> next() const {
    siginfo_t info = {};
    const timespec second{1, 0};
    if (::sigtimedwait(&set_, &info, &second) < 0) return std::nullopt;
    return info;
  }

 private:
  sigset_t set_, before_;
};

class Processes {
 public:
  Processes(int count, std::vector<std::string> words, bool binds)
      : space_(count), words_(std::move(words)), processes_(static_cast<std::size_t>(count)) {
    const std::vector<int> all = system::processors();
    binds = binds && count > 1 && all.size() >= processes_.size();
    for (int rank = 0; rank < count; ++rank) {
      if (binds) system::run_on(part_of(all, rank));
      start(rank);
    }
    if (binds) system::run_on(all);
  }
  ~Processes() {
    send(SIGKILL);  // those that are left when something has failed here
    for (const pid_t process : processes_) {
      if (process > 0) ::waitpid(process, nullptr, 0);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// Waits until all have ended; the exit code of the first that failed.
  int wait() {
    while (std::any_of(processes_.begin(), processes_.end(), [](pid_t p) { return p > 0; })) {
      // Those of the terminal go to the processes themselves, which are in its group.
      const std::optional<siginfo_t> signal = signals_.next();
      if (signal && signal->si_signo != SIGCHLD && signal->si_code <= 0) send(signal->si_signo);
      for (std::size_t i = 0; i < processes_.size(); ++i) take_end_of(i);
      if (!end_ && space_.has_silent_process()) end_ = Clock::now() + patience;
      if (end_ && Clock::now() > *end_) send(SIGKILL);
    }
    return exit_code_;
  }

 private:
  /// The processors of process `rank`: of as many parts as there are processes, one.
  std::vector<int> part_of(const std::vector<int>& processors, int rank) const {
    const auto border = [&](int r) {
      return processors.begin() +
             static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * processors.size() /
                                         processes_.size());
    };
    return {border(rank), border(rank + 1)};
  }

  void start(int rank) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable; ++variable) {
      const std::string text = *variable;
      if (!text.starts_with("EIN_RANK=") && !text.starts_with("EIN_SIZE=") &&
          !text.starts_with("EIN_SHM="))
        variables.push_back(text);
    }
    variables.push_back("EIN_RANK=" + std::to_string(rank));
    variables.push_back("EIN_SIZE=" + std::to_string(processes_.size()));
    variables.push_back("EIN_SHM=" + std::to_string(space_.descriptor()));
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    if (rank > 0) ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigmask(&attributes, &signals_.before());
    const int error =
        ::posix_spawnp(&processes_[static_cast<std::size_t>(rank)], words_[0].c_str(), &files,
                       &attributes, pointers(words_).data(), pointers(variables).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error == 0) return;
    processes_[static_cast<std::size_t>(rank)] = 0;
    throw Error(ErrorKind::file,
                "launch: " + ein::quoted(words_[0]) +
                    " cannot be started: " + std::strerror(error) +
                    "\n  help: give a program of the search path or the path of one");
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  void send(int signal) const {
    for (const pid_t process : processes_) {
      if (process > 0) ::kill(process, signal);
    }
  }

  /// Process `i`, if it has ended.
  void take_end_of(std::size_t i) {
    int status = 0;
    if (processes_[i] == 0 || ::waitpid(processes_[i], &status, WNOHANG) != processes_[i]) return;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const int exit_code = signal ? 128 + signal : WEXITSTATUS(status);
    processes_[i] = 0;
    space_.process_has_ended(static_cast<int>(i), exit_code, signal);
    if (signal && !end_) {
      end_ = Clock::now() + patience;
      std::fprintf(stderr, "ein: launch: process %zu was ended by signal %d (%s)\n", i, signal,
                   ::strsignal(signal));
    }
    if (exit_code_ == 0) exit_code_ = exit_code;
  }

  const WaitedSignals signals_;
  mesh::SharedSpace space_;
  std::vector<std::string> words_;
  std::vector<pid_t> processes_;
  std::optional<Clock::time_point> end_;  // when those that are left are killed
  int exit_code_ = 0;
};

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("launch", "Run a program as several processes that exchange values");
  const auto count = std::make_shared<std::string>();
  const auto words = std::make_shared<std::vector<std::string>>();
  add_word(*command, "-n", *count, "how many processes")->required();
  add_words(*command, "PROGRAM", *words, "behind --: the program and its arguments")
      ->allow_extra_args()
      ->required();
  const auto is_free = std::make_shared<bool>(false);
  command->add_flag("--no-bind", *is_free, "let every process run on all processors");
  command->footer(examples);
  command->callback([count, words, is_free, &exit_code] {
    const std::optional<int> number = io::number_of<int>(*count);
    if (!number || *number < 1 || *number > mesh::most_shm_processes)
      throw Error(ErrorKind::value,
                  "launch: -n " + ein::quoted(*count) +
                      " is no number of processes\n  help: give one between 1 and " +
                      std::to_string(mesh::most_shm_processes));
    exit_code = Processes(*number, *words, !*is_free).wait();
  });
}

}  // namespace ein::command
