// ein train and ein sample as a shell sees them: words in; stdout, stderr, exit code and files out.
#include <gtest/gtest.h>

#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "io/temporary_name.hpp"
#include "support/scratch.hpp"

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 120; ++i) text << "the quick brown fox " << i << " jumps\n";
  }

  std::string path(const std::string& name) const { return scratch_.path(name); }

  Outcome ein(const Words& words) const {
    std::string line = "'" EIN_COMMAND "'";
    for (const std::string& word : words) line += " '" + word + "'";  // no word here has a quote
    Outcome outcome;
    const int status = std::system((line + " >" + path("stdout") + " 2>" + path("stderr")).c_str());
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    outcome.out = ein::test::read_bytes(path("stdout"));
    outcome.err = ein::test::read_bytes(path("stderr"));
    return outcome;
  }

  /// A small run; what follows overrides, as each option may be given once.
  Words train(const std::string& out, const Words& more = {}) const {
    Words words{"train", "--data", path("text.txt"), "--out", path(out)};
    std::set<std::string> given(more.begin(), more.end());
    const Words small{"--block-size", "8", "--batch-size",    "4", "--n-layer",      "1",
                      "--n-head",     "2", "--n-embd",        "8", "--max-iters",    "4",
                      "--eval-iters", "2", "--eval-interval", "2", "--warmup-iters", "1"};
    for (std::size_t i = 0; i < small.size(); i += 2) {
      if (!given.contains(small[i])) words.insert(words.end(), {small[i], small[i + 1]});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void expect_succeeds(const Words& words) const {
    const Outcome outcome = ein(words);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
  void expect_fails(int exit_code, const Words& words, const std::string& text) const {
    const Outcome outcome = ein(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("ein: ", 0), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << text;
  }
  std::string sample(const Words& more) const {
    Words words{"sample", "--from", path("run"), "--prompt", "the ", "--tokens", "30"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ein(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  }

  std::vector<nlohmann::json> log(const std::string& out) const {
    std::vector<nlohmann::json> lines;
    std::istringstream text(ein::test::read_bytes(path(out) + "/log.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  ein::test::ScratchDirectory scratch_;
};

// --- ein train ---

TEST_F(TrainCommand, HelpNamesEveryOptionAndItsDefault) {
  const std::string help = ein({"train", "--help"}).out;
  for (const std::string option : {"--data",
                                   "--out",
                                   "--block-size 64",
                                   "--batch-size 12",
                                   "--n-layer 4",
                                   "--n-head 4",
                                   "--n-embd 128",
                                   "--max-iters 2000",
                                   "--learning-rate 0.001",
                                   "--min-lr 1e-04",
                                   "--warmup-iters 100",
                                   "--weight-decay 0.1",
                                   "--beta1 0.9",
                                   "--beta2 0.99",
                                   "--grad-clip 1",
                                   "--dropout 0",
                                   "--grad-accum 1",
                                   "--eval-interval 250",
                                   "--eval-iters 20",
                                   "--dtype f32",
                                   "--device cpu",
                                   "--seed 1337",
                                   "--resume",
                                   "--overwrite",
                                   "--init-from",
                                   "--compile",
                                   "--no-compile",
                                   "--bias",
                                   "--no-bias"}) {
    const auto space = option.find(' ');
    const std::string name = option.substr(0, space);
    const auto at = help.find(name);
    ASSERT_NE(at, std::string::npos) << name << "\n" << help;
    if (space == std::string::npos) continue;
    EXPECT_EQ(help.substr(at + name.size(), option.size() - space + 2),
              " =" + option.substr(space + 1) + " ");
  }
  for (const std::string option :
       {"--from", "--prompt", "--tokens", "--temperature", "--top-k", "--seed"})
    EXPECT_NE(ein({"sample", "--help"}).out.find(option), std::string::npos) << option;
}

TEST_F(TrainCommand, PrintsTheBillThenEachEvaluation) {
  const Outcome outcome = ein(train("run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::size_t at = 0;
  for (const std::string part :
       {"parameters ", "FLOPs per step ", "memory of a step ", "cpu ", " fits;",
        "(measured on this machine)", "step     0  train loss ", "step     2  train loss ",
        "step     4  train loss ", "over all of the text to validate with", "last step: "}) {
    at = outcome.out.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << outcome.out;
  }
  // Neither a bar nor anything else that only a terminal understands.
  EXPECT_EQ(outcome.out.find_first_of("\r\033"), std::string::npos);
}

TEST_F(TrainCommand, ShowsAProgressLineOnATerminal) {
  Words words = train("run");
  words.insert(words.begin(), EIN_COMMAND);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "no pseudo-terminals: " << std::strerror(errno);
  if (child == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string shown;
  char buffer[4096];
  for (ssize_t got; (got = read(terminal, buffer, sizeof buffer)) > 0;)
    shown.append(buffer, static_cast<std::size_t>(got));
  close(terminal);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << shown;
  for (const std::string part :
       {"\r\033[K", "████", " 4/4 ", "loss ", "val ", "lr ", "|g| ", "tok/s", "MFU ", "0:00 left"})
    EXPECT_NE(shown.find(part), std::string::npos) << part << "\n" << shown;
}

TEST_F(TrainCommand, TheLogHasALineForEachStepAndEvaluation) {
  expect_succeeds(train("run"));
  std::vector<int> steps, evaluations;
  for (const auto& line : log("run")) {
    (line.contains("loss") ? steps : evaluations).push_back(line["step"]);
    const Words keys = line.contains("loss")
                           ? Words{"loss", "lr", "grad_norm", "seconds", "tokens_per_second", "mfu"}
                           : Words{"train_loss", "val_loss", "elapsed"};
    for (const std::string& key : keys) EXPECT_TRUE(line.at(key).is_number()) << line;
    EXPECT_EQ(line.contains("whole_val_loss"), !line.contains("loss") && line["step"] == 4) << line;
  }
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(evaluations, (std::vector<int>{0, 2, 4}));
}

/// Whether every element is closed, by its own name and in order, and text has no bare < or &.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t elements = 0;
  for (std::size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&' && xml.find(';', at) == std::string::npos) return false;
    if (xml[at] != '<') continue;
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    std::string tag = xml.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos)
      return false;
    at = end;
    if (tag.empty()) return false;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      if (open.empty() && elements > 0) return false;
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    ++elements;
  }
  return open.empty() && elements > 0;
}

TEST_F(TrainCommand, ThePictureIsWellFormed) {
  ASSERT_TRUE(is_well_formed("<a><b c=\"d\"/>text</a>\n"));
  ASSERT_FALSE(is_well_formed("<a><b></a></b>"));
  expect_succeeds(train("run"));
  const std::string svg = ein::test::read_bytes(path("run/loss.svg"));
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0), 0u);
  std::size_t curves = 0;
  for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++curves;
  EXPECT_EQ(curves, 3u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST_F(TrainCommand, ResumesWhereItStopped) {
  expect_succeeds(train("whole", {"--max-iters", "8", "--dropout", "0.1"}));
  // Nothing to resume is no mistake, and a cut log line is left out.
  const Outcome first = ein(train("run", {"--max-iters", "8", "--dropout", "0.1", "--resume"}));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("nothing to resume: \"" + path("run") + "\" has no checkpoint"),
            std::string::npos)
      << first.out;
  std::ofstream(path("run/log.jsonl"), std::ios::app) << "{\"step\": 1";
  const ein::io::Boot here = ein::io::this_boot();
  const std::string left = path("run/.ein-" + here.host + "-" + here.id + "-1-1.tmp");
  std::ofstream(left) << "left by a killed run";
  const Outcome again = ein(train("run", {"--max-iters", "8", "--dropout", "0.1", "--resume"}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("resumed           at step 8"), std::string::npos) << again.out;
  EXPECT_EQ(ein::test::read_bytes(path("run/step-000008.safetensors")),
            ein::test::read_bytes(path("whole/step-000008.safetensors")));
  EXPECT_EQ(log("run").size(), log("whole").size());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(TrainCommand, AnySeedGoesOn) {
  for (const char* seed : {"9223372036854775808", "18446744073709551615"}) {
    fs::remove_all(path("run"));
    expect_succeeds(train("run", {"--seed", seed}));
    expect_succeeds(train("run", {"--seed", seed, "--max-iters", "6", "--resume"}));
    EXPECT_EQ(log("run").back()["step"], 6);
  }
}

TEST_F(TrainCommand, TheLogIsJsonWhereANumberIsNotFinite) {
  // Gradients of f16 become infinite now and then.
  Words words{"--dtype",        "f16", "--learning-rate", "3", "--grad-clip", "0",
              "--warmup-iters", "0",   "--max-iters",     "12"};
  expect_succeeds(train("run", words));
  int null = 0;
  for (const auto& line : log("run")) null += line.contains("loss") && line["grad_norm"].is_null();
  EXPECT_GT(null, 0);
  const std::size_t lines = log("run").size();
  words.back() = "14";
  words.push_back("--resume");
  expect_succeeds(train("run", words));
  EXPECT_GT(log("run").size(), lines);
}

TEST_F(TrainCommand, AFullDeviceIsAnError) {
  expect_succeeds(train("run"));
  for (const std::string& words :
       {"sample --from '" + path("run") + "' --tokens 3", std::string("--version")}) {
    const int status =
        std::system(("'" EIN_COMMAND "' " + words + " >/dev/full 2>/dev/null").c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1) << words;
  }
}

TEST_F(TrainCommand, ADamagedCheckpointIsPassedOver) {
  expect_succeeds(train("run"));
  ein::test::write_bytes(path("run/step-000004.safetensors"), "no checkpoint");
  const Outcome outcome = ein(train("run", {"--resume"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("resumed           at step 2"), std::string::npos) << outcome.out;
  const std::string note =
      "passed over load_checkpoint: \"" + path("run/step-000004.safetensors") + "\" is damaged";
  EXPECT_NE(outcome.out.find(note), std::string::npos) << outcome.out;
  // The resumed run saved step 4 anew.
  ein::test::write_bytes(path("run/step-000004-2.safetensors"), "");
  const Outcome sampled = ein({"sample", "--from", path("run"), "--tokens", "3"});
  EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
  EXPECT_EQ(sampled.err.rfind("ein: passed over load_checkpoint: \"" + path("run/step-0000"), 0),
            0u)
      << sampled.err;
  EXPECT_EQ(sampled.out.find("passed over"), std::string::npos) << sampled.out;
}

TEST_F(TrainCommand, WhatIsNoTextFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& data :
       {std::string("/dev/zero"), std::string("/dev/null"), path("pipe")}) {
    Words words = train("run");
    *(std::find(words.begin(), words.end(), "--data") + 1) = data;
    expect_fails(1, words, "\"" + data + "\" is not a regular file");
  }
  expect_fails(1, {"sample", "--from", path("pipe")}, "is not a regular file");
  // So is a log that a resumed run would wait for.
  expect_succeeds(train("run"));
  fs::remove(path("run/log.jsonl"));
  ASSERT_EQ(::mkfifo(path("run/log.jsonl").c_str(), 0600), 0);
  expect_fails(1, train("run", {"--resume", "--max-iters", "6"}),
               "log.jsonl\" is not a regular file");
}

TEST_F(TrainCommand, MistakesOfATrainingRun) {
  expect_fails(2, {"train"}, "--out is required");
  expect_fails(2, {"train", "--data", path("text.txt")}, "--out is required");
  expect_fails(1, train("run", {"--init-from", path("none")}), "none");
  const auto with = [&](const Words& more) { return train("run", more); };
  expect_fails(2, with({"--max-iters", "many"}), "--max-iters: 'many' is no whole number");
  expect_fails(2, with({"--max-iters", "1.5"}), "--max-iters: '1.5' is no whole number");
  expect_fails(2, with({"--max-iters", "-1"}), "max iters");
  expect_fails(2, with({"--max-iters", ""}), "--max-iters: its value is empty");
  expect_fails(2, with({"--seed="}), "--seed: its value is empty");
  expect_fails(2, with({"--learning-rate", "fast"}), "--learning-rate: 'fast' is no number");
  expect_fails(2, with({"--learning-rate", "nan"}), "--learning-rate: 'nan' is no number");
  expect_fails(2, with({"--min-lr", "-1"}), "min lr is -1, at least 0 and finite is wanted");
  expect_fails(2, with({"--weight-decay", "inf"}), "--weight-decay: 'inf' is no number");
  expect_fails(2, with({"--batch-size", "0"}), "batch size");
  expect_fails(2, with({"--grad-accum", "0"}), "grad accum");
  expect_fails(2, with({"--grad-accum", "4000000000000000000"}), "above 2^63 - 1");
  expect_fails(2, with({"--eval-interval", "0"}), "eval interval");
  expect_fails(2, with({"--grad-clip", "nan"}), "--grad-clip: 'nan' is no number");
  expect_fails(2, with({"--dropout", "1"}), "dropout is 1");
  expect_fails(2, with({"--beta2", "1"}), "beta2 is 1");
  expect_fails(2, with({"--seed", "-1"}), "--seed: '-1' is no whole number");
  expect_fails(2, with({"--n-head", "3"}), "3 heads do not divide dim 8");
  expect_fails(2, with({"--n-layer", "0"}), "n layer is 0");
  expect_fails(2, with({"--n-embd", "-8"}), "-8");
  expect_fails(1, with({"--n-embd", "1000000"}), "this machine has");
  expect_fails(1, with({"--n-layer", "1000000000"}), "this machine has");
  expect_fails(2, with({"--block-size", "100000"}), "must be longer than the block size, 100000");
  expect_fails(2, with({"--dtype", "f64"}), "--dtype: 'f64' is none of f32, bf16, f16");
  expect_fails(2, with({"--device", "gpu"}), "--device: 'gpu' is none of cpu, cuda");
  expect_fails(2, with({"--device", "cuda:x"}), "--device: 'cuda:x'");
  expect_fails(2, with({"--depth", "3"}), "--depth");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainCommand, TextsThatCannotBeTrainedOn) {
  const auto on = [&](const std::string& name) {
    return Words{"train", "--data", path(name), "--out", path("run")};
  };
  expect_fails(1, on("none.txt"), "none.txt\" cannot be opened: No such file or directory");
  expect_fails(1, {"train", "--data", path(""), "--out", path("run")}, "\" is not a regular file");
  ein::test::write_bytes(path("empty.txt"), "");
  expect_fails(1, on("empty.txt"), "empty.txt\" is empty");
  ein::test::write_bytes(path("short.txt"), "too short");
  expect_fails(2, on("short.txt"), "the text is too short");
  ein::test::write_bytes(path("latin.txt"), std::string(5000, '\xE9'));
  expect_fails(2, on("latin.txt"), "not valid UTF-8 at byte 0");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainCommand, PlacesThatCannotBeWrittenTo) {
  expect_fails(1, train("text.txt"), "cannot be made");
  expect_fails(1, train("text.txt/run"), "cannot be made");
  fs::create_directories(path("taken/log.jsonl"));
  expect_fails(1, train("taken"), "log.jsonl\" is not a regular file");
  const ein::test::FileSizeLimit limit(8000);
  const Outcome outcome = ein(train("full"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("step-000000.safetensors\" cannot be written"), std::string::npos)
      << outcome.err;
}

TEST_F(TrainCommand, AnotherModelCannotGoOn) {
  expect_succeeds(train("run"));
  const auto resumed = [&](const std::string& option, const std::string& value) {
    return train("run",
                 value.empty() ? Words{"--resume", option} : Words{"--resume", option, value});
  };
  expect_fails(2, resumed("--n-embd", "16"), "is of another model: n_embd 8 for 16");
  expect_fails(2, resumed("--n-layer", "2"), "is of another model: n_layer 1 for 2");
  expect_fails(2, resumed("--n-head", "1"), "is of another model: n_head 2 for 1");
  expect_fails(2, resumed("--block-size", "16"), "is of another model: block_size 8 for 16");
  expect_fails(2, resumed("--no-bias", ""), "is of another model: bias 1 for 0");
  std::string text = ein::test::read_bytes(path("text.txt"));
  for (char& c : text) c = c == 'q' ? 'Q' : c;
  ein::test::write_bytes(path("text.txt"), text);
  expect_fails(2, train("run", {"--resume"}), "was trained on a text with other characters");
}

// --- ein sample ---

TEST_F(TrainCommand, SamplesFromWhatWasTrained) {
  for (const Words& more : {Words{}, Words{"--no-bias"}}) {
    fs::remove_all(path("run"));
    expect_succeeds(train("run", more));
    const std::string text = sample({});
    EXPECT_EQ(text.size(), 4 + 30 + 1u);  // prompt, tokens, a new line
    EXPECT_EQ(text.rfind("the ", 0), 0u);
    EXPECT_EQ(sample({}), text);
    EXPECT_NE(sample({"--seed", "7"}), text);
    const std::string likeliest = sample({"--temperature", "0"});
    EXPECT_EQ(sample({"--temperature", "0", "--seed", "7"}), likeliest);
    EXPECT_EQ(sample({"--top-k", "1"}), likeliest);
  }
  const Words from_file{"sample",   "--from", path("run/step-000004.safetensors"), "--tokens", "0",
                        "--prompt", "fox"};
  EXPECT_EQ(ein(from_file).out, "fox\n");
}

TEST_F(TrainCommand, WithoutAPromptSamplesBeginWithANewLineIfTheTextHasOne) {
  expect_succeeds(train("run"));
  const Words words{"sample", "--from", path("run"), "--tokens", "0"};
  EXPECT_EQ(ein(words).out, "\n\n");
  fs::remove_all(path("run"));
  std::string text = ein::test::read_bytes(path("text.txt"));
  for (char& c : text) c = c == '\n' || c == ' ' ? '.' : c;
  ein::test::write_bytes(path("text.txt"), text);
  expect_succeeds(train("run"));
  EXPECT_EQ(ein(words).out, ".\n");
}

TEST_F(TrainCommand, MistakesOfSampling) {
  expect_fails(2, {"sample"}, "--from is required");
  expect_fails(1, {"sample", "--from", path("none")}, "none");
  expect_fails(1, {"sample", "--from", path("")}, "no checkpoint");
  expect_succeeds(train("run"));
  const auto with = [&](const Words& more) {
    Words words{"sample", "--from", path("run")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_fails(2, with({"--tokens", "few"}), "--tokens: 'few' is no whole number");
  expect_fails(2, with({"--tokens", "-1"}), "tokens is -1");
  expect_fails(2, with({"--temperature", "-1"}),
               "temperature is -1, at least 0 and finite is wanted");
  expect_fails(2, with({"--temperature", "nan"}), "--temperature: 'nan' is no number");
  expect_fails(2, with({"--top-k", "-1"}), "top k is -1");
  expect_fails(2, with({"--prompt", ""}), "--prompt: its value is empty");
  expect_fails(2, with({"--prompt", "é"}), "U+00E9");
}

TEST_F(TrainCommand, CorruptCheckpointsAreRefused) {
  expect_succeeds(train("run"));
  const std::string file = path("run/step-000004.safetensors");
  const std::string whole = ein::test::read_bytes(file);
  std::string bytes = whole;
  bytes[bytes.size() / 2] ^= 1;
  for (const std::string& damaged : {bytes, whole.substr(0, whole.size() / 2), std::string()}) {
    ein::test::write_bytes(file, damaged);
    expect_fails(1, {"sample", "--from", file}, "is damaged");
  }
  for (const std::string name : {"0", "2", "4"})
    ein::test::write_bytes(path("run/step-00000" + name + ".safetensors"), "");
  expect_fails(1, {"sample", "--from", path("run")}, "has no whole checkpoint");
  expect_fails(1, train("run", {"--resume"}), "has no whole checkpoint");
  ein::test::write_bytes(path("run/manifest.json"), "{");
  expect_fails(1, {"sample", "--from", path("run")}, "manifest.json");
  // A file of weights alone does not say what model they are of.
  const std::string weights = std::string(EIN_TEST_DATA) + "/train/plain.safetensors";
  expect_fails(1, {"sample", "--from", weights}, "is no checkpoint of ein train");
}

}  // namespace
