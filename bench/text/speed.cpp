// Times of byte-level BPE, for bench/text/tokenizers.py: the seconds of each run, one a line.
//
// usage: ein_text_bench RUNS THREADS train VOCABULARY TEXT
//        ein_text_bench RUNS THREADS encode|lines|decode TOKENIZER.json TEXT
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <ein/parallel.hpp>
#include <ein/text.hpp>

namespace {

template <class F>
void time(int runs, const F& f) {
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    std::printf("%.6f\n",
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

int run(int argc, char** argv) {
  if (argc != 6) return 2;
  const int runs = std::atoi(argv[1]);
  ein::set_num_threads(std::atoi(argv[2]));
  const std::string_view what = argv[3];
  const std::string path = argv[5];
  if (what == "train") {
    const ein::BpeTrainOptions options{.vocabulary_size = std::atoll(argv[4]),
                                       .special_tokens = {"<|endoftext|>"}};
    time(runs, [&] { ein::train_bpe_on_files(std::span(&path, 1), options); });
    return 0;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ein::BpeTokenizer tokenizer = ein::load_bpe(argv[4]);
  const auto ids = tokenizer.encode(text);
  if (what == "encode")
    time(runs, [&] { tokenizer.encode(text); });
  else if (what == "lines")
    time(runs, [&] {
      for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        tokenizer.encode(std::string_view(text).substr(at, end - at));
      }
    });
  else
    time(runs, [&] { tokenizer.decode(ids); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
