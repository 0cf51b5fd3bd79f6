// Names of axes of patterns that layers put together.
#pragma once

#include <string>
#include <vector>

namespace ein::nn {

using Words = std::vector<std::string>;

/// "b s c" of {"b", "s", "c"}.
inline std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace ein::nn
