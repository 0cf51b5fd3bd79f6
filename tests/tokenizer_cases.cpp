// Byte-level BPE beside another library, on more texts than a test has.
//
// usage: ein_tokenizer_cases TOKENIZER.json CASES.json
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>

#include "support/tokenizer_cases.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::ifstream file(argv[2]);
    const ein::test::CaseResults results =
        ein::test::compare_cases(ein::load_bpe(argv[1]), nlohmann::json::parse(file));
    for (std::size_t i = 0; i < std::min<std::size_t>(10, results.differences.size()); ++i)
      std::printf("%s\n", results.differences[i].c_str());
    std::printf("%zu texts, %zu differences\n", results.texts, results.differences.size());
    return results.differences.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
