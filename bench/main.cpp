// usage: ein_bench [--filter TEXT] [--rounds N] [--json]
// Exits with 1 where a result is wrong.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "harness.hpp"

int main(int argc, char** argv) {
  bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--filter" && value) {
      options.filter = argv[++i];
    } else if (argument == "--rounds" && value && std::atoi(value) > 0) {
      options.rounds = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: ein_bench [--filter TEXT] [--rounds N] [--json]\n");
      return 2;
    }
  }
  bench::Bench run(options);
  bench::contractions(run);
  bench::memory(run);
  bench::calls(run);
  bench::lengths(run);
  bench::vmaps(run);
  return run.finish() ? 0 : 1;
}
