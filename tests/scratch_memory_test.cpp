// How much memory operations want beside their operands and results.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>

namespace ein {
namespace {

using namespace literals;

/// A call on a matrix of f32 and on one row of as many elements; its results are returned.
struct Call {
  const char* name;
  std::function<std::vector<Tensor>(const Tensor& matrix, const Tensor& row)> run;
  double bytes_of_element;  ///< how much it may want beside the results, of each element
};

std::vector<Tensor> both(const Sorted& sorted) { return {sorted.values, sorted.positions}; }

constexpr std::int64_t size = 1 << 20;

const std::vector<Call>& calls() {
  static const std::vector<Call> list{
#define EIN_CALL(name, call, bytes)                              \
  {name,                                                         \
   [](const Tensor& x, const Tensor& y) -> std::vector<Tensor> { \
     (void)x, (void)y;                                           \
     return call;                                                \
   },                                                            \
   bytes}
#define EIN_REDUCTION(name, bytes)                                              \
  EIN_CALL(name,                                                                \
           (std::vector{reduce(y, "i n ->", name), reduce(x, "a b -> a", name), \
                        reduce(x, "a b -> b", name)}),                          \
           bytes)
      EIN_REDUCTION("sum", 0),
      EIN_REDUCTION("mean", 0),
      EIN_REDUCTION("max", 0),
      EIN_REDUCTION("min", 0),
      EIN_REDUCTION("prod", 0),
      EIN_REDUCTION("any", 0),
      EIN_REDUCTION("all", 0),
      EIN_REDUCTION("logsumexp", 0),
      EIN_REDUCTION("var", 0),
      EIN_REDUCTION("std", 0),
      EIN_REDUCTION("sample_var", 0),
      EIN_REDUCTION("sample_std", 0),
      EIN_REDUCTION("norm", 0),
      EIN_REDUCTION("nansum", 0),
      EIN_REDUCTION("nanmean", 0),
      EIN_REDUCTION("nanmax", 0),
      EIN_REDUCTION("nanmin", 0),
      EIN_REDUCTION("nanprod", 0),
      EIN_REDUCTION("nanvar", 0),
      EIN_REDUCTION("nanstd", 0),
      EIN_CALL("exp", {exp(x)}, 0),
      EIN_CALL("add", {x + x}, 0),
      EIN_CALL("softmax", {softmax(x, "a [b]")}, 0),
      EIN_CALL("softmax of one row", {softmax(y, "i [n]")}, 4),
      EIN_CALL("log_softmax", {log_softmax(x, "a [b]")}, 0),
      EIN_CALL("layer_norm", {layer_norm(x, "a [b]")}, 0),
      EIN_CALL("rms_norm", {rms_norm(x, "a [b]")}, 0),
      EIN_CALL("argmax",
               (std::vector{argmax(y, "i [n]"), argmax(x, "a [b]"), argmax(x, "[a b]"),
                            argmax(x, "[a] b")}),
               0),
      EIN_CALL("argmin",
               (std::vector{argmin(y, "i [n]"), argmin(x, "a [b]"), argmin(x, "[a b]"),
                            argmin(x, "[a] b")}),
               0),
      EIN_CALL("argmax of bytes", (std::vector{argmax(y.to(DType::u8), "i [n]")}), 1),
      EIN_CALL("cumsum", {cumsum(y, "i [n]")}, 0),
      EIN_CALL("cummax", {cummax(y, "i [n]")}, 0),
      EIN_CALL("flip", {flip(x, "a [b]")}, 0),
      EIN_CALL("roll", {roll(x, "a [b]", 3)}, 0),
      EIN_CALL("pad", {pad(x, "a [b]", 1, 1)}, 0),
      EIN_CALL("tril", {tril(x, "[a b]")}, 0),
      EIN_CALL("rearrange", {rearrange(x, "a b -> b a")}, 0),
      EIN_CALL("einsum", {einsum(x, x, "a b, a b ->")}, 0),
      EIN_CALL("nonzero", (std::vector{nonzero(relu(y - 0.9999)), nonzero(x - x)}), 16),
      EIN_CALL("all_close", {full({}, all_close(x, x) ? 1 : 0)}, 0),
      EIN_CALL("gather", {gather(y.reshape({size}), zeros({size}, DType::u8), "[v], n -> n")}, 8),
      EIN_CALL("scatter_add",
               {scatter_add(y.reshape({size}), zeros({size}, DType::u8), "n, n -> [k]", "k"_a = 8)},
               8),
      // A bin of each element.
      EIN_CALL("histogram", {histogram(y, "i [n]", 10, 0, 1)}, 4),
      EIN_CALL("searchsorted", {searchsorted(arange(100).to(DType::f32), y, "[e], i n -> i n")},
               24),
      // Keys and places of a line, twice.
      EIN_CALL("sort", both(sort(y, "i [n]")), 16),
      EIN_CALL("top_k", both(top_k(y, "i [n]", 5)), 24),
      EIN_CALL("median", {median(y, "i [n]")}, 24),
      EIN_CALL("quantile", {quantile(y, "i [n]", 0.3)}, 24),
      EIN_CALL("unique", {unique(y).values}, 80),
#undef EIN_REDUCTION
#undef EIN_CALL
  };
  return list;
}

TEST(ScratchMemory, IsBounded) {
  manual_seed(1);
  const Tensor matrix = rand({1 << 10, 1 << 10}), row = rand({1, size});
  for (const Call& call : calls()) {
    call.run(matrix, row);  // what a first call makes on the side
    const std::size_t before = memory_allocated();
    reset_max_memory_allocated();
    const std::vector<Tensor> results = call.run(matrix, row);
    std::size_t wanted = max_memory_allocated() - before;
    for (const Tensor& result : results) wanted -= std::min(wanted, result.nbytes());
    // For partial results, and what threads keep in their caches.
    constexpr double always = 512 << 10;
    EXPECT_LE(static_cast<double>(wanted), call.bytes_of_element * size + always) << call.name;
  }
}

}  // namespace
}  // namespace ein
