// Token files, splits, and the batches that are drawn from them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/npy.hpp>

#include "support/scratch.hpp"

namespace ein {
namespace {

using test::read_bytes;
using test::write_bytes;

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::int64_t> ids_of(const Tokens& tokens) {
  return tokens.read(0, tokens.size()).to_vector<std::int64_t>();
}

/// 0, 1, ... n - 1: a token is its own position.
Tokens counting(std::int64_t n) { return Tokens(arange(n)); }

class DataTest : public testing::Test {
 protected:
  template <class F>
  void expect_error(ErrorKind kind, const std::string& reason, F&& f) {
    try {
      f();
      ADD_FAILURE() << "no error: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos)
          << "wanted: " << reason << "\ngot: " << error.what();
    }
  }

  test::ScratchDirectory scratch_;
};

// --- Files ---

TEST_F(DataTest, RawInt32OneToTen) {
  const std::string path = scratch_.path("ten.bin");
  std::vector<std::int32_t> values(10);
  std::iota(values.begin(), values.end(), 1);
  write_bytes(path, raw(values));
  const Tokens mapped = Tokens::open(path, TokenType::i32);
  EXPECT_EQ(mapped.size(), 10);
  EXPECT_EQ(ids_of(mapped), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));

  std::filesystem::remove(path);
  save_tokens(path, mapped, TokenType::i32);
  EXPECT_EQ(read_bytes(path), raw(values));
}

TEST_F(DataTest, EveryRawType) {
  const std::string path = scratch_.path("raw.bin");
  write_bytes(path,
              std::string("\x00\x01\xff\x7f\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x80", 16));
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(ids_of(Tokens::open(path, TokenType::u8)),
            (Ids{0, 1, 255, 127, 254, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 128}));
  EXPECT_EQ(ids_of(Tokens::open(path, TokenType::u16)),
            (Ids{256, 32767, 65534, 65535, 65535, 65535, 0, 32768}));
  EXPECT_EQ(ids_of(Tokens::open(path, TokenType::i32)), (Ids{0x7fff0100, -2, -1, INT32_MIN}));
  EXPECT_EQ(ids_of(Tokens::open(path, TokenType::i64)),
            (Ids{-0x180010000 + 0x100, -0x7fffffff00000001}));
}

TEST_F(DataTest, EveryUint16IsKept) {
  const std::string path = scratch_.path("all.bin");
  std::vector<std::uint16_t> values(65536);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  write_bytes(path, raw(values));
  const Tokens tokens = Tokens::open(path, TokenType::u16);
  ASSERT_EQ(tokens.size(), 65536);
  EXPECT_EQ(ids_of(tokens), ids_of(counting(65536)));
  EXPECT_EQ(tokens.range(), (std::pair<std::int64_t, std::int64_t>(0, 65535)));
  const std::string copy = scratch_.path("copy.bin");
  save_tokens(copy, counting(65536), TokenType::u16);
  EXPECT_EQ(read_bytes(copy), raw(values));
}

TEST_F(DataTest, NpyFiles) {
  const std::string path = scratch_.path("x.npy");
  for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
    save_npy(path, arange(3, 9).to(dtype));
    EXPECT_EQ(ids_of(Tokens::open_npy(path)), (std::vector<std::int64_t>{3, 4, 5, 6, 7, 8}));
  }
  save_npy(path, zeros({0}, DType::i32));
  EXPECT_EQ(Tokens::open_npy(path).size(), 0);
  save_npy(path, zeros({2, 2}, DType::i32));
  expect_error(ErrorKind::rank, "not of shape (2, 2)", [&] { Tokens::open_npy(path); });
  for (const DType dtype : {DType::f32, DType::boolean}) {
    save_npy(path, zeros({2}, dtype));
    expect_error(ErrorKind::dtype, "u8, u16, i32 or i64", [&] { Tokens::open_npy(path); });
  }
}

TEST_F(DataTest, TensorsAreSharedOrCopied) {
  const Tensor ids = arange(6);
  const Tokens tokens(ids);
  ids[2] = 77;
  EXPECT_EQ(ids_of(tokens), (std::vector<std::int64_t>{0, 1, 77, 3, 4, 5}));
  EXPECT_EQ(ids_of(Tokens(ids.at({slice(1, 6, 2)}))), (std::vector<std::int64_t>{1, 3, 5}));
}

TEST_F(DataTest, FilesThatHoldNoTokens) {
  const std::string path = scratch_.path("x.bin");
  write_bytes(path, "12345");
  for (const TokenType type : {TokenType::u16, TokenType::i32, TokenType::i64}) {
    expect_error(ErrorKind::file, "has 5 bytes", [&] { Tokens::open(path, type); });
  }
  write_bytes(path, "");
  const Tokens none = Tokens::open(path, TokenType::u16);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.range(), (std::pair<std::int64_t, std::int64_t>(0, -1)));
  EXPECT_EQ(none.read(0, 0).shape(), (Shape{0}));
  EXPECT_EQ(none.part(0, 0).size(), 0);
  expect_error(ErrorKind::file, "cannot be opened",
               [&] { Tokens::open(scratch_.path("missing"), TokenType::u8); });
  expect_error(ErrorKind::file, "not a regular file",
               [&] { Tokens::open(scratch_.path().string(), TokenType::u8); });
}

TEST_F(DataTest, MappedTokensOutliveTheFile) {
  const std::string path = scratch_.path("x.bin");
  save_tokens(path, counting(1000), TokenType::u16);
  const Tokens middle = Tokens::open(path, TokenType::u16).part(100, 900).part(10, 20);
  save_tokens(path, counting(3), TokenType::u16);
  std::filesystem::remove(path);
  EXPECT_EQ(ids_of(middle),
            (std::vector<std::int64_t>{110, 111, 112, 113, 114, 115, 116, 117, 118, 119}));
}

TEST_F(DataTest, SavingChecksEveryToken) {
  const std::string path = scratch_.path("x.bin");
  save_tokens(path, counting(3), TokenType::u8);
  const Tensor ids = arange(10'000);
  ids[9'999] = 65536;
  expect_error(ErrorKind::value, "token 65536 at 9999 is not between 0 and 65535",
               [&] { save_tokens(path, Tokens(ids), TokenType::u16); });
  ids[5'000] = -1;
  expect_error(ErrorKind::value, "token -1 at 5000",
               [&] { save_tokens(path, Tokens(ids), TokenType::u16); });
  expect_error(ErrorKind::value, "token 256 at 256 is not between 0 and 255",
               [&] { save_tokens(path, Tokens(ids), TokenType::u8); });
  EXPECT_EQ(read_bytes(path), std::string("\0\1\2", 3));
  EXPECT_EQ(scratch_.listing(), std::vector<std::string>{"x.bin"});
}

TEST_F(DataTest, PartsOutside) {
  const Tokens tokens = counting(5);
  using Range = std::pair<std::int64_t, std::int64_t>;
  for (const auto& [begin, end] : {Range{-1, 2}, {3, 2}, {0, 6}, {6, 6}, {INT64_MIN, INT64_MAX}}) {
    expect_error(ErrorKind::value, "do not exist", [&, b = begin, e = end] { tokens.read(b, e); });
    expect_error(ErrorKind::value, "do not exist", [&, b = begin, e = end] { tokens.part(b, e); });
  }
  std::vector<std::int64_t> three(3);
  for (const std::int64_t begin :
       {std::int64_t{-1}, std::int64_t{3}, std::int64_t{6}, INT64_MAX, INT64_MIN}) {
    expect_error(ErrorKind::value, "3 tokens from", [&] { tokens.copy(begin, three); });
  }
}

// --- Splits ---

TEST_F(DataTest, NinetyPerCentAsNanoGptCutsThem) {
  // Python: int(n * 0.9). The last is tinyshakespeare's.
  const std::pair<std::int64_t, std::int64_t> cuts[] = {
      {0, 0},   {1, 0},    {2, 1},
      {9, 8},   {10, 9},   {11, 9},
      {70, 63}, {100, 90}, {1'115'394, 1'003'854}};
  for (const auto& [size, first] : cuts) {
    const Split parts = split(counting(size));
    EXPECT_EQ(parts.train.size(), first);
    EXPECT_EQ(parts.validation.size(), size - first);
    if (first < size) {
      EXPECT_EQ(parts.validation.read(0, 1).item<std::int64_t>(), first);
    }
  }
  EXPECT_EQ(split(counting(7), 0).train.size(), 0);
  EXPECT_EQ(split(counting(7), 1).train.size(), 7);
  for (const double fraction : {-0.1, 1.1, std::nan("")}) {
    expect_error(ErrorKind::value, "0 <= fraction <= 1 is wanted",
                 [&] { split(counting(7), fraction); });
  }
}

// --- Batches ---

TEST_F(DataTest, BatchesAreTokensAndTheirSuccessors) {
  const Tokens tokens(arange(0, 10, 1).to(DType::i32));
  const Batch batch = get_batch(tokens, 2, 4, 0, 0);
  EXPECT_EQ(batch.x.shape(), (Shape{2, 4}));
  EXPECT_EQ(batch.y.shape(), (Shape{2, 4}));
  EXPECT_EQ(batch.x.dtype(), DType::i64);
  EXPECT_EQ(batch.y.dtype(), DType::i64);
  const auto x = batch.x.to_vector<std::int64_t>(), y = batch.y.to_vector<std::int64_t>();
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(x[4 * row + i], x[4 * row] + static_cast<std::int64_t>(i));
      EXPECT_EQ(y[4 * row + i], x[4 * row + i] + 1);
    }
  }
}

TEST_F(DataTest, StartsAreThoseOfPhilox) {
  // Computed in Python from the paper's definition: floor(n * (words 1, 0) / 2^64) for the counter
  // (2^63 + row, number) under the key `seed`, n = 1003854 - 64.
  struct Row {
    std::uint64_t seed, number;
    std::vector<std::int64_t> starts;
  };
  const Row rows[] = {
      {0, 0, {318593, 963264, 900668, 35814}},
      {0, 1, {460163, 126516, 328397, 826796}},
      {1337, 0, {331216, 766056, 788437, 278114}},
      {9223372036854775813u, std::uint64_t{1} << 40, {452496, 313823, 635095, 516627}},
  };
  const Tokens tokens = counting(1'003'854);
  for (const auto& [seed, number, starts] : rows) {
    const Batch batch = get_batch(tokens, 4, 64, seed, number);
    EXPECT_EQ(batch.x.at({every, 0}).to_vector<std::int64_t>(), starts) << seed << " " << number;
  }
}

TEST_F(DataTest, StartsAreUniform) {
  constexpr std::int64_t size = 14, length = 4, places = size - length, draws = 20'000;
  std::vector<std::int64_t> counts(places);
  for (std::uint64_t number = 0; number < draws / 20; ++number) {
    for (const auto start : get_batch(counting(size), 20, length, 5, number)
                                .x.at({every, 0})
                                .to_vector<std::int64_t>()) {
      ASSERT_GE(start, 0);
      ASSERT_LT(start, places);
      ++counts[static_cast<std::size_t>(start)];
    }
  }
  double chi_squared = 0;
  for (const std::int64_t count : counts) {
    const double expected = static_cast<double>(draws) / places;
    chi_squared += (static_cast<double>(count) - expected) *
                   (static_cast<double>(count) - expected) / expected;
  }
  EXPECT_LT(chi_squared, 27.88);  // 9 degrees of freedom: exceeded once in 1,000
}

// CS336, assignment 1: 1,000 batches of 32 rows of 7 tokens, of 0 ... 99.
TEST_F(DataTest, StartsAreUniformAsTheCourseTestsIt) {
  const Tokens tokens(arange(100));
  std::vector<int> counts(93);  // starts are 0 ... 92
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const Batch batch = get_batch(tokens, 32, 7, 336, number);
    const auto x = batch.x.to_vector<std::int64_t>(), y = batch.y.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] + 1);
    for (std::size_t row = 0; row < 32; ++row) ++counts.at(static_cast<std::size_t>(x[7 * row]));
  }
  const double mean = 32000.0 / 93, deviation = std::sqrt(mean * (1 - 1.0 / 93));
  for (const int count : counts) EXPECT_NEAR(count, mean, 5 * deviation);
}

TEST_F(DataTest, TheShortestFileHasOneStart) {
  const Batch batch = get_batch(counting(5), 3, 4, 1, 2);
  for (std::int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(batch.x[row].to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(batch.y[row].to_vector<int>(), (std::vector<int>{1, 2, 3, 4}));
  }
  expect_error(ErrorKind::value, "sequences of length 5 need at least 5 + 1 tokens; there are 5",
               [] { get_batch(counting(5), 1, 5, 0, 0); });
  expect_error(ErrorKind::value, "there are 0", [] { BatchSampler(Tokens(), 1, 1, 0); });
  expect_error(ErrorKind::value, "batch is 0", [] { BatchSampler(counting(5), 0, 1, 0); });
  expect_error(ErrorKind::value, "length is 0", [] { BatchSampler(counting(5), 1, 0, 0); });
  expect_error(ErrorKind::overflow, "2^63 - 1", [] { get_batch(counting(5), INT64_MAX, 4, 0, 0); });
}

TEST_F(DataTest, EveryTypeGivesTheSameBatches) {
  const Tokens ids = counting(200);
  const Batch expected = get_batch(ids, 3, 7, 1, 1);
  for (const TokenType type : {TokenType::u8, TokenType::u16, TokenType::i32, TokenType::i64}) {
    const std::string path = scratch_.path("x.bin");
    save_tokens(path, ids, type);
    const Batch batch = get_batch(Tokens::open(path, type), 3, 7, 1, 1);
    EXPECT_EQ(batch.x.to_vector<int>(), expected.x.to_vector<int>());
    EXPECT_EQ(batch.y.to_vector<int>(), expected.y.to_vector<int>());
  }
}

TEST_F(DataTest, SamplersResumeWhereverTheyWere) {
  const Tokens tokens = counting(100'000);
  BatchSampler sampler(tokens, 4, 8, 42);
  std::vector<std::vector<std::int64_t>> run;
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sampler.position(), i);
    run.push_back(sampler.next().x.to_vector<std::int64_t>());
  }
  EXPECT_EQ((std::set<std::vector<std::int64_t>>(run.begin(), run.end())).size(), 20u);
  for (const std::uint64_t from : {0, 7, 19, 3}) {
    BatchSampler resumed(tokens, 4, 8, 42);
    resumed.seek(from);
    for (std::size_t i = from; i < 20; ++i)
      EXPECT_EQ(resumed.next().x.to_vector<std::int64_t>(), run[i]);
  }
  BatchSampler other(tokens, 4, 8, 43);
  EXPECT_NE(other.next().x.to_vector<std::int64_t>(), run[0]);
}

}  // namespace
}  // namespace ein
