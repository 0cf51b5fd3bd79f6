// How much memory operations want beside their operands and results: every public function that
// returns tensors has a row.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/linalg.hpp>
#include "support/public_functions.hpp"

namespace ein {
namespace {

using namespace literals;

constexpr std::int64_t side = 1 << 10, size = side * side;

/// What calls are of.
struct Operands {
  Tensor matrix;     // f32 from 0 to 1, (side, side)
  Tensor row;        // f32 from 0 to 1, (1, size)
  Tensor line;       // the same elements, (size)
  Tensor positions;  // u8 0, (size)
  Tensor bits;       // i32, (side, side)
  Tensor numbers;    // c64, (side, side)
  Tensor matrices;   // f32, (side, 32, 32), near multiples of the identity
};

struct Call {
  std::string function, what;
  std::function<std::vector<Tensor>(const Operands&)> run;
  double bytes_of_element;  ///< how much it may want beside the results, of each of `size` elements
};

std::vector<Tensor> both(const Sorted& sorted) { return {sorted.values, sorted.positions}; }
std::vector<Tensor> both(const QrFactors& factors) { return {factors.q, factors.r}; }
std::vector<Tensor> both(const Eigenpairs& pairs) { return {pairs.values, pairs.vectors}; }
std::vector<Tensor> all_of(const SvdFactors& factors) { return {factors.u, factors.s, factors.vt}; }

std::vector<Call> reductions() {
  std::vector<Call> list;
  for (const std::string_view reduction : detail::reduction_names) {
    const Reduction how = *parse_reduction(reduction);
    list.push_back({"reduce", std::string(reduction),
                    [=](const Operands& x) -> std::vector<Tensor> {
                      return {reduce(x.row, "i n ->", how), reduce(x.matrix, "a b -> a", how),
                              reduce(x.matrix, "a b -> b", how)};
                    },
                    0});
  }
  return list;
}

using Run = std::vector<Tensor>(const Operands&);
Call call_of(const char* function, const char* what, double bytes, Run* run) {
  return {function, what, run, bytes};
}
/// `...` makes a list of tensors of the Operands `x`.
#define EIN_CALL_OF(function, what, bytes, ...) \
  call_of(#function, what, bytes,               \
          []([[maybe_unused]] const Operands& x) -> std::vector<Tensor> { return __VA_ARGS__; })
#define EIN_CALL(function, bytes, ...) EIN_CALL_OF(function, "", bytes, __VA_ARGS__)
#define EIN_UNARY(function) EIN_CALL(function, 0, {function(x.matrix)})
#define EIN_BINARY(function) EIN_CALL(function, 0, {function(x.matrix, x.matrix)})
#define EIN_OF_BITS(function) EIN_CALL(function, 0, {function(x.bits, x.bits)})
#define EIN_OF_ROWS_IN(function, bytes) \
  EIN_CALL(function, bytes,             \
           {function(x.matrix, "a [b]"), function(x.matrix, "[a] b"), function(x.row, "i [n]")})
#define EIN_OF_ROWS(function) EIN_OF_ROWS_IN(function, 0)

std::vector<Call> elementwise() {
  return {
      EIN_BINARY(add),
      EIN_BINARY(sub),
      EIN_BINARY(mul),
      EIN_BINARY(div),
      EIN_BINARY(pow),
      EIN_BINARY(remainder),
      EIN_BINARY(floor_divide),
      EIN_BINARY(logaddexp),
      EIN_BINARY(atan2),
      EIN_BINARY(hypot),
      EIN_BINARY(minimum),
      EIN_BINARY(maximum),
      EIN_BINARY(less),
      EIN_BINARY(less_equal),
      EIN_BINARY(greater),
      EIN_BINARY(greater_equal),
      EIN_BINARY(equal),
      EIN_BINARY(not_equal),
      EIN_BINARY(logical_and),
      EIN_BINARY(logical_or),
      EIN_OF_BITS(bitwise_and),
      EIN_OF_BITS(bitwise_or),
      EIN_OF_BITS(bitwise_xor),
      EIN_OF_BITS(left_shift),
      EIN_OF_BITS(right_shift),
      EIN_CALL(bitwise_not, 0, {bitwise_not(x.bits)}),
      EIN_UNARY(logical_not),
      EIN_UNARY(abs),
      EIN_UNARY(sign),
      EIN_UNARY(floor),
      EIN_UNARY(ceil),
      EIN_UNARY(round),
      EIN_UNARY(trunc),
      EIN_UNARY(isnan),
      EIN_UNARY(isinf),
      EIN_UNARY(isfinite),
      EIN_UNARY(sqrt),
      EIN_UNARY(rsqrt),
      EIN_UNARY(exp),
      EIN_UNARY(exp2),
      EIN_UNARY(expm1),
      EIN_UNARY(log),
      EIN_UNARY(log2),
      EIN_UNARY(log1p),
      EIN_UNARY(sin),
      EIN_UNARY(cos),
      EIN_UNARY(tan),
      EIN_UNARY(asin),
      EIN_UNARY(acos),
      EIN_UNARY(atan),
      EIN_UNARY(sinh),
      EIN_UNARY(cosh),
      EIN_UNARY(tanh),
      EIN_UNARY(erf),
      EIN_UNARY(erfinv),
      EIN_UNARY(sigmoid),
      EIN_UNARY(relu),
      EIN_UNARY(softplus),
      EIN_UNARY(log_sigmoid),
      EIN_UNARY(gelu),
      EIN_UNARY(silu),
      EIN_CALL(where, 0, {where(x.positions, x.line, 1.0)}),
      EIN_CALL(clamp, 0, {clamp(x.matrix, 0.25, 0.5)}),
      EIN_CALL(triu, 0, {triu(x.matrix, "... [i j]"), triu(x.matrix, "[a b]")}),
      EIN_CALL(tril, 0, {tril(x.matrix, "... [i j]"), tril(x.matrix, "[a b]")}),
      // Both parts, one after the other.
      EIN_CALL(complex, 8, {complex(x.matrix, x.matrix)}),
      // The cosines or sines, the two parts, and these one after the other.
      EIN_CALL(polar, 24, {polar(x.matrix, x.matrix)}),
      EIN_CALL(real, 0, {real(x.numbers)}),
      EIN_CALL(imag, 0, {imag(x.numbers)}),
      EIN_CALL(conj, 0, {conj(x.numbers)}),
      EIN_CALL(angle, 0, {angle(x.numbers)}),
      EIN_CALL(view_as_real, 0, {view_as_real(x.numbers)}),
      EIN_CALL(view_as_complex, 0, {view_as_complex(view_as_real(x.numbers))}),
  };
}

std::vector<Call> patterns() {
  return {
      EIN_CALL(rearrange, 0, {rearrange(x.matrix, "a b -> b a").contiguous()}),
      call_of("rearrange_all", "", 0,
              [](const Operands& x) -> std::vector<Tensor> {
                return rearrange_all(x.matrix, runtime("(a + b) c -> a c, b c"), axis("a", 3));
              }),
      EIN_CALL(repeat, 0, {repeat(x.matrix, "a b -> a b 2").contiguous()}),
      EIN_CALL_OF(einsum, "sum", 0, {einsum(x.matrix, x.matrix, "a b, a b ->")}),
      // Panels of both operands that fit the caches.
      EIN_CALL_OF(einsum, "product", 4, {einsum(x.matrix, x.matrix, "a k, k b -> a b")}),
      EIN_CALL_OF(map, "pairs", 4, {map(x.matrix, x.matrix, "a k, k b -> a b", fn::add, "max")}),
      EIN_CALL(matmul, 4, {matmul(x.matrix, x.matrix)}),
      EIN_CALL(pack, 0, {pack(std::vector{x.matrix, x.matrix}, "* b").tensor}),
      EIN_CALL(unpack, 0, unpack(x.matrix, std::array{Shape{side / 2}, Shape{side / 2}}, "* b")),
      EIN_CALL_OF(softmax, "of rows", 0, {softmax(x.matrix, "a [b]")}),
      // Of one row, exp(x) is kept.
      EIN_CALL_OF(softmax, "of one row", 4, {softmax(x.row, "i [n]")}),
      EIN_CALL(log_softmax, 0, {log_softmax(x.matrix, "a [b]")}),
      EIN_CALL(layer_norm, 0, {layer_norm(x.matrix, "a [b]")}),
      EIN_CALL(rms_norm, 0, {rms_norm(x.matrix, "a [b]")}),
      EIN_OF_ROWS(argmax),
      EIN_OF_ROWS(argmin),
      EIN_CALL_OF(argmax, "of both axes", 0, {argmax(x.matrix, "[a b]")}),
      EIN_CALL_OF(argmax, "of bytes", 1, {argmax(x.row.to(DType::u8), "i [n]")}),
      EIN_OF_ROWS(cumsum),
      EIN_OF_ROWS(cumprod),
      EIN_OF_ROWS(cummax),
      EIN_OF_ROWS(cummin),
      EIN_OF_ROWS_IN(logcumsumexp, 48),
      EIN_OF_ROWS(flip),
      EIN_CALL(roll, 0, {roll(x.matrix, "a [b]", 3)}),
      EIN_CALL(pad, 0, {pad(x.matrix, "a [b]", 1, 1)}),
      EIN_CALL(diagonal, 0, {diagonal(x.matrix, "[a b]").contiguous()}),
      EIN_CALL(from_diagonal, 0, {from_diagonal(x.matrix[0], "[n]")}),
      // Keys and places of a line, twice.
      EIN_CALL(sort, 16, both(sort(x.row, "i [n]"))),
      EIN_CALL(top_k, 24, both(top_k(x.row, "i [n]", 5))),
      EIN_CALL(median, 24, {median(x.row, "i [n]")}),
      EIN_CALL(quantile, 24, {quantile(x.row, "i [n]", 0.3)}),
      EIN_CALL(unique, 80, {unique(x.row).values}),
      EIN_CALL(searchsorted, 24,
               {searchsorted(arange(100).to(DType::f32), x.row, "[e], i n -> i n")}),
      // A bin of each element.
      EIN_CALL(histogram, 4, {histogram(x.row, "i [n]", 10, 0, 1)}),
      EIN_CALL(nonzero, 16, {nonzero(relu(x.row - 0.9999)), nonzero(x.matrix - x.matrix)}),
      // Positions as i64.
      EIN_CALL(gather, 8, {gather(x.line, x.positions, "[v], n -> n")}),
      EIN_CALL(scatter_add, 8, {scatter_add(x.line, x.positions, "n, n -> [k]", "k"_a = 8)}),
      EIN_CALL(scatter_prod, 8, {scatter_prod(x.line, x.positions, "n, n -> [k]", "k"_a = 8)}),
      EIN_CALL(scatter_max, 8, {scatter_max(x.line, x.positions, "n, n -> [k]", "k"_a = 8)}),
      EIN_CALL(scatter_min, 8, {scatter_min(x.line, x.positions, "n, n -> [k]", "k"_a = 8)}),
      EIN_CALL(one_hot, 0, {one_hot(x.positions, "n -> n [4]")}),
      EIN_CALL(cross_entropy, 0, {cross_entropy(x.matrix, zeros({side}, DType::i64), "b [v], b")}),
      // The squares.
      EIN_CALL(mse_loss, 4, {mse_loss(x.matrix, x.matrix)}),
      // Uniform numbers.
      EIN_CALL(bernoulli, 4, {bernoulli(x.matrix)}),
      // Sums in f64, and what they are of.
      EIN_CALL(multinomial, 12, {multinomial(x.matrix, "b [c]", 5)}),
      EIN_CALL(dropout, 4, {dropout(x.matrix, 0.5)}),
      EIN_CALL(clip_grad_norm, 0, {clip_grad_norm(std::array{x.matrix}, 1.0)}),
  };
}

/// As many at a time, with their results, in f64.
constexpr double of_sixteen_matrices = 16 * sizeof(double) * 5.0 * 32 * 32 / size;

std::vector<Call> others() {
  return {
      EIN_CALL(empty, 0, {empty({side, side})}),
      EIN_CALL(zeros, 0, {zeros({side, side})}),
      EIN_CALL(ones, 0, {ones({side, side})}),
      EIN_CALL(full, 0, {full({side, side}, 2.0)}),
      EIN_CALL(full_like, 0, {full_like(x.matrix, 2.0, DType::f32)}),
      EIN_CALL(arange, 0, {arange(size)}),
      EIN_CALL(eye, 0, {eye(side)}),
      EIN_CALL(rand, 0, {rand({side, side})}),
      EIN_CALL(randn, 0, {randn({side, side})}),
      EIN_CALL(trunc_normal, 0, {trunc_normal({side, side})}),
      EIN_CALL(inverse, of_sixteen_matrices, {inverse(x.matrices, "b [i j]")}),
      EIN_CALL(det, of_sixteen_matrices, {det(x.matrices, "b [i j]")}),
      EIN_CALL(cholesky, of_sixteen_matrices, {cholesky(x.matrices, "b [i j]")}),
      EIN_CALL(solve, of_sixteen_matrices,
               {solve(x.matrices, x.matrices, "b [n m], b [n] k -> b [m] k")}),
      EIN_CALL(lstsq, of_sixteen_matrices,
               {lstsq(x.matrices, x.matrices, "b [n m], b [n] k -> b [m] k")}),
      EIN_CALL(qr, of_sixteen_matrices, both(qr(x.matrices, "b [n m]"))),
      EIN_CALL(svd, of_sixteen_matrices, all_of(svd(x.matrices, "b [n m]"))),
      EIN_CALL(eigh, of_sixteen_matrices, both(eigh(x.matrices, "b [i j]"))),
  };
}
#undef EIN_CALL_OF
#undef EIN_CALL
#undef EIN_UNARY
#undef EIN_BINARY
#undef EIN_OF_BITS
#undef EIN_OF_ROWS_IN
#undef EIN_OF_ROWS

std::vector<Call> all_calls() {
  std::vector<Call> all = reductions();
  for (const auto& group : {elementwise(), patterns(), others()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

TEST(ScratchMemory, IsBounded) {
  manual_seed(1);
  Operands x;
  x.matrix = rand({side, side});
  x.line = rand({size});
  x.row = x.line.reshape({1, size});
  x.positions = zeros({size}, DType::u8);
  x.bits = (x.matrix * 8.0).to(DType::i32);
  x.numbers = complex(x.matrix, x.matrix);
  x.matrices = rand({side, 32, 32}) + 32.0 * eye(32);
  for (const Call& call : all_calls()) {
    call.run(x);  // what a first call makes on the side
    const std::size_t before = memory_allocated();
    reset_max_memory_allocated();
    const std::vector<Tensor> results = call.run(x);
    std::size_t wanted = max_memory_allocated() - before;
    for (const Tensor& result : results) wanted -= std::min(wanted, result.nbytes());
    // For partial results, and what threads keep in their caches.
    constexpr double always = 640 << 10;
    EXPECT_LE(static_cast<double>(wanted), call.bytes_of_element * size + always)
        << call.function << " " << call.what;
  }
}

TEST(ScratchMemory, IsThatOfEveryFunction) {
  const std::map<std::string, std::string> without = {
      {"gradients", "is made of the other calls"},
      {"from_span", "has the caller's elements"},
      {"from_bytes", "has the caller's elements"},
      {"copy_from_bytes", "has the caller's elements"},
      {"from_vector", "has the caller's elements"},
      {"tensor", "has the caller's elements"},
      {"from_eigen", "has the caller's elements"},
      {"from_dlpack", "has the caller's elements"},
      {"load_npy", "reads a file"},
      {"get_batch", "reads tokens"},
      {"decayed_gradient", "is a formula of optimizers' rules"},
      {"slice", "is an index"},
      {"slice_of", "is an index"},
      {"gather_over", "is of a mesh"},
      {"place", "is of a mesh"},
      {"reshard", "is of a mesh"},
  };
  std::set<std::string> listed;
  for (const Call& call : all_calls()) listed.insert(call.function);
  const auto functions = test::functions_that_return_tensors();
  EXPECT_GT(functions.size(), 140u);
  for (const auto& [name, header] : functions)
    EXPECT_NE(listed.contains(name), without.contains(name)) << name << " of ein/" << header;
  for (const auto& [name, why] : without) EXPECT_TRUE(functions.contains(name)) << name;
}

}  // namespace
}  // namespace ein
