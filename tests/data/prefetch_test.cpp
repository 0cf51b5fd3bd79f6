// The prefetching thread: the same batches in the same order, an exact position, and clean ends.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/error.hpp>

namespace ein {
namespace {

BatchSampler sampler(std::uint64_t position = 0) {
  BatchSampler result(Tokens(arange(5000)), 3, 16, 9);
  result.seek(position);
  return result;
}

std::vector<std::int64_t> values(const Batch& batch) {
  auto all_values = batch.x.to_vector<std::int64_t>();
  const auto y = batch.y.to_vector<std::int64_t>();
  all_values.insert(all_values.end(), y.begin(), y.end());
  return all_values;
}

/// Batches that hold their number, until `end`, where it throws. Counts what was asked of it.
class Counter : public BatchSource {
 public:
  Counter(std::uint64_t end, std::atomic<int>& made) : end_(end), made_(made) {}
  Batch next() override {
    if (position_ == end_) throw Error(ErrorKind::file, "the end at " + std::to_string(end_));
    ++made_;
    const Tensor number = full({1, 1}, position_++, DType::i64);
    return {number, number};
  }
  std::uint64_t position() const override { return position_; }

 private:
  std::uint64_t end_, position_ = 0;
  std::atomic<int>& made_;
};

TEST(PrefetchTest, TheSameBatchesInTheSameOrder) {
  BatchSampler expected = sampler();
  Prefetcher prefetcher(sampler());
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(prefetcher.position(), i);
    EXPECT_EQ(values(prefetcher.next()), values(expected.next()));
  }
}

TEST(PrefetchTest, ResumesFromItsPosition) {
  BatchSampler expected = sampler();
  std::uint64_t position = 0;
  for (int part = 0; part < 20; ++part) {
    Prefetcher prefetcher(sampler(position));
    EXPECT_EQ(prefetcher.position(), position);
    for (int i = 0; i < part % 5; ++i)
      EXPECT_EQ(values(prefetcher.next()), values(expected.next()));
    position = prefetcher.position();
    EXPECT_EQ(position, expected.position());
  }
}

TEST(PrefetchTest, AtMostTwoAreReady) {
  std::atomic<int> made{0};
  Prefetcher prefetcher(std::make_unique<Counter>(1'000'000, made));
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(prefetcher.next().x.item<std::int64_t>(), i);
    // Those handed out, two in the queue, and none beyond it.
    EXPECT_LE(made, i + 3);
  }
}

TEST(PrefetchTest, ExceptionsComeAfterTheBatchesBeforeThem) {
  for (const std::uint64_t end : {0, 1, 2, 3, 10}) {
    std::atomic<int> made{0};
    Prefetcher prefetcher(std::make_unique<Counter>(end, made));
    for (std::uint64_t i = 0; i < end; ++i) {
      EXPECT_EQ(prefetcher.next().y.item<std::int64_t>(), static_cast<std::int64_t>(i));
    }
    for (int again = 0; again < 3; ++again) {
      try {
        prefetcher.next();
        ADD_FAILURE() << "no error at " << end;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::file);
        EXPECT_EQ(error.what(), "the end at " + std::to_string(end));
      }
      EXPECT_EQ(prefetcher.position(), end);
    }
  }
}

TEST(PrefetchTest, EndsAtAnyMoment) {
  for (int taken = 0; taken < 300; ++taken) {
    std::atomic<int> made{0};
    Prefetcher prefetcher(std::make_unique<Counter>(static_cast<std::uint64_t>(taken % 7), made));
    for (int i = 0; i < taken % 5 && i < taken % 7; ++i) prefetcher.next();
  }
  EXPECT_THROW(Prefetcher(std::unique_ptr<BatchSource>()), Error);
}

TEST(PrefetchTest, BatchesBelongToTheCaller) {
  Prefetcher prefetcher(sampler());
  BatchSampler expected = sampler();
  std::vector<Batch> held;
  for (int i = 0; i < 10; ++i) {
    held.push_back(prefetcher.next());
    held.back().x.fill(-1);  // writes where the thread wrote
  }
  for (const Batch& batch : held) {
    EXPECT_EQ(batch.x.to_vector<std::int64_t>(), std::vector<std::int64_t>(48, -1));
    EXPECT_EQ(batch.y.to_vector<std::int64_t>(), expected.next().y.to_vector<std::int64_t>());
  }
}

}  // namespace
}  // namespace ein
