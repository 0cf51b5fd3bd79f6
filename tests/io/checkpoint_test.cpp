// What survives: processes killed at every system call and at random moments, disks that fill up at
// every byte, files and manifests damaged at every byte.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>

#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "io/temporary_name.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::FileSizeLimit;
using test::read_bytes;
using test::write_bytes;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Recognisable, and other for each step.
StateDict tensors_of(std::int64_t step) {
  std::vector<float> weight(5);
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] = static_cast<float>(step) + 0.25f * static_cast<float>(i);
  return {{"model.weight", from_vector(weight)},
          {"optimizer.step", from_vector(std::vector<std::int64_t>{step}, {})}};
}
Metadata metadata_of(std::int64_t step) { return {{"position", "batch " + std::to_string(step)}}; }

void expect_whole(const Checkpoint& checkpoint, std::int64_t step) {
  EXPECT_EQ(checkpoint.step, step);
  EXPECT_EQ(checkpoint.metadata, metadata_of(step));
  const StateDict wanted = tensors_of(step);
  ASSERT_EQ(checkpoint.tensors.size(), wanted.size());
  for (const auto& [name, x] : wanted) {
    EXPECT_EQ(checkpoint.tensors.at(name).shape(), x.shape());
    EXPECT_EQ(checkpoint.tensors.at(name).to_vector<double>(), x.to_vector<double>());
  }
}

class CheckpointTest : public testing::Test {
 protected:
  std::string save(std::int64_t step, std::int64_t keep_last = 3) const {
    return save_checkpoint(directory_, step, tensors_of(step), metadata_of(step), keep_last);
  }
  Checkpoint load() const { return load_checkpoint(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  Names listing() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(directory_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  void start_anew() const { fs::remove_all(directory_); }
  template <class F>
  void expect_error(ErrorKind kind, const std::string& reason, F&& f) const {
    try {
      f();
      ADD_FAILURE() << "no error: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos)
          << "wanted: " << reason << "\ngot: " << error.what();
    }
  }
  /// Runs `f` in a child process.
  template <class F>
  static pid_t fork_to(F&& f) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
      f();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }

  test::ScratchDirectory scratch_;
  std::string directory_ = scratch_.path("run/checkpoints");
};

// --- In peace ---

TEST_F(CheckpointTest, SavedAndLoaded) {
  EXPECT_FALSE(has_checkpoint(directory_));
  const std::string file = save(123);
  EXPECT_EQ(file, path("step-000123.safetensors"));
  EXPECT_TRUE(has_checkpoint(directory_));
  const Checkpoint loaded = load();
  expect_whole(loaded, 123);
  EXPECT_EQ(loaded.path, file);
  EXPECT_EQ(loaded.note, "");
  EXPECT_TRUE(loaded.tensors.at("model.weight").storage()->read_only());
  EXPECT_FALSE(load_checkpoint(directory_, {.mmap = false})
                   .tensors.at("model.weight")
                   .storage()
                   ->read_only());
  // It is a .safetensors file like any other.
  EXPECT_EQ(load_safetensors(file).metadata,
            (Metadata{{"ein.step", "123"}, {"position", "batch 123"}}));
}

TEST_F(CheckpointTest, TheLastFewAreKept) {
  for (std::int64_t step = 0; step < 10; ++step) save(step * 1'000'000, 3);
  EXPECT_EQ(listing(), (Names{"manifest.json", "step-7000000.safetensors",
                              "step-8000000.safetensors", "step-9000000.safetensors"}));
  expect_whole(load(), 9'000'000);
  save(INT64_MAX, 1);
  EXPECT_EQ(listing(), (Names{"manifest.json", "step-9223372036854775807.safetensors"}));
  EXPECT_EQ(load().step, INT64_MAX);
}

TEST_F(CheckpointTest, TheNewestIsTheOneWrittenLast) {
  save(50);
  save(20);  // a run that was started again from an older state
  EXPECT_EQ(load().step, 20);
}

TEST_F(CheckpointTest, ListedFilesAreNotOverwritten) {
  const std::string first = save(5, 2);
  const std::string bytes = read_bytes(first);
  EXPECT_EQ(save_checkpoint(directory_, 5, tensors_of(6), metadata_of(6), 2),
            path("step-000005-2.safetensors"));
  EXPECT_EQ(read_bytes(first), bytes);
  EXPECT_EQ(load().tensors.at("optimizer.step").item<int>(), 6);
  EXPECT_EQ(save(5, 2), path("step-000005-3.safetensors"));
  EXPECT_EQ(save(5, 2), first);
  EXPECT_EQ(listing().size(), 3u);
  EXPECT_EQ(load().path, first);
}

TEST_F(CheckpointTest, SameStateSameBytes) {
  const std::string bytes = read_bytes(save(7));
  start_anew();
  EXPECT_EQ(read_bytes(save(7)), bytes);
}

TEST_F(CheckpointTest, SingleFiles) {
  save(1);
  const std::string file = save(2);
  expect_whole(load_checkpoint(path("step-000001.safetensors")), 1);
  expect_whole(load_checkpoint(file), 2);
  const std::string elsewhere = scratch_.path("copy.safetensors");
  fs::copy_file(file, elsewhere);
  expect_whole(load_checkpoint(elsewhere), 2);
  save_safetensors(elsewhere, {{"x", ones({2})}}, {{"format", "pt"}});
  EXPECT_EQ(load_checkpoint(elsewhere).step, 0);
  EXPECT_EQ(load_checkpoint(elsewhere).metadata, (Metadata{{"format", "pt"}}));
  fs::copy_file(file, elsewhere, fs::copy_options::overwrite_existing);
  const std::string whole = read_bytes(elsewhere);
  for (const std::string step : {"", "-1", "1.5", "9223372036854775808", "1 "}) {
    save_safetensors(elsewhere, {}, {{"ein.step", step}});
    expect_error(ErrorKind::file, "no whole number", [&] { load_checkpoint(elsewhere); });
  }
  expect_error(ErrorKind::file, "cannot be opened",
               [&] { load_checkpoint(path("step-000003.safetensors")); });

  // A tensor that would be missing without a word.
  std::string other = whole;
  other.replace(other.find("I64"), 3, "X64");
  write_bytes(elsewhere, other);
  expect_error(ErrorKind::file, "'optimizer.step' of the dtype 'X64', which ein lacks",
               [&] { load_checkpoint(elsewhere); });

  std::string bytes = read_bytes(file);
  bytes.back() ^= 1;
  write_bytes(file, bytes);
  expect_error(ErrorKind::file, "its checksum is not", [&] { load_checkpoint(file); });
  write_bytes(path("manifest.json"), "{}");
  const Checkpoint unverified = load_checkpoint(file);
  EXPECT_EQ(unverified.step, 2);
  EXPECT_NE(unverified.note.find("the checksum was not verified"), std::string::npos);
}

TEST_F(CheckpointTest, ArgumentsOutsideTheirDomain) {
  expect_error(ErrorKind::file, "cannot be opened", [&] { load(); });
  expect_error(ErrorKind::value, "step -1 is negative", [&] { save(-1); });
  expect_error(ErrorKind::value, "keep_last is 0", [&] { save(1, 0); });
  expect_error(ErrorKind::value, "ein.step is taken", [&] {
    save_checkpoint(directory_, 1, {}, {{"ein.step", "1"}});
  });
  expect_error(ErrorKind::value, "not valid UTF-8", [&] {
    save_checkpoint(directory_, 1, {{"\xff", ones({1})}});
  });
  expect_error(ErrorKind::file, "has no checkpoint", [&] { load(); });
  EXPECT_TRUE(listing().empty());
  write_bytes(scratch_.path("file"), "x");
  expect_error(ErrorKind::file, "cannot be made",
               [&] { save_checkpoint(scratch_.path("file"), 1, {}); });
  expect_error(ErrorKind::file, "cannot be opened", [&] { save_checkpoint("", 1, {}); });
}

TEST_F(CheckpointTest, SaversOfOneDirectoryWaitForEachOther) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) save(100 * t + i, 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(listing().size(), 5u);
  const Checkpoint last = load();
  EXPECT_EQ(last.note, "");
  EXPECT_EQ(last.step % 100, 9);
}

// --- Leftovers ---

TEST_F(CheckpointTest, OnlyAbandonedTemporaryFilesAreRemoved) {
  save(1);
  const io::Boot boot = io::this_boot();
  const std::string here = ".ein-" + boot.host + "-" + boot.id + "-";
  write_bytes(path(here + "1-0.tmp"), "of a process that died");
  write_bytes(path(here + std::to_string(::getpid()) + "-77.tmp"), "of one that had our number");
  write_bytes(path("notes.tmp"), "not ours");
  write_bytes(path("step-000077.safetensors"), "not listed");
  fs::create_directory(path(here + "3-0.tmp"));
  write_bytes(path(here + "3-0.tmp/model-00001-of-00002.safetensors"), "of another");
  io::ReplacementFile open("test", path("x"));
  open.write("abc", 3);
  io::NewDirectory made("test", path("y"));
  write_bytes(made.temporary() + "/z", "def");
  save(2);
  const Names names = listing();
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](auto& name) { return name.starts_with(".ein-"); }),
            2);
  EXPECT_FALSE(fs::exists(path(here + "1-0.tmp")));
  EXPECT_FALSE(fs::exists(path(here + "3-0.tmp")));
  EXPECT_TRUE(fs::exists(path("notes.tmp")));
  EXPECT_TRUE(fs::exists(path("step-000077.safetensors")));
  open.commit();
  EXPECT_EQ(read_bytes(path("x")), "abc");
  made.commit();
  EXPECT_EQ(read_bytes(path("y/z")), "def");
}

TEST_F(CheckpointTest, FilesOfOthersAreNeitherRemovedNorOverwritten) {
  save(1);
  write_bytes(path("step-000077.safetensors"), "a file of the user");
  fs::create_directory(path("step-000077-2.safetensors"));
  EXPECT_EQ(save(77), path("step-000077-3.safetensors"));
  for (std::int64_t step = 78; step < 90; ++step) save(step);
  EXPECT_EQ(read_bytes(path("step-000077.safetensors")), "a file of the user");
  EXPECT_TRUE(fs::is_directory(path("step-000077-2.safetensors")));
  EXPECT_EQ(listing().size(), 6u);
}

TEST_F(CheckpointTest, AllCheckpointsOfADirectoryAreRemoved) {
  fs::create_directories(directory_);
  io::remove_checkpoints("test", directory_);
  for (const std::int64_t step : {1, 2}) save(step);
  write_bytes(path("step-000077.safetensors"), "a file of the user");
  io::remove_checkpoints("test", directory_);
  EXPECT_EQ(listing(), Names{"step-000077.safetensors"});
  EXPECT_FALSE(has_checkpoint(directory_));
  write_bytes(path("manifest.json"), "{}");
  expect_error(ErrorKind::file, "test: \"" + path("manifest.json") + "\"",
               [&] { io::remove_checkpoints("test", directory_); });
}

// --- Damage ---

TEST_F(CheckpointTest, ADamagedOneIsPassedOver) {
  save(1);
  save(2);
  const std::string file = save(3);
  const std::string good = read_bytes(file);
  const auto expect_passed_over = [&] {
    for (const bool mmap : {true, false}) {
      const Checkpoint older = load_checkpoint(directory_, {.mmap = mmap});
      expect_whole(older, 2);
      EXPECT_NE(older.note.find("step-000003.safetensors"), std::string::npos) << older.note;
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    write_bytes(file, bytes);
    expect_passed_over();
    write_bytes(file, good.substr(0, i));
    expect_passed_over();
  }
  write_bytes(file, good + "x");
  expect_passed_over();
  fs::remove(file);
  expect_passed_over();
  write_bytes(file, good);
  expect_whole(load(), 3);
  EXPECT_EQ(load().note, "");
}

TEST_F(CheckpointTest, NoneIsWhole) {
  for (const std::int64_t step : {1, 2}) write_bytes(save(step), "damaged");
  expect_error(ErrorKind::file, "step-000001.safetensors", [&] { load(); });
  expect_error(ErrorKind::file, "step-000002.safetensors", [&] { load(); });
  expect_whole(load_checkpoint((save(3), directory_)), 3);
}

TEST_F(CheckpointTest, SwappedFilesAreNoticed) {
  const std::string first = save(1), second = save(2);
  fs::rename(first, path("aside"));
  fs::rename(second, first);
  fs::rename(path("aside"), second);
  expect_error(ErrorKind::file, "no whole checkpoint", [&] { load(); });
}

TEST_F(CheckpointTest, DamagedManifests) {
  save(1);
  const std::string good = read_bytes(path("manifest.json"));
  const auto refuse = [&](const std::string& text, const std::string& reason) {
    SCOPED_TRACE(text.substr(0, 200));
    write_bytes(path("manifest.json"), text);
    expect_error(ErrorKind::file, reason, [&] { load(); });
    if (reason == "has no checkpoint") return;
    expect_error(ErrorKind::file, reason, [&] { has_checkpoint(directory_); });
    expect_error(ErrorKind::file, reason, [&] { save(2); });
    EXPECT_EQ(read_bytes(path("manifest.json")), text);
  };
  const auto with_file = [&](const std::string& name) {
    std::string text = good;
    return text.replace(text.find("step-000001.safetensors"), 23, name);
  };
  for (const std::string name :
       {"../run/checkpoints/step-000001.safetensors", "/etc/passwd", "..", ".", "",
        "step-.safetensors", "step-1/2.safetensors", "step-1-.safetensors",
        "step-1-2-3.safetensors", "step-1.safetensors/", "step-000001.safetensors\\u0000",
        "step-1.safetensors.tmp", "manifest.json", "step-safetensors", "step-", "step-1/",
        "step-1-", "step-x.safetensors", "step-..safetensors"}) {
    refuse(with_file(name), "is no checkpoint's name");
    refuse("{\"version\":1,\"checkpoints\":[],\"dropped\":[\"" + name + "\"]}",
           "is no checkpoint's name");
  }
  refuse(with_file("step-" + std::string(60, '1') + ".safetensors"), "is no checkpoint's name");
  refuse("", "no JSON");
  refuse(good.substr(0, good.size() / 2), "no JSON");
  refuse("[]", "no object");
  refuse("{}", "version is missing");
  refuse("{\"version\":2}", "version is not 1");
  refuse("{\"version\":1}", "checkpoints is missing");
  refuse("{\"version\":1,\"checkpoints\":{},\"dropped\":[]}", "no array");
  refuse("{\"version\":1,\"checkpoints\":[1],\"dropped\":[]}", "no object");
  refuse("{\"version\":1,\"checkpoints\":[],\"dropped\":[1]}", "no string");
  refuse("{\"version\":1,\"checkpoints\":[],\"dropped\":[]}", "has no checkpoint");
  const auto with_fields = [](const std::string& step, const std::string& size,
                              const std::string& sum) {
    return "{\"version\":1,\"dropped\":[],\"checkpoints\":[{\"name\":\"step-000001.safetensors\","
           "\"step\":" +
           step + ",\"files\":[{\"size\":" + size + ",\"xxh64\":" + sum + "}]}]}";
  };
  const auto with_files = [](const std::string& name, const std::string& files) {
    return "{\"version\":1,\"dropped\":[],\"checkpoints\":[{\"name\":\"" + name +
           "\",\"step\":1,\"files\":[" + files + "]}]}";
  };
  const std::string file = "{\"size\":1,\"xxh64\":\"0123456789abcdef\"}";
  refuse(with_files("step-1.safetensors", ""), "has 0 files");
  refuse(with_files("step-1.safetensors", file + "," + file), "has 2 files");
  refuse(with_files("step-1", ""), "has 0 files");
  refuse(with_files("step-1", "1"), "a file is no object");
  refuse(with_files("step-1", file + ",{}"), "size is missing");
  const std::string sum = "\"0123456789abcdef\"";
  refuse(with_fields("-1", "1", sum), "no whole number");
  refuse(with_fields("1.5", "1", sum), "no whole number");
  refuse(with_fields("9223372036854775808", "1", sum), "exceeds 2^63 - 1");
  refuse(with_fields("1", "\"1\"", sum), "no whole number");
  refuse(with_fields("1", "1", "1"), "hexadecimal");
  refuse(with_fields("1", "1", "\"0123456789abcde\""), "hexadecimal");
  refuse(with_fields("1", "1", "\"0123456789abcdeg\""), "hexadecimal");
  refuse(with_fields("1", "1", "\"-123456789abcdef\""), "hexadecimal");
  std::string deep = "{\"version\":1,\"checkpoints\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  refuse(deep, "nested too deeply");
  std::string many = "{\"version\":1,\"dropped\":[],\"checkpoints\":[";
  for (int i = 0; i < 1'000'000; ++i) many += "{},";  // for hours, if each looked at all before it
  refuse(many + "{}]}", "name is missing");
  refuse(std::string((1 << 24) + 1, ' '), "bytes");
}

TEST_F(CheckpointTest, ManifestsChangedAnywhere) {
  save(1);
  save(2);
  const std::string good = read_bytes(path("manifest.json"));
  const Names before = listing();
  int loaded = 0, refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 9; ++bit) {
      std::string bytes = good;
      if (bit == 8) {
        bytes.resize(i);
      } else {
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      }
      write_bytes(path("manifest.json"), bytes);
      try {
        const Checkpoint checkpoint = load();
        ++loaded;
        expect_whole(checkpoint, checkpoint.note.empty() ? 2 : 1);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::file) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(loaded, 100);  // blanks, and what is only true of one of the two
  EXPECT_GT(refused, 100);
  EXPECT_EQ(listing(), before);
}

// --- Full disks ---

TEST_F(CheckpointTest, AFullDiskAtEveryByte) {
  // With four entries the manifest is larger than a checkpoint, so that writes of both fail.
  for (std::int64_t step = 1; step <= 4; ++step) save(step, 4);
  const Names before = listing();
  const std::string manifest = read_bytes(path("manifest.json"));
  rlim_t limit = 0;
  for (bool saved = false; !saved; ++limit) {
    SCOPED_TRACE(limit);
    try {
      const FileSizeLimit full(limit);
      save(5, 4);
      saved = true;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::file) << error.what();
      ASSERT_EQ(listing(), before);
      ASSERT_EQ(read_bytes(path("manifest.json")), manifest);
    }
    const Checkpoint checkpoint = load();
    expect_whole(checkpoint, saved ? 5 : 4);
    ASSERT_EQ(checkpoint.note, "");
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(limit, fs::file_size(path("step-000005.safetensors")) + 100);
}

// --- Kills ---

TEST_F(CheckpointTest, SlowKilledAtEveryByte) {
  // Writing beyond the limit is a deadly signal where it is not ignored.
  for (std::int64_t step = 1; step <= 4; ++step) save(step, 4);
  const std::size_t files = listing().size();
  rlim_t limit = 0;
  for (bool saved = false; !saved; ++limit) {
    SCOPED_TRACE(limit);
    const pid_t child = fork_to([&] {
      const rlimit no_core{0, 0}, size{limit, limit};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::setrlimit(RLIMIT_FSIZE, &size);
      std::signal(SIGXFSZ, SIG_DFL);
      save(5, 4);
    });
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    saved = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ASSERT_TRUE(saved || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)) << status;
    const Checkpoint checkpoint = load();
    expect_whole(checkpoint, saved ? 5 : 4);
    ASSERT_EQ(checkpoint.note, "");
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(limit, fs::file_size(path("step-000005.safetensors")) + 100);
  EXPECT_EQ(listing().size(), files);  // of all those temporary files none is left
}

TEST_F(CheckpointTest, SlowKilledAtEverySystemCall) {
  for (const std::int64_t keep_last : {1, 2}) {
    bool finished = false;
    std::int64_t reached = 1;
    int calls = 0;
    for (; !finished; ++calls) {
      SCOPED_TRACE(calls);
      ASSERT_LT(calls, 2000);
      start_anew();
      save(1, keep_last);
      const pid_t child = fork_to([&] {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
        std::raise(SIGSTOP);
        save(2, keep_last);
      });
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFEXITED(status)) GTEST_SKIP() << "tracing a child process is not allowed here";
      // Each call stops twice: before it does anything, and after.
      for (int stops = 0; stops < calls && !finished; ++stops) {
        ASSERT_EQ(::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr), 0);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        finished = WIFEXITED(status);
      }
      if (finished) {
        ASSERT_EQ(WEXITSTATUS(status), 0);
      } else {
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
      }
      const Checkpoint checkpoint = load();
      ASSERT_GE(checkpoint.step, reached);  // once it is there, it stays
      reached = checkpoint.step;
      expect_whole(checkpoint, reached);
      ASSERT_EQ(checkpoint.note, "");
      // The run goes on, with other steps, and cleans up.
      save(reached + 9, keep_last);
      expect_whole(load(), reached + 9);
      ASSERT_EQ(listing().size(), 1 + static_cast<std::size_t>(keep_last));
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(reached, 2);
    EXPECT_GT(calls, 40);
  }
}

TEST_F(CheckpointTest, KilledAtRandomMoments) {
  constexpr std::uint32_t seed = 21;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::int64_t step = 0;
  save(step, 2);
  const auto begin = std::chrono::steady_clock::now();
  save(++step, 2);
  const auto of_a_save = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const auto longest = std::max<std::int64_t>(4000, 10 * of_a_save.count());
  for (int kill = 0; kill < 100; ++kill) {
    int acknowledged[2];
    ASSERT_EQ(::pipe(acknowledged), 0);
    const pid_t child = fork_to([&] {
      for (std::int64_t next = step + 1;; ++next) {
        save(next, 2);
        if (::write(acknowledged[1], &next, sizeof next) != sizeof next) ::_exit(2);
      }
    });
    ::close(acknowledged[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    std::int64_t done = step;
    while (::read(acknowledged[0], &done, sizeof done) == sizeof done) {
    }
    ::close(acknowledged[0]);
    const Checkpoint checkpoint = load();
    ASSERT_GE(checkpoint.step, done);
    ASSERT_LE(checkpoint.step, done + 1);
    expect_whole(checkpoint, checkpoint.step);
    ASSERT_EQ(checkpoint.note, "");
    step = checkpoint.step;
  }
  EXPECT_GT(step, 20);
  save(step + 1, 2);
  EXPECT_EQ(listing().size(), 3u);
}

// A run that is killed again and again, each time at steps that no other saves.
TEST_F(CheckpointTest, KilledSavesLeaveNothingForEver) {
  test::for_seeds(3, [&](unsigned seed) {
    std::mt19937 random(seed);
    start_anew();
    save(0);
    const auto begin = std::chrono::steady_clock::now();
    save(1);
    const auto of_a_save = std::chrono::steady_clock::now() - begin;
    for (std::int64_t kill = 1; kill <= 30; ++kill) {
      const pid_t child = fork_to([&] {
        for (std::int64_t i = 1;; ++i) save(100'000 * kill + i);
      });
      std::this_thread::sleep_for(of_a_save * static_cast<double>(random() % 1000) / 100);
      ::kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      // At most the one that was under way, and its lock, are beside the three; the next save
      // removes both.
      ASSERT_LE(listing().size(), 7u);
    }
    save(7);
    EXPECT_EQ(listing().size(), 4u);
  });
}

}  // namespace
}  // namespace ein
