// What a limit allows, and what it refuses, takes little time.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>
#include <ein/npy.hpp>
#include <ein/plan.hpp>
#include <ein/safetensors.hpp>
#include "support/sanitized.hpp"
#include "support/scratch.hpp"
#ifdef EIN_COMMAND
#include "support/command.hpp"
#endif

namespace ein {
namespace {

/// Tests share the processor with others, and where a sanitizer watches everything takes longer.
const double slower = test::is_sanitized() ? 20 : 4;

/// Processor time of this process and of children that have ended, which others do not lengthen.
double processor_seconds() {
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC + seconds(children.ru_utime) +
         seconds(children.ru_stime);
}

std::string repeated(int n, const std::function<std::string(int)>& word, const char* between) {
  std::string text;
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : between) + word(i);
  return text;
}
std::string axis(int i) { return "a" + std::to_string(i); }
std::string axes(int n) { return repeated(n, axis, " "); }

constexpr int most_bytes = 131072;  // of a pattern
constexpr int most_axes = 1024;

std::vector<Tensor> many(int n) {
  return std::vector<Tensor>(static_cast<std::size_t>(n), ones({2}));
}
Tensor of_most_axes() { return ones(Shape(std::vector<std::int64_t>(most_axes, 1))); }

/// What is wrong with a call; empty where it is right.
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Limited {
  const char* name;
  std::function<void()> call;
  const char* message = "";  // a part of the Error's; none: it is allowed
  double seconds = 2;
};

void expect_in_time(const std::vector<Limited>& table) {
  for (const auto& [name, call, message, seconds] : table) {
    const double begin = processor_seconds();
    const std::string said = message_of(call);
    const double taken = processor_seconds() - begin;
    EXPECT_LE(taken, slower * seconds) << name;
    EXPECT_TRUE(*message == 0 ? said.empty() : said.find(message) != said.npos)
        << name << ": " << said.substr(0, 500);
    if (std::getenv("EIN_SHOW_TIMES")) std::printf("%6.2f s of %g  %s\n", taken, seconds, name);
  }
}

TEST(Limits, OfPatterns) {
  const auto matrices = [](int n) {
    const std::vector<Tensor> chain(static_cast<std::size_t>(n), eye(2));
    const auto two = [](int i) { return axis(i) + " " + axis(i + 1); };
    einsum(chain, runtime(repeated(n, two, ", ") + " -> a0 " + axis(n)));
  };
  const auto same = [](int) { return std::string("a"); };
  expect_in_time({
      {"blanks",
       [] {
         rearrange(ones({2, 3}), runtime("a b -> b a" + std::string(most_bytes - 10, ' ')));
       }},
      {"one blank more",
       [] {
         rearrange(ones({2, 3}), runtime("a b -> b a" + std::string(most_bytes - 9, ' ')));
       },
       "longer than 131072 bytes"},
      {"400 matrices", [&] { matrices(400); }, "", 1},
      {"1,400 matrices", [&] { matrices(1400); }, "", 1},
      {"as many operands as there is room for",
       [&] { einsum(many(43000), runtime(repeated(43000, same, ", ") + " -> a")); }, "", 4},
      {"operands that are not there",
       [&] { einsum(many(2), runtime(repeated(43000, same, ", ") + " -> a")); },
       "the pattern describes 43000 operands, the call has 2"},
      {"operands with names of their own",
       [&] {
         einsum(std::vector<Tensor>(9000, ones({1})),
                runtime(repeated(9000, axis, ", ") + " -> (" + axes(9000) + ")"));
       }},
      {"names", [] { reduce(ones({2}), runtime(axes(18000) + " -> a0"), "sum"); },
       "the pattern wants 18000"},
      {"names in groups",
       [] { rearrange(ones({1}), runtime("(" + axes(9000) + ") -> (" + axes(9000) + ")")); },
       "more than one size is unknown"},
      {"one name again and again",
       [&] { einsum(ones({2}), runtime(repeated(65000, same, " ") + " ->")); },
       "the pattern wants 65000"},
      {"a long name",
       [] { rearrange(ones({2}), runtime(std::string(most_bytes - 5, 'a') + " -> b")); },
       "is in no input"},
      {"digits",
       [] { rearrange(ones({2}), runtime("a -> a " + std::string(most_bytes - 7, '1'))); },
       "is too large"},
      {"axes of 1",
       [] {
         const auto one = [](int) { return std::string("1"); };
         rearrange(ones({2}), runtime("a -> a " + repeated(65000, one, " ")));
       },
       "at most 1024 axes"},
      {"empty groups",
       [] {
         const auto empty = [](int) { return std::string("()"); };
         rearrange(ones({2}), runtime(repeated(43000, empty, " ") + " -> a"));
       },
       "is in no input"},
      {"groups 33 deep",
       [] {
         rearrange(ones({2}), runtime(std::string(33, '(') + "a" + std::string(33, ')') + " -> a"));
       },
       "nested more than 32 deep"},
      {"brackets", [] { rearrange(ones({2}), runtime(std::string(most_bytes, '('))); },
       "nested more than 32 deep"},
  });
}

TEST(Limits, OfAxes) {
  const Tensor x = of_most_axes(), y = ones({1, 2}, DType::f64);
  const std::string all = axes(most_axes);
  const auto from_the_end = [](int i) { return axis(most_axes - 1 - i); };
  const Shape of_many(std::vector<std::int64_t>(100'000, 1));
  const std::string reversed = all + " -> " + repeated(most_axes, from_the_end, " ");
  expect_in_time({
      {"one axis more", [&] { rearrange(x, runtime("... -> ... 1")); },
       "at most 1024 axes, not 1025"},
      {"zeros of many axes", [&] { zeros(of_many); }, "at most 1024 axes, not 100000"},
      {"random numbers", [&] { randn(of_many); }, "at most 1024 axes, not 100000"},
      {"a view", [&] { ones({1}).view(of_many); }, "at most 1024 axes, not 100000"},
      {"a reshape", [&] { ones({1}).reshape(of_many); }, "at most 1024 axes, not 100000"},
      {"numbers", [&] { from_vector(std::vector<float>{1}, of_many); },
       "at most 1024 axes, not 100000"},
      {"reversed", [&] { rearrange(x, runtime(reversed)); }},
      {"reversed, in a copy", [&] { rearrange(x, runtime(reversed)).contiguous(); }},
      {"added", [&] { (void)(x + x); }},
      {"sum", [&] { reduce(x, runtime(all + " -> a5"), "sum"); }},
      {"var", [&] { reduce(x, runtime(all + " -> a5"), "var"); }},
      {"softmax", [&] { softmax(x, "... [a]"); }},
      {"sorted", [&] { sort(x, "... [a]"); }},
      {"product", [&] { einsum(x, x, runtime(all + ", " + all + " -> a3")); }},
      {"gradient",
       [&] {
         const Tensor leaf = of_most_axes().requires_grad(true);
         reduce(exp(leaf), "... ->", "sum").backward();
       }},
  });
}

TEST(Limits, OfMeshes) {
  expect_in_time({
      {"processes that one stands for",
       [] {
         Mesh({{"a", 1024}}, "loop");
       }},
      {"one process more",
       [] {
         Mesh({{"a", 1025}}, "loop");
       },
       "at most 1024 processes, not 1025"},
      {"all processes that there may be",
       [] {
         Mesh({{"a", 1 << 20}}, "loop");
       },
       "at most 1024 processes, not 1048576"},
      {"more than there may be",
       [] {
         Mesh({{"a", (1 << 20) + 1}}, "loop");
       },
       "1048576"},
      {"axes",
       [] {
         Mesh(std::vector<MeshAxis>(33, {"a", 1}), "loop");
       },
       "1 to 32 axes"},
      {"threads", [] { set_num_threads(1025); }, "not between 1 and 1024"},
  });
}

class LimitsOfFiles : public testing::Test {
 protected:
  /// Of a file with this content.
  void load(const std::string& name, const std::string& content) const {
    const std::string path = folder_.path().string() + "/" + name;
    test::write_bytes(path, content);
    load_safetensors(path);
  }
  static std::string with_length(const std::string& header) {
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
    return length + header;
  }
  /// The items, until there are so many bytes.
  static std::string filled(const std::string& begin, std::size_t bytes,
                            const std::function<std::string(int)>& item, const std::string& end) {
    std::string text = begin;
    for (int i = 0; text.size() + 100 < bytes; ++i) text += (i == 0 ? "" : ",") + item(i);
    return text + end;
  }

  /// Headers of so many bytes of safetensors: 120 ns a byte, of which 55 were measured.
  void load_headers(std::size_t bytes) const {
    const auto tensor = [](int i) {
      return "\"" + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    };
    const auto word = [](int i) { return "\"" + std::to_string(i) + "\":\"\""; };
    const auto one = [](int) { return std::string("1"); };
    const std::string tensors = with_length(filled("{", bytes, tensor, "}")),
                      metadata = with_length(filled(R"({"__metadata__":{)", bytes, word, "}}")),
                      dimensions = with_length(filled(R"({"a":{"dtype":"F32","shape":[)", bytes,
                                                      one, R"(],"data_offsets":[0,4]}})"));
    const double seconds = 120e-9 * static_cast<double>(bytes);
    expect_in_time({
        {"tensors", [&] { load("a.safetensors", tensors); }, "", seconds},
        {"metadata", [&] { load("a.safetensors", metadata); }, "", seconds},
        {"dimensions", [&] { load("a.safetensors", dimensions); }, "more than 1024 dimensions",
         seconds},
    });
  }

  test::ScratchDirectory folder_;
};

TEST_F(LimitsOfFiles, Safetensors) { load_headers(10'000'000); }
TEST_F(LimitsOfFiles, SlowSafetensors) { load_headers(100'000'000); }

TEST_F(LimitsOfFiles, Index) {
  constexpr std::size_t most = 1 << 26;
  const auto object = [](int) { return std::string("{}"); };
  const auto file = [](int i) { return "\"" + std::to_string(i) + R"(":"f.safetensors")"; };
  const std::string name = "a.safetensors.index.json", map = R"({"weight_map":{)";
  const std::string objects = filled(R"({"x":[)", most, object, R"(],"weight_map":{}})"),
                    files = filled(map, most, file, "}}"),
                    text = map + "\"a\":\"" + std::string(most - 100, 'x') + "\"}}";
  expect_in_time({
      {"objects", [&] { load(name, objects); }, "", 3},
      {"tensors of a file that is not there", [&] { load(name, files); }, "f.safetensors", 3},
      {"a long name", [&] { load(name, text); }, "no name of a .safetensors file", 3},
      {"brackets", [&] { load(name, std::string(most, '[')); }, "nested too deeply", 3},
      {"one byte more", [&] { load(name, std::string(most + 1, ' ')); }, "has 67108865 bytes", 3},
  });
}

TEST(Limits, OfClusters) {
  const plan::Job job{{.layers = 36, .width = 4096, .heads = 32, .vocab = 51200, .context = 2048},
                      735134400,
                      napkin::mixed_precision()};
  const plan::Cluster cluster = plan::cluster_of(hardware_named("a100-sxm-80gb"), 735134400, 8);
  expect_in_time({{"devices with most divisors", [&] { plan::plans(job, cluster, 1); }}});
}

#ifdef EIN_COMMAND
TEST(Limits, OfTheCommand) {
  const auto one = [](int) { return std::string("1"); };
  const std::string shape = repeated(60000, one, ",");
  const auto fails = [](const std::vector<std::string>& words, const std::string& part) {
    const test::Outcome outcome = test::outcome_of(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.text.substr(0, 500);
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text.substr(0, 500);
  };
  const std::string too_many = "a tensor has at most 1024 axes, not 60000";
  expect_in_time({
      {"axes of a shape",
       [&] {
         fails({"check", "rearrange", "... -> ...", "--shape", shape}, too_many);
       },
       "", 0.5},
      {"of a cost",
       [&] {
         fails({"cost", "rearrange", "... -> ...", "--shape", shape}, too_many);
       },
       "", 0.5},
      {"of a picture",
       [&] {
         fails({"emit", "graph", "rearrange", "... -> ...", "--shape", shape}, too_many);
       },
       "", 0.5},
      {"of a packed shape",
       [&] {
         fails({"check", "unpack", "*", "--shape", "2", "--packed", shape}, too_many);
       },
       "", 0.5},
      {"a long pattern",
       [&] {
         fails({"check", "rearrange", std::string(100000, '('), "--shape", "1"}, "32 deep");
       },
       "", 0.5},
  });
}
#endif

}  // namespace
}  // namespace ein
