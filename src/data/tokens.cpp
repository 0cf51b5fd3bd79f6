#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/npy.hpp>

#include "graph/domain.hpp"
#include "io/elements.hpp"
#include "io/file.hpp"

namespace ein {
namespace {

static_assert(std::endian::native == std::endian::little, "raw token files are little-endian");

/// Calls `f` with a std::type_identity of the type's C++ integer.
template <class F>
decltype(auto) visit_tokens(TokenType type, F&& f) {
  switch (type) {
    case TokenType::u8:
      return f(std::type_identity<std::uint8_t>{});
    case TokenType::u16:
      return f(std::type_identity<std::uint16_t>{});
    case TokenType::i32:
      return f(std::type_identity<std::int32_t>{});
    case TokenType::i64:
      break;
  }
  return f(std::type_identity<std::int64_t>{});
}

std::int64_t size_of_token(TokenType type) {
  return visit_tokens(type,
                      []<class T>(std::type_identity<T>) -> std::int64_t { return sizeof(T); });
}

TokenType type_of(const Tensor& ids) {
  switch (ids.dtype()) {
    case DType::u8:
      return TokenType::u8;
    case DType::u16:
      return TokenType::u16;
    case DType::i32:
      return TokenType::i32;
    case DType::i64:
      return TokenType::i64;
    default:
      throw Error(ErrorKind::dtype,
                  "tokens are u8, u16, i32 or i64, not " + std::string(name(ids.dtype())));
  }
}

constexpr std::int64_t strip = 4096;  // tokens that are converted together

}  // namespace

Tokens::Tokens(const Tensor& ids) : type_(type_of(ids)) {
  if (ids.rank() != 1) {
    throw Error(ErrorKind::rank,
                "tokens are one-dimensional, not of shape " + ids.shape().to_string());
  }
  const Tensor row = ids.contiguous();
  data_ = {row.storage(), static_cast<const std::byte*>(row.raw_data())};
  size_ = row.numel();
}

Tokens Tokens::open(const std::string& path, TokenType type, TokensOptions options) {
  const io::InputFile file("Tokens::open", path);
  const auto element = static_cast<std::uint64_t>(size_of_token(type));
  if (file.size() % element != 0) {
    file.fail("has " + std::to_string(file.size()) +
              " bytes, which is no whole number of tokens of " + std::to_string(element) +
              " bytes");
  }
  Tokens tokens;
  tokens.type_ = type;
  tokens.size_ = static_cast<std::int64_t>(file.size() / element);
  if (tokens.size_ == 0) return tokens;
  const auto storage =
      io::read_elements(file, options.mmap ? file.map() : nullptr, 0, file.size(), DType::u8);
  tokens.data_ = {storage, storage->data()};
  return tokens;
}

Tokens Tokens::open_npy(const std::string& path, TokensOptions options) {
  return Tokens(load_npy(path, {.mmap = options.mmap}));
}

void Tokens::check(std::int64_t begin, std::int64_t end) const {
  if (begin >= 0 && begin <= end && end <= size_) return;
  throw Error(ErrorKind::value, "the tokens from " + std::to_string(begin) + " to " +
                                    std::to_string(end) + " do not exist; there are " +
                                    std::to_string(size_));
}

void Tokens::copy(std::int64_t begin, std::span<std::int64_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (begin < 0 || begin > size_ || count > size_ - begin) {
    throw Error(ErrorKind::value, std::to_string(count) + " tokens from " + std::to_string(begin) +
                                      " on do not exist; there are " + std::to_string(size_));
  }
  if (count == 0) return;
  visit_tokens(type_, [&]<class T>(std::type_identity<T>) {
    const T* first = reinterpret_cast<const T*>(data_.get()) + begin;
    std::copy(first, first + count, out.begin());
  });
}

Tensor Tokens::read(std::int64_t begin, std::int64_t end) const {
  check(begin, end);
  const auto count = static_cast<std::size_t>(end - begin);
  Tensor ids(Storage::allocate(count * sizeof(std::int64_t)), DType::i64, {end - begin}, {1});
  copy(begin, {ids.data<std::int64_t>(), count});
  return ids;
}

Tokens Tokens::part(std::int64_t begin, std::int64_t end) const {
  check(begin, end);
  Tokens tokens = *this;
  tokens.size_ = end - begin;
  if (data_) tokens.data_ = {data_, data_.get() + begin * size_of_token(type_)};
  return tokens;
}

std::pair<std::int64_t, std::int64_t> Tokens::range() const {
  if (size_ == 0) return {0, -1};
  return visit_tokens(type_, [&]<class T>(std::type_identity<T>) {
    const T* first = reinterpret_cast<const T*>(data_.get());
    const auto [low, high] = std::minmax_element(first, first + size_);
    return std::pair<std::int64_t, std::int64_t>(*low, *high);
  });
}

void save_tokens(const std::string& path, const Tokens& tokens, TokenType type) {
  io::ReplacementFile file("save_tokens", path);
  std::vector<std::int64_t> wide(strip);
  visit_tokens(type, [&]<class T>(std::type_identity<T>) {
    std::vector<T> narrow(strip);
    for (std::int64_t begin = 0; begin < tokens.size(); begin += strip) {
      const auto count = static_cast<std::size_t>(std::min(strip, tokens.size() - begin));
      tokens.copy(begin, std::span(wide).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        narrow[i] = static_cast<T>(wide[i]);
        if (narrow[i] == wide[i]) continue;
        throw Error(ErrorKind::value, "save_tokens: token " + std::to_string(wide[i]) + " at " +
                                          std::to_string(begin + static_cast<std::int64_t>(i)) +
                                          " is not between " +
                                          std::to_string(std::numeric_limits<T>::min()) + " and " +
                                          std::to_string(std::numeric_limits<T>::max()));
      }
      file.write(narrow.data(), count * sizeof(T));
    }
  });
  file.commit();
}

Split split(const Tokens& tokens, double fraction) {
  require_in(ein::fraction, "split", "fraction", fraction);
  // The product may round up to a double above the size, far beyond 2^53 tokens only.
  const auto first = std::min(
      static_cast<std::int64_t>(static_cast<double>(tokens.size()) * fraction), tokens.size());
  return {tokens.part(0, first), tokens.part(first, tokens.size())};
}

}  // namespace ein
