// Numbers in texts: all of the text, in any locale, the same with every standard library.
#include "io/number.hpp"

#include <cstdint>
#include <limits>
#include <locale>
#include <string>

#include <gtest/gtest.h>

namespace {

using ein::io::number_of;

TEST(NumberOfText, Floating) {
  const std::pair<const char*, double> numbers[] = {
      {"1.5", 1.5},
      {"-2e9", -2e9},
      {"1e+11", 1e11},
      {"0", 0},
      {".5", 0.5},
      {"5.", 5},
      {"0.1", 0.1},
      {"123456", 123456},
      {"2.2250738585072014e-308", 2.2250738585072014e-308},
      {"9007199254740993", 9007199254740992},
      {"1.7976931348623157e308", 1.7976931348623157e308}};
  for (const auto& [text, value] : numbers) {
    const auto number = number_of<double>(text);
    ASSERT_TRUE(number) << text;
    EXPECT_EQ(*number, value) << text;
  }
  for (const char* text :
       {"",    " ",     " 1",  "1 ",    "1\n",  "+1",  "--1", "-",     ".",      "e5",  "1e",
        "1e+", "1.2.3", "1,5", "1'000", "0x10", "inf", "nan", "1e400", "-1e400", "1+2", "one"})
    EXPECT_FALSE(number_of<double>(text)) << "'" << text << "'";
  EXPECT_FALSE(number_of<double>(std::string("1\0", 2)));
}

TEST(NumberOfText, InALocaleWithADecimalComma) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const auto with_point = number_of<double>("1.5"), with_comma = number_of<double>("1,5");
  std::locale::global(before);
  EXPECT_EQ(with_point, 1.5);
  EXPECT_FALSE(with_comma);
}

TEST(NumberOfText, Whole) {
  EXPECT_EQ(number_of<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(number_of<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(number_of<int>("007"), 7);
  for (const char* text : {"", "1 ", " 1", "+1", "1.0", "1e3", "2147483648"})
    EXPECT_FALSE(number_of<int>(text)) << "'" << text << "'";
  EXPECT_FALSE(number_of<std::uint64_t>("-1"));
}

}  // namespace
