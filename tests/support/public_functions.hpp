// The functions that the public headers declare, read from their texts: what a list of calls has to
// be complete.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein::test {

/// A header without comments, strings and what stands in a namespace `detail`.
inline std::string public_text(const std::string& path) {
  const std::regex ignored(R"re(//[^\n]*|"(\\.|[^"\\\n])*")re");
  const std::string text = std::regex_replace(read_bytes(path), ignored, "");
  std::string left;
  int depth = 0, of_detail = 0;  // of braces; 0: not in one
  for (std::size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '{';
    depth -= text[at] == '}';
    if (of_detail == 0 && text.compare(at, 18, "namespace detail {") == 0) of_detail = depth + 1;
    if (of_detail == 0) left += text[at];
    if (of_detail > depth && text[at] == '}') of_detail = 0;
  }
  return left;
}

/// The names of the functions outside of classes whose result is declared as a Tensor, a list of
/// them, or a struct whose first member is one; with the header that has them.
inline std::map<std::string, std::string> functions_that_return_tensors() {
  namespace fs = std::filesystem;
  const fs::path include = test::project / "include" / "ein";
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::directory_iterator(include)) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string text = public_text(entry.path().string());
    std::string results = "Tensor|std::vector<Tensor>";
    const std::regex structs(R"(\nstruct (\w+) \{\n  Tensor \w)");
    for (std::sregex_iterator at(text.begin(), text.end(), structs), end; at != end; ++at)
      results += "|" + (*at)[1].str();
    const std::regex functions("\n(inline )?(" + results + ") (\\w+)\\(");
    for (std::sregex_iterator at(text.begin(), text.end(), functions), end; at != end; ++at)
      found[(*at)[3]] = entry.path().filename().string();
  }
  return found;
}

}  // namespace ein::test
