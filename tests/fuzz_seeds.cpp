// Runs every fuzz target on the inputs of its folder, on each of them cut at every byte of its
// beginning, and on nothing. What fails ends the program.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#define TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
EIN_FUZZ_TARGETS
#undef TARGET

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

void run_on(Target target, const std::string& input) {
  target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

bool run(const char* name, Target target) {
  std::printf("%s\n", name);
  std::fflush(stdout);
  run_on(target, "");
  int seeds = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(EIN_FUZZ_SEEDS) + "/" + name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t size = 0; size < std::min<std::size_t>(input.size(), 200); ++size)
      run_on(target, input.substr(0, size));
    run_on(target, input);
    ++seeds;
  }
  if (seeds == 0) std::printf("%s has no seeds\n", name);
  return seeds > 0;
}

}  // namespace

int main() {
  bool all = true;
#define TARGET(name) all &= run(#name, fuzz_##name);
  EIN_FUZZ_TARGETS
#undef TARGET
  return all ? 0 : 1;
}
