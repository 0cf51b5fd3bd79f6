// The language of patterns: the one definition, as PEGTL rules.
//
// Both matchers walk these types: PEGTL's own at run time (parse.cpp) and the constexpr one at
// compile time (match.hpp). What a rule adds to the Pattern is in events.hpp.
#pragma once

#include <tao/pegtl/ascii.hpp>
#include <tao/pegtl/rules.hpp>
#include <tao/pegtl/utf8.hpp>

namespace ein::grammar::rules {

namespace peg = tao::pegtl;

struct white_space : peg::star<peg::ascii::space> {};

struct letter : peg::sor<peg::ascii::alpha, peg::utf8::range<0x80, 0x10FFFF>> {};
struct letter_or_digit : peg::sor<letter, peg::ascii::digit> {};
struct inner_underscores : peg::seq<peg::plus<peg::ascii::one<'_'>>, peg::at<letter_or_digit>> {};

struct name : peg::seq<letter, peg::star<peg::sor<letter_or_digit, inner_underscores>>> {};
struct number : peg::plus<peg::ascii::digit> {};
struct ellipsis : peg::ascii::string<'.', '.', '.'> {};
struct unnamed : peg::ascii::one<'_'> {};
struct packed : peg::ascii::one<'*'> {};

// Words do not touch: "2b", "a..." and "a_" are mistakes, not two words.
struct word_end : peg::not_at<peg::sor<letter_or_digit, peg::ascii::one<'_', '.', '*'>>> {};
struct word : peg::seq<peg::sor<name, number, ellipsis, unnamed, packed>, peg::must<word_end>> {};

struct group;
struct terms : peg::seq<white_space, peg::star<peg::sor<word, group>, white_space>> {};
struct open : peg::ascii::one<'('> {};
struct close : peg::ascii::one<')'> {};
struct group : peg::if_must<open, terms, close> {};

// The axes of an operation, in brackets: words of a side, neither in a group nor around one.
struct open_bracket : peg::ascii::one<'['> {};
struct close_bracket : peg::ascii::one<']'> {};
struct brackets
    : peg::if_must<open_bracket, white_space, peg::plus<word, white_space>, close_bracket> {};
struct side : peg::seq<white_space, peg::star<peg::sor<word, group, brackets>, white_space>> {};

struct comma : peg::ascii::one<','> {};
struct arrow : peg::ascii::string<'-', '>'> {};

struct pattern : peg::must<side, peg::star<comma, side>, peg::opt<arrow, side>, peg::eof> {};

}  // namespace ein::grammar::rules
