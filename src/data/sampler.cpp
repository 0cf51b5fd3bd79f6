#include <string>

#include <ein/data.hpp>
#include <ein/error.hpp>

#include "graph/domain.hpp"
#include "nest/random.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

void check(const Tokens& tokens, std::int64_t batch, std::int64_t length) {
  require_at_least(1, "get_batch", "batch", batch);
  require_at_least(1, "get_batch", "length", length);
  if (length >= tokens.size()) {
    throw Error(ErrorKind::value, "sequences of length " + std::to_string(length) +
                                      " need at least " + std::to_string(length) +
                                      " + 1 tokens; there are " + std::to_string(tokens.size()));
  }
}

/// Uniform over [0, n): the upper half of the product with 64 random bits (Lemire, "Fast random
/// integer generation in an interval", ACM TOMACS 29, 2019), without its rejection, which would
/// correct probabilities by less than n / 2^64.
std::int64_t uniform_below(std::int64_t n, std::uint64_t seed, std::uint64_t number,
                           std::int64_t row) {
  // The counters of tensors' elements are below 2^63, so that no random tensor has the same bits.
  const auto words =
      random::philox(std::uint64_t{1} << 63 | static_cast<std::uint64_t>(row), number, seed);
  const std::uint64_t bits = std::uint64_t{words[1]} << 32 | words[0];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(n)) >> 64);
}

Tensor empty_ids(std::int64_t batch, std::int64_t length) {
  const Shape shape{batch, length};
  const auto bytes =
      static_cast<std::size_t>(checked_numel(shape, sizeof(std::int64_t))) * sizeof(std::int64_t);
  return Tensor(Storage::allocate(bytes), DType::i64, shape, {length, 1});
}

}  // namespace

Batch get_batch(const Tokens& tokens, std::int64_t batch, std::int64_t length, std::uint64_t seed,
                std::uint64_t number) {
  engine::require_no_trace("get_batch",
                           "call it outside of the function, and give x and y as arguments");
  check(tokens, batch, length);
  Batch result{empty_ids(batch, length), empty_ids(batch, length)};
  const auto count = static_cast<std::size_t>(length);
  for (std::int64_t row = 0; row < batch; ++row) {
    const std::int64_t start = uniform_below(tokens.size() - length, seed, number, row);
    tokens.copy(start, {result.x.data<std::int64_t>() + row * length, count});
    tokens.copy(start + 1, {result.y.data<std::int64_t>() + row * length, count});
  }
  return result;
}

BatchSampler::BatchSampler(Tokens tokens, std::int64_t batch, std::int64_t length,
                           std::uint64_t seed)
    : tokens_(std::move(tokens)), batch_(batch), length_(length), seed_(seed) {
  check(tokens_, batch, length);
}

Batch BatchSampler::next() {
  Batch batch = get_batch(tokens_, batch_, length_, seed_, position_);
  ++position_;
  return batch;
}

}  // namespace ein
