// The ein command as a shell sees it: words in; stdout, stderr, exit code and files out.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A .npy file as the format's specification describes it, written without ein.
void write_npy(const fs::path& path, const std::string& descr, const std::string& shape,
               const std::string& bytes) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  const std::string size{static_cast<char>(header.size() & 0xFF),
                         static_cast<char>(header.size() >> 8)};
  std::ofstream(path, std::ios::binary)
      << std::string("\x93NUMPY\x01\x00", 8) << size << header << bytes;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ein-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome ein(std::vector<std::string> words, const std::string& stdout_to = "") const {
    const std::string out = stdout_to.empty() ? path("stdout") : stdout_to;
    const std::string err = path("stderr");
    words.insert(words.begin(), EIN_COMMAND);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int error = posix_spawn(&child, EIN_COMMAND, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0) << std::strerror(error);
    Outcome outcome;
    int status = 0;
    if (error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
      outcome.exit_code = WEXITSTATUS(status);
    }
    if (stdout_to.empty()) outcome.out = content(out);
    outcome.err = content(err);
    return outcome;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// The names of the files that a test left, but for the captured streams.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (name != "stdout" && name != "stderr") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Succeeds, prints `out` and nothing on stderr.
  void expect_prints(const std::vector<std::string>& words, const std::string& out) const {
    const Outcome outcome = ein(words);
    EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(words);
    EXPECT_EQ(outcome.out, out) << testing::PrintToString(words);
    EXPECT_EQ(outcome.err, "") << testing::PrintToString(words);
  }
  /// Fails with the exit code, nothing on stdout and a message that begins with "ein: " and holds
  /// `text`.
  void expect_fails(int exit_code, const std::vector<std::string>& words,
                    const std::string& text) const {
    const Outcome outcome = ein(words);
    EXPECT_EQ(outcome.exit_code, exit_code) << testing::PrintToString(words);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(words);
    EXPECT_EQ(outcome.err.rfind("ein: ", 0), 0u) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << testing::PrintToString(words) << "\n"
                                                         << outcome.err;
    EXPECT_EQ(outcome.err.back(), '\n');
  }

  /// x (2, 3) f32: 1 2 3 / 4 5 6.
  void write_x() const {
    write_npy(path("x.npy"), "<f4", "(2, 3)", bytes_of<float>({1, 2, 3, 4, 5, 6}));
  }

  fs::path folder_;
};

// --- the command ---

TEST_F(Cli, HelpTeachesByExamples) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"check", "--help"},
                                             {"run", "--help"},
                                             {"emit", "--help"},
                                             {"draw", "--help"},
                                             {"cost", "--help"},
                                             {"bench", "--help"},
                                             {"step", "--help"},
                                             {"devices", "--help"},
                                             {"napkin", "--help"},
                                             {"plan", "--help"},
                                             {"account", "--help"},
                                             {"tokenize", "--help"},
                                             {"tokenize", "train", "--help"},
                                             {"tokenize", "encode", "--help"},
                                             {"tokenize", "decode", "--help"},
                                             {"train", "--help"},
                                             {"sample", "--help"},
                                             {"launch", "--help"},
                                             {"check", "einsum", "-h"}}) {
    const Outcome outcome = ein(words);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find("Examples:"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("Exit code"), std::string::npos) << outcome.out;
  }
}

// Every example of `ein check --help` prints what the help says it does.
TEST_F(Cli, ExamplesOfCheckAreTrue) {
  std::vector<std::string> lines;
  std::string line;
  for (char c : ein({"check", "--help"}).out) {
    if (c != '\n') {
      line += c;
      continue;
    }
    lines.push_back(line);
    line.clear();
  }
  int examples = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind("  ein check ", 0) != 0) continue;
    std::vector<std::string> words;
    bool quoted = false;
    bool open = false;
    for (char c : lines[i].substr(6)) {
      if (c == '\'') {
        quoted = !quoted;
        if (quoted && !open) words.emplace_back();
        open = true;
      } else if (c == ' ' && !quoted) {
        open = false;
      } else {
        if (!open) words.emplace_back();
        open = true;
        words.back() += c;
      }
    }
    std::string promised;
    while (i + 1 < lines.size() && lines[i + 1].rfind("      ", 0) == 0) {
      promised += lines[++i].substr(6);
      promised = promised.substr(0, promised.find("    ")) + "\n";
    }
    expect_prints(words, promised);
    ++examples;
  }
  EXPECT_GE(examples, 8);
}

TEST_F(Cli, Version) { expect_prints({"--version"}, "ein 0.1.0\n"); }

TEST_F(Cli, UsageErrors) {
  expect_fails(
      2, {},
      "check, run, emit, draw, cost, bench, step, devices, napkin, plan, account, tokenize, "
      "train, sample or launch");
  expect_fails(
      2, {"chek"},
      "check, run, emit, draw, cost, bench, step, devices, napkin, plan, account, tokenize, "
      "train, sample or launch");
  expect_fails(
      2, {"--bogus"},
      "check, run, emit, draw, cost, bench, step, devices, napkin, plan, account, tokenize, "
      "train, sample or launch");
  expect_fails(2, {"check"}, "OP is required");
  expect_fails(2, {"check", "einsum"}, "PATTERN is required");
  expect_fails(2, {"check", "einsom", "a -> a"},
               "unknown operation 'einsom'; it may be einsum, reduce");
  expect_fails(2, {"check", "place", "a@x"}, "unknown operation 'place'");
  expect_fails(2, {"check", "einsum", "a -> a", "b -> b"}, "not expected: b -> b");
  expect_fails(2, {"check", "einsum", "a -> a", "--shap=3"}, "--shap=3");
  expect_fails(2, {"check", "einsum", "a -> a", "--shape"}, "--shape");
  expect_fails(2, {"check", "reduce", "a ->", "--by", "max", "--by", "min"}, "--by");
  expect_fails(2, {"run", "einsum", "a -> a"}, "IN is required");
  expect_fails(2, {"emit", "einsum", "a -> a"}, "PATTERN is required");
}

TEST_F(Cli, AFullDeviceIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const Outcome outcome = ein({"check", "einsum", "a -> a", "--shape", "3"}, "/dev/full");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("ein: cannot write"), std::string::npos) << outcome.err;
  for (const char* word : {"--version", "--help"}) {
    const Outcome text = ein({word}, "/dev/full");
    EXPECT_EQ(text.exit_code, 1) << word;
    EXPECT_NE(text.err.find("ein: cannot write"), std::string::npos) << text.err;
  }
}

TEST_F(Cli, AnOptionsValueIsNotEmpty) {
  expect_fails(2,
               {"napkin", "train", "--params", "70e9", "--tokens", "15e12", "--device", "h100-sxm",
                "--count", ""},
               "--count: its value is empty");
  expect_fails(2, {"cost", "einsum", "a -> a", "--shape", "3", "--device="},
               "--device: its value is empty");
}

TEST_F(Cli, AStepIsRefusedThatTheMachineHasNoMemoryFor) {
  for (const char* form : {"cuda", "time"})
    expect_fails(1, {"step", form, "--n-layer", "1000000000"},
                 "step: the model, its optimizer and the tokens of a step take");
  expect_fails(2,
               {"step", "cuda", "--batch-size", "4000000000000", "--grad-accum", "4000000000000"},
               "above 2^63 - 1");
}

// --- words that look like something else ---

TEST_F(Cli, PatternsThatBeginWithADash) {
  expect_prints({"check", "repeat", "-> 3", "--shape", ""}, "(3,)\n");
  expect_prints({"check", "repeat", "->3", "--shape", ""}, "(3,)\n");
  expect_prints({"check", "repeat", "--shape=", "-> 3"}, "(3,)\n");
  expect_prints({"check", "repeat", "--shape=", "--", "-> 3"}, "(3,)\n");
  expect_fails(2, {"check", "einsum", "-> a", "--shape", ""},
               "axis 'a' of the output is in no input\n  -> a\n     ^");
  expect_fails(2, {"check", "einsum", "- > a", "--shape", ""},
               "an arrow is written '->'\n  - > a\n  ^");
  expect_fails(2, {"check", "einsum", "-", "--shape", ""}, "an arrow is written '->'");
}

TEST_F(Cli, EmptyWords) {
  expect_prints({"check", "einsum", "->", "--shape", ""}, "()\n");
  expect_prints({"check", "einsum", "->", "--shape="}, "()\n");
  expect_prints({"check", "parse_shape", "", "--shape", ""}, "\n");
  expect_fails(2, {"check", "einsum", ""}, "the pattern has no '->'");
  expect_fails(2, {"check", "", "a -> a"}, "unknown operation ''");
}

TEST_F(Cli, PatternsThatNameASubcommandOrLookLikeAList) {
  expect_prints({"check", "parse_shape", "check", "--shape", "3"}, "check=3\n");
  expect_prints({"check", "parse_shape", "run", "--shape", "3"}, "run=3\n");
  expect_fails(2, {"check", "einsum", "[a,b]", "--shape", "3"},
               "'[' is never closed\n  [a,b]\n  ^");
  expect_fails(2, {"check", "einsum", "{}", "--shape", "{}"}, "--shape '{}'");
}

// --- check ---

TEST_F(Cli, CheckPrintsTheShapeOfEachResult) {
  expect_prints({"check", "einsum", "i j, j k -> i k", "--shape", "2,3", "--shape", "3,5"},
                "(2, 5)\n");
  expect_prints({"check", "reduce", "b c h w -> b c", "--by", "mean", "--shape=8,3,5,7"},
                "(8, 3)\n");
  expect_prints(
      {"check", "rearrange", "b s (h d) -> b h s d", "--shape", "2,128,512", "--axis", "h=8"},
      "(2, 8, 128, 64)\n");
  expect_prints({"check", "repeat", "h w -> (h k) w", "--shape", "3,4", "--axis", "k=2"},
                "(6, 4)\n");
  expect_prints({"check", "pack", "* c", "--shape", "7,3", "--shape", "3", "--shape", "2,2,3"},
                "(12, 3)\npacked: (7,), (), (2, 2)\n");
  expect_prints({"check", "unpack", "* c", "--shape", "12,3", "--packed", "7", "--packed", "",
                 "--packed", "2,-1"},
                "(7, 3)\n(3,)\n(2, 2, 3)\n");
  expect_prints({"check", "parse_shape", "batch _ h", "--shape", "2,3,5"}, "batch=2 h=5\n");
}

TEST_F(Cli, CheckStacksSeveralShapes) {
  expect_prints({"check", "rearrange", "n h w -> h (n w)", "--shape", "2,3", "--shape", "2,3"},
                "(2, 6)\n");
  expect_prints(
      {"check", "reduce", "n h w -> h w", "--by", "max", "--shape", "2,3", "--shape", "2,3"},
      "(2, 3)\n");
  expect_prints({"check", "repeat", "n h -> n h 2", "--shape", "3", "--shape", "3"}, "(2, 3, 2)\n");
  expect_fails(2, {"check", "rearrange", "n h -> h n", "--shape", "2", "--shape", "3"},
               "differ in shape");
}

TEST_F(Cli, CheckWithoutShapesChecksThePatternAlone) {
  expect_prints({"check", "einsum", "a b, b c, c d -> a d"}, "ok\n");
  expect_prints({"check", "reduce", "a b -> a", "--by", "sum"}, "ok\n");
  expect_prints({"check", "rearrange", "a b -> b a"}, "ok\n");
  expect_prints({"check", "repeat", "a -> a k", "--axis", "k=2"}, "ok\n");
  expect_prints({"check", "pack", "a *"}, "ok\n");
  expect_prints({"check", "unpack", "a *"}, "ok\n");
  expect_prints({"check", "parse_shape", "a _ ..."}, "ok\n");
  expect_fails(2, {"check", "rearrange", "a b -> a"}, "axis 'b' is lost");
  expect_fails(2, {"check", "rearrange", "(a b) -> a b"}, "more than one size is unknown");
  expect_fails(2, {"check", "pack", "a b"}, "the pattern has no '*'");
  expect_fails(2, {"check", "einsum", "a b) -> a b"}, "')' closes nothing\n  a b) -> a b\n     ^");
}

TEST_F(Cli, CheckPointsAtSizesThatDisagree) {
  expect_fails(2, {"check", "einsum", "i j, j k -> i k", "--shape", "2,3", "--shape", "4,5"},
               "axis 'j' has two sizes: 3 in operand 1, 4 in operand 2\n  i j, j k -> i k\n    ^  "
               "^\n    3  4\n");
  expect_fails(2, {"check", "rearrange", "(a b) -> a b", "--shape", "6", "--axis", "a=4"},
               "cannot be split");
  expect_fails(2, {"check", "einsum", "i j -> i", "--shape", "2"},
               "operand 1 has 1 axis, the pattern wants 2");
  expect_fails(2, {"check", "einsum", "i, j -> i j", "--shape", "2"}, "2 operands, the call has 1");
  expect_fails(2, {"check", "unpack", "*", "--shape", "5", "--packed", "2", "--packed", "2"},
               "4 elements");
  expect_fails(2, {"check", "parse_shape", "a b", "--shape", "2"}, "operand 1 has 1 axis");
}

TEST_F(Cli, AxisSizesMustBeSizes) {
  const auto with = [](std::vector<std::string> axes) {
    std::vector<std::string> words{"check", "rearrange", "(a b) -> a b", "--shape", "6"};
    for (std::string& axis : axes) words.insert(words.end(), {"--axis", std::move(axis)});
    return words;
  };
  expect_prints(with({"a=2"}), "(2, 3)\n");
  expect_prints(with({"a=2", "b=3"}), "(2, 3)\n");
  expect_fails(2, with({"a=abc"}), "--axis 'a=abc': 'abc' is not a size");
  expect_fails(2, with({"a"}), "NAME=SIZE");
  expect_fails(2, with({"=2"}), "NAME=SIZE");
  expect_fails(2, with({""}), "NAME=SIZE");
  expect_fails(2, with({"a="}), "'' is not a size");
  expect_fails(2, with({"a=2.5"}), "'2.5' is not a size");
  expect_fails(2, with({"a=+2"}), "'+2' is not a size");
  expect_fails(2, with({"a=-2"}), "-2 is less than 0");
  expect_fails(2, with({"a=9223372036854775808"}), "exceeds 63 bits");
  expect_fails(2, with({"a=-9223372036854775809"}), "exceeds 63 bits");
  expect_fails(2, with({"a=9223372036854775807"}), "cannot be split");
  expect_fails(2, with({"a=2", "a=2"}), "the size of axis 'a' is given twice");
  expect_fails(2, with({"z=2"}), "axis 'z', which the pattern does not have");
  expect_fails(2, {"check", "parse_shape", "a", "--axis", "a=2"}, "--axis is not for parse_shape");
  expect_fails(2, {"check", "pack", "a *", "--axis", "a=2"}, "--axis is not for pack");
}

TEST_F(Cli, ShapesMustBeShapes) {
  const auto with = [](const std::string& shape) {
    return std::vector<std::string>{"check", "einsum", "... -> ...", "--shape", shape};
  };
  expect_prints(with("2, 3"), "(2, 3)\n");
  expect_prints(with("0,3"), "(0, 3)\n");
  expect_fails(2, with("2,x"), "'x' is not a size");
  expect_fails(2, with("2,"), "'' is not a size");
  expect_fails(2, with("2 3"), "'2 3' is not a size");
  expect_fails(2, with("-1,3"), "-1 is less than 0");
  expect_fails(2, with("99999999999999999999"), "exceeds 63 bits");
  expect_fails(2, with("9223372036854775807,2"), "2^63 - 1");
  expect_fails(2, {"check", "unpack", "*", "--shape", "5", "--packed", "-2"}, "-2 is less than -1");
}

TEST_F(Cli, OptionsBelongToTheirOperations) {
  expect_fails(2, {"check", "reduce", "a ->", "--shape", "3"},
               "reduce needs --by; it may be sum, mean, max");
  expect_fails(2, {"check", "reduce", "a ->", "--shape", "3", "--by", "average"},
               "unknown reduction 'average'");
  expect_fails(2, {"check", "einsum", "a ->", "--shape", "3", "--by", "sum"},
               "--by is for reduce, not for einsum");
  expect_fails(2, {"check", "pack", "*", "--shape", "3", "--packed", "3"},
               "--packed is for unpack, not for pack");
  expect_fails(2, {"check", "unpack", "*", "--shape", "3"}, "unpack needs --packed");
  expect_fails(2, {"check", "unpack", "*", "--shape", "3", "--shape", "3", "--packed", "3"},
               "takes one operand");
  expect_fails(2, {"check", "einsum", "a -> a", "--shape", "3", "--dtype", "float"},
               "unknown dtype 'float'");
  expect_fails(2, {"check", "reduce", "a ->", "--shape", "3", "--by", "mean", "--dtype", "bool"},
               "bool");
}

// --- run ---

TEST_F(Cli, RunPrintsResults) {
  write_x();
  expect_prints({"run", "rearrange", "a b -> b a", path("x.npy")},
                "(3, 2) f32\n[[1, 4],\n [2, 5],\n [3, 6]]\n");
  expect_prints({"run", "reduce", "a b -> a", path("x.npy"), "--by", "mean"}, "(2,) f32\n[2, 5]\n");
  expect_prints({"run", "reduce", "a b ->", path("x.npy"), "--by", "prod"}, "() f32\n720\n");
  expect_prints({"run", "repeat", "a b -> a b k", "--axis", "k=1", path("x.npy")},
                "(2, 3, 1) f32\n[[[1],\n  [2],\n  [3]],\n [[4],\n  [5],\n  [6]]]\n");
  expect_prints({"run", "einsum", "a b, c b -> a c", path("x.npy"), path("x.npy")},
                "(2, 2) f32\n[[14, 32],\n [32, 77]]\n");
  expect_prints({"run", "unpack", "a *", "--packed", "", "--packed=-1", path("x.npy")},
                "(2,) f32\n[1, 4]\n(2, 2) f32\n[[2, 3],\n [5, 6]]\n");
  expect_prints({"run", "pack", "*", path("x.npy"), path("x.npy")},
                "(12,) f32\n[1, 2, 3, 4, ..., 3, 4, 5, 6]\npacked: (2, 3), (2, 3)\n");
  expect_prints({"run", "parse_shape", "rows _", path("x.npy")}, "rows=2\n");
  expect_prints({"run", "rearrange", "a c, b c -> (a + b) c", path("x.npy"), path("x.npy")},
                "(4, 3) f32\n[[1, 2, 3],\n [4, 5, 6],\n [1, 2, 3],\n [4, 5, 6]]\n");
  expect_prints({"run", "rearrange", "a (b + c) -> a b, c a", path("x.npy"), "--axis", "b=1"},
                "(2, 1) f32\n[[1],\n [4]]\n(2, 2) f32\n[[2, 5],\n [3, 6]]\n");
  expect_prints({"run", "reduce", "a {s*b + k} -> a b", path("x.npy"), "--by", "sum", "--axis",
                 "k=2", "--number", "s=1"},
                "(2, 2) f32\n[[3, 5],\n [9, 11]]\n");
  EXPECT_EQ(files(), std::vector<std::string>{"x.npy"});
}

TEST_F(Cli, RunWritesFiles) {
  write_x();
  expect_prints({"run", "rearrange", "a b -> b a", path("x.npy"), "-o", path("y.npy")}, "");
  write_npy(path("wanted.npy"), "<f4", "(3, 2)", bytes_of<float>({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(content(path("y.npy")), content(path("wanted.npy")));

  expect_prints({"run", "pack", "a *", path("x.npy"), path("x.npy"), "--output=" + path("p.npy")},
                "packed: (3,), (3,)\n");
  write_npy(path("wanted.npy"), "<f4", "(2, 6)",
            bytes_of<float>({1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(content(path("p.npy")), content(path("wanted.npy")));

  expect_prints({"run", "unpack", "a *", path("p.npy"), "--packed", "3", "--packed", "-1", "-o",
                 path("1.npy"), "-o", path("2.npy")},
                "");
  EXPECT_EQ(content(path("1.npy")), content(path("x.npy")));
  EXPECT_EQ(content(path("2.npy")), content(path("x.npy")));
}

TEST_F(Cli, RunKeepsTheDtype) {
  write_npy(path("i.npy"), "<i4", "(3,)", bytes_of<std::int32_t>({3, -1, 2000000000}));
  expect_prints({"run", "reduce", "a ->", path("i.npy"), "--by", "max", "-o", path("m.npy")}, "");
  write_npy(path("wanted.npy"), "<i4", "()", bytes_of<std::int32_t>({2000000000}));
  EXPECT_EQ(content(path("m.npy")), content(path("wanted.npy")));
  write_npy(path("d.npy"), "<f8", "(2,)", bytes_of<double>({1e300, 1}));
  expect_prints({"run", "einsum", "a -> a", path("d.npy"), "-o", path("e.npy")}, "");
  EXPECT_EQ(content(path("e.npy")), content(path("d.npy")));
  expect_fails(2, {"run", "einsum", "a, b -> a b", path("i.npy"), path("d.npy")},
               "operands have different dtypes");
}

TEST_F(Cli, RunStacksSeveralFiles) {
  write_x();
  expect_prints({"run", "reduce", "n a b -> a b", path("x.npy"), path("x.npy"), "--by", "sum"},
                "(2, 3) f32\n[[2, 4, 6],\n [8, 10, 12]]\n");
  expect_prints({"run", "rearrange", "n a b -> a (n b)", path("x.npy"), path("x.npy")},
                "(2, 6) f32\n[[1, 2, 3, 1, 2, 3],\n [4, 5, 6, 4, 5, 6]]\n");
}

TEST_F(Cli, RunMayReplaceItsInput) {
  write_x();
  expect_prints({"run", "rearrange", "a b -> b a", path("x.npy"), "-o", path("x.npy")}, "");
  write_npy(path("wanted.npy"), "<f4", "(3, 2)", bytes_of<float>({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(content(path("x.npy")), content(path("wanted.npy")));
}

TEST_F(Cli, FilesThatFailAreExitCodeOne) {
  write_x();
  std::ofstream(path("text.npy")) << "no array";
  expect_fails(1, {"run", "einsum", "a -> a", path("none.npy")}, "none.npy");
  expect_fails(1, {"run", "einsum", "a -> a", path("text.npy")}, "text.npy");
  expect_fails(1, {"run", "einsum", "a -> a", folder_.string()}, folder_.string());
  expect_fails(1, {"run", "einsum", "a b -> a b", path("x.npy"), "-o", path("no/y.npy")},
               "no/y.npy");
}

TEST_F(Cli, RunThatFailsLeavesNoFiles) {
  write_x();
  const std::string before = content(path("x.npy"));
  expect_fails(2, {"run", "rearrange", "a b -> a", path("x.npy"), "-o", path("y.npy")},
               "axis 'b' is lost");
  expect_fails(1,
               {"run", "unpack", "a *", path("x.npy"), "--packed", "1", "--packed", "2", "-o",
                path("y.npy"), "-o", path("no/z.npy")},
               "no/z.npy");
  expect_fails(2,
               {"run", "unpack", "a *", path("x.npy"), "--packed", "1", "--packed", "2", "-o",
                path("y.npy")},
               "unpack has 2 results, -o is given 1 time");
  expect_fails(2,
               {"run", "unpack", "a *", path("x.npy"), "--packed", "1", "--packed", "2", "-o",
                path("y.npy"), "-o", path("./y.npy")},
               "is given twice");
  expect_fails(2, {"run", "parse_shape", "a b", path("x.npy"), "-o", path("y.npy")},
               "parse_shape has 0 results");
  EXPECT_EQ(files(), std::vector<std::string>{"x.npy"});
  EXPECT_EQ(content(path("x.npy")), before);
}

// --- emit ---

TEST_F(Cli, EmitGraph) {
  const Outcome outcome = ein({"emit", "graph", "einsum", "i j, j k -> i k", "--shape", "2,3",
                               "--shape", "3,5", "--dtype", "f64"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("contract"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("f64 (2, 5)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nFLOPs: 60\n"), std::string::npos) << outcome.out;  // 2 · 2 · 3 · 5
}

TEST_F(Cli, EmitGraphCountsBothOrders) {
  const Outcome outcome = ein({"emit", "graph", "einsum", "i j, j k, k l -> i l", "--shape",
                               "9,100", "--shape", "100,100", "--shape", "100,2"});
  // As written 3 · 9·100·100·2; pairwise at best 2 · 100·100·2 + 2 · 9·100·2.
  EXPECT_NE(outcome.out.find("\nFLOPs: 540000 as written, 43600 two operands at a time\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Cli, EmitNest) {
  const Outcome outcome =
      ein({"emit", "nest", "einsum", "i j, j k -> i k", "--shape", "2,3", "--shape", "3,5"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"i in 0..2", "k in 0..5", "reduce j in 0..3", "x0 * x1", "return"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
}

TEST_F(Cli, EmitNestOfComplexNumbers) {
  const Outcome outcome = ein({"emit", "nest", "einsum", "i j, j k -> i k", "--shape", "2,3",
                               "--shape", "3,5", "--dtype", "c64"});
  EXPECT_EQ(outcome.exit_code, 0);
  // Two numbers for each element, also where they are read.
  for (const char* text :
       {"b0: input, 12 f32", "b1: input, 30 f32", "b1[10·j + (k re im)]", "b0[6·i + (j re im')]"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
}

TEST_F(Cli, EmitEveryOperation) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"einsum", "a b -> b"},
                                             {"reduce", "a b -> a", "--by", "logsumexp"},
                                             {"rearrange", "a b -> (b a)"},
                                             {"repeat", "a b -> a k b", "--axis", "k=3"},
                                             {"pack", "a *", "--shape", "4"},
                                             {"unpack", "a *", "--packed", "1", "--packed=-1"}}) {
    for (const char* form : {"graph", "nest"}) {
      std::vector<std::string> words{"emit", form};
      words.insert(words.end(), call.begin(), call.end());
      words.insert(words.end(), {"--shape", "4,5"});
      const Outcome outcome = ein(words);
      EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(words) << outcome.err;
      EXPECT_NE(outcome.out.find("return"), std::string::npos) << outcome.out;
    }
  }
}

TEST_F(Cli, EmitErrors) {
  expect_fails(2, {"emit", "nets", "einsum", "a -> a", "--shape", "3"},
               "unknown form 'nets'; it may be graph, svg, nest, cuda or cubin");
  expect_fails(2, {"emit", "graph", "einsum", "a -> a"}, "emit needs --shape");
  expect_fails(2, {"emit", "graph", "parse_shape", "a", "--shape", "3"},
               "parse_shape computes nothing");
  expect_fails(2, {"emit", "nest", "einsum", "a b -> a", "--shape", "3"}, "operand 1 has 1 axis");
}

}  // namespace
