// The spelling of bytes in the files of byte-level BPE (GPT-2's bytes_to_unicode): 33 to 126, 161
// to 172 and 174 to 255 as the characters of these numbers, the others, in their order, as U+0100,
// U+0101 and so on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ein::text {

std::string spelled(std::string_view bytes);
/// None where a character stands for no byte. `spelling` is UTF-8.
std::optional<std::string> bytes_of(std::string_view spelling);

}  // namespace ein::text
