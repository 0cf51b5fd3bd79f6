// ein train on processes: the losses of one process, whatever the mesh; runs that are killed and go
// on, on the same mesh and on another.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/scratch.hpp"
#include "support/seeds.hpp"

extern char** environ;

namespace ein {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class MeshTrain : public testing::Test {
 protected:
  MeshTrain() {
    std::ofstream text(path("text.txt"));
    for (int i = 0; i < 200; ++i) text << "the quick brown fox " << i << " jumps\n";
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }

  /// The words of a run by so many processes, or by this command alone.
  Words words(int processes, const std::string& out, const Words& more) const {
    Words words{EIN_COMMAND};
    if (processes > 1)
      words.insert(words.end(), {"launch", "-n", std::to_string(processes), "--", EIN_COMMAND});
    words.insert(words.end(),
                 {"train", "--data", path("text.txt"), "--out", path(out), "--block-size", "16",
                  "--batch-size", "4", "--n-layer", "2", "--n-head", "2", "--n-embd", "16",
                  "--eval-iters", "2", "--warmup-iters", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  pid_t start(const Words& words) const {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, path("out.txt").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, pointers[0], &files, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&files);
    return child;
  }
  std::string text() const { return test::read_bytes(path("out.txt")); }
  void run(int processes, const std::string& out, const Words& more) const {
    int status = 0;
    waitpid(start(words(processes, out, more)), &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text();
  }

  /// The losses of the steps, and those of the evaluations.
  std::vector<double> losses(const std::string& out) const {
    std::vector<double> losses;
    std::ifstream log(path(out) + "/log.jsonl");
    for (std::string line; std::getline(log, line);) {
      const auto entry = nlohmann::json::parse(line);
      for (const char* key : {"loss", "train_loss", "val_loss"}) {
        if (entry.contains(key)) losses.push_back(entry[key]);
      }
    }
    return losses;
  }
  void expect_same_losses(const std::string& out, const std::string& as, double error) const {
    const std::vector<double> a = losses(out), b = losses(as);
    ASSERT_EQ(a.size(), b.size()) << out;
    ASSERT_FALSE(a.empty());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], error * b[i]) << out;
  }
  /// The bytes of all files of a checkpoint, by their names.
  std::map<std::string, std::string> checkpoint(const std::string& out, int step) const {
    const std::string number = std::to_string(step);
    std::map<std::string, std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(
             path(out) + "/step-" + std::string(6 - number.size(), '0') + number))
      files[file.path().filename().string()] = test::read_bytes(file.path().string());
    return files;
  }

  test::ScratchDirectory scratch_;
};

TEST_F(MeshTrain, LossesDoNotDependOnTheMesh) {
  const Words steps{"--max-iters", "10", "--eval-interval", "10"};
  const auto with = [&](const Words& more) {
    Words words = steps;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  run(1, "one", steps);
  const std::pair<int, Words> meshes[] = {
      {2, {"--mesh", "data=2"}},
      {2, {"--mesh", "model=2"}},
      {2, {"--mesh", "seq=2"}},
      {4, {"--mesh", "data=2,seq=2", "--zero", "3"}},
      {4, {"--mesh", "data=2,model=2"}},
      {2, {"--mesh", "data=2", "--zero", "1"}},
      {4, {"--mesh", "data=2,model=2", "--zero", "2"}},
      {4, {"--mesh", "data=2,model=2", "--zero", "3"}},
      {2, {"--mesh", "data=2", "--grad-accum", "1", "--no-compile"}}};
  for (std::size_t i = 0; i < std::size(meshes); ++i) {
    const std::string name = "mesh" + std::to_string(i);
    run(meshes[i].first, name, with(meshes[i].second));
    expect_same_losses(name, "one", 1e-6);
  }
  // One process that stands for all gives the same bits, in the weights and in the state.
  run(1, "loop", with({"--mesh", "data=2,model=2", "--zero", "2"}));
  EXPECT_EQ(checkpoint("loop", 10), checkpoint("mesh6", 10));
  EXPECT_EQ(checkpoint("loop", 10).size(), 5u);  // one of each process, and the index
}

TEST_F(MeshTrain, AMeshOfOneProcessSavesAndGoesOn) {
  const Words mesh{"--mesh", "data=1", "--zero", "3", "--eval-interval", "2", "--max-iters"};
  const auto until = [&](const char* steps, Words words) {
    words.push_back(steps);
    return words;
  };
  run(1, "plain", {"--eval-interval", "2", "--max-iters", "4"});
  run(1, "one", until("2", mesh));
  Words more{"--resume"};
  more.insert(more.end(), mesh.begin(), mesh.end());
  run(1, "one", until("4", more));
  expect_same_losses("one", "plain", 1e-6);
}

TEST_F(MeshTrain, AnyOtherMeshGoesOnFromACheckpoint) {
  const auto with = [](const Words& more) {
    Words words{"--max-iters", "20", "--eval-interval", "10"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  run(4, "whole", with({"--mesh", "data=2,model=2", "--zero", "3"}));
  const std::pair<int, Words> others[] = {{1, {}},
                                          {2, {"--mesh", "data=2", "--zero", "1"}},
                                          {2, {"--mesh", "model=2"}},
                                          {1, {"--mesh", "seq=2,data=2"}}};
  for (std::size_t i = 0; i < std::size(others); ++i) {
    const std::string out = "other" + std::to_string(i);
    std::filesystem::copy(path("whole"), path(out), std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(path(out) + "/step-000020");  // so that it goes on from step 10
    Words words = with({"--resume"});
    words.insert(words.end(), others[i].second.begin(), others[i].second.end());
    run(others[i].first, out, words);
    EXPECT_NE(text().find("step-000020"), std::string::npos) << text();
    expect_same_losses(out, "whole", 1e-6);
  }
}

TEST_F(MeshTrain, MeshesThatCannotBe) {
  const std::tuple<int, Words, std::string> calls[] = {
      {3, {"--mesh", "data=2"}, "has 2 processes, and 3 were started"},
      {1, {"--mesh", "data=3"}, "batch size 4 does not divide into 3 equal parts over data"},
      {1, {"--mesh", "model=4"}, "n head 2 does not divide into 4 equal parts over model"},
      {1, {"--mesh", "pipe=2"}, "the mesh has an axis 'pipe'"},
      {1, {"--mesh", "data"}, "'data' is no axis of a mesh"},
      {1, {"--zero", "1"}, "zero wants a mesh with an axis data"}};
  for (const auto& [processes, more, part] : calls) {
    int status = 0;
    waitpid(start(words(processes, "none", more)), &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << text();
    EXPECT_NE(text().find(part), std::string::npos) << text();
  }
}

/// Children of the launcher.
std::vector<pid_t> children_of(pid_t launcher) {
  const std::string id = std::to_string(launcher);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

class MeshTrainKilled : public MeshTrain {
 protected:
  /// Kills a process of a run at so many random moments; then the run goes on, on the same mesh and
  /// on another.
  void kill_at_random_moments(unsigned times) {
    const auto with = [](Words words, const Words& more) {
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    const Words steps{"--max-iters", "60", "--eval-interval", "10"},
        mesh = with(steps, {"--mesh", "data=2", "--zero", "1"}),
        other = with(steps, {"--mesh", "model=2"});
    const auto begin = Clock::now();
    run(2, "undisturbed", mesh);
    const double whole = seconds_since(begin);
    test::for_seeds(times, [&](unsigned seed) {
      std::mt19937_64 random(seed);
      const std::string out = "killed" + std::to_string(seed);
      const pid_t launcher = start(words(2, out, mesh));
      const double moment = whole * static_cast<double>(random() % 1000) / 1000;
      std::this_thread::sleep_for(std::chrono::duration<double>(moment));
      const std::vector<pid_t> children = children_of(launcher);
      if (!children.empty()) kill(children[random() % children.size()], SIGKILL);
      const auto killed = Clock::now();
      int status = 0;
      waitpid(launcher, &status, 0);
      EXPECT_LT(seconds_since(killed), 10 + whole);
      if (!children.empty() && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        EXPECT_LT(seconds_since(killed), 10);
        EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL) << text();
      }
      std::filesystem::create_directories(path(out));  // it may have died before it made one
      std::filesystem::copy(path(out), path(out + "_other"),
                            std::filesystem::copy_options::recursive);
      run(2, out, with(mesh, {"--resume"}));
      EXPECT_EQ(checkpoint(out, 60), checkpoint("undisturbed", 60));
      run(2, out + "_other", with(other, {"--resume"}));
      EXPECT_NEAR(losses(out + "_other").back(), losses("undisturbed").back(),
                  1e-6 * losses("undisturbed").back());
    });
  }
};

TEST_F(MeshTrainKilled, GoesOnFromTheLastCheckpoint) { kill_at_random_moments(2); }
TEST_F(MeshTrainKilled, SlowGoesOnFromTheLastCheckpoint) { kill_at_random_moments(20); }

}  // namespace
}  // namespace ein
