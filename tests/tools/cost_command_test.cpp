// ein cost and ein napkin as a shell sees them.
#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "support/command.hpp"

namespace {

using ein::test::expect_fails;
using ein::test::expect_holds;
using ein::test::text_of;

/// The text of a member's value, if the object has it just once.
std::optional<std::string> member(const std::string& json, const std::string& key) {
  std::string escaped;
  for (char c : key) escaped += c == '.' ? "\\." : std::string(1, c);
  const std::regex line("\n  \"" + escaped + "\": (\"[^\"]*\"|[-+.0-9e]+|null),?(?=\n)");
  std::smatch match;
  if (!std::regex_search(json, match, line)) return std::nullopt;
  std::smatch second;
  const std::string rest = match.suffix();
  return std::regex_search(rest, second, line) ? std::nullopt
                                               : std::optional<std::string>(match[1]);
}

const std::vector<std::string> linear{"cost",     "einsum",  "b d, d k -> b k", "--shape",
                                      "1024,256", "--shape", "256,64"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(CostCommand, Json) {
  const std::string json = text_of(with(linear, {"--json"}));
  EXPECT_EQ(json.front(), '{');
  EXPECT_EQ(json.substr(json.size() - 3), "\n}\n");
  EXPECT_EQ(member(json, "flops.model"), "33554432");
  EXPECT_EQ(member(json, "flops.strict"), std::to_string(2 * 1024 * 256 * 64 - 1024 * 64));
  EXPECT_EQ(member(json, "flops.matmul_only"), "33554432");
  EXPECT_EQ(member(json, "mul"), "16777216");
  EXPECT_EQ(member(json, "add"), std::to_string(1024 * 255 * 64));
  EXPECT_EQ(member(json, "div"), "0");
  EXPECT_EQ(member(json, "bytes.read"), std::to_string(4 * (1024 * 256 + 256 * 64)));
  EXPECT_EQ(member(json, "bytes.written"), std::to_string(4 * 1024 * 64));
  EXPECT_EQ(member(json, "formula"), "\"2·b·d·k\"");
  EXPECT_EQ(member(json, "pattern"), "\"b d, d k -> b k\"");
  EXPECT_EQ(member(json, "ordered.flops.model"), std::nullopt);
}

TEST(CostCommand, ComplexNumbersCountEightFlopsForAMultiplyAdd) {
  const std::vector<std::string> complex = with(linear, {"--dtype", "c64"});
  EXPECT_EQ(member(text_of(with(complex, {"--json"})), "flops.matmul_only"),
            std::to_string(8 * 1024 * 256 * 64));
  expect_holds(text_of(with(complex, {"--device", "h100-sxm"})), {"c64", "-> (1024, 64)\n", "f32"});
}

TEST(CostCommand, JsonIsExactBeyond64Bits) {
  const std::string json =
      text_of({"cost", "einsum", "i k, k j -> i j", "--shape", "1000000000,1000000000", "--shape",
               "1000000000,1000000000", "--json"});
  EXPECT_EQ(member(json, "flops.model"), "2000000000000000000000000000");
}

TEST(CostCommand, JsonEscapes) {
  const std::string json = text_of({"cost", "einsum", "i\nj,\tj -> i", "--json"});
  EXPECT_EQ(member(json, "pattern"), "\"i\\u000aj,\\u0009j -> i\"");
}

TEST(CostCommand, TableOfFormulasAndCounts) {
  expect_holds(text_of(linear),
               {"f32 (1024, 256), (256, 64) -> (1024, 64)", "2·b·d·k        33,554,432",
                "strict       2·b·d·k - b·k", "matmul only", "mul", "add", "read", "written",
                "intensity  24.38 FLOP/byte"});
}

TEST(CostCommand, ThreeOperandsAsWrittenAndAsOrdered) {
  const std::vector<std::string> words{"cost",    "einsum",  "i j, j k, k l -> i l",
                                       "--shape", "9,100",   "--shape",
                                       "100,100", "--shape", "100,2"};
  expect_holds(text_of(words), {"As written:", "540,000", "In the cheapest order", "43,600"});
  const std::string json = text_of(with(words, {"--json"}));
  EXPECT_EQ(member(json, "flops.model"), "540000");
  EXPECT_EQ(member(json, "ordered.flops.model"),
            std::to_string(2 * 100 * 100 * 2 + 2 * 9 * 100 * 2));
  EXPECT_EQ(member(json, "run.flops.model"), member(json, "ordered.flops.model"));
}

TEST(CostCommand, TranscendentalsByKind) {
  const std::vector<std::string> words{"cost",    "reduce", "b c -> b", "--shape",
                                       "64,1000", "--by",   "logsumexp"};
  expect_holds(text_of(words),
               {"exp          b·c", "64,000", "log          b", "compare", "as it runs"});
  EXPECT_EQ(text_of(words).find("tanh"), std::string::npos);
  const std::string json = text_of(with(words, {"--json"}));
  EXPECT_EQ(member(json, "exp"), "64000");
  EXPECT_EQ(member(json, "log"), "64");
  EXPECT_EQ(member(json, "tanh"), "0");
}

TEST(CostCommand, NothingIsReadWhereNothingRuns) {
  // What runs moves as many bytes as the graph says: then there is no line of its own.
  for (const std::string op : {"softmax", "sort", "cumsum"}) {
    const std::string text = text_of({"cost", op, "a [b]", "--shape", "5,0"});
    EXPECT_EQ(text.find("as it runs"), std::string::npos) << text;
  }
  const std::string text = text_of({"cost", "reduce", "a b -> a", "--by", "sum", "--shape", "5,0"});
  expect_holds(text, {"4·a         20"});  // five zeros
  EXPECT_EQ(text.find("as it runs"), std::string::npos) << text;
}

TEST(CostCommand, FormulasWithoutShapes) {
  const std::string text = text_of({"cost", "einsum", "b q d, b k d -> b q k"});
  expect_holds(text, {"model        2·b·q·d·k\n", "strict       2·b·q·d·k - b·q·k\n"});
  EXPECT_EQ(text.find("count"), std::string::npos);
  EXPECT_EQ(text.find("intensity"), std::string::npos);
  const std::string json = text_of({"cost", "einsum", "b q d, b k d -> b q k", "--json"});
  EXPECT_EQ(member(json, "formula"), "\"2·b·q·d·k\"");
  EXPECT_EQ(member(json, "flops.model"), std::nullopt);
  // Sizes that shapes would have to tell, and axes without a name.
  expect_holds(text_of({"cost", "rearrange", "(h p) (w q) c -> h w (p q c)"}), {"4·h·p·w·q·c"});
  expect_holds(text_of({"cost", "rearrange", "(h p) -> p h", "--axis", "p=3"}), {"4·h·p"});
  expect_holds(text_of({"cost", "reduce", "... c -> ...", "--by", "sum"}), {"c·..."});
  expect_holds(text_of({"cost", "reduce", "a 2 ->", "--by", "sum"}), {"2·a - 1"});
  expect_holds(text_of({"cost", "repeat", "a -> a b"}), {"4·a·b"});
  expect_fails(2, {"cost", "einsum", "i _ -> i"}, "'_' has no name");
  expect_fails(2, {"cost", "pack", "b *"}, "cost pack needs --shape");
  expect_fails(2, {"cost", "sort", "a [b]"}, "no formula of products of axes; give --shape");
  expect_fails(2, {"cost", "scatter_add", "b d, b -> [v] d"}, "no formula of products of axes");
  expect_fails(2, {"cost", "pad", "a [b]", "--number", "2", "--number", "3"}, "no formula");
}

TEST(CostCommand, FormulasDoNotDependOnShapes) {
  const std::vector<std::string> words{"cost", "reduce", "a (b c) -> a b", "--by", "var", "--json"};
  const std::string without = text_of(words);
  const std::string given = text_of(with(words, {"--shape", "7,15", "--axis", "c=5"}));
  for (const char* key : {"formula", "formula.flops.strict", "formula.mul", "formula.bytes.read"}) {
    EXPECT_NE(member(without, key), std::nullopt) << key;
    EXPECT_EQ(member(without, key), member(given, key)) << key;
  }
}

TEST(CostCommand, AtTheLimitsOfADevice) {
  const std::string text = text_of(with(linear, {"--device", "H100-SXM"}));
  expect_holds(text, {"H100 SXM: 67 TFLOP/s f32, 3.35 TB/s (NVIDIA H100 Tensor Core GPU datasheet)",
                      "bound", "compute", "at least 500.8 ns"});
  const std::string json = text_of(with(linear, {"--device", "h100-sxm", "--json"}));
  EXPECT_EQ(member(json, "device"), "\"h100-sxm\"");
  EXPECT_EQ(member(json, "device.peak"), "6.7e+13");
  EXPECT_DOUBLE_EQ(std::stod(*member(json, "seconds.compute")), 33554432 / 67e12);
  EXPECT_DOUBLE_EQ(std::stod(*member(json, "intensity")),
                   33554432.0 / (4 * (1024 * 256 + 256 * 64 + 1024 * 64)));
  expect_holds(text_of(with(linear, {"--device", "h100-sxm", "--tensor-cores"})),
               {"494.5 TFLOP/s tf32", "bandwidth"});
  expect_holds(text_of(with(linear, {"--device", "h100-sxm", "--dtype", "bf16"})),
               {"989.5 TFLOP/s bf16"});
}

TEST(CostCommand, APeakThatTheUserKnowsBetter) {
  const std::string json = text_of(with(linear, {"--device", "t4", "--peak", "7e12", "--json"}));
  EXPECT_DOUBLE_EQ(std::stod(*member(json, "seconds.compute")), 33554432 / 7e12);
  expect_holds(text_of(with(linear, {"--peak", "60e12", "--bandwidth", "2e12"})),
               {"60 TFLOP/s f32, 2 TB/s (given)"});
  expect_holds(text_of(with(linear, {"--device", "t4", "--dtype", "bf16", "--peak", "1e12"})),
               {"1 TFLOP/s bf16"});
}

TEST(CostCommand, OfAProcessOfAMesh) {
  const std::vector<std::string> formulas{"cost", "einsum", "b@data c@model, c@model f -> b f",
                                          "--mesh", "data=8,model=2"};
  expect_holds(text_of(formulas),
               {"each of 16 processes, mesh data=8 model=2", "model        2·b/data·c/model·f",
                "all_reduce over model", "2·(model - 1)/model·(4·b/data·f)"});
  const std::vector<std::string> counts =
      with(formulas, {"--shape", "64,512", "--shape", "512,2048", "--device", "h100-sxm"});
  expect_holds(text_of(counts), {"sending at least 1.311 µs at 50 GB/s of InfiniBand"});
  const std::string json = text_of(with(counts, {"--json"}));
  EXPECT_EQ(member(json, "flops.matmul_only"), std::to_string(2 * 8 * 256 * 2048));
  EXPECT_EQ(member(json, "exchanges.all_reduce.model.bytes"), std::to_string(4 * 8 * 2048));
  EXPECT_EQ(member(json, "exchanges.all_reduce.model.sent"), "65536");  // 2·(2 - 1)/2 of it
  EXPECT_EQ(member(json, "formula.exchanges.all_reduce.model.bytes"), "\"4·b/data·f\"");
  // Eight devices are joined by NVLink. What is whole exchanges nothing.
  expect_holds(text_of({"cost", "reduce", "b@data s -> s", "--by", "sum", "--mesh", "data=8",
                        "--shape", "8,100", "--device", "h100-sxm"}),
               {"at 450 GB/s of NVLink"});
  expect_holds(text_of({"cost", "reduce", "b@data s -> b", "--by", "sum", "--mesh", "data=8"}),
               {"exchanges, of a process\n  none"});
  // Under an ellipsis, and in a group whose outermost axis is split.
  expect_holds(text_of({"cost", "einsum", "b s (h@model d), (h@model d) c -> b s c", "--mesh",
                        "model=4", "--axis", "d=64"}),
               {"2·b·s·h/model·d·c"});
  expect_fails(2, {"cost", "einsum", "b@x c, c f -> b f", "--mesh", "data=2"},
               "the mesh (data=2) has no axis 'x'");
  expect_fails(2, {"cost", "einsum", "b@data c, c f -> b f", "--mesh", "data=2,data=2"},
               "axis 'data' is there twice");
  expect_fails(2, {"cost", "einsum", "b@data c, c f -> b f", "--mesh", "data"},
               "'data' is no axis of a mesh");
  expect_fails(2,
               {"cost", "einsum", "b@data c, c f -> b f", "--mesh", "data=3", "--shape", "4,4",
                "--shape", "4,4"},
               "does not divide into the 3 equal parts");
}

TEST(CostCommand, Mistakes) {
  expect_fails(2, with(linear, {"--device", "l40"}), "unknown device 'l40'; known are cpu, ");
  expect_fails(2, with(linear, {"--device", "t4", "--dtype", "bf16"}),
               "T4 promises no peak for bf16");
  expect_fails(2, with(linear, {"--peak", "1e12"}), "one alone needs --device");
  expect_fails(2, with(linear, {"--device", "t4", "--peak", "fast"}),
               "--peak: 'fast' is not a positive number");
  expect_fails(2, with(linear, {"--device", "t4", "--peak", "-1"}), "is not a positive number");
  expect_fails(2, {"cost", "einsum", "i -> i", "--device", "t4"}, "need --shape");
  expect_fails(2, {"cost", "einsum", "i j -> k"}, "axis 'k' of the output is in no input");
  expect_fails(2, {"cost", "einsum", "i, i ->", "--shape", "2", "--shape", "3"}, "'i'");
  expect_fails(2, {"cost", "parse_shape", "a b", "--shape", "2,3"}, "parse_shape computes nothing");
  expect_fails(2, {"cost", "einsum", "i ->", "--dtype", "f7"}, "unknown dtype 'f7'");
  expect_fails(2, {"cost"}, "OP is required");
}

// --- ein napkin ---

const std::vector<std::string> train{"napkin",   "train", "--params", "70e9",
                                     "--tokens", "15e12", "--device", "h100-sxm",
                                     "--count",  "1024",  "--mfu",    "0.5"};

TEST(NapkinCommand, Train) {
  expect_holds(text_of(train),
               {"6.30e24 FLOPs", "143.9 days", "1024 × H100 SXM", "989.5 TFLOP/s bf16",
                "NVIDIA H100 Tensor Core GPU datasheet", "estimate", "4.38e22 FLOPs"});
  const std::string json = text_of(with(train, {"--json", "--dollars-per-hour", "2"}));
  EXPECT_EQ(member(json, "flops"), "6300000000000000000000000");
  EXPECT_EQ(member(json, "parameters"), "70000000000");
  EXPECT_NEAR(std::stod(*member(json, "days")), 143.9266, 1e-4);
  EXPECT_EQ(member(json, "days"), member(json, "short_rule.days"));
  EXPECT_DOUBLE_EQ(std::stod(*member(json, "flops_per_day")), 4.37723136e22);
  EXPECT_NEAR(std::stod(*member(json, "dollars")), 143.9265938 * 24 * 1024 * 2, 1);
  EXPECT_EQ(text_of(train).find("dollars"), std::string::npos);
  expect_holds(text_of(with(train, {"--dtype", "f32"})), {"67 TFLOP/s f32"});
  expect_holds(text_of({"napkin", "train", "--params=1e9", "--tokens=2e9", "--peak=1e15"}),
               {"1.20e19", "given"});
}

TEST(NapkinCommand, Fit) {
  expect_holds(
      text_of({"napkin", "fit", "--device", "h100-sxm", "--count", "8", "--bytes-per-param", "16"}),
      {"4.00e10 parameters", "640 GB"});
  const std::string json =
      text_of({"napkin", "fit", "--memory", "24e9", "--optimizer", "momentum", "--json"});
  EXPECT_DOUBLE_EQ(std::stod(*member(json, "parameters")), 2e9);
  EXPECT_EQ(member(json, "bytes_per_parameter"), "12");
  expect_holds(text_of({"napkin", "fit", "--memory", "16", "--mixed"}),
               {"16 bytes", "mixed precision"});
}

TEST(NapkinCommand, Transformer) {
  const std::vector<std::string> gpt2{"napkin",  "transformer", "--layers",  "12",
                                      "--width", "768",         "--heads",   "12",
                                      "--vocab", "50257",       "--context", "1024"};
  expect_holds(text_of(gpt2), {"124,337,664", "291,648,307,200", "854,438,400", "854,553,600",
                               "797,930,496", "estimate"});
  const std::string json = text_of(with(gpt2, {"--json", "--batch", "2", "--bias"}));
  EXPECT_EQ(member(json, "parameters"), "124439808");
  EXPECT_EQ(member(json, "flops.forward"), "583296614400");
  EXPECT_EQ(member(json, "flops.forward_per_sequence"), "291648307200");
  EXPECT_EQ(member(json, "memory.optimizer"), std::to_string(8 * 124439808));
}

TEST(NapkinCommand, Mistakes) {
  expect_fails(2, {"napkin"}, "subcommand");
  expect_fails(2, {"napkin", "trian"}, "subcommand");
  expect_fails(2, {"napkin", "train", "--params", "1e9"}, "--tokens is required");
  expect_fails(2, {"napkin", "train", "--params", "1e9", "--tokens", "1e9"},
               "train needs --device or --peak");
  expect_fails(2, {"napkin", "train", "--params", "1.5", "--tokens", "1e9", "--device", "t4"},
               "not a whole number");
  expect_fails(2, {"napkin", "train", "--params", "1e30", "--tokens", "1e9", "--device", "t4"},
               "exceeds 63 bits");
  expect_fails(2, {"napkin", "train", "--params", "1e9", "--tokens", "1e9", "--device", "t4"},
               "T4 promises no peak for bf16");
  expect_fails(2, {"napkin", "train", "--params", "1e9", "--tokens", "1e9", "--device", "a100"},
               "unknown device 'a100'");
  expect_fails(2, with({train.begin(), train.end() - 1}, {"1.5"}), "the MFU exceeds 1");
  expect_fails(2, {"napkin", "fit"}, "one of --device and --memory");
  expect_fails(2, {"napkin", "fit", "--memory", "1", "--optimizer", "adam"},
               "--optimizer: unknown 'adam'");
  expect_fails(2,
               {"napkin", "transformer", "--layers", "1", "--width", "10", "--heads", "3",
                "--vocab", "5", "--context", "2"},
               "is not divided by 3 heads");
}

TEST(NapkinCommand, HelpTeachesByExamples) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"cost", "--help"},
                                             {"napkin", "--help"},
                                             {"napkin", "train", "--help"},
                                             {"napkin", "fit", "--help"},
                                             {"napkin", "transformer", "--help"}}) {
    expect_holds(text_of(words), {"Examples:", "Exit code: 0"});
  }
}

}  // namespace
