// The ein command as a shell sees it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>
#include <vector>

#include "support/scratch.hpp"

namespace ein::test {

struct Outcome {
  int exit_code = -1;
  std::string text;  // stdout and stderr
};

/// Runs ein with these words, none of which has a quote, and variables, "NAME=value". What it
/// keeps, it keeps in a directory of these tests.
inline Outcome outcome_of(const std::vector<std::string>& words,
                          const std::vector<std::string>& variables = {}) {
  static const ScratchDirectory kept;
  // LeakSanitizer's tracer now and then crashes at the end of a process in which NVRTC had threads.
  std::string line =
      "env ASAN_OPTIONS=detect_leaks=0 XDG_CACHE_HOME='" + kept.path().string() + "'";
  for (const std::string& variable : variables) line += " '" + variable + "'";
  line += " '" EIN_COMMAND "'";
  for (const std::string& word : words) line += " '" + word + "'";
  Outcome outcome;
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  if (!pipe) return outcome;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    outcome.text.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

/// What a call that succeeds prints.
inline std::string text_of(const std::vector<std::string>& words,
                           const std::vector<std::string>& variables = {}) {
  const Outcome outcome = outcome_of(words, variables);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  return outcome.text;
}

inline void expect_holds(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

inline void expect_fails(int exit_code, const std::vector<std::string>& words,
                         const std::string& part, const std::vector<std::string>& variables = {}) {
  const Outcome outcome = outcome_of(words, variables);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.text;
  EXPECT_EQ(outcome.text.rfind("ein: ", 0), 0u) << outcome.text;
  expect_holds(outcome.text, {part});
}

}  // namespace ein::test
