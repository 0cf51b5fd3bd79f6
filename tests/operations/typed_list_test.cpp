// Every public function that returns tensors is typed for typed operands, or has a reason.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include "support/public_functions.hpp"

namespace ein {
namespace {

using namespace literals;

/// What a call returns is typed, each part of it.
template <class T>
constexpr bool is_typed() {
  if constexpr (detail::Tuple<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_typed<std::tuple_element_t<I, T>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (requires(T x) { x.values, x.counts; }) {
    return is_typed<decltype(T::values)>() && is_typed<decltype(T::positions)>() &&
           is_typed<decltype(T::counts)>();
  } else if constexpr (requires(T x) { x.values, x.positions; }) {
    return is_typed<decltype(T::values)>() && is_typed<decltype(T::positions)>();
  } else if constexpr (requires(T x) { x.values, x.vectors; }) {
    return is_typed<decltype(T::values)>() && is_typed<decltype(T::vectors)>();
  } else if constexpr (requires(T x) { x.q, x.r; }) {
    return is_typed<decltype(T::q)>() && is_typed<decltype(T::r)>();
  } else if constexpr (requires(T x) { x.u, x.s, x.vt; }) {
    return is_typed<decltype(T::u)>() && is_typed<decltype(T::s)>() && is_typed<decltype(T::vt)>();
  } else {
    return detail::OperandType<T>::is_typed;
  }
}

}  // namespace

namespace typed_list {
// Operands of calls that are never made.
extern const Float<"a b"> matrix;
extern const Float<"a a2"> square;
extern const Float<"b"> row;
extern const Long<"b"> positions;
extern const ComplexFloat<"a b"> numbers;
extern const Mesh mesh;
}  // namespace typed_list

namespace {

using namespace typed_list;

struct Row {
  std::string function;
  bool typed;
};

// clang-format off
#define EIN_TYPED(function, ...) \
  { #function, is_typed<std::remove_cvref_t<decltype(__VA_ARGS__)>>() }
#define EIN_UNARY(function, result) EIN_TYPED(function, function(matrix)),
#define EIN_BINARY(function, result)          \
  EIN_TYPED(function, function(matrix, row)), \
  EIN_TYPED(function, function(matrix, matrix, "a b, a b -> a b"_p)),
// clang-format on

std::vector<Row> rows() {
  return {
      EIN_FOR_EACH_UNARY(EIN_UNARY)    // sign ... silu
      EIN_FOR_EACH_BINARY(EIN_BINARY)  // add ... logical_or
      EIN_TYPED(abs, abs(numbers)),
      EIN_TYPED(where, where(matrix, row, 1.0)),
      EIN_TYPED(clamp, clamp(matrix, row, 1.0)),
      EIN_TYPED(map, map(matrix, row, "a b, b -> a"_p, fn::mul, "sum")),
      EIN_TYPED(complex, complex(matrix, row)),
      EIN_TYPED(polar, polar(matrix, row)),
      EIN_TYPED(real, real(numbers)),
      EIN_TYPED(imag, imag(numbers)),
      EIN_TYPED(conj, conj(numbers)),
      EIN_TYPED(angle, angle(numbers)),
      EIN_TYPED(view_as_real, view_as_real(numbers)),
      EIN_TYPED(view_as_complex, view_as_complex(view_as_real(numbers))),
      EIN_TYPED(einsum, einsum(matrix, row, "a b, b -> a"_p)),
      EIN_TYPED(rearrange, rearrange(matrix, "a b -> b a"_p)),
      EIN_TYPED(repeat, repeat(matrix, "a b -> a b 2"_p)),
      EIN_TYPED(reduce, reduce(matrix, "a b -> a"_p, "max")),
      EIN_TYPED(matmul, matmul(matrix, Float<"b c">(matrix))),
      EIN_TYPED(softmax, softmax(matrix, "a [b]")),
      EIN_TYPED(log_softmax, log_softmax(matrix, "a [b]")),
      EIN_TYPED(layer_norm, layer_norm(matrix, "a [b]")),
      EIN_TYPED(rms_norm, rms_norm(matrix, "a [b]")),
      EIN_TYPED(argmax, argmax(matrix, "a [b]"_p)),
      EIN_TYPED(argmin, argmin(matrix, "a [b]"_p)),
      EIN_TYPED(cumsum, cumsum(matrix, "a [b]")),
      EIN_TYPED(cumprod, cumprod(matrix, "a [b]")),
      EIN_TYPED(cummax, cummax(matrix, "a [b]")),
      EIN_TYPED(cummin, cummin(matrix, "a [b]")),
      EIN_TYPED(logcumsumexp, logcumsumexp(matrix, "a [b]")),
      EIN_TYPED(sort, sort(matrix, "a [b]")),
      EIN_TYPED(top_k, top_k(matrix, "a [b]"_p, 5)),
      EIN_TYPED(median, median(matrix, "a [b]"_p)),
      EIN_TYPED(quantile, quantile(matrix, "a [b]"_p, 0.5)),
      EIN_TYPED(quantile, quantile(matrix, "a [b]"_p, std::vector{0.5})),
      EIN_TYPED(flip, flip(matrix, "a [b]")),
      EIN_TYPED(roll, roll(matrix, "a [b]", 1)),
      EIN_TYPED(pad, pad(matrix, "a [b]"_p, 1, 1)),
      EIN_TYPED(tril, tril(matrix, "[a b]")),
      EIN_TYPED(triu, triu(matrix, "[a b]")),
      EIN_TYPED(diagonal, diagonal(matrix, "[a b]"_p)),
      EIN_TYPED(from_diagonal, from_diagonal(row, "[b]"_p)),
      EIN_TYPED(bernoulli, bernoulli(matrix)),
      EIN_TYPED(dropout, dropout(matrix, 0.5)),
      EIN_TYPED(multinomial, multinomial(matrix, "a [b]"_p, 5)),
      EIN_TYPED(searchsorted, searchsorted(row, matrix, "[b], n m -> n m"_p)),
      EIN_TYPED(histogram, histogram(matrix, "a [b]"_p, 10, 0, 1)),
      EIN_TYPED(nonzero, nonzero(matrix)),
      EIN_TYPED(unique, unique(matrix)),
      EIN_TYPED(gather, gather(matrix, positions, "[v] d, n -> n d"_p)),
      EIN_TYPED(scatter_add, scatter_add(row, positions, "n, n -> [k]"_p, "k"_a = 8)),
      EIN_TYPED(scatter_prod, scatter_prod(row, positions, "n, n -> [k]"_p, "k"_a = 8)),
      EIN_TYPED(scatter_max, scatter_max(row, positions, "n, n -> [k]"_p, "k"_a = 8)),
      EIN_TYPED(scatter_min, scatter_min(row, positions, "n, n -> [k]"_p, "k"_a = 8)),
      EIN_TYPED(one_hot, one_hot(positions, "n -> n [4]"_p)),
      EIN_TYPED(cross_entropy, cross_entropy(matrix, positions, "[v] b, b"_p)),
      EIN_TYPED(mse_loss, mse_loss(matrix, matrix)),
      EIN_TYPED(inverse, inverse(square, "[i j]"_p)),
      EIN_TYPED(det, det(square, "[i j]"_p)),
      EIN_TYPED(cholesky, cholesky(square, "[i j]")),
      EIN_TYPED(solve, solve(square, matrix, "[n m], [n] k -> [m] k"_p)),
      EIN_TYPED(lstsq, lstsq(matrix, square, "[n m], [n] k -> [m] k"_p)),
      EIN_TYPED(qr, qr(matrix, "[n m]"_p)),
      EIN_TYPED(svd, svd(matrix, "[n m]"_p)),
      EIN_TYPED(eigh, eigh(square, "[i j]"_p)),
      EIN_TYPED(place, place(matrix, mesh, "a@data b"_p)),
      EIN_TYPED(reshard, reshard(matrix, "a b -> a@data b"_p)),
  };
}
#undef EIN_BINARY
#undef EIN_UNARY
#undef EIN_TYPED

const std::map<std::string, std::string> untyped = {
    {"empty", "has no operand that is typed"},
    {"zeros", "has no operand that is typed"},
    {"ones", "has no operand that is typed"},
    {"full", "has no operand that is typed"},
    {"full_like", "its dtype is known when the call runs"},
    {"arange", "has no operand that is typed"},
    {"eye", "has no operand that is typed"},
    {"rand", "has no operand that is typed"},
    {"randn", "has no operand that is typed"},
    {"trunc_normal", "has no operand that is typed"},
    {"tensor", "has no operand that is typed"},
    {"from_vector", "has no operand that is typed"},
    {"from_span", "has no operand that is typed"},
    {"from_bytes", "has no operand that is typed"},
    {"copy_from_bytes", "has no operand that is typed"},
    {"from_eigen", "has no operand that is typed"},
    {"from_dlpack", "has no operand that is typed"},
    {"load_npy", "has no operand that is typed"},
    {"get_batch", "has no operand that is typed"},
    {"pack", "its operands are a list"},
    {"unpack", "its results are a list, of sizes that are known when the call runs"},
    {"rearrange_all", "its results are a list, of a pattern that is known when the call runs"},
    {"parse_shape", "returns sizes"},
    {"gradients", "its operands are a list: grad() is typed"},
    {"clip_grad_norm", "its operands are a list"},
    {"decayed_gradient", "is a formula of optimizers' rules"},
    {"slice", "is an index"},
    {"slice_of", "is an index"},
    {"gather_over", "the mesh axis is known when the call runs: reshard is typed"},
    {"layer", "is what a layer's type says: nn::Named is typed"},
};

TEST(TypedList, HoldsEveryFunction) {
  std::set<std::string> typed;
  for (const Row& row : rows()) {
    EXPECT_TRUE(row.typed) << row.function;
    typed.insert(row.function);
  }
  std::map<std::string, std::string> wanted = test::functions_that_return_tensors();
  EXPECT_GT(wanted.size(), 140u);
  for (int op = 0; op < operation_count; ++op)
    wanted.emplace(name(static_cast<Operation>(op)), "grammar/operations.hpp");
  for (const auto& [function, where] : wanted)
    EXPECT_NE(typed.contains(function), untyped.contains(function)) << function << " of " << where;
  for (const auto& [function, why] : untyped) EXPECT_TRUE(wanted.contains(function)) << function;
}

// What is no function: members, and functions of functions.
template <class Expected, class Made>
constexpr bool is = std::is_same_v<std::remove_cvref_t<Made>, Expected>;
constexpr auto twice = [](const auto& x) { return x * 2.0; };
constexpr auto back = [](const auto& g, const auto&, const auto&) { return g * 2.0; };
static_assert(is<BFloat16<"a b">, decltype(matrix.to<bf16>())>);
static_assert(is<Float<"a b">, decltype(matrix.detach())>);
static_assert(is<Float<"a b">, decltype(matrix.requires_grad(true))>);
static_assert(is<Float<"a b">, decltype(grad(twice)(matrix))>);
static_assert(is<Float<"a b">, decltype(checkpoint(twice, matrix))>);
static_assert(is<Float<"a b">, decltype(vmap<"a">(twice)(matrix))>);
static_assert(is<Float<"a b">, decltype(custom(twice, back)(matrix))>);

}  // namespace
}  // namespace ein
