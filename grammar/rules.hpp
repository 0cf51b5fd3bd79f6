// The language of patterns, and of axes in a tensor's type: the one definition, as PEGTL rules.
//
// PEGTL walks these types at run time (parse.cpp). The constexpr matcher (match.hpp) walks the same
// rules as data: table.hpp, which scripts/make-grammar-table writes from here and parse.cpp
// compares with them, so that programs need not compile PEGTL. What a rule adds to what is read is
// its event (events.hpp, shape_spec.hpp).
#pragma once

#include <tao/pegtl/ascii.hpp>
#include <tao/pegtl/rules.hpp>
#include <tao/pegtl/utf8.hpp>

#include <ein/grammar/event.hpp>

namespace ein::grammar::rules {

namespace peg = tao::pegtl;

struct white_space : peg::star<peg::ascii::space> {};

// Beyond ASCII the blocks of letters, without those of controls, spaces, punctuation and symbols:
// U+00A0 looks like a space, and U+2026 like '...'.
struct letter
    : peg::sor<peg::ascii::alpha,
               peg::utf8::ranges<0xAA, 0xAA, 0xB5, 0xB5, 0xBA, 0xBA, 0xC0, 0xD6, 0xD8, 0xF6, 0xF8,
                                 0x61B, 0x61D, 0x167F, 0x1681, 0x1FFF, 0x2070, 0x218F, 0x2C00,
                                 0x2DFF, 0x2E80, 0x2FFF, 0x3005, 0x3007, 0x3021, 0x302F, 0x3031,
                                 0xD7FF, 0xF900, 0xFDFF, 0xFE70, 0xFEFE, 0xFF21, 0xFF3A, 0xFF41,
                                 0xFF5A, 0xFF66, 0xFFDC, 0x10000, 0x1EFFF, 0x20000, 0x3FFFF>> {};
struct letter_or_digit : peg::sor<letter, peg::ascii::digit> {};
struct inner_underscores : peg::seq<peg::plus<peg::ascii::one<'_'>>, peg::at<letter_or_digit>> {};

struct name : peg::seq<letter, peg::star<peg::sor<letter_or_digit, inner_underscores>>> {};
struct number : peg::plus<peg::ascii::digit> {};
struct ellipsis : peg::ascii::string<'.', '.', '.'> {};
struct unnamed : peg::ascii::one<'_'> {};
struct packed : peg::ascii::one<'*'> {};
// Any number of axes by one name: "*batch".
struct many : peg::seq<peg::ascii::one<'*'>, name> {};

// The mesh axes that an axis is split over, the outermost first: "b@data@pod".
struct mesh_axis : name {};
struct placement : peg::star<peg::if_must<peg::ascii::one<'@'>, mesh_axis>> {};

// The size of an axis, right behind its name: "h=4".
struct axis_size : number {};
struct size_of_axis : peg::opt<peg::if_must<peg::ascii::one<'='>, axis_size>> {};

// Words do not touch: "2b", "a..." and "a_" are mistakes, not two words.
struct word_end : peg::not_at<peg::sor<letter_or_digit, peg::ascii::one<'_', '.', '*', '@', '='>>> {
};
struct word_end_in_brace : peg::not_at<peg::sor<letter_or_digit, peg::ascii::one<'_'>>> {};
struct axis : peg::seq<name, placement, size_of_axis> {};
struct word
    : peg::seq<peg::sor<axis, number, ellipsis, unnamed, many, packed>, peg::must<word_end>> {};

// The axes of an operation, in brackets: words of a side or of a group.
struct open_bracket : peg::ascii::one<'['> {};
struct close_bracket : peg::ascii::one<']'> {};
struct brackets
    : peg::if_must<open_bracket, white_space, peg::plus<word, white_space>, close_bracket> {};

// A dimension that is read, or written, at a function of the indices: "{2*y + ky - 1}"; behind ':'
// stands a name for its size.
struct open_brace : peg::ascii::one<'{'> {};
struct close_brace : peg::ascii::one<'}'> {};
struct times : peg::ascii::one<'*'> {};
struct plus : peg::ascii::one<'+'> {};
struct minus : peg::ascii::one<'-'> {};
struct colon : peg::ascii::one<':'> {};
struct factor : peg::seq<peg::sor<name, number>, peg::must<word_end_in_brace>> {};
struct product : peg::seq<factor, white_space, peg::opt<peg::if_must<times, white_space, name>>,
                          peg::must<word_end_in_brace>, white_space> {};
struct brace
    : peg::if_must<open_brace, white_space, peg::opt<peg::sor<plus, minus>, white_space>, product,
                   peg::star<peg::sor<plus, minus>, white_space, peg::must<product>>,
                   peg::opt<peg::if_must<colon, white_space, name, white_space>>, close_brace> {};

struct group;
struct terms
    : peg::seq<white_space, peg::star<peg::sor<word, group, brackets, brace>, white_space>> {};
// In parentheses a product of axes, "(h d)", or a sum: "(q + k + v)".
struct open : peg::ascii::one<'('> {};
struct close : peg::ascii::one<')'> {};
struct members
    : peg::seq<white_space, peg::star<peg::sor<word, group, brackets, brace, plus>, white_space>> {
};
struct group : peg::if_must<open, members, close> {};

struct comma : peg::ascii::one<','> {};
struct arrow : peg::ascii::string<'-', '>'> {};

struct pattern : peg::must<terms, peg::star<comma, terms>,
                           peg::opt<arrow, terms, peg::star<comma, terms>>, peg::eof> {};

// --- axes in a type: see shape_spec.hpp ---

struct spec_name : name {};
struct spec_number : number {};
struct spec_unnamed : unnamed {};
struct spec_open : ellipsis {};
struct spec_variadic : peg::seq<peg::ascii::one<'*'>, name> {};

// A size: sums and products of names and numbers, written without blanks.
struct spec_sum;
struct spec_atom : peg::sor<spec_name, spec_number,
                            peg::if_must<peg::ascii::one<'('>, spec_sum, peg::ascii::one<')'>>> {};
struct spec_times : peg::if_must<peg::ascii::one<'*'>, spec_atom> {};
struct spec_product : peg::seq<spec_atom, peg::star<spec_times>> {};
struct spec_plus : peg::if_must<peg::ascii::one<'+'>, spec_product> {};
struct spec_minus : peg::if_must<peg::ascii::one<'-'>, spec_product> {};
struct spec_sum : peg::seq<spec_product, peg::star<peg::sor<spec_plus, spec_minus>>> {};
struct spec_fixed_size : number {};
struct spec_size
    : peg::seq<spec_sum, placement, peg::opt<peg::if_must<peg::ascii::one<'='>, spec_fixed_size>>> {
};

struct spec_end : peg::sor<peg::ascii::space, peg::eof> {};
struct spec_dim : peg::seq<peg::sor<spec_open, spec_variadic, spec_unnamed, spec_size>,
                           peg::must<peg::at<spec_end>>> {};
struct shape_spec : peg::must<white_space, peg::star<spec_dim, white_space>, peg::eof> {};

}  // namespace ein::grammar::rules

namespace ein::grammar {

/// What is done where a rule has matched.
template <class Rule>
inline constexpr Event event_of = Event::none;
#define EIN_EVENT(rule) \
  template <>           \
  inline constexpr Event event_of<rules::rule> = Event::rule;
EIN_EVENTS(EIN_EVENT)
#undef EIN_EVENT

}  // namespace ein::grammar
