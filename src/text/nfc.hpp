// Normalization Form C (Unicode Standard Annex 15): a letter and its marks as one character.
#pragma once

#include <string>
#include <string_view>

#include "text/character.hpp"

namespace ein::text {

/// What is normalised of a text that may go on, and how many of its bytes that was.
struct Normalized {
  std::string text;
  std::size_t bytes = 0;
};

/// NFC of a text. Bytes that are no UTF-8 stay as they are, and nothing is composed across them. If
/// the text goes on (`is_last` false), what the rest may still change is left for the next call.
Normalized nfc(std::string_view text, bool is_last);

/// Whether NFC changes nothing, seen from the bytes alone: none is of a character from U+0300 on.
bool is_plainly_nfc(std::string_view text);

}  // namespace ein::text
