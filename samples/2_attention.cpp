// Multi-head attention on the bytes of a text, written as patterns.
//
// Nothing is trained: all weights are random. But queries and keys share theirs, so a place in the
// text attends to earlier places with the same bytes before them, and reads which byte came next
// there. That is enough to guess the text's next byte far better than chance.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <ein/cost.hpp>
#include <ein/ein.hpp>

namespace {

using ein::Tensor;

// What a place in the text knows: its own byte and those before it.
constexpr std::int64_t context_bytes = 5;
constexpr std::int64_t heads = 4, head_size = 64, channels = heads * head_size;
// A place that has one more byte in common is attended to e^8 times more.
constexpr double sharpness = 8;

double total_flops = 0, total_seconds = 0;

/// Computes a step twice, the second time with its plans made, and prints what that took. The
/// operations are counted from the loops that run, a multiply-add as two.
template <class F>
Tensor show(const char* code, F&& compute) {
  compute();
  const ein::CostScope scope;
  const auto begin = std::chrono::steady_clock::now();
  Tensor result = compute();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double flops = scope.total().model.approximate();
  total_flops += flops;
  total_seconds += seconds;
  std::printf("  %s\n    %-18s", code, result.shape().to_string().c_str());
  if (flops > 0) {
    std::printf(" %8.1f MFLOP %8.2f ms %8.1f GFLOP/s\n", flops / 1e6, seconds * 1e3,
                flops / seconds / 1e9);
  } else {
    std::printf("   no arithmetic %7.2f ms\n", seconds * 1e3);
  }
  return result;
}
#define SHOW(...) show(#__VA_ARGS__, [&] { return __VA_ARGS__; })

/// Up to `most` bytes of a file; an exception when there are too few to be interesting.
std::vector<std::uint8_t> read_bytes(const std::string& path, std::int64_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path + "; give another: attention FILE");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(most));
  file.read(reinterpret_cast<char*>(bytes.data()), most);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() < 100) throw std::runtime_error(path + " is too short: 100 bytes are wanted");
  return bytes;
}

/// bytes[begin, end) on one line.
std::string excerpt(const std::vector<std::uint8_t>& bytes, std::int64_t begin, std::int64_t end) {
  std::string text;
  for (std::int64_t i = std::max<std::int64_t>(begin, 0);
       i < std::min<std::int64_t>(end, std::ssize(bytes)); ++i) {
    const std::uint8_t byte = bytes[static_cast<std::size_t>(i)];
    text += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : byte == '\n' ? ' ' : '?';
  }
  return text;
}

Tensor one_hot(const Tensor& bytes) { return equal(bytes, ein::arange(256)).to(ein::DType::f32); }

/// For some places, the text before them and the places they attend to most.
void show_looks(const std::vector<std::uint8_t>& bytes, const Tensor& look) {
  constexpr std::int64_t before = 22, after = 10;
  std::puts("\nWhere a place looks: the text up to it [and on], and the places it attends to most");
  const std::int64_t s = look.shape()[0];
  for (const std::int64_t eighth : {4, 5, 6, 7}) {
    const std::int64_t place = s * eighth / 8;
    const std::vector<float> row = look[place].to_vector<float>();
    std::vector<std::int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + 3, order.end(),
                      [&](std::int64_t a, std::int64_t b) {
                        return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
                      });
    const auto line = [&](std::int64_t end) {
      return excerpt(bytes, end - before, end) + "[" + excerpt(bytes, end, end + after) + "]";
    };
    std::printf("  byte %5lld         %s\n", static_cast<long long>(place),
                line(place + 1 + context_bytes).c_str());
    for (int i = 0; i < 3; ++i) {
      const std::int64_t key = order[static_cast<std::size_t>(i)];
      std::printf("    %5.1f %% at %5lld  %s\n", 100 * row[static_cast<std::size_t>(key)],
                  static_cast<long long>(key), line(key + context_bytes).c_str());
    }
  }
}

/// How often the byte that attention speaks for is the one that follows.
void show_guesses(const std::vector<std::uint8_t>& bytes, const Tensor& guess) {
  const std::vector<float> score = guess.to_vector<float>();
  std::array<std::int64_t, 256> count{};
  std::int64_t right = 0, all = 0;
  for (std::size_t q = bytes.size() / 2; q + 1 + context_bytes < bytes.size(); ++q) {
    const auto row = score.begin() + static_cast<std::ptrdiff_t>(q * 256);
    const std::uint8_t follows = bytes[q + 1 + context_bytes];
    right += std::max_element(row, row + 256) - row == follows;
    ++count[follows];
    ++all;
  }
  const double most = static_cast<double>(*std::max_element(count.begin(), count.end()));
  std::printf(
      "\nIn the second half, the next byte is guessed right %.0f %% of the time; always guessing "
      "the\n"
      "most common byte is right %.0f %% of the time.\n",
      100.0 * static_cast<double>(right) / static_cast<double>(all),
      100 * most / static_cast<double>(all));
}

void show_a_mistake(const Tensor& q, const Tensor& k) {
  const char* pattern = "head q d, head d k -> head q k";
  std::printf("\nAnd a mistake, the keys' axes exchanged: einsum(q, k, \"%s\")\n\n", pattern);
  try {
    einsum(q, k, ein::runtime(pattern));
  } catch (const ein::Error& error) {
    std::printf("%s\n", error.what());
  }
}

int run(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_bytes(path, 2048);
  // Byte `context_bytes + i` follows context i. The last context, which nothing follows, only asks.
  const auto s = static_cast<std::int64_t>(bytes.size()) - context_bytes;
  std::printf("Attention over %lld bytes of %s: %lld heads of size %lld, %d threads\n\n",
              static_cast<long long>(s), path.c_str(), static_cast<long long>(heads),
              static_cast<long long>(head_size), ein::num_threads());

  ein::manual_seed(1);
  const Tensor embedding = ein::randn({context_bytes, 256, channels}) / std::sqrt(channels);
  const Tensor w_match =
      ein::randn({channels, heads, head_size}) * std::sqrt(sharpness / head_size);
  const Tensor w_value = ein::randn({256, heads, head_size}) / std::sqrt(channels);

  const Tensor text = ein::from_vector(bytes);
  std::vector<Tensor> shifted;
  for (std::int64_t i = 0; i < context_bytes; ++i)
    shifted.push_back(text.at({ein::slice(i, i + s + 1)}));

  std::puts("Bytes to vectors, and those to queries, keys and values");
  const Tensor context = SHOW(one_hot(rearrange(shifted, "place s -> s place 1")));
  const Tensor x = SHOW(einsum(context, embedding, "s place byte, place byte c -> s c"));
  const Tensor before = x.at({ein::slice(0, s)}), here = x.at({ein::slice(1, s + 1)});
  const Tensor next = one_hot(rearrange(text.at({ein::slice(context_bytes)}), "s -> s 1"));
  const Tensor q = SHOW(einsum(here, w_match, "q c, c head d -> head q d"));
  const Tensor k = SHOW(einsum(before, w_match, "k c, c head d -> head k d"));
  const Tensor v = SHOW(einsum(next, w_value, "k byte, byte head d -> head k d"));

  std::puts("\nEach place attends to those before it: a causal mask and a softmax");
  const Tensor scores = SHOW(einsum(q, k, "head q d, head k d -> head q k"));
  const Tensor at = ein::arange(s);
  const Tensor seen = rearrange(at, "q -> q 1") >= at;
  const Tensor causal = SHOW(where(seen, scores, -INFINITY));
  const Tensor top = SHOW(reduce(causal, "head q k -> head q 1", "max"));
  const Tensor raised = SHOW(exp(causal - top));
  const Tensor sum = SHOW(reduce(raised, "head q k -> head q 1", "sum"));
  const Tensor weights = SHOW(raised / sum);

  std::puts("\nWhat they find there, and what byte that speaks for");
  const Tensor read = SHOW(einsum(weights, v, "head q k, head k d -> head q d"));
  const Tensor guess = SHOW(einsum(read, w_value, "head q d, byte head d -> q byte"));
  const Tensor look = SHOW(reduce(weights, "head q k -> q k", "mean"));
  std::printf("\n  in all: %.2f GFLOP in %.1f ms, %.1f GFLOP/s\n", total_flops / 1e9,
              total_seconds * 1e3, total_flops / total_seconds / 1e9);

  show_looks(bytes, look);
  show_guesses(bytes, guess);
  show_a_mistake(q, k);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 2) throw std::runtime_error("one text at most is wanted: attention [FILE]");
    return run(argc == 2 ? argv[1] : "/usr/share/common-licenses/GPL-3");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attention: %s\n", error.what());
    return 1;
  }
}
