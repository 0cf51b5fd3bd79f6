// Runs of ein train and their directories: one run at a time has one, none destroys another, and
// those that are ended leave a whole checkpoint. A step that memory cannot hold has its bill first.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include "machine/memory_limit.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::Child;
using Words = std::vector<std::string>;

class TrainRuns : public testing::Test {
 protected:
  TrainRuns() {
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 200; ++i) text << "the quick brown fox " << i << " jumps\n";
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

  /// A small run; of an option that is given twice the last counts.
  Words train(const std::string& out, const Words& more = {}) const {
    std::vector<std::pair<std::string, std::string>> options{{"--data", path("text.txt")},
                                                             {"--out", path(out)},
                                                             {"--block-size", "8"},
                                                             {"--batch-size", "4"},
                                                             {"--n-layer", "1"},
                                                             {"--n-head", "2"},
                                                             {"--n-embd", "8"},
                                                             {"--max-iters", "4"},
                                                             {"--eval-iters", "2"},
                                                             {"--eval-interval", "2"},
                                                             {"--warmup-iters", "1"}};
    Words words{EIN_COMMAND, "train"};
    for (std::size_t i = 0; i < more.size(); ++i) {
      const auto known = std::find_if(options.begin(), options.end(),
                                      [&](const auto& option) { return option.first == more[i]; });
      if (known != options.end())
        known->second = more[++i];
      else
        words.push_back(more[i]);
    }
    for (const auto& [name, value] : options) words.insert(words.end(), {name, value});
    return words;
  }
  static Words launched(int processes, const Words& words) {
    Words all{EIN_COMMAND, "launch", "-n", std::to_string(processes), "--"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  void expect_ends(int exit_code, const Words& words, const std::string& part = "") const {
    Child child(words, path("out.txt"));
    EXPECT_EQ(child.wait(), exit_code) << child.text();
    EXPECT_NE(child.text().find(part), std::string::npos) << part << "\n" << child.text();
  }
  /// All files of a run but the picture and the log's times.
  std::map<std::string, std::string> files(const std::string& out) const {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::recursive_directory_iterator(path(out))) {
      if (file.is_regular_file())
        files[fs::relative(file.path(), path(out)).string()] =
            test::read_bytes(file.path().string());
    }
    return files;
  }
  std::vector<nlohmann::json> log(const std::string& out) const {
    std::vector<nlohmann::json> lines;
    std::ifstream text(path(out) + "/log.jsonl");
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  void wait_for(const std::string& name) const {
    for (int i = 0; i < 3000 && !fs::exists(path(name)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(fs::exists(path(name))) << name;
  }
  /// Until the log has so many lines, however fast the machine is at the moment.
  void wait_for_lines(const std::string& out, std::size_t count) const {
    wait_for(out);
    const auto lines = [&] {
      std::ifstream text(path(out) + "/log.jsonl");
      return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(text), {}, '\n'));
    };
    for (int i = 0; i < 30000 && lines() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_GE(lines(), count);
  }

  /// What a run that a signal ended has left: the state after the last step that the log has, and
  /// nothing that is half written or nobody's.
  void expect_whole(const std::string& out) const {
    const Checkpoint last = load_checkpoint(path(out));
    EXPECT_EQ(last.note, "");
    std::int64_t steps = 0;
    for (const auto& line : log(out)) {
      if (line.contains("loss")) {
        EXPECT_EQ(line["step"], ++steps);
      }
    }
    EXPECT_EQ(last.step, steps);
    std::size_t checkpoints = 0;
    for (const auto& entry : fs::directory_iterator(path(out))) {
      const std::string name = entry.path().filename().string();
      checkpoints += name.starts_with("step-");
      EXPECT_FALSE(name.starts_with(".ein-")) << name;
    }
    EXPECT_LE(checkpoints, 3u);
  }

  test::ScratchDirectory scratch_;
};

// --- One run at a time, and none on top of another ---

TEST_F(TrainRuns, ADirectoryThatHasARunIsRefused) {
  expect_ends(0, train("run"));
  test::write_bytes(path("run/notes.txt"), "mine");
  const auto before = files("run");
  const std::string refusal = "\"" + path("run") +
                              "\" has a run up to step 4\n  help: --resume goes on with it, "
                              "--overwrite removes it, another --out leaves it alone";
  expect_ends(2, train("run"), refusal);
  expect_ends(2, train("run", {"--init-from", path("run")}), refusal);
  expect_ends(2, launched(2, train("run", {"--mesh", "data=2"})), refusal);
  expect_ends(2, train("run", {"--resume", "--overwrite"}), "give one of them");
  EXPECT_EQ(files("run"), before);

  expect_ends(0, train("run", {"--resume", "--max-iters", "6"}));
  EXPECT_EQ(load_checkpoint(path("run")).step, 6);
  // One that is overwritten is gone at once, and may still give its weights.
  expect_ends(0, train("run", {"--overwrite", "--max-iters", "0", "--init-from", path("run")}));
  auto left = files("run");
  EXPECT_EQ(left.size(), 5u);
  EXPECT_EQ(left.at("notes.txt"), "mine");
  EXPECT_TRUE(left.contains("step-000000.safetensors"));
  EXPECT_EQ(log("run").size(), 1u);
  expect_ends(0, train("new", {"--overwrite"}));
}

TEST_F(TrainRuns, TheLogAloneIsARunToo) {
  fs::create_directory(path("run"));
  test::write_bytes(path("run/log.jsonl"), "");  // of nothing
  expect_ends(0, train("run", {"--max-iters", "0"}));
  fs::remove_all(path("run"));
  fs::create_directory(path("run"));
  test::write_bytes(path("run/log.jsonl"), "{\"of another program\": 1}\n");
  expect_ends(2, train("run"), "has the log of a run, log.jsonl, and no checkpoint");
  EXPECT_EQ(test::read_bytes(path("run/log.jsonl")), "{\"of another program\": 1}\n");
  test::write_bytes(path("run/manifest.json"), "damaged");
  expect_ends(1, train("run"), "manifest.json\" is damaged");
  expect_ends(1, train("run", {"--overwrite"}), "manifest.json\" is damaged");
}

TEST_F(TrainRuns, WhatAKilledSaveLeftGoesWhenARunGoesOn) {
  expect_ends(0, train("run"));
  const std::string dropped = "step-000003.safetensors";
  const auto names = [&] {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files("run")) names.push_back(name);
    return names;
  };
  const std::vector<std::string> whole = names();
  nlohmann::json manifest = nlohmann::json::parse(test::read_bytes(path("run/manifest.json")));
  manifest["dropped"].push_back(dropped);
  std::ofstream(path("run/manifest.json")) << manifest;
  std::ofstream(path("run/" + dropped)) << "half";
  std::ofstream(path("run/.ein-checkpoints.lock")) << "1 host boot";
  expect_ends(0, train("run", {"--resume"}));
  EXPECT_EQ(names(), whole);
}

TEST_F(TrainRuns, OneRunAtATimeHasADirectory) {
  const Words endless = train("run", {"--max-iters", "1000000", "--eval-interval", "1000"});
  Child first(endless, path("first.txt"));
  wait_for("run/manifest.json");
  const std::string refusal = "\"" + path("run") +
                              "\" is in use: another run has its lock .ein-run.lock, which names " +
                              "process " + std::to_string(first.id()) + " of this machine\n";
  expect_ends(1, train("run"), refusal);
  expect_ends(1, train("run", {"--resume"}), refusal);
  expect_ends(1, train("run", {"--overwrite"}), refusal);
  expect_ends(1, launched(2, train("run", {"--resume", "--mesh", "data=2"})), refusal);
  expect_ends(0, {EIN_COMMAND, "sample", "--from", path("run"), "--tokens", "3"});
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  EXPECT_TRUE(fs::exists(path("run/.ein-run.lock")));
  expect_ends(0, train("run", {"--resume", "--max-iters", "2000"}));
  EXPECT_FALSE(fs::exists(path("run/.ein-run.lock")));
  expect_whole("run");
}

// --- Signals ---

TEST_F(TrainRuns, ASignalEndsARunWithACheckpoint) {
  const Words options{"--max-iters", "300", "--eval-interval", "50", "--dropout", "0.1"};
  expect_ends(0, train("whole", options));
  const std::string last = "step-000300.safetensors";
  int ended = 0;
  test::for_seeds(8, [&](unsigned seed) {
    std::mt19937 random(seed);
    const int signal = seed % 2 == 0 ? SIGINT : SIGTERM;
    const std::string out = "run" + std::to_string(seed);
    Child child(train(out, options), path("out.txt"));
    wait_for_lines(out, random() % 300);
    child.send(signal);
    const int exit_code = child.wait();
    if (exit_code != 0) {
      ++ended;
      ASSERT_EQ(exit_code, 128 + signal) << child.text();
      EXPECT_NE(child.text().find(" ended the run; step " +
                                  std::to_string(load_checkpoint(path(out)).step) + " is saved"),
                std::string::npos)
          << child.text();
    }
    expect_whole(out);
    Words more = options;
    more.push_back("--resume");
    expect_ends(0, train(out, more));
    expect_whole(out);
    EXPECT_EQ(files(out).at(last), files("whole").at(last));
    EXPECT_EQ(log(out).size(), log("whole").size());
  });
  EXPECT_GE(ended, static_cast<int>(test::at_least(3)));
}

TEST_F(TrainRuns, ASecondSignalEndsItAtOnce) {
  Child child(train("run", {"--eval-iters", "100000000"}), path("out.txt"));
  wait_for("run/log.jsonl");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the evaluation has begun
  child.send(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(::kill(child.id(), 0), 0);  // the evaluation goes on
  child.send(SIGINT);
  EXPECT_EQ(child.wait(), -SIGINT) << child.text();
}

TEST_F(TrainRuns, ASignalThatIsIgnoredStaysSo) {
  Child child(train("run", {"--max-iters", "200"}), path("out.txt"), true);
  wait_for("run/log.jsonl");
  for (const int signal : {SIGINT, SIGTERM, SIGINT, SIGTERM}) child.send(signal);
  EXPECT_EQ(child.wait(), 0) << child.text();
  EXPECT_EQ(load_checkpoint(path("run")).step, 200);
}

TEST_F(TrainRuns, ASignalToAnyProcessOfAMeshEndsAll) {
  const Words options{"--max-iters", "400",    "--eval-interval", "50",
                      "--mesh",      "data=2", "--zero",          "1"};
  expect_ends(0, launched(2, train("whole", options)));
  int ended = 0;
  test::for_seeds(6, [&](unsigned seed) {
    std::mt19937 random(seed);
    const std::string out = "run" + std::to_string(seed);
    Child launcher(launched(2, train(out, options)), path("out.txt"));
    wait_for_lines(out, random() % 400);
    const std::vector<pid_t> processes = launcher.children();
    if (seed % 3 == 2 || processes.size() != 2)
      launcher.send(SIGTERM);
    else
      ::kill(processes[seed % 3], SIGTERM);
    const int exit_code = launcher.wait();
    if (exit_code != 0) {
      ++ended;
      ASSERT_EQ(exit_code, 128 + SIGTERM) << launcher.text();
    }
    expect_whole(out);
    Words more = options;
    more.push_back("--resume");
    expect_ends(0, launched(2, train(out, more)));
    for (const auto& [name, bytes] : files("whole")) {
      if (name.starts_with("step-000400/")) {
        EXPECT_EQ(files(out).at(name), bytes) << name;
      }
    }
  });
  EXPECT_GE(ended, static_cast<int>(test::at_least(3)));
}

// --- Memory ---

TEST_F(TrainRuns, AStepThatMemoryCannotHoldHasItsBillFirst) {
  // 16 bytes of a token are far fewer than there are, its 512 features in a layer far more.
  const auto tokens = static_cast<std::int64_t>(system::memory_limit().bytes / 2000);
  Child child(train("run", {"--n-embd", "512", "--batch-size", std::to_string(tokens / 8)}),
              path("out.txt"));
  EXPECT_EQ(child.wait(), 1) << child.text();
  std::size_t at = 0;
  for (const std::string part :
       {"memory of a step ", ", so it does not fit", "ein: train: a step takes ", " GB of memory, ",
        "  help: smaller batches, shorter blocks or a smaller model take less"}) {
    at = child.text().find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << child.text();
  }
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainRuns, WhatAControlGroupAllows) {
  const auto write = [&](const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    test::write_bytes(path(name), text);
  };
  const std::string root = path("");
  EXPECT_EQ(system::control_group_memory(root), std::numeric_limits<double>::infinity());
  write("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(system::control_group_memory(root), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(system::control_group_memory(root), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/a/memory.max", "1000000\n");
  EXPECT_EQ(system::control_group_memory(root), 1e6);
  write("sys/fs/cgroup/a/b/memory.max", "4096\n");
  EXPECT_EQ(system::control_group_memory(root), 4096);
  // Version 1; in a container the group's name is that outside, and the mount is its own.
  write("proc/self/cgroup", "12:cpu,cpuacct:/\n4:memory:/docker/x:y\n0::/\n");
  EXPECT_EQ(system::control_group_memory(root), std::numeric_limits<double>::infinity());
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n");
  EXPECT_EQ(system::control_group_memory(root), 8192);
  write("sys/fs/cgroup/memory/docker/x:y/memory.limit_in_bytes", "512\n");
  EXPECT_EQ(system::control_group_memory(root), 512);
  EXPECT_GT(system::memory_limit().bytes, 0x1p24);
  EXPECT_GE(system::available_memory(), 0);
}

}  // namespace
}  // namespace ein
