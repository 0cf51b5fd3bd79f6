// A program as a child process, which a test sends signals to.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/scratch.hpp"

extern char** environ;

namespace ein::test {

/// Its standard output and errors go to a file. What is left of it at the end is killed.
class Child {
 public:
  /// SIGINT and SIGTERM do what they usually do, or, where the test is of that, nothing.
  Child(const std::vector<std::string>& words, const std::string& output, bool ignores = false)
      : output_(output) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
    if (!ignores) {
      posix_spawnattr_setsigdefault(&attributes, &signals);
      posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    }
    void (*const before[])(int) = {std::signal(SIGINT, SIG_IGN), std::signal(SIGTERM, SIG_IGN)};
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&id_, pointers[0], &files, &attributes, pointers.data(), environ), 0);
    std::signal(SIGINT, before[0]);
    std::signal(SIGTERM, before[1]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
  ~Child() {
    if (id_ <= 0) return;
    send(SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const { ::kill(id_, signal); }
  /// Its exit code, or, of one that a signal ended, minus that signal.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(id_, &status, 0), id_);
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string text() const { return read_bytes(output_); }
  /// The processes that it started.
  std::vector<pid_t> children() const {
    const std::string id = std::to_string(id_);
    std::ifstream list("/proc/" + id + "/task/" + id + "/children");
    std::vector<pid_t> children;
    for (pid_t child; list >> child;) children.push_back(child);
    return children;
  }

 private:
  std::string output_;
  pid_t id_ = 0;
};

}  // namespace ein::test
