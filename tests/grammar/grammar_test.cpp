// The language of patterns: what it accepts, what it says of the rest, and that both matchers
// agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tao/pegtl/contrib/analyze.hpp>
#include <vector>

#include "ein/grammar/match.hpp"
#include "ein/grammar/packed_pattern.hpp"
#include "ein/grammar/parse.hpp"
#include "grammar/rules.hpp"

namespace {

using ein::SourceSpan;
using ein::grammar::Complaint;
using ein::grammar::match_pattern;
using ein::grammar::parse_pattern;
using ein::grammar::Pattern;
using ein::grammar::Reading;
using ein::grammar::Side;
using ein::grammar::Term;
using ein::grammar::TermKind;

// What a Pattern says, written out: names and symbols as they are, numbers by value, groups as [ ],
// what is in brackets with a '!', mesh axes behind '/'.
std::string written(const Pattern& pattern) {
  std::string text;
  for (std::size_t s = 0; s < pattern.sides.size(); ++s) {
    const Side& side = pattern.sides[s];
    if (s > 0) text += s == pattern.inputs().size() ? " -> " : ", ";
    std::vector<std::uint32_t> ends;
    for (std::uint32_t i = side.first; i <= side.last; ++i) {
      while (!ends.empty() && ends.back() == i) {
        text += ']';
        ends.pop_back();
      }
      if (i == side.last) break;
      const Term& term = pattern.terms[i];
      if (i > side.first) text += ' ';
      if (term.marked) text += '!';
      if (term.kind == TermKind::group || term.kind == TermKind::sum) {
        text += term.kind == TermKind::group ? "[" : "[+";
        ends.push_back(term.next);
      } else if (term.kind == TermKind::number) {
        text += std::to_string(term.value);
      } else {
        if (term.is_many) text += '*';
        text += pattern.name_of(term);
      }
      pattern.for_each_mesh_axis(
          term, [&](SourceSpan axis) { text += "/" + std::string(pattern.text_of(axis)); });
    }
  }
  return text;
}

std::string in_hex(std::string_view text) {
  std::string shown;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      shown += c;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      shown += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
  }
  return shown;
}

// Empty if two readings are equal, else what differs.
std::string difference(const Reading& a, const Reading& b) {
  if (a.mistake.complaint != b.mistake.complaint) return "complaint";
  if (!(a.mistake.span == b.mistake.span) || !(a.mistake.other == b.mistake.other)) return "span";
  if (a.mistake.argument != b.mistake.argument) return "argument";
  if (a.mistake) return "";
  if (a.buffer.output_count != b.buffer.output_count) return "arrow";
  const auto same_term = [](const Term& s, const Term& t) {
    return s.kind == t.kind && s.span == t.span && s.next == t.next && s.value == t.value &&
           s.marked == t.marked && s.placed == t.placed && s.coefficient == t.coefficient &&
           s.coefficient_name == t.coefficient_name && s.size_name == t.size_name &&
           s.is_many == t.is_many;
  };
  const auto same_side = [](const Side& s, const Side& t) {
    return s.first == t.first && s.last == t.last && s.span == t.span;
  };
  if (!std::ranges::equal(a.buffer.terms, b.buffer.terms, same_term)) return "terms";
  if (!std::ranges::equal(a.buffer.sides, b.buffer.sides, same_side)) return "sides";
  return "";
}

// Both matchers' reading of a text.
Reading read(std::string_view text) {
  Reading reading = parse_pattern(text);
  EXPECT_EQ(difference(reading, match_pattern(text)), "") << in_hex(text);
  return reading;
}

// No cycle that consumes nothing, so that no text makes the run-time parser loop.
TEST(Grammar, EveryRuleMakesProgress) {
  EXPECT_EQ(tao::pegtl::analyze<ein::grammar::rules::pattern>(), 0u);
}

struct Accepted {
  std::string_view text, meaning;
};

TEST(Grammar, Accepts) {
  const Accepted table[] = {
      {"", ""},
      {" \t\r\n", ""},
      {"->", " -> "},
      {",", ", "},
      {",->", ",  -> "},
      {"a", "a"},
      {"a->", "a -> "},
      {"a b->b a", "a b -> b a"},
      {"a,b->", "a, b -> "},
      {"a->b,", "a -> b, "},
      {"(a+b) c -> a c, b c", "[+ a b] c -> a c, b c"},
      {"(a + (b c) + 2)", "[+ a [ b c] 2]"},
      {"b s1 h, b s2 h -> b s1 s2", "b s1 h, b s2 h -> b s1 s2"},
      {"(a b)c->a(b c)", "[ a b] c -> a [ b c]"},
      {"()", "[]"},
      {"( ) (()) -> ((a b) c)", "[] [ []] -> [ [ a b] c]"},
      {"... a ...", "... a ..."},
      {"(...)", "[ ...]"},
      {"1 2 007", "1 2 7"},
      {"9223372036854775789", "9223372036854775789"},
      {"_ a _", "_ a _"},
      {"a * b", "a * b"},
      {"*a b -> (*a)", "*a b -> [ *a]"},
      {"[*a]", "!*a"},
      {"(_ * ... 3)", "[ _ * ... 3]"},
      {"Batch SEQ2 head_dim a__b", "Batch SEQ2 head_dim a__b"},
      {"größe 長さ é1 -> 長さ", "größe 長さ é1 -> 長さ"},
      {"a\n  b\n->\tb\va\f", "a b -> b a"},
      {"i i -> i", "i i -> i"},
      {"b h q [k]", "b h q !k"},
      {"b [h w] c", "b !h !w c"},
      {"[ a\n]b[c](d e)", "!a b !c [ d e]"},
      {"[...] [3 _ *]", "!... !3 !_ !*"},
      {"b (h [d])", "b [ h !d]"},
      {"([a b](c[d])) e", "[ !a !b [ c !d]] e"},
      {"[v] d, b s -> b s d", "!v d, b s -> b s d"},
      {"b s d, b s -> [v] d", "b s d, b s -> !v d"},
      {"b@data s -> b@data s", "b/data s -> b/data s"},
      {"b@data@pod,s@x(h@長さ d)->b", "b/data/pod, s/x [ h/長さ d] -> b"},
      {"a@a__b2 [v@model]", "a/a__b2 !v/model"},
      {"\xC2\xAA \xDF\xBF \xE0\xA0\x80 \xEF\xBF\x9C \xF0\x90\x80\x80 \xF0\xBF\xBF\xBF",
       "\xC2\xAA \xDF\xBF \xE0\xA0\x80 \xEF\xBF\x9C \xF0\x90\x80\x80 \xF0\xBF\xBF\xBF"},
  };
  for (const Accepted& row : table) {
    const Reading reading = read(row.text);
    EXPECT_FALSE(reading.mistake) << in_hex(row.text);
    EXPECT_EQ(written(reading.buffer.pattern(row.text)), row.meaning) << in_hex(row.text);
  }
}

struct Rejected {
  std::string_view text;
  Complaint complaint;
  std::uint32_t begin, end;
};

TEST(Grammar, RejectsWithThePlace) {
  using enum Complaint;
  using namespace std::string_view_literals;
  const Rejected table[] = {
      {"a : b", unexpected_character, 2, 3},
      {"a\0b"sv, unexpected_character, 1, 2},
      {"a b\x07", unexpected_character, 3, 4},
      {"a\x7F", unexpected_character, 1, 2},
      {"a ; b", unexpected_character, 2, 3},
      {"{a", brace_is_not_closed, 0, 1},
      {"a {b -> a", brace_is_not_closed, 2, 3},
      {"{a, b}", brace_is_not_closed, 0, 1},
      {"{a {b}}", brace_is_not_closed, 0, 1},
      {"a}", brace_closes_nothing, 1, 2},
      {"{}", brace_is_empty, 0, 2},
      {"[{a}]", brace_is_inside_brackets, 1, 2},
      {"{2a}", index_is_malformed, 2, 3},
      {"{a b}", index_is_malformed, 3, 4},
      {"{a + (b)}", index_is_malformed, 5, 6},
      {"{a + ...}", index_is_malformed, 5, 8},
      {"{a : 3}", index_is_malformed, 5, 6},
      {"{a*2}", coefficient_is_no_number, 2, 4},
      {"{2*3}", coefficient_is_no_number, 2, 4},
      {"{0*a}", number_is_zero, 1, 2},
      {"{35184372088833*a}", number_is_too_large, 1, 15},
      {"a\u00A0b", unexpected_character, 1, 3},   // a space that does not break lines
      {"\uFEFFa b", unexpected_character, 0, 3},  // a byte order mark
      {"a\u200B", unexpected_character, 1, 4},    // a space of no width
      {"a \u3000b", unexpected_character, 2, 5},
      {"a \u2026", unexpected_character, 2, 5},  // three dots
      {"a \u2192 b", unexpected_character, 2, 5},
      {"(a 2\u00D7b)", unexpected_character, 4, 6},
      {"a\u202E b", unexpected_character, 1, 4},  // turns the direction of what follows
      {"\U0001F600", unexpected_character, 0, 4},
      {"a_\u2026", unexpected_character, 2, 5},
      {"b@\u2192", unexpected_character, 2, 5},
      {"\U0010FFFF", unexpected_character, 0, 4},
      {"a [b", bracket_is_not_closed, 2, 3},
      {"[", bracket_is_not_closed, 0, 1},
      {"[a, b]", bracket_is_not_closed, 0, 1},
      {"[a -> b]", bracket_is_not_closed, 0, 1},
      {"a b] c", bracket_closes_nothing, 3, 4},
      {"(a]", bracket_closes_nothing, 2, 3},
      {"[a]]", bracket_closes_nothing, 3, 4},
      {"a []", brackets_are_empty, 2, 4},
      {"a [ \t] b", brackets_are_empty, 2, 6},
      {"[a [b]]", brackets_are_nested, 3, 4},
      {"[[a]]", brackets_are_nested, 1, 2},
      {"([a)", bracket_is_not_closed, 1, 2},
      {"(a [b", bracket_is_not_closed, 3, 4},
      {"(a ([b, c]))", bracket_is_not_closed, 4, 5},
      {"(a [b]", parenthesis_is_not_closed, 0, 1},
      {"(a [[b]])", brackets_are_nested, 4, 5},
      {"(a [b (c)])", group_is_inside_brackets, 6, 7},
      {"(a [ ])", brackets_are_empty, 3, 6},
      {"[a (b)]", group_is_inside_brackets, 3, 4},
      {"[(a b)]", group_is_inside_brackets, 1, 2},
      {"[a)]", parenthesis_closes_nothing, 2, 3},
      {"[2a]", axis_name_begins_with_a_digit, 1, 3},
      {"[a > b]", arrow_is_malformed, 3, 4},
      {"[0]", number_is_zero, 1, 2},
      {"a \xFF b", text_is_not_utf8, 2, 3},
      {"a\xC3", text_is_not_utf8, 1, 2},
      {"\x80", text_is_not_utf8, 0, 1},
      {"ab\xE2\x82", text_is_not_utf8, 2, 3},
      {"\xC0\xAF", text_is_not_utf8, 0, 1},          // overlong
      {"\xC1\xBF", text_is_not_utf8, 0, 1},          // overlong
      {"\xE0\x9F\xBF", text_is_not_utf8, 0, 1},      // overlong
      {"\xF0\x8F\xBF\xBF", text_is_not_utf8, 0, 1},  // overlong
      {"\xED\xA0\x80", text_is_not_utf8, 0, 1},      // a surrogate
      {"\xF4\x90\x80\x80", text_is_not_utf8, 0, 1},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80", text_is_not_utf8, 0, 1},
      {"\xC3\x28", text_is_not_utf8, 0, 1},
      {"a 2b", axis_name_begins_with_a_digit, 2, 4},
      {"2\xC3\xA9", axis_name_begins_with_a_digit, 0, 3},
      {"_a", axis_name_begins_or_ends_with_underscore, 0, 2},
      {"b a_", axis_name_begins_or_ends_with_underscore, 2, 4},
      {"a__ b", axis_name_begins_or_ends_with_underscore, 0, 3},
      {"__", axis_name_begins_or_ends_with_underscore, 0, 2},
      {"a .. b", ellipsis_is_not_three_dots, 2, 4},
      {"....", ellipsis_is_not_three_dots, 0, 4},
      {".", ellipsis_is_not_three_dots, 0, 1},
      {"a...", words_touch, 0, 4},
      {"...a", words_touch, 0, 4},
      {"a.b", words_touch, 0, 3},
      {"a*", words_touch, 0, 2},
      {"**", words_touch, 0, 2},
      {"a 0 b", number_is_zero, 2, 3},
      {"000", number_is_zero, 0, 3},
      {"a 99999999999999999999 b", number_is_too_large, 2, 22},
      {"9223372036854775808", number_is_too_large, 0, 19},
      {"a (b c", parenthesis_is_not_closed, 2, 3},
      {"(a (b) c -> a", parenthesis_is_not_closed, 0, 1},
      {"((a b", parenthesis_is_not_closed, 1, 2},
      {"(a, b)", parenthesis_is_not_closed, 0, 1},
      {"a b) c", parenthesis_closes_nothing, 3, 4},
      {"a -> b)", parenthesis_closes_nothing, 6, 7},
      {"a - b", arrow_is_malformed, 2, 3},
      {"a > b", arrow_is_malformed, 2, 3},
      {"a - > b", arrow_is_malformed, 2, 3},
      {"a -> b -> c", arrow_is_repeated, 7, 9},
      {"a + b", sum_is_outside_parentheses, 2, 3},
      {"[a + b]", sum_is_outside_parentheses, 3, 4},
      {"(a +)", piece_is_missing, 3, 5},
      {"(+ a)", piece_is_missing, 0, 2},
      {"(a ++ b)", piece_is_missing, 3, 5},
      {"(a + b c)", piece_is_several_axes, 4, 8},
      {"(a b + c)", piece_is_several_axes, 1, 5},
      {"(a + b", parenthesis_is_not_closed, 0, 1},
      {"h=", axis_size_is_no_number, 1, 2},
      {"h= 4", axis_size_is_no_number, 1, 2},
      {"h=x", axis_size_is_no_number, 1, 3},
      {"h==4", axis_size_is_no_number, 1, 2},
      {"h=0", number_is_zero, 2, 3},
      {"h=4d", axis_name_begins_with_a_digit, 2, 4},
      {"h =4", only_a_named_axis_has_a_size, 2, 3},
      {"...=4", only_a_named_axis_has_a_size, 3, 4},
      {"(h d)=4", only_a_named_axis_has_a_size, 5, 6},
      {"h=4@data", only_a_named_axis_is_placed, 2, 8},
      {"b@", mesh_axis_is_missing, 1, 2},
      {"b@ data", mesh_axis_is_missing, 1, 2},
      {"a b@@x", mesh_axis_is_missing, 3, 4},
      {"b@x@", mesh_axis_is_missing, 3, 4},
      {"b@-> b", mesh_axis_is_missing, 1, 2},
      {"(h@)", mesh_axis_is_missing, 2, 3},
      {"(h@", mesh_axis_is_missing, 2, 3},
      {"[v@]", mesh_axis_is_missing, 2, 3},
      {"b@2 c", mesh_axis_is_missing, 1, 3},
      {"b@_x", mesh_axis_is_missing, 1, 4},
      {"b@...", mesh_axis_is_missing, 1, 5},
      {"b@*", mesh_axis_is_missing, 1, 3},
      {"b@\xFF", text_is_not_utf8, 2, 3},
      {"b@x\xFF", text_is_not_utf8, 3, 4},
      {"b@x_", axis_name_begins_or_ends_with_underscore, 2, 4},
      {"b@x*", words_touch, 2, 4},
      {"@data", placed_axis_is_missing, 0, 5},
      {"b @data@pod c", placed_axis_is_missing, 2, 11},
      {"(@x)", placed_axis_is_missing, 1, 3},
      {"[@x]", placed_axis_is_missing, 1, 3},
      {"[v]@x", placed_axis_is_missing, 3, 5},
      {"a,@x", placed_axis_is_missing, 2, 4},
      {"a ->@ x", placed_axis_is_missing, 4, 5},
      {"a) @x", parenthesis_closes_nothing, 1, 2},
      {"2@data b", only_a_named_axis_is_placed, 0, 6},
      {"b _@data", only_a_named_axis_is_placed, 2, 8},
      {"...@data@x", only_a_named_axis_is_placed, 0, 10},
      {"* *@x", only_a_named_axis_is_placed, 2, 5},
      {"b (h d)@model c", group_is_placed, 2, 13},
      {"((h d) e)@x", group_is_placed, 0, 11},
      {"((h d)@x e)", group_is_placed, 1, 8},
      {"()@ x", group_is_placed, 0, 3},
  };
  for (const Rejected& row : table) {
    const Reading reading = read(row.text);
    EXPECT_EQ(reading.mistake.complaint, row.complaint) << in_hex(row.text);
    EXPECT_EQ(reading.mistake.span.begin, row.begin) << in_hex(row.text);
    EXPECT_EQ(reading.mistake.span.end, row.end) << in_hex(row.text);
  }
}

TEST(Grammar, GroupsNestToALimit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "a" + std::string(depth, ')');
  };
  const std::string deepest = nested(ein::grammar::max_group_depth);
  EXPECT_FALSE(read(deepest).mistake);
  const Reading deeper = read(nested(ein::grammar::max_group_depth + 1));
  EXPECT_EQ(deeper.mistake.complaint, Complaint::groups_are_nested_too_deeply);
  EXPECT_EQ(deeper.mistake.span, (SourceSpan{32, 33}));
  // As many groups as one likes, side by side.
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "()";
  EXPECT_FALSE(read(many).mistake);
  EXPECT_EQ(read(std::string(5000, '(')).mistake.complaint,
            Complaint::groups_are_nested_too_deeply);
}

TEST(Grammar, PatternsHaveALongestLength) {
  const std::string longest(ein::grammar::max_pattern_bytes, 'a');
  EXPECT_FALSE(read(longest).mistake);
  EXPECT_EQ(read(longest + "a").mistake.complaint, Complaint::pattern_is_too_long);
  EXPECT_EQ(read(std::string(1 << 20, '(')).mistake.complaint, Complaint::pattern_is_too_long);
}

// Decoding by the definition of UTF-8 (RFC 3629, section 3), byte by byte.
std::optional<std::vector<char32_t>> decoded(std::string_view text) {
  std::vector<char32_t> points;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = lead < 0x80       ? 1
                       : lead / 32 == 6  ? 2
                       : lead / 16 == 14 ? 3
                       : lead / 8 == 30  ? 4
                                         : 0;
    if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return std::nullopt;
    char32_t point = length == 1 ? lead : lead % (128u >> length);
    for (int k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (byte / 64 != 2) return std::nullopt;
      point = point * 64 + byte % 64;
    }
    constexpr char32_t first_of_length[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < first_of_length[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return std::nullopt;
    points.push_back(point);
    i += static_cast<std::size_t>(length);
  }
  return points;
}

TEST(Grammar, TakesValidUtf8AndNothingElse) {
  const unsigned seed = 20240611;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) {
    return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
  };
  constexpr unsigned char edges[] = {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1,
                                     0xC2, 0xDF, 0xE0, 0xE4, 0xED, 0xF0, 0xF1, 0xF4,
                                     0xF5, 0xF8, 0xFE, 0xFF, 'a',  ' '};
  // Of the code points that these bytes make.
  const auto is_letter = [](char32_t c) {
    return c < 0x80 || (c >= 0xC0 && c < 0x1F000) || (c >= 0x20000 && c < 0x40000);
  };
  int valid = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    for (unsigned n = 1 + below(5); n > 0; --n)
      text += static_cast<char>(edges[below(std::size(edges))]);
    const auto points = decoded(text);
    const bool is_accepted = points && std::all_of(points->begin(), points->end(), is_letter);
    valid += is_accepted;
    const Reading reading = read(text);
    ASSERT_EQ(!reading.mistake, is_accepted) << in_hex(text);
    const Complaint complaint = reading.mistake.complaint;
    if (complaint == Complaint::text_is_not_utf8) {
      ASSERT_FALSE(points) << in_hex(text);
    } else if (complaint == Complaint::unexpected_character) {
      const auto [begin, end] = reading.mistake.span;
      const auto here = decoded(text.substr(begin, end - begin));
      ASSERT_TRUE(here && here->size() == 1 && !is_letter(here->front())) << in_hex(text);
    } else {
      ASSERT_EQ(complaint, Complaint::none) << in_hex(text);
    }
  }
  EXPECT_GT(valid, 1000);
}

TEST(Grammar, BothMatchersAgreeOnRandomTexts) {
  const unsigned seed = 71;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  constexpr std::string_view pieces[] = {"a",        "b",
                                         "seq",      "h1",
                                         "x_y",      "_",
                                         "b@x",      "長",
                                         "1",        "2",
                                         "0",        "42",
                                         " ",        " ",
                                         " ",        "  ",
                                         "\n",       "(",
                                         ")",        "(",
                                         ")",        "->",
                                         "->",       ",",
                                         "[",        "]",
                                         "[a]",      "[b 1]",
                                         ",",        "*",
                                         "...",      "...",
                                         ".",        "-",
                                         ">",        "é",
                                         "@",        "@y",
                                         "a@x@y",    "__",
                                         "\xC3",     "#",
                                         "\x80",     "$",
                                         "\t",       "99999999999999999999",
                                         "\u00A0",   "\u2026",
                                         "\xE2\x82", "a b",
                                         "( a b )"};
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    const bool plain = below(2) == 0;  // or any bytes
    for (std::size_t n = below(12); n > 0; --n) {
      if (plain || below(8) > 0) {
        text += pieces[below(plain ? 26 : std::size(pieces))];
        if (plain && below(3) > 0) text += ' ';
      } else {
        text += static_cast<char>(below(256));
      }
    }
    const Reading a = parse_pattern(text), b = match_pattern(text);
    ASSERT_EQ(difference(a, b), "") << in_hex(text);
    accepted += !a.mistake;
    if (a.mistake) {
      ASSERT_LE(a.mistake.span.begin, a.mistake.span.end) << in_hex(text);
      ASSERT_LE(a.mistake.span.end, text.size() + 1) << in_hex(text);
    }
  }
  // Neither nearly all nor nearly none, or the comparison says little.
  EXPECT_GT(accepted, 20'000);
  EXPECT_LT(accepted, 180'000);
}

// The terms of an accepted text, in order and nested, are the text.
TEST(Grammar, SpansLieInTheText) {
  const std::string_view text = "a (b (c 1)) ..., _ -> (... a)";
  const Reading reading = read(text);
  ASSERT_FALSE(reading.mistake);
  const Pattern pattern = reading.buffer.pattern(text);
  std::vector<std::string_view> words;
  for (const Term& term : pattern.terms) words.push_back(pattern.text_of(term.span));
  EXPECT_EQ(words, (std::vector<std::string_view>{"a", "(b (c 1))", "b", "(c 1)", "c", "1", "...",
                                                  "_", "(... a)", "...", "a"}));
  std::vector<std::string_view> sides;
  for (const Side& side : pattern.sides) sides.push_back(pattern.text_of(side.span));
  EXPECT_EQ(sides, (std::vector<std::string_view>{"a (b (c 1)) ...", " _ ", " (... a)"}));
  EXPECT_EQ(pattern.inputs().size(), 2u);
  EXPECT_EQ(pattern.output().first, 8u);
}

// A name is what it is without its mesh axes, and a packed pattern has all that the pattern has.
TEST(Grammar, PlacedNamesAreNames) {
  const std::string_view text = "b@data@pod s -> s b@data@pod";
  const Reading reading = read(text);
  const Pattern pattern = reading.buffer.pattern(text);
  EXPECT_TRUE(pattern.has_placements());
  EXPECT_EQ(pattern.name_of(pattern.terms[0]), "b");
  EXPECT_EQ(pattern.text_of(pattern.terms[0].placed), "@data@pod");
  EXPECT_FALSE(pattern.terms[1].is_placed());
  const ein::grammar::PatternBuffer unpacked = ein::grammar::PackedPattern(pattern).unpacked(text);
  EXPECT_EQ(written(unpacked.pattern(text)), "b/data/pod s -> s b/data/pod");
  EXPECT_EQ(difference({.text = text, .buffer = unpacked}, reading), "");
  EXPECT_FALSE(read("b s").buffer.pattern("b s").has_placements());
}

constexpr bool means(std::string_view text, std::size_t terms, std::size_t sides,
                     std::size_t outputs) {
  const Reading reading = match_pattern(text);
  return !reading.mistake && reading.buffer.terms.size() == terms &&
         reading.buffer.sides.size() == sides && reading.buffer.output_count == outputs;
}
constexpr Complaint complaint_about(std::string_view text) {
  return match_pattern(text).mistake.complaint;
}

static_assert(means("b s1 h, b s2 h -> b s1 s2", 9, 3, 1));
static_assert(means("b (q + (k v)) -> b q, b k v", 11, 3, 2));
static_assert(means("b (h 2) ... größe", 6, 1, 0));
static_assert(complaint_about("a b) c") == Complaint::parenthesis_closes_nothing);
static_assert(complaint_about("a \xFF") == Complaint::text_is_not_utf8);
static_assert(match_pattern("ab 2c").mistake.span == SourceSpan{3, 5});
static_assert(means("b h q [k]", 4, 1, 0) && match_pattern("b [k]").buffer.terms[1].marked);
static_assert(complaint_about("a [b") == Complaint::bracket_is_not_closed);
static_assert(match_pattern("b s@x@y").buffer.terms[1].placed == SourceSpan{3, 7});
static_assert(complaint_about("(h d)@x") == Complaint::group_is_placed);

}  // namespace
