// tokenizer.json, vocab.json and merges.txt.
#pragma once

#include <string>
#include <string_view>

#include "text/bpe.hpp"

namespace ein::text {

/// What a tokenizer.json says. `fail(what)` throws: where it is damaged or has what is not
/// supported.
BpeParts parts_of_json(std::string_view json, const Fail& fail);

std::string to_json(const Bpe& bpe);

}  // namespace ein::text
