// What each operation takes of the patterns that the grammar accepts.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ein/grammar/check.hpp"
#include "ein/grammar/match.hpp"

namespace {

using ein::Operation;
using ein::SourceSpan;
using ein::grammar::check_pattern;
using ein::grammar::Complaint;
using ein::grammar::match_pattern;
using ein::grammar::Mistake;
using Names = std::vector<std::string_view>;

constexpr Mistake check(Operation op, std::string_view text, std::size_t operands = 1,
                        const Names& given = {}, bool more_given = false) {
  const auto reading = match_pattern(text);
  if (reading.mistake) return reading.mistake;
  return check_pattern(op, reading.buffer.pattern(text), operands, given, more_given);
}

std::string described(Operation op, std::string_view text) {
  return std::string(name(op)) + " \"" + std::string(text) + "\"";
}

struct Taken {
  Operation op;
  std::string_view text;
  Names given{};
  std::size_t operands = 1;
};

TEST(PatternCheck, Takes) {
  using enum Operation;
  const Taken table[] = {
      {einsum, "b s1 h, b s2 h -> b s1 s2", {}, 2},
      {einsum, "i i -> i"},
      {einsum, "i i ->"},
      {einsum, "i j, i i -> j", {}, 2},
      {einsum, "->"},
      {einsum, ", ->", {}, 2},
      {einsum, "a _, _ b -> a b", {}, 2},
      {einsum, "... a, a b -> ... b", {}, 2},
      {einsum, "... a ->"},
      {einsum, "a b -> (b a)"},
      {einsum, "a b -> b 3 a"},
      {einsum, "(a b) 4, b -> a", {}, 2},
      {einsum, "(a b) -> a", {"b"}},
      {reduce, "a b -> a"},
      {reduce, "a b ->"},
      {reduce, "... a -> ..."},
      {reduce, "... a -> a"},
      {reduce, "(h 2) (w 2) -> h w"},
      {reduce, "a 1 () -> 1 () a"},
      {reduce, "a ... -> (a ...)"},
      {rearrange, "a b -> b a"},
      {rearrange, "(a b) -> a b", {"a"}},
      {einsum, "(a b) (b c) c -> a b c"},
      {rearrange, "a ... b -> (b ... a)"},
      {rearrange, "a 1 -> () a 1 1"},
      {rearrange, "(a (b 1)) -> b a", {"b"}},
      {rearrange, "a -> a", {"a"}},
      {repeat, "a -> a 3"},
      {repeat, "a -> (a k)", {"k"}},
      {repeat, "-> 2 3"},
      {repeat, "... -> n ...", {"n"}},
      {pack, "a * b"},
      {pack, "*"},
      {unpack, "* c"},
      {unpack, "... * c"},
      {pack, "a * ..."},
      {parse_shape, "a _ 3 ..."},
      {parse_shape, ""},
      {parse_shape, "_ _ _"},
      {softmax, "b h q [k]"},
      {softmax, "[a] b [c d]"},
      {log_softmax, "[...]"},
      {layer_norm, "... [c 4]"},
      {rms_norm, "1 [c]"},
      {argmax, "... [7]"},
      {argmax, "a [b c]"},
      {sort, "[a] ..."},
      {softmax, "b (h [d])", {"h"}},
      {softmax, "b (h=2 [d])"},
      {argmax, "([a]) [b] (c ([d] 2))", {"c"}},
      {flip, "(([a] b) (c ()))", {"a", "b"}},
      {tril, "(h [i]) (w [j])", {"i", "w"}},
      {from_diagonal, "b [i]"},
      {cross_entropy, "b (h [v]), h b", {}, 2},
      {cross_entropy, "b [v], (b c)", {}, 2},
      {gather, "(h [v]) d, b -> b h d", {"h"}, 2},
      {scatter_add, "b h d, b -> (h [v]) d", {"v"}, 2},
      {solve, "(h [n]) [m], h [n] k -> (h [m]) k", {}, 2},
      {gather, "[v] d, b s -> b s d", {}, 2},
      {gather, "b [v], b -> b", {}, 2},
      {gather, "[v] (h d) ..., b -> (b h) ... d", {"h"}, 2},
      {gather, "[9] 1, ... -> 1 ...", {}, 2},
      {scatter_add, "b s d, b s -> [v] d", {"v"}, 2},
      {scatter_add, "b s d, b s -> d [9]", {}, 2},
      {one_hot, "b s -> b [v] s", {"v"}},
      {one_hot, "... -> ... [10]"},
      {cross_entropy, "b s [v], b s", {}, 2},
      {cross_entropy, "b [v] s, b s ->", {}, 2},
      {cross_entropy, "... [v], ... -> ...", {}, 2},
      {einsum, "b@data s h, h n@model -> b@data s n@model", {}, 2},
      {einsum, "b@x s, b -> b", {}, 2},
      {einsum, "a@x, b@x ->", {}, 2},
      {rearrange, "b (h@x@y d) -> b h@x@y d", {"d"}},
      {rearrange, "b (1 (h@x d) e) -> (h@x b) d e", {"d", "e"}},
      {softmax, "b@data [v@model]"},
      {pack, "a@x *"},
      {place, "b@data ... s@model@pod"},
      {place, "b s"},
      {place, ""},
      {reshard, "b@data s c -> b s c@model"},
      {reshard, "b@x ... s@y -> b@y ... s@x"},
      {reshard, "b@x -> b@x"},
  };
  for (const Taken& row : table) {
    EXPECT_EQ(check(row.op, row.text, row.operands, row.given).complaint, Complaint::none)
        << described(row.op, row.text);
  }
}

struct Refused {
  Operation op;
  std::string_view text;
  Complaint complaint;
  SourceSpan span{};
  SourceSpan other{};
  Names given{};
  std::size_t operands = 1;
  std::int64_t argument = 0;
};

TEST(PatternCheck, RefusesWithThePlace) {
  using enum Operation;
  using enum Complaint;
  const Refused table[] = {
      {einsum, "a b", arrow_is_missing, {3, 4}},
      {rearrange, "", arrow_is_missing, {0, 1}},
      {pack, "a * -> b", arrow_is_not_wanted, {4, 6}},
      {unpack, "* ->", arrow_is_not_wanted, {2, 4}},
      {parse_shape, "a->b", arrow_is_not_wanted, {1, 3}},
      {einsum, "a, b -> a", number_of_operands_differs, {0, 5}, {}, {}, 3, 3},
      {einsum, "a -> a", number_of_operands_differs, {0, 2}, {}, {}, 2, 2},
      {einsum, "-> ", number_of_operands_differs, {0, 0}, {}, {}, 0, 0},
      {rearrange, "a, b -> a b", number_of_operands_differs, {0, 5}, {}, {}, 1, 1},
      {pack, "a *, b *", number_of_operands_differs, {0, 8}, {}, {}, 2, 2},
      {parse_shape, "a, b", number_of_operands_differs, {0, 4}, {}, {}, 1, 1},
      {einsum, "a -> a _", unnamed_axis_is_not_allowed, {7, 8}},
      {rearrange, "a _ -> a", unnamed_axis_is_not_allowed, {2, 3}},
      {pack, "_ *", unnamed_axis_is_not_allowed, {0, 1}},
      {einsum, "a * -> a", packed_axes_are_not_allowed, {2, 3}},
      {rearrange, "a -> a *", packed_axes_are_not_allowed, {7, 8}},
      {parse_shape, "a *", packed_axes_are_not_allowed, {2, 3}},
      {pack, "a b", packed_axes_are_missing, {0, 3}},
      {unpack, "", packed_axes_are_missing, {0, 0}},
      {pack, "* a *", packed_axes_are_repeated, {4, 5}, {0, 1}},
      {pack, "(a b) *", group_is_not_allowed, {0, 5}},
      {parse_shape, "a (b c)", group_is_not_allowed, {2, 7}},
      {pack, "3 *", number_is_not_allowed, {0, 1}},
      {unpack, "* 1", number_is_not_allowed, {2, 3}},
      {unpack, "... * ...", ellipsis_is_repeated, {6, 9}, {0, 3}},
      {pack, "... a", packed_axes_are_missing, {0, 5}},
      {rearrange, "... a ... -> a ...", ellipsis_is_repeated, {6, 9}, {0, 3}},
      {einsum, "... a -> ... a ...", ellipsis_is_repeated, {15, 18}, {9, 12}},
      {parse_shape, "... ...", ellipsis_is_repeated, {4, 7}, {0, 3}},
      {rearrange, "(a ...) -> a ...", ellipsis_is_inside_a_group_of_an_input, {3, 6}, {0, 7}},
      {einsum,
       "a, (b (...)) -> a",
       ellipsis_is_inside_a_group_of_an_input,
       {7, 10},
       {3, 12},
       {},
       2},
      {rearrange, "a -> a ...", ellipsis_of_the_output_is_in_no_input, {7, 10}},
      {reduce, "a -> (a ...)", ellipsis_of_the_output_is_in_no_input, {8, 11}},
      {rearrange, "a ... -> a", ellipsis_of_the_input_is_lost, {2, 5}},
      {repeat, "... a -> a 2", ellipsis_of_the_input_is_lost, {0, 3}},
      {rearrange, "a a -> a", axis_is_repeated, {2, 3}, {0, 1}},
      {reduce, "a (b a) -> b", axis_is_repeated, {5, 6}, {0, 1}},
      {einsum, "a b -> a b a", axis_is_repeated, {11, 12}, {7, 8}},
      {pack, "a a *", axis_is_repeated, {2, 3}, {0, 1}},
      {parse_shape, "a _ a", axis_is_repeated, {4, 5}, {0, 1}},
      {rearrange, "a -> a bb", axis_of_the_output_is_in_no_input, {7, 9}},
      {einsum, "a, b -> c", axis_of_the_output_is_in_no_input, {8, 9}, {}, {}, 2},
      {einsum, "ij,jk->ik", axis_names_are_glued, {0, 9}, {}, {}, 2},
      {einsum, "...ij, ...jk -> ...ik", words_touch, {0, 5}, {}, {}, 2},
      {einsum, "... ij, ... jk -> ... ik", axis_names_are_glued, {0, 24}, {}, {}, 2},
      {einsum, "i, j -> ij", axis_names_are_glued, {0, 10}, {}, {}, 2},
      {rearrange, "bhw -> bwh", axis_names_are_glued, {0, 10}},
      {einsum, "ij, jk -> il", axis_of_the_output_is_in_no_input, {10, 12}, {}, {}, 2},
      {einsum, "row col, col -> ro", axis_of_the_output_is_in_no_input, {16, 18}, {}, {}, 2},
      {reduce, "a -> (a c)", axis_of_the_output_is_in_no_input, {8, 9}},
      {rearrange, "a bb -> a", axis_of_the_input_is_lost, {2, 4}},
      {repeat, "a b -> a 2", axis_of_the_input_is_lost, {2, 3}},
      {rearrange, "a 3 -> a", anonymous_axis_of_the_input_is_lost, {2, 3}},
      {rearrange, "a 3 -> a 3", anonymous_axis_of_the_output_is_in_no_input, {9, 10}},
      {reduce, "a b -> a 2", anonymous_axis_of_the_output_is_in_no_input, {9, 10}},
      {repeat, "a 3 -> a 3", anonymous_axis_of_the_input_is_lost, {2, 3}},
      {rearrange, "a b -> b a", axis_size_is_not_of_the_pattern, {}, {}, {"a", "c"}, 1, 1},
      {reduce, "a 3 -> a", axis_size_is_not_of_the_pattern, {}, {}, {"3"}, 1, 0},
      {einsum, "... a -> a", axis_size_is_not_of_the_pattern, {}, {}, {"..."}, 1, 0},
      {einsum, "a _ -> a", axis_size_is_not_of_the_pattern, {}, {}, {"_"}, 1, 0},
      {pack, "a *", axis_size_is_not_of_the_pattern, {}, {}, {"a"}, 1, 0},
      {rearrange, "a b -> b a", axis_size_is_given_twice, {}, {}, {"a", "b", "a"}, 1, 2},
      {repeat, "a -> a k", axis_size_is_missing, {7, 8}},
      {repeat, "a -> a (j k)", axis_size_is_missing, {8, 9}, {}, {"k"}},
      {rearrange, "(a b) c -> a b c", group_has_more_than_one_unknown_size, {0, 5}},
      {rearrange, "c (a b d) -> a b c d", group_has_more_than_one_unknown_size, {2, 9}, {}, {"a"}},
      {einsum, "(a _) -> a", group_has_more_than_one_unknown_size, {0, 5}},
      {einsum, "(a a) -> a", group_has_more_than_one_unknown_size, {0, 5}},
      {einsum, "a [b] -> a", brackets_are_not_allowed, {2, 5}},
      {rearrange, "a b -> a [ b ]", brackets_are_not_allowed, {9, 14}},
      {reduce, "[a b] -> a", brackets_are_not_allowed, {0, 5}},
      {repeat, "a -> a [b]", brackets_are_not_allowed, {7, 10}, {}, {"b"}},
      {pack, "a [*]", brackets_are_not_allowed, {2, 5}},
      {parse_shape, "[a]", brackets_are_not_allowed, {0, 3}},
      {softmax, "a [b] -> a b", arrow_is_not_wanted, {6, 8}},
      {softmax, "a [b], c", number_of_operands_differs, {0, 8}, {}, {}, 1, 1},
      {softmax, "a b", brackets_are_missing, {0, 3}},
      {softmax, "a (b c) [d]", group_is_not_allowed, {2, 7}},
      {softmax, "a [1]", number_is_not_allowed, {3, 4}},
      {softmax, "a [_]", unnamed_axis_is_not_allowed, {3, 4}},
      {softmax, "a [*]", packed_axes_are_not_allowed, {3, 4}},
      {softmax, "a [a]", axis_is_repeated, {3, 4}, {0, 1}},
      {softmax, "... a [...]", ellipsis_is_repeated, {7, 10}, {0, 3}},
      {cumsum, "a [b c]", one_axis_in_brackets_is_wanted, {2, 7}},
      {cumsum, "[a] [b]", one_axis_in_brackets_is_wanted, {4, 7}},
      {cumsum, "a [...]", one_axis_in_brackets_is_wanted, {2, 7}},
      {top_k, "[1] a", one_axis_in_brackets_is_wanted, {0, 3}},
      {tril, "a [b]", two_axes_in_brackets_are_wanted, {2, 5}},
      {triu, "[a b] [c]", two_axes_in_brackets_are_wanted, {6, 9}},
      {diagonal, "[...]", two_axes_in_brackets_are_wanted, {0, 5}},
      {diagonal, "a b", brackets_are_missing, {0, 3}},
      {flip, "a b", brackets_are_missing, {0, 3}},
      {roll, "[a] -> a", arrow_is_not_wanted, {4, 6}},
      {quantile, "[a b]", one_axis_in_brackets_is_wanted, {0, 5}},
      {from_diagonal, "[a] [b]", one_axis_in_brackets_is_wanted, {4, 7}},
      {searchsorted, "[e], b", arrow_is_missing, {6, 7}, {}, {}, 2},
      {searchsorted, "[e], b -> e b", axis_in_brackets_is_elsewhere, {10, 11}, {1, 2}, {}, 2},
      {searchsorted, "[e], b c -> b", axis_of_the_input_is_lost, {7, 8}, {}, {}, 2},
      {gather, "[v] d -> d", number_of_operands_differs, {0, 6}, {}, {}, 2, 2},
      {gather, "[v] d, b", arrow_is_missing, {8, 9}, {}, {}, 2},
      {gather, "v d, b -> b d", brackets_are_missing, {0, 3}, {}, {}, 2},
      {gather, "v d, [b] -> b d", brackets_are_not_allowed, {5, 8}, {}, {}, 2},
      {gather, "[v] d, b -> b [d]", brackets_are_not_allowed, {14, 17}, {}, {}, 2},
      {gather, "[v] d, b -> b", axis_of_the_input_is_lost, {4, 5}, {}, {}, 2},
      {gather, "[v] d, b -> d", axis_of_the_input_is_lost, {7, 8}, {}, {}, 2},
      {gather, "[v] d, b -> b d e", axis_of_the_output_is_in_no_input, {16, 17}, {}, {}, 2},
      {gather, "[v] d, b -> b v d", axis_in_brackets_is_elsewhere, {14, 15}, {1, 2}, {}, 2},
      {gather, "[v] d, v -> d", axis_in_brackets_is_elsewhere, {7, 8}, {1, 2}, {}, 2},
      {gather, "[v] 3, b -> b", anonymous_axis_of_the_input_is_lost, {4, 5}, {}, {}, 2},
      {gather, "[v] ..., b -> b", ellipsis_of_the_input_is_lost, {4, 7}, {}, {}, 2},
      {gather, "[v] (d e), b -> b d e", group_has_more_than_one_unknown_size, {4, 9}, {}, {}, 2},
      {scatter_add, "b d, b -> v d", brackets_are_missing, {9, 13}, {}, {"v"}, 2},
      {scatter_add, "b d, b -> [v] d", axis_size_is_missing, {11, 12}, {}, {}, 2},
      {scatter_add, "b d, b -> [d]", axis_in_brackets_is_elsewhere, {2, 3}, {11, 12}, {"d"}, 2},
      {scatter_add, "b d, b -> [v] e", axis_of_the_output_is_in_no_input, {14, 15}, {}, {"v"}, 2},
      {one_hot, "b -> b [v]", axis_size_is_missing, {8, 9}},
      {one_hot, "b s -> b [9]", axis_of_the_input_is_lost, {2, 3}},
      {one_hot, "b -> b [v w]", one_axis_in_brackets_is_wanted, {7, 12}, {}, {"v", "w"}},
      {cross_entropy, "b [v], b -> b v", axis_in_brackets_is_elsewhere, {14, 15}, {3, 4}, {}, 2},
      {cross_entropy, "b [v], b -> c", axis_of_the_output_is_in_no_input, {12, 13}, {}, {}, 2},
      {cross_entropy, "b [v], (c d)", group_has_more_than_one_unknown_size, {7, 12}, {}, {}, 2},
      {softmax, "b (h [d])", group_has_more_than_one_unknown_size, {2, 9}},
      {softmax, "b (h [d])", axis_size_is_not_of_the_pattern, {}, {}, {"k"}},
      {softmax, "(a b) (h [d])", group_is_not_allowed, {0, 5}, {}, {"h"}},
      {softmax, "b (h [1])", number_is_not_allowed, {6, 7}, {}, {"h"}},
      {softmax, "b (h [...])", ellipsis_is_inside_a_group_of_an_input, {6, 9}, {2, 11}, {"h"}},
      {cumsum, "([b c])", one_axis_in_brackets_is_wanted, {1, 6}, {}, {"b"}},
      {from_diagonal, "b (h [d])", brackets_are_inside_a_group, {5, 8}, {}, {"h"}},
      {inverse, "i j", rows_and_columns_in_brackets_are_wanted, {0, 3}},
      {inverse, "i [j]", rows_and_columns_in_brackets_are_wanted, {2, 5}},
      {inverse, "[i j k]", rows_and_columns_in_brackets_are_wanted, {0, 7}},
      {inverse, "[...]", rows_and_columns_in_brackets_are_wanted, {0, 5}},
      {inverse, "[3 i]", rows_and_columns_in_brackets_are_wanted, {0, 5}},
      {inverse, "[i j] -> i", arrow_is_not_wanted, {6, 8}},
      {inverse, "[i i]", axis_is_repeated, {3, 4}, {1, 2}},
      {inverse, "(b c) [i j]", group_is_not_allowed, {0, 5}},
      {solve, "[n m], [n] k", arrow_is_missing, {12, 13}, {}, {}, 2},
      {solve, "[n m] -> [m]", number_of_operands_differs, {0, 6}, {}, {}, 1, 1},
      {solve, "[n m], n k -> [m] k", rows_in_brackets_are_wanted, {6, 11}, {1, 2}, {}, 2},
      {solve, "[n m], [k] -> [m]", rows_in_brackets_are_wanted, {7, 10}, {1, 2}, {}, 2},
      {solve, "[n m], [n k] -> [m]", rows_in_brackets_are_wanted, {7, 12}, {1, 2}, {}, 2},
      {solve, "[n m], [n] k -> m k", columns_in_brackets_are_wanted, {15, 19}, {3, 4}, {}, 2},
      {solve, "[n m], [n] -> [n]", axis_in_brackets_is_elsewhere, {15, 16}, {1, 2}, {}, 2},
      {solve, "[n m], [n] m -> [m]", axis_in_brackets_is_elsewhere, {11, 12}, {3, 4}, {}, 2},
      {solve, "[n m], [n] k -> [m]", axis_of_the_input_is_lost, {11, 12}, {}, {}, 2},
      {solve, "b [n m], [n] -> [m]", axis_of_the_input_is_lost, {0, 1}, {}, {}, 2},
      {solve, "[n m], [n] -> [m] k", axis_of_the_output_is_in_no_input, {18, 19}, {}, {}, 2},
      {einsum, "b@x s@x ->", mesh_axis_is_repeated, {6, 7}, {2, 3}},
      {einsum, "b s -> s@y@x b@x@y", mesh_axis_is_repeated, {15, 16}, {11, 12}},
      {rearrange, "b@x@x -> b", mesh_axis_is_repeated, {4, 5}, {2, 3}},
      {softmax, "b@x [v@x]", mesh_axis_is_repeated, {7, 8}, {2, 3}},
      {einsum, "i@x i@x -> i", mesh_axis_is_repeated, {6, 7}, {2, 3}},
      {rearrange, "(h d@x) -> h d", inner_axis_of_a_group_is_placed, {3, 6}, {1, 2}, {"d"}},
      {rearrange, "h d -> (h@x d@y)", inner_axis_of_a_group_is_placed, {12, 15}, {8, 9}},
      {rearrange, "a b c -> (a (b@x c))", inner_axis_of_a_group_is_placed, {13, 16}, {10, 11}},
      {reduce, "(2 d@x) -> d", inner_axis_of_a_group_is_placed, {3, 6}, {1, 2}},
      {einsum, "b@x s, b@y -> s", axis_is_placed_differently, {7, 10}, {0, 3}, {}, 2},
      {rearrange, "b@x s -> s b@x@y", axis_is_placed_differently, {11, 16}, {0, 3}},
      {einsum, "i@x i@y -> i", axis_is_placed_differently, {4, 7}, {0, 3}},
      {place, "b@x -> b", arrow_is_not_wanted, {4, 6}},
      {place, "b@x, s", number_of_operands_differs, {0, 6}, {}, {}, 1, 1},
      {place, "b@x (h d)", group_is_not_allowed, {4, 9}},
      {place, "b@x 2", number_is_not_allowed, {4, 5}},
      {place, "b@x 1", number_is_not_allowed, {4, 5}},
      {place, "b _", unnamed_axis_is_not_allowed, {2, 3}},
      {place, "b *", packed_axes_are_not_allowed, {2, 3}},
      {place, "b [s@x]", brackets_are_not_allowed, {2, 7}},
      {place, "b@x b@y", axis_is_repeated, {4, 5}, {0, 1}},
      {place, "... b ...", ellipsis_is_repeated, {6, 9}, {0, 3}},
      {place, "b@x s@x", mesh_axis_is_repeated, {6, 7}, {2, 3}},
      {place, "b", axis_size_is_not_of_the_pattern, {}, {}, {"b"}},
      {reshard, "b@x s", arrow_is_missing, {5, 6}},
      {reshard, "b, s -> b s", number_of_operands_differs, {0, 5}, {}, {}, 1, 1},
      {reshard, "(b s) -> (b s)", group_is_not_allowed, {0, 5}},
      {reshard, "b 2 -> b 2", number_is_not_allowed, {2, 3}},
      {reshard, "[b] -> b@x", brackets_are_not_allowed, {0, 3}},
      {reshard, "b@x b -> b", axis_is_repeated, {4, 5}, {0, 1}},
      {reshard, "b@x s -> b", axis_of_the_input_is_lost, {4, 5}},
      {reshard, "b@x -> b c", axis_of_the_output_is_in_no_input, {9, 10}},
      {reshard, "b ... -> b@x", ellipsis_of_the_input_is_lost, {2, 5}},
      {reshard, "b -> b@x ...", ellipsis_of_the_output_is_in_no_input, {9, 12}},
      {reshard, "b@x s -> s b@x", axes_are_in_another_order, {9, 10}, {0, 1}},
      {reshard, "b ... s -> b s ...", axes_are_in_another_order, {13, 14}, {2, 5}},
      {reshard, "b@x s -> b@y s@y", mesh_axis_is_repeated, {15, 16}, {11, 12}},
  };
  for (const Refused& row : table) {
    const Mistake mistake = check(row.op, row.text, row.operands, row.given);
    EXPECT_EQ(mistake.complaint, row.complaint) << described(row.op, row.text);
    EXPECT_EQ(mistake.span, row.span)
        << described(row.op, row.text) << " at " << mistake.span.begin << ", " << mistake.span.end;
    EXPECT_EQ(mistake.other, row.other) << described(row.op, row.text) << " at "
                                        << mistake.other.begin << ", " << mistake.other.end;
    EXPECT_EQ(mistake.argument, row.argument) << described(row.op, row.text);
  }
}

// An axis that is summed stands in two operands of einsum, or twice in one, where that is asked
// for.
TEST(PatternCheck, SumsAlone) {
  using enum Operation;
  using ein::grammar::LoneSums;
  const auto sums = [](Operation op, std::string_view text, std::size_t operands) {
    const auto reading = match_pattern(text);
    EXPECT_EQ(check(op, text, operands).complaint, Complaint::none) << text;
    return check_pattern(op, reading.buffer.pattern(text), operands, {}, false, LoneSums::refused);
  };
  const Taken taken[] = {
      {einsum, "i j -> i", {}, 1},        {einsum, "i k, k j -> i j", {}, 2},
      {einsum, "i, i, j, j ->", {}, 4},   {einsum, "i i, j -> j", {}, 2},
      {einsum, "i _, _ j -> i j", {}, 2}, {einsum, "i 3, 3 j -> i j", {}, 2},
      {einsum, "... i, i ->", {}, 2},     {einsum, "b (h d), h -> b d", {}, 2},
      {einsum, "b (h _), h -> b", {}, 2}, {map_reduce, "i j, i -> i", {}, 2},
  };
  for (const Taken& row : taken)
    EXPECT_EQ(sums(row.op, row.text, row.operands).complaint, Complaint::none) << row.text;
  const Refused refused[] = {
      {einsum, "b s1 h, b s2 k -> b s1 s2", {}, {5, 6}, {13, 14}, {}, 2},
      {einsum, "i j, i -> i", {}, {2, 3}, {}, {}, 2},
      {einsum, "i j k, i -> i", {}, {2, 3}, {}, {}, 2},
      {einsum, "i, i, j -> i", {}, {6, 7}, {}, {}, 3},
      {einsum, "b (h d), d -> b", {}, {3, 4}, {}, {}, 2},
      {einsum, "i@x, j@x ->", {}, {0, 1}, {5, 6}, {}, 2},
  };
  for (const Refused& row : refused) {
    const Mistake mistake = sums(row.op, row.text, row.operands);
    EXPECT_EQ(mistake.complaint, Complaint::axis_is_summed_alone) << row.text;
    EXPECT_EQ(mistake.span, row.span) << row.text;
    EXPECT_EQ(mistake.other, row.other) << row.text;
  }
}

// Sizes whose names come at run time may be any, so that none can be called missing.
TEST(PatternCheck, SizesOfUnknownNamesSolveAnything) {
  using enum Operation;
  EXPECT_FALSE(check(repeat, "a -> a k", 1, {}, true));
  EXPECT_FALSE(check(rearrange, "(a b) -> a b", 1, {}, true));
  EXPECT_EQ(check(rearrange, "a b -> a", 1, {}, true).complaint,
            Complaint::axis_of_the_input_is_lost);
}

// What is known of one axis tells another, however long the chain and in whatever order it is
// written.
TEST(PatternCheck, ChainsOfGroupsAreSolved) {
  std::string input, output;
  constexpr int length = 40;
  for (int i = 0; i < length; ++i) {
    input += "(a" + std::to_string(i) + " a" + std::to_string(i + 1) + ") ";
  }
  EXPECT_EQ(check(Operation::einsum, input + "->").complaint,
            Complaint::group_has_more_than_one_unknown_size);
  EXPECT_FALSE(check(Operation::einsum, input + "->", 1, {"a0"}));
  EXPECT_FALSE(check(Operation::einsum, input + "->", 1, {"a40"}));
  EXPECT_FALSE(check(Operation::einsum, input + "a17 ->", 1));
}

// The checks are those of the compiler as well.
static_assert(!check(Operation::rearrange, "b s (h d) -> b h s d", 1, {"h"}));
static_assert(!check(Operation::gather, "[v] d, b s -> b s d", 2));
static_assert(!check(Operation::reshard, "b@data s c -> b s c@model"));
static_assert(check(Operation::place, "b@x s@x").complaint == Complaint::mesh_axis_is_repeated);
static_assert(check(Operation::softmax, "b h q k").complaint == Complaint::brackets_are_missing);
static_assert(check(Operation::rearrange, "b s (h d) -> b h s", 1, {"h"}).complaint ==
              Complaint::axis_of_the_input_is_lost);

// No pattern makes the checks fail or run on: each random one gets an answer whose place is in the
// text.
TEST(PatternCheck, AnswersEveryPattern) {
  const unsigned seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  constexpr std::string_view words[] = {"a",   "b",   "c", "d", "a",   "b",   "(",   ")",
                                        "...", "1",   "3", "_", "*",   ",",   "->",  "->",
                                        "[a]", "[b]", "[", "]", "a@x", "c@y", "b=2", "c=3"};
  int taken = 0, refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::size_t n = below(12); n > 0; --n)
      text += std::string(words[below(std::size(words))]) + " ";
    if (match_pattern(text).mistake) continue;
    for (int op = 0; op < ein::operation_count; ++op) {
      const Names given = below(2) ? Names{"a"} : Names{};
      const Mistake mistake = check(static_cast<Operation>(op), text, 1 + below(2), given);
      ++(mistake ? refused : taken);
      ASSERT_LE(mistake.span.begin, mistake.span.end) << text;
      ASSERT_LE(mistake.span.end, text.size() + 1) << text;
      ASSERT_LE(mistake.other.end, text.size()) << text;
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
