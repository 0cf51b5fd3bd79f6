// Calls in destructors and functions of atexit(), when what the library keeps may be destroyed.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "support/scratch.hpp"

namespace ein {
namespace {

using test::ScratchDirectory;

/// What the program of support/exits.cpp prints, and how it ends unless that is with 0.
std::string outcome_of(const std::string& end, const std::string& before) {
  const ScratchDirectory folder;
  const std::string line = std::string("'" EIN_EXITS "' '") + folder.path().string() + "' '" + end +
                           "' " + before + " 2>&1";
  FILE* const pipe = ::popen(line.c_str(), "r");
  if (!pipe) return "does not start";
  std::string text;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, got);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    text += "ends with " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -status);
  return text;
}

class ExitTest : public testing::TestWithParam<const char*> {};

TEST_P(ExitTest, EverythingCanBeCalled) {
  EXPECT_EQ(outcome_of(GetParam(), "fresh"), "at the end\n") << "for the first time";
  EXPECT_EQ(outcome_of(GetParam(), "used"), "in main\nat the end\n") << "after it was used";
}

INSTANTIATE_TEST_SUITE_P(Ends, ExitTest,
                         testing::Values("static object", "later static object", "atexit",
                                         "later atexit", "quick_exit", "thread_local object",
                                         "later thread_local object",
                                         "thread_local object of a thread",
                                         "later thread_local object of a thread", "key of a thread",
                                         "later key of a thread", "exit in a thread",
                                         "exit beside a thread"));

}  // namespace
}  // namespace ein
