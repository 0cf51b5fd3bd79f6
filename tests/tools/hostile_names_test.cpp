// Names of files and words of the command line that have in them what a terminal obeys: no message
// hands it on.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/mesh.hpp>
#include <ein/npy.hpp>
#include <ein/npz.hpp>
#include <ein/safetensors.hpp>
#include <ein/text.hpp>
#include <ein/train.hpp>

#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "support/command.hpp"
#include "support/project.hpp"
#include "support/public_functions.hpp"
#include "support/scratch.hpp"
#include "train/directory.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;

/// An escape sequence, a bell, a line of its own, the eight-bit form of an escape sequence as a
/// byte and in UTF-8, bytes that are no UTF-8, a deletion, a change of direction, a return.
const std::vector<std::string> hostile = {"\x1b[2J",
                                          "\a",
                                          "\nforged",
                                          "q\x9b"
                                          "31m",
                                          "\xc2\x9b"
                                          "31m",
                                          "q\xff\xfe",
                                          "\x7f",
                                          "\xe2\x80\xae",
                                          "\rforged"};

void expect_harmless(const std::string& text) {
  for (const std::string& part : hostile)
    EXPECT_EQ(text.find(part), text.npos) << testing::PrintToString(text);
}

/// The text of the error of f(); empty without one.
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

BpeTokenizer bytes_alone() { return train_bpe("", {.vocabulary_size = 256}); }

void train_on(const std::string& data, const std::string& out) {
  TrainOptions options;
  options.data = data;
  options.out = out;
  options.block_size = 4;
  options.max_iters = 0;
  train(options, {});
}

/// Every public function that takes a path, and what they are made of.
std::map<std::string, std::function<void(const std::string&)>> functions_of_paths() {
  const Tensor x = ones({3});
  return {
      {"load_npy", [](const std::string& path) { load_npy(path); }},
      {"save_npy", [=](const std::string& path) { save_npy(path, x); }},
      {"load_npz", [](const std::string& path) { load_npz(path); }},
      {"save_npz",
       [=](const std::string& path) {
         save_npz(path, {{"x", x}});
       }},
      {"load_safetensors",
       [](const std::string& path) {
         const std::string index =
             error_of([&] { load_safetensors(path + ".safetensors.index.json"); });
         EXPECT_NE(index, "");
         expect_harmless(index);
         load_safetensors(path);
       }},
      {"save_safetensors",
       [=](const std::string& path) {
         save_safetensors(path, {{"x", x}});
       }},
      {"save_checkpoint",
       [=](const std::string& path) {
         const std::string of_mesh = error_of([&] {
           save_checkpoint(Mesh({{"data", 2}}), path, 1, {{"x", x}});
         });
         expect_harmless(of_mesh);
         save_checkpoint(path, 1, {{"x", x}});
       }},
      {"load_checkpoint", [](const std::string& path) { load_checkpoint(path); }},
      {"has_checkpoint",
       [](const std::string& path) {
         if (fs::is_directory(path)) test::write_bytes(path + "/manifest.json", "damaged");
         has_checkpoint(path);
       }},
      {"open", [](const std::string& path) { Tokens::open(path, TokenType::i32); }},
      {"open_npy", [](const std::string& path) { Tokens::open_npy(path); }},
      {"save_tokens",
       [](const std::string& path) {
         save_tokens(path, Tokens(zeros({3}, DType::u8)), TokenType::u8);
       }},
      {"load_bpe", [](const std::string& path) { load_bpe(path); }},
      {"load_bpe_files", [](const std::string& path) { load_bpe_files(path, path); }},
      {"save_bpe", [](const std::string& path) { save_bpe(path, bytes_alone()); }},
      {"save_bpe_files",
       [](const std::string& path) { save_bpe_files(path, path, bytes_alone()); }},
      {"encode_file",
       [](const std::string& path) {
         encode_file(path, bytes_alone(), [](std::span<const std::int32_t>) {});
       }},
      {"train_bpe_on_files",
       [](const std::string& path) {
         train_bpe_on_files(std::span(&path, 1), {.vocabulary_size = 256});
       }},
      {"train: data", [](const std::string& path) { train_on(path, "/proc/out"); }},
      {"train: out",
       [](const std::string& path) {
         static const test::ScratchDirectory scratch;
         test::write_bytes(scratch.path("text"), "a text that is trained on, over and over");
         train_on(scratch.path("text"), path);
       }},
      {"sample",
       [](const std::string& path) {
         SampleOptions options;
         options.from = path;
         sample(options, [](const std::string&) {});
       }},
      {"append_to_file", [](const std::string& path) { io::append_to_file("test", path, "x"); }},
      {"DirectoryLock",
       [](const std::string& path) { io::DirectoryLock("test", path, io::Missing::fail); }},
      {"NewDirectory", [](const std::string& path) { io::NewDirectory("test", path + "/x"); }},
      {"RunDirectory",
       [](const std::string& path) { training::RunDirectory(path + "/log.jsonl/x"); }},
  };
}

TEST(HostileNames, ReachNoMessageOfAFunction) {
  for (const auto& [name, call] : functions_of_paths()) {
    SCOPED_TRACE(name);
    int errors = 0;
    for (const std::string& part : hostile) {
      const test::ScratchDirectory scratch;
      const std::string missing = scratch.path("missing" + part),
                        directory = scratch.path("directory" + part),
                        file = scratch.path("file" + part);
      fs::create_directory(directory);
      test::write_bytes(file, "garbage");
      for (const std::string& path : {missing, missing + "/below", directory, file, file + "/below",
                                      missing + std::string("\0", 1), "/proc/" + part}) {
        const std::string text = error_of([&] { call(path); });
        errors += text != "";
        expect_harmless(text);
      }
    }
    EXPECT_GE(errors, static_cast<int>(hostile.size()));
  }
}

TEST(HostileNames, AllFunctionsAreListed) {
  const auto known = functions_of_paths();
  const fs::path include = test::project / "include" / "ein";
  const std::regex functions(
      R"((\w+)\((const Mesh& mesh, )?const std::string& (path|directory)\b)");
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(include)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = test::public_text(entry.path().string());
    for (std::sregex_iterator at(text.begin(), text.end(), functions), end; at != end; ++at) {
      found.insert((*at)[1]);
      EXPECT_TRUE(known.contains((*at)[1])) << (*at)[1] << " in " << entry.path();
    }
  }
  EXPECT_GE(found.size(), 12u);
}

TEST(HostileNames, ReachNoMessageThatOthersMake) {
  for (const std::string& part : hostile) {
    if (part.starts_with('\n')) continue;  // a line of a message
    expect_harmless(Error(ErrorKind::value, "a text of somebody: " + part).what());
  }
  EXPECT_STREQ(Error(ErrorKind::value, "headline\n  a -> b\n    ^\twide µ").what(),
               "headline\n  a -> b\n    ^ wide µ");
}

// --- The command ---

using Words = std::vector<std::string>;

/// A call of each command that a hostile word is added to.
const std::map<std::string, Words>& calls_of_commands() {
  static const Words einsum{"einsum", "a b, b c -> a c", "--shape", "2,3", "--shape", "3,4"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  static const std::map<std::string, Words> calls = {
      {"check", with({"check"}, einsum)},
      {"run", {"run", "rearrange", "a b -> b a", "/proc/missing.npy"}},
      {"emit", with({"emit", "graph"}, einsum)},
      {"draw", with({"draw"}, einsum)},
      {"cost", with({"cost"}, einsum)},
      {"bench", with({"bench"}, einsum)},
      {"step", {"step", "cuda", "--n-layer", "1"}},
      {"devices", {"devices"}},
      {"napkin", {"napkin", "train", "--params", "1e9", "--tokens", "1e9", "--device", "h100-sxm"}},
      {"plan", {"plan", "--published", "--top", "1"}},
      {"account", {"account", "/proc/missing"}},
      {"tokenize",
       {"tokenize", "encode", "--tokenizer", "/proc/missing", "--out", "/proc/out",
        "/proc/missing"}},
      {"train", {"train", "--data", "/proc/missing", "--out", "/proc/out"}},
      {"sample", {"sample", "--from", "/proc/missing"}},
      {"launch", {"launch", "-n", "1", "--", "/proc/missing"}}};
  return calls;
}

/// The one of its subcommands that is called; "" if it has none.
std::string subcommand_of(const std::string& command) {
  return command == "napkin" || command == "tokenize" ? calls_of_commands().at(command)[1] : "";
}

/// The options that a help text lists, each with two dashes or one.
std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> options;
  const std::regex option(R"(\n  (-\w)?,?(--[\w-]+)?)");
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at) {
    const std::string name = (*at)[2].matched ? (*at)[2].str() : (*at)[1].str();
    if (!name.empty() && name != "--help") options.insert(name);
  }
  return options;
}

std::string all_hostile() {
  std::string all = "/proc/x";
  for (const std::string& part : hostile) all += part;
  return all;
}

TEST(HostileNames, ReachNoMessageOfTheCommand) {
  const std::string word = all_hostile();
  expect_harmless(test::outcome_of({word}).text);
  const std::string help = test::text_of({"--help"});
  std::size_t runs = 0;
  for (const auto& [command, call] : calls_of_commands()) {
    SCOPED_TRACE(command);
    // At every place, and behind every option.
    std::vector<Words> all;
    for (std::size_t i = 1; i <= call.size(); ++i) {
      Words words = call;
      if (i < call.size()) words[i] = word;
      if (i == call.size()) words.push_back(word);
      all.push_back(words);
    }
    Words of_help{command};
    const std::string own = subcommand_of(command);
    if (own != "") of_help.push_back(own);
    of_help.push_back("--help");
    for (const std::string& option : options_in(test::text_of(of_help))) {
      Words words{command};
      if (own != "") words.push_back(own);
      words.push_back(option);
      words.push_back(word);
      words.insert(words.end(), call.begin() + static_cast<std::ptrdiff_t>(words.size() - 2),
                   call.end());
      all.push_back(words);
    }
    all.push_back({command, "--no-such-option" + word});
    for (const Words& words : all) {
      expect_harmless(test::outcome_of(words).text);
      ++runs;
    }
  }
  EXPECT_GT(runs, 150u);
  const std::regex names(R"(\n  (\w+) {2,})");
  std::size_t commands = 0;
  for (std::sregex_iterator at(help.begin(), help.end(), names), end; at != end; ++at) {
    ++commands;
    EXPECT_TRUE(calls_of_commands().contains((*at)[1])) << (*at)[1];
  }
  EXPECT_EQ(commands, calls_of_commands().size());
}

}  // namespace
}  // namespace ein
