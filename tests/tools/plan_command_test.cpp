// ein plan, and ein napkin train with a placement, as a shell sees them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "support/command.hpp"

namespace {

using ein::test::expect_fails;
using ein::test::expect_holds;
using ein::test::text_of;

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The words with another value of an option.
std::vector<std::string> changed(std::vector<std::string> words, const std::string& option,
                                 const std::string& value) {
  const auto found = std::find(words.begin(), words.end(), option);
  if (found == words.end()) return with(words, {option, value});
  *(found + 1) = value;
  return words;
}

double number(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": ");
  if (at == std::string::npos) {
    ADD_FAILURE() << key << "\n" << json;
    return 0;
  }
  return std::stod(json.substr(at + key.size() + 4));
}

const std::vector<std::string> model{
    "--layers",  "36",   "--width", "4096",    "--heads", "32",       "--vocab",      "51200",
    "--context", "2048", "--bias",  "--batch", "512",     "--device", "a100-sxm-80gb"};
const std::vector<std::string> plan = with({"plan"}, with(model, {"--devices", "128"}));
const std::vector<std::string> placed =
    with({"napkin", "train", "--tokens", "300e9"},
         with(model, {"--data", "32", "--model", "4", "--microbatch", "4", "--zero", "1"}));

TEST(PlanCommand, ListsTheBest) {
  const std::string text = text_of(plan);
  expect_holds(text, {"128 × A100 SXM 80 GB, 8 in a node: 300 GB/s inside, 25 GB/s between",
                      "all estimates", "MFU at most", "placements fit 80 GB", "do not"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 1 + 5 + 1);
  const std::string more = text_of(with(plan, {"--top", "7", "--json"}));
  EXPECT_EQ(number(more, "parameters"),
            12.0 * 36 * 4096 * 4096 + 13 * 36 * 4096 + (51200 + 2048) * 4096.0 + 2 * 4096);
  EXPECT_GT(number(more, "plan.6.seconds"), 0);
  EXPECT_EQ(more.find("plan.7."), std::string::npos);
  EXPECT_LE(number(more, "plan.0.memory"), 80e9);
  EXPECT_LE(number(more, "plan.0.seconds"), number(more, "plan.6.seconds"));
  EXPECT_EQ(
      number(more, "plan.0.data") * number(more, "plan.0.model") * number(more, "plan.0.pipe"),
      128);
  expect_holds(text_of(changed(plan, "--devices", "1")), {"0 placements fit"});
}

TEST(PlanCommand, APlacementInFull) {
  expect_holds(text_of(placed), {"128", "data 32 · model 4 · pipe 1, ZeRO 1, microbatch 4",
                                 "it fits", "2·(n-1)/n·V", "n = 32", "Rajbhandari", "Korthikanti",
                                 "Narayanan", "least time", "at most", "estimate"});
  const std::string json = text_of(with(placed, {"--json", "--dollars-per-hour", "2"}));
  EXPECT_EQ(number(json, "devices"), 128);
  EXPECT_EQ(number(json, "microbatches"), 4);
  EXPECT_NEAR(number(json, "run.seconds"), 300e9 / (512 * 2048) * number(json, "seconds"), 1e-3);
  EXPECT_NEAR(number(json, "run.dollars"), number(json, "run.seconds") / 3600 * 128 * 2, 1e-3);
  EXPECT_NEAR(number(json, "sent.model.all_reduce.activations, forward"),
              1.5 * 2 * 2048 * 4 * 4096.0 * 2 * 36 * 4, 1);
  const std::string slow = text_of(with(placed, {"--network", "1e9", "--json"}));
  EXPECT_GT(number(slow, "seconds.exposed"), 0);
  const std::string inputs = text_of(with(placed, {"--keep", "inputs", "--json"}));
  EXPECT_LT(number(inputs, "memory"), number(json, "memory"));
  EXPECT_GT(number(inputs, "flops.executed"), number(inputs, "flops.model"));
}

TEST(PlanCommand, TheTableOfTheDocumentation) {
  std::ifstream file(EIN_TEST_DATA "/../../docs/plan.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string table = text_of({"plan", "--published", "--top", "5"});
  EXPECT_NE(page.find("\n\n" + table + "\n"), std::string::npos)
      << "docs/plan.md does not have what `ein plan --published --top 5` prints:\n"
      << table;
  // Nothing that was measured exceeds its bound.
  const std::regex row("\\| [0-9.]+B \\|.* ([0-9]+) % \\| [0-9]+ \\| ([0-9]+) % \\|.*");
  int rows = 0;
  for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1) {
    std::smatch match;
    const std::string line = table.substr(at, table.find('\n', at) - at);
    if (!std::regex_match(line, match, row)) continue;
    ++rows;
    EXPECT_LT(std::stoi(match[2]), std::stoi(match[1])) << line;
  }
  EXPECT_EQ(rows, 10);
}

TEST(PlanCommand, Mistakes) {
  expect_fails(2, {"plan"}, "--layers is required");
  expect_fails(2, with({"plan"}, model), "--devices is required");
  expect_fails(2, changed(plan, "--devices", "12"), "no whole number of nodes of 8; take 8 or 16");
  expect_fails(2, with(changed(plan, "--device", "t4"), {"--dtype", "f16"}),
               "no link between nodes of T4");
  expect_fails(2, changed(plan, "--device", "a100"), "unknown device 'a100'");
  expect_fails(2, changed(plan, "--top", "0"), "--top");
  expect_fails(2, changed(plan, "--network", "fast"), "--network");
  expect_fails(2, changed(placed, "--count", "64"), "are 128 devices, not 64");
  expect_fails(2, changed(placed, "--model", "3"), "model 3 does not divide the heads, 32");
  expect_fails(2, changed(placed, "--pipe", "8"), "pipe 8 does not divide the layers, 36");
  expect_fails(2, changed(placed, "--zero", "4"), "--zero: '4' is none of 0, 1, 2, 3");
  expect_fails(2, changed(placed, "--keep", "some"), "--keep: unknown 'some'");
  expect_fails(2, changed(placed, "--mfu", "0.4"), "leave --mfu out");
  expect_fails(2, changed(placed, "--params", "7e9"), "instead of --params");
  expect_fails(
      2,
      {"napkin", "train", "--tokens", "1e9", "--device", "h100-sxm", "--data", "8", "--batch", "8"},
      "--layers is required");
  expect_fails(2, {"napkin", "train", "--tokens", "1e9", "--device", "h100-sxm"},
               "--params is required");
}

TEST(PlanCommand, HelpTeachesByExamples) {
  expect_holds(text_of({"plan", "--help"}), {"Examples:", "Exit code: 0", "--published"});
  expect_holds(text_of({"napkin", "train", "--help"}), {"--data 32 --model 4", "--zero"});
}

}  // namespace
