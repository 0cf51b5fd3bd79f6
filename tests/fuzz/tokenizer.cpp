// Any bytes as a saved tokenizer and as a text: either an ein::Error of kind `value`, or a
// tokenizer that saves as it was loaded and gives back every text of its characters.
#include <memory>
#include <vector>

#include <ein/tokenizer.hpp>

#include "fuzz/fuzz.hpp"

using namespace ein;
using namespace ein::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const Tokenizer& tokenizer, const std::string& of) {
    value_or_error(ErrorKind::value, 0, [&] {
      const std::vector<std::int32_t> ids = tokenizer.encode(of);
      for (const std::int32_t id : ids)
        require(id >= 0 && id < tokenizer.vocabulary_size(), "an id outside the vocabulary");
      require(tokenizer.decode(ids) == of, "another text after a round trip");
      return 0;
    });
  };
  if (const auto loaded = value_or_error(ErrorKind::value, std::unique_ptr<Tokenizer>(),
                                         [&] { return load_tokenizer(text); })) {
    const std::string saved = loaded->save();
    require(load_tokenizer(saved)->save() == saved, "another tokenizer after a round trip");
    if (!saved.starts_with('{')) check(*loaded, text);  // fuzz/bpe.cpp checks byte-level BPE
  }
  if (const auto made = value_or_error(ErrorKind::value, std::unique_ptr<CharTokenizer>(),
                                       [&] { return std::make_unique<CharTokenizer>(text); })) {
    require(load_tokenizer(made->save())->save() == made->save(),
            "another tokenizer after a round trip");
    require(made->decode(made->encode(text)) == text,
            "a text that is not that of its own characters");
  }
  check(ByteTokenizer(), text);
  return 0;
}
