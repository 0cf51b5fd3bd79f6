// Errors that calls ought to end with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/error.hpp>

namespace ein::test {

/// f() throws an Error of this kind whose message has all parts.
template <class F>
void expect_error(F&& f, ErrorKind kind, const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << "\n"
                                                                         << error.what();
  }
}

}  // namespace ein::test
