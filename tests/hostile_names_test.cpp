// Names of files and words of the command line that have in them what a terminal obeys: no message
// hands it on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/error.hpp>

namespace ein {
namespace {

/// An escape sequence, a bell, a line of its own, the eight-bit form of an escape sequence as a
/// byte and in UTF-8, bytes that are no UTF-8, a deletion, a change of direction, a return.
const std::vector<std::string> hostile = {"\x1b[2J",
                                          "\a",
                                          "\nforged",
                                          "q\x9b"
                                          "31m",
                                          "\xc2\x9b"
                                          "31m",
                                          "q\xff\xfe",
                                          "\x7f",
                                          "\xe2\x80\xae",
                                          "\rforged"};

void expect_harmless(const std::string& text) {
  for (const std::string& part : hostile)
    EXPECT_EQ(text.find(part), text.npos) << testing::PrintToString(text);
}

TEST(HostileNames, ReachNoMessageThatOthersMake) {
  for (const std::string& part : hostile) {
    if (part.starts_with('\n')) continue;  // a line of a message
    expect_harmless(Error(ErrorKind::value, "a text of somebody: " + part).what());
  }
  EXPECT_STREQ(Error(ErrorKind::value, "headline\n  a -> b\n    ^\twide µ").what(),
               "headline\n  a -> b\n    ^ wide µ");
}

}  // namespace
}  // namespace ein
