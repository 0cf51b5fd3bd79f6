// Assignment 1, section 2: Unicode, training of byte-pair encoding, encoding and decoding.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <ein/text.hpp>

#include "stories.hpp"

void unicode() {
  const std::string greeting = "hello! こんにちは!";
  std::printf("%s: %zu characters, %zu bytes\n", greeting.c_str(),
              ein::CharTokenizer(greeting).encode(greeting).size(),
              ein::ByteTokenizer().encode(greeting).size());
  // C0 80 are two bytes that are no character in UTF-8; each is decoded to U+FFFD.
  const ein::BpeTokenizer bytes = ein::train_bpe("", {.vocabulary_size = 256});
  std::printf("C0 80 is decoded to %s\n", bytes.decode(bytes.encode("\xc0\x80")).c_str());
}

/// Most frequent pair first; of pairs that are as frequent the greatest, byte by byte.
void example_of_the_handout() {
  const std::pair<std::string, std::int64_t> words[] = {
      {"low", 5}, {"lower", 2}, {"widest", 3}, {"newest", 6}};
  std::printf("merges:");
  for (const auto& [a, b] : ein::train_bpe(words, {.vocabulary_size = 256 + 12}).merges())
    std::printf(" [%s %s]", a.c_str(), b.c_str());
  std::printf("\nnewest, after 6 merges:");
  const ein::BpeTokenizer six = ein::train_bpe(words, {.vocabulary_size = 256 + 6});
  for (const std::int32_t id : six.encode("newest"))
    std::printf(" [%s]", six.decode({&id, 1}).c_str());
  std::printf("\n");
}

double seconds_of(const auto& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void tokenizer_of_stories() {
  const std::string text = stories(4000), others = stories(4000, 2);
  ein::BpeTokenizer tokenizer = ein::train_bpe("", {.vocabulary_size = 256});
  const double training = seconds_of([&] {
    tokenizer =
        ein::train_bpe(text, {.vocabulary_size = 10000, .special_tokens = {"<|endoftext|>"}});
  });
  std::string longest;
  for (const auto& [a, b] : tokenizer.merges())
    if ((a + b).size() > longest.size()) longest = a + b;
  std::printf("%zu merges until no pair is left; the longest token is \"%s\"\n",
              tokenizer.merges().size(), longest.c_str());
  std::vector<std::int32_t> ids;
  const double encoding = seconds_of([&] { ids = tokenizer.encode(others); });
  std::printf("%.2f bytes a token; ids below %lld fit in 16 bits\n",
              static_cast<double>(others.size()) / static_cast<double>(ids.size()),
              static_cast<long long>(tokenizer.vocabulary_size()));
  // In pieces, as a file that memory does not hold is read.
  ein::BpeStream stream(tokenizer);
  std::vector<std::int32_t> streamed;
  for (std::size_t at = 0; at < others.size(); at += 1000)
    stream.add(std::string_view(others).substr(at, 1000), streamed);
  stream.finish(streamed);
  std::printf("in pieces of 1,000 bytes: %s ids; decoded: %s text\n",
              streamed == ids ? "the same" : "other",
              tokenizer.decode(ids) == others ? "the same" : "another");
  const double rate = static_cast<double>(others.size()) / encoding;
  std::printf("trained in %.3f s; %.1f MB/s, so the Pile (825 GB) takes %.1f hours\n", training,
              rate / 1e6, 825e9 / rate / 3600);
}

int main() {
  unicode();
  example_of_the_handout();
  tokenizer_of_stories();
}
