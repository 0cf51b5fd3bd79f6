// Tokens, and the batches that a training loop takes from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <ein/tensor.hpp>

namespace ein {

/// How a raw file stores each token: little-endian, nothing before, between or after. u16 is
/// nanoGPT's.
enum class TokenType : std::uint8_t { u8, u16, i32, i64 };

struct TokensOptions {
  /// Map the file instead of reading it: it is read where it is first touched. Whoever writes to it
  /// in place meanwhile (save_tokens never does) changes the ids, and whoever truncates it makes an
  /// access fault, SIGBUS, which ends the process. So make this false for files that strangers can
  /// write to.
  bool mmap = true;
};

/// A sequence of token ids in memory or in a mapped file. Copies and parts share what they view.
class Tokens {
 public:
  /// None.
  Tokens() = default;
  /// Those of a one-dimensional tensor of u8, u16, i32 or i64, shared if it is contiguous. An Error
  /// of kind `rank` or `dtype` for another.
  explicit Tokens(const Tensor& ids);
  /// Opens a raw file. An Error of kind `file` when it cannot be read or ends within a token.
  static Tokens open(const std::string& path, TokenType type, TokensOptions options = {});
  /// Opens a one-dimensional .npy file of u1, u2, i4 or i8. Errors as load_npy and the constructor
  /// have.
  static Tokens open_npy(const std::string& path, TokensOptions options = {});

  std::int64_t size() const { return size_; }
  TokenType type() const { return type_; }
  /// The ids of [begin, end) as an i64 vector; an Error of kind `value` unless 0 <= begin <= end <=
  /// size.
  Tensor read(std::int64_t begin, std::int64_t end) const;
  /// The part [begin, end); errors as read has.
  Tokens part(std::int64_t begin, std::int64_t end) const;
  /// The smallest and the largest id; (0, -1) when there are none. Reads all of them.
  std::pair<std::int64_t, std::int64_t> range() const;
  /// Writes the ids of [begin, begin + out.size()) into `out`; errors as read has.
  void copy(std::int64_t begin, std::span<std::int64_t> out) const;

 private:
  void check(std::int64_t begin, std::int64_t end) const;

  std::shared_ptr<const std::byte> data_;
  std::int64_t size_ = 0;
  TokenType type_ = TokenType::u8;
};

/// Writes a raw file that Tokens::open maps, whole or not at all. An Error of kind `value` for an
/// id that `type` does not hold, `file` when writing fails.
void save_tokens(const std::string& path, const Tokens& tokens, TokenType type);

/// The first `fraction` of the tokens to train on, the rest to validate with.
struct Split {
  Tokens train, validation;
};
/// The first part has floor(size · fraction) tokens, the product taken in double precision as
/// nanoGPT takes it. An Error of kind `value` unless 0 <= fraction <= 1.
Split split(const Tokens& tokens, double fraction = 0.9);

/// Inputs and what should follow each: both i64 of shape (batch, length).
struct Batch {
  Tensor x, y;
};

/// Batch `number` of the sequence that `seed` stands for: for each row a start i, uniform over
/// [0, size - length), x = tokens[i : i + length] and y = tokens[i + 1 : i + 1 + length]. A pure
/// function of its arguments. An Error of kind `value` unless batch >= 1, length >= 1 and
/// length < size.
Batch get_batch(const Tokens& tokens, std::int64_t batch, std::int64_t length, std::uint64_t seed,
                std::uint64_t number);

/// Where batches come from, one after another.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch next() = 0;
  /// The number of the batch that next() returns. A source that starts there goes on as this one.
  virtual std::uint64_t position() const = 0;
};

/// get_batch with position as the number.
class BatchSampler : public BatchSource {
 public:
  /// Errors as get_batch has.
  BatchSampler(Tokens tokens, std::int64_t batch, std::int64_t length, std::uint64_t seed);
  Batch next() override;
  std::uint64_t position() const override { return position_; }
  void seek(std::uint64_t position) { position_ = position; }

 private:
  Tokens tokens_;
  std::int64_t batch_, length_;
  std::uint64_t seed_, position_ = 0;
};

/// Prepares the next two batches of another source in a thread of its own, while the caller works
/// on the last. One caller at a time.
class Prefetcher : public BatchSource {
 public:
  explicit Prefetcher(std::unique_ptr<BatchSource> source);
  explicit Prefetcher(BatchSampler sampler);
  /// Waits for the batch in preparation, if any. In a child of fork(), where the thread is not,
  /// next() is an Error.
  ~Prefetcher() override;
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The source's batches in its order, then whatever exception ended them, again and again.
  Batch next() override;
  /// That of the batches handed out; those which are only prepared do not count.
  std::uint64_t position() const override { return position_; }

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
  std::uint64_t position_;
};

}  // namespace ein
