// ein account as a shell sees it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/scratch.hpp"
#include "support/shared_data.hpp"

namespace {

using ein::test::expect_fails;
using ein::test::expect_holds;
using ein::test::text_of;
using nlohmann::json;
using Words = std::vector<std::string>;

TEST(AccountCommand, PrintsATreeWithShares) {
  expect_holds(text_of({"account", "llama-3.1-8b"}),
               {"total  ", "8,030,261,248", "86.9 %", "Cache of a token", "131,072",
                "training on 8192 tokens", "57,912,852,480", "estimate: 72·L·d² + 12·L·d·T"});
}

TEST(AccountCommand, Json) {
  const json made = json::parse(text_of({"account", "qwen3-30b-a3b", "--json"}));
  EXPECT_EQ(made["parameters.total"], 30532122624);
  EXPECT_EQ(made["parameters.active"], 3353032704);
  EXPECT_EQ(made["kv_bytes_per_token"], 98304);
  for (const std::string kind : {"prefill", "decode", "training"}) {
    EXPECT_TRUE(made.contains("flops_per_token." + kind + ".counted")) << kind;
    EXPECT_TRUE(made.contains("flops_per_token." + kind + ".torchtitan")) << kind;
  }
  EXPECT_EQ(made["flops_per_token.training.torchtitan"], 37578559488);
  // What is an estimate is named so; what the graph gave is not.
  const std::string estimates = " " + made["estimates"].get<std::string>() + " ";
  EXPECT_NE(estimates.find(" flops_per_token.training.6N "), estimates.npos);
  EXPECT_EQ(estimates.find("counted"), estimates.npos);
  EXPECT_EQ(estimates.find(" parameters."), estimates.npos);
}

TEST(AccountCommand, ReadsFilesAndDirectories) {
  const ein::test::ScratchDirectory directory;
  const std::string path = directory.path("config.json");
  std::ofstream(path) << R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 16,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 64})";
  const std::string of_file = text_of({"account", path, "--json"});
  EXPECT_EQ(of_file, text_of({"account", directory.path().string(), "--json"}));
  EXPECT_EQ(json::parse(of_file)["parameters.total"],
            2 * 100 * 16 + 2 * (4 * 16 * 16 + 3 * 16 * 40 + 2 * 16) + 16);
}

TEST(AccountCommand, MemoryTimesAndWhatFits) {
  const Words words{"account", "llama-3.1-8b", "--device", "h100-sxm", "--count", "8", "--json"};
  const json made = json::parse(text_of(words));
  EXPECT_EQ(made["memory.training.parameters"], 16060522496);
  EXPECT_EQ(made["memory.training.optimizer"], 12 * 8030261248);
  EXPECT_EQ(made["memory.serving.cache"], 1073741824);
  // 15,009,849,344 bytes of weights, a row of the table of tokens and the cache.
  EXPECT_NEAR(made["times.decode.bandwidth_seconds"].get<double>(),
              (15009849344 + 8192 + 1073741824) / 3350e9 / 8, 1e-9);
  EXPECT_EQ(made["times.decode.bound"], "bandwidth");
  EXPECT_EQ(made["times.prefill.bound"], "compute");
  EXPECT_EQ(made["fits.serving_batch"], (640000000000 - 16060522496) / 1073741824);
  const std::int64_t context = made["fits.serving_context"];
  EXPECT_LE(16060522496 + context * 131072, 640000000000);
  EXPECT_GT(16060522496 + (context + 1) * 131072, 640000000000);
  // One of the two alone.
  const json serve = json::parse(text_of({"account", "gpt2", "--serve", "--json"}));
  EXPECT_TRUE(serve.contains("memory.serving"));
  EXPECT_FALSE(serve.contains("memory.training"));
  const json train = json::parse(text_of({"account", "gpt2", "--train", "--json"}));
  EXPECT_FALSE(train.contains("memory.serving"));
  EXPECT_EQ(train["memory.training.optimizer.master"], 4 * 124439808);
}

TEST(AccountCommand, Plans) {
  expect_holds(
      text_of({"account", "gpt2", "--device", "a100-sxm-80gb", "--plan", "16", "--batch", "64",
               "--train"}),
      {"Placements of a step of training on 16", "as ein plan has them", "data 16", "MFU at most"});
  expect_fails(2, {"account", "mixtral-8x7b", "--device", "a100-sxm-80gb", "--plan", "16"},
               "mixture");
}

TEST(AccountCommand, OtherForms) {
  const std::string csv = text_of({"account", "gpt2", "--csv"});
  expect_holds(csv, {"path,name,value,unit,estimate,note\n",
                     "parameters.total,total,124439808,,no,", "\"table of tokens, and head\"",
                     "flops_per_token.training.palm,\"PaLM, appendix B\",859885056,FLOP,yes,"});
  const std::string markdown = text_of({"account", "gpt2", "--markdown"});
  expect_holds(markdown, {"## Parameters\n", "|---|--:|--:|---|\n",
                          "| total | 124,439,808 |  |  |\n", "859,885,056 FLOP"});
  const std::string latex = text_of({"account", "gpt2", "--latex"});
  expect_holds(latex, {"\\begin{tabular}{lrrl}", "total & 124,439,808 &  &  \\\\\n", "31.0 \\%",
                       "$\\cdot$"});
  EXPECT_EQ(latex.find("·"), latex.npos);
  const std::string html = text_of({"account", "gpt2", "--html"});
  expect_holds(html, {"<!DOCTYPE html>\n<html lang=\"en\">", "<title>gpt2</title>",
                      "prefers-color-scheme: dark", "<th scope=\"row\"", "Memory of training",
                      "class=\"bar\" style=\"width:", "124,439,808"});
  for (const char* other : {"<script", "http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(html.find(other), html.npos) << other;
  expect_fails(2, {"account", "gpt2", "--html", "--json"}, "one form at a time");
}

TEST(AccountCommand, BadInput) {
  const ein::test::ScratchDirectory directory;
  const auto file = [&](const std::string& text) {
    const std::string path = directory.path("config.json");
    std::ofstream(path) << text;
    return path;
  };
  expect_fails(1, {"account", directory.path("none.json")}, "none.json");
  expect_fails(1, {"account", file("{")}, "is damaged");
  expect_fails(1, {"account", file(R"({"model_type": "mamba"})")}, "mamba");
  expect_fails(1, {"account", file("{}")}, "model_type");
  expect_fails(1, {"account", file(R"({"model_type": "llama", "num_attention_heads": 0})")},
               "num_attention_heads");
  expect_fails(
      1, {"account", file(R"({"model_type": "llama", "num_hidden_layers": 9223372036854775808})")},
      "num_hidden_layers");
  expect_fails(1, {"account", file(R"({"model_type": "llama", "swish_gates": 3})")}, "swish_gates");
  expect_fails(2, {"account"}, "MODEL is required");
  expect_fails(2, {"account", "gpt2", "--context", "2000"}, "2000 positions");
  expect_fails(2, {"account", "gpt2", "--context", "0"}, "--context");
  expect_fails(2, {"account", "gpt2", "--batch", "1.5"}, "--batch");
  expect_fails(2, {"account", "gpt2", "--dtype", "f64"}, "--dtype");
  expect_fails(2, {"account", "gpt2", "--count", "2"}, "need --device");
  expect_fails(2, {"account", "gpt2", "--device", "abacus"}, "abacus");
  expect_fails(2, {"account", "llama-3.1-8b", "--context", "9e18"}, "context");
}

}  // namespace
