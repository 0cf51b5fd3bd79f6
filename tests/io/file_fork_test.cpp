// Descriptors and locks of files: what a child of fork(), and a program that another thread starts,
// find of a call that is under way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/data.hpp>
#include <ein/ein.hpp>
#include <ein/safetensors.hpp>
#include <ein/text.hpp>
#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "io/private_directory.hpp"
#include "support/project.hpp"
#include "support/sanitized.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"
#include "train/directory.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::ScratchDirectory;

struct FileCall {
  const char* name;
  std::function<void(const std::string& folder)> run;
};

/// Every call that opens files, on small ones.
std::vector<FileCall> file_calls() {
  const Tensor x = ones({1000});
  return {
      {"save_npy", [=](const std::string& folder) { save_npy(folder + "/x.npy", x); }},
      {"load_npy", [=](const std::string& folder) { load_npy(folder + "/x.npy"); }},
      {"open_npy",
       [=](const std::string& folder) {
         save_npy(folder + "/ids.npy", zeros({100}, DType::u8));
         Tokens::open_npy(folder + "/ids.npy").range();
       }},
      {"save_safetensors",
       [=](const std::string& folder) {
         save_safetensors(folder + "/x.safetensors", {{"x", x}});
       }},
      {"load_safetensors",
       [=](const std::string& folder) { load_safetensors(folder + "/x.safetensors"); }},
      {"save_checkpoint",
       [=](const std::string& folder) {
         save_checkpoint(folder + "/steps", 1, {{"x", x}});
       }},
      {"load_checkpoint", [=](const std::string& folder) { load_checkpoint(folder + "/steps"); }},
      {"has_checkpoint", [=](const std::string& folder) { has_checkpoint(folder + "/steps"); }},
      {"save_tokens",
       [=](const std::string& folder) {
         save_tokens(folder + "/ids", Tokens(zeros({100}, DType::u8)), TokenType::u16);
       }},
      {"Tokens::open",
       [=](const std::string& folder) { Tokens::open(folder + "/ids", TokenType::u16).range(); }},
      {"save_bpe",
       [=](const std::string& folder) {
         save_bpe(folder + "/tokenizer.json", train_bpe("", {.vocabulary_size = 256}));
       }},
      {"load_bpe", [=](const std::string& folder) { load_bpe(folder + "/tokenizer.json"); }},
      {"train_bpe_on_files",
       [=](const std::string& folder) {
         const std::string path = folder + "/tokenizer.json";
         const BpeTokenizer tokenizer =
             train_bpe_on_files(std::span(&path, 1), {.vocabulary_size = 300});
         save_bpe_files(folder + "/vocab.json", folder + "/merges.txt", tokenizer);
         load_bpe_files(folder + "/vocab.json", folder + "/merges.txt");
         encode_file(path, tokenizer, [](std::span<const std::int32_t>) {});
       }},
      {"NewDirectory",
       [=](const std::string& folder) {
         io::NewDirectory made("test", folder + "/directory");
         made.commit();
       }},
      {"PrivateDirectory",
       [=](const std::string& folder) {
         const io::PrivateDirectory directory("test", folder + "/private");
         directory.replace("file", "content");
         directory.read("file", 1000);
         directory.entries();
       }},
      {"append_to_file",
       [=](const std::string& folder) { io::append_to_file("test", folder + "/log", "line\n"); }},
      {"remove_abandoned_files",
       [=](const std::string& folder) { io::remove_abandoned_files(folder); }},
  };
}

/// Runs calls in turn in a thread, until it is destroyed.
class Caller {
 public:
  explicit Caller(std::vector<FileCall> calls) : calls_(std::move(calls)) {
    run_all();
    thread_ = std::thread([this] {
      while (!stops_) run_all();
    });
  }
  ~Caller() {
    stops_ = true;
    thread_.join();
  }
  /// Whether all calls come to their ends, twice.
  bool goes_on() const {
    const int before = rounds_;
    for (int i = 0; i < 2000 && rounds_ < before + 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return rounds_ >= before + 2;
  }
  std::string last() const { return calls_[at_].name; }

 private:
  void run_all() {
    for (std::size_t i = 0; i < calls_.size(); ++i) calls_[at_ = i].run(folder_.path().string());
    ++rounds_;
  }

  const ScratchDirectory folder_;
  const std::vector<FileCall> calls_;
  std::atomic<std::size_t> at_{0};
  std::atomic<int> rounds_{0};
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

void sleep_random(std::mt19937_64& random) {
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
}

TEST(FileForkTest, ALockEndsWithItsCall) {
  test::for_seeds(1, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Caller caller(file_calls());
    std::vector<pid_t> children;
    for (int i = 0; i < 60; ++i) {
      sleep_random(random);
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(120);
        for (;;) ::pause();
      }
      children.push_back(child);
    }
    EXPECT_TRUE(caller.goes_on()) << caller.last() << " waits for a child";
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  });
}

TEST(FileForkTest, AChildCallsTheSame) {
  test::for_seeds(1, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const ScratchDirectory folder;
    const auto calls = file_calls();
    const auto run_all = [&] {
      for (const FileCall& call : calls) call.run(folder.path().string());
    };
    run_all();
    // A sanitizer's malloc may hang in a child, as fork_test.cpp says, where another thread is in
    // it.
    std::atomic<bool> stops{test::is_sanitized()};
    std::thread caller([&] {
      while (!stops) run_all();
    });
    if (stops) caller.join();
    for (int i = 0; i < 20; ++i) {
      sleep_random(random);
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(20);
        try {
          run_all();
        } catch (const std::exception& error) {
          std::fprintf(stderr, "in a child: %s\n", error.what());
          ::_exit(1);
        }
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0) << "child " << i;
    }
    stops = true;
    if (caller.joinable()) caller.join();
  });
}

/// What owns files and locks, while `meanwhile` runs.
struct Owner {
  const char* name;
  std::function<void(const std::string& folder, const std::function<void()>& meanwhile)> run;
};

std::vector<Owner> owners() {
  return {
      {"FileLock",
       [](const std::string& folder, const auto& meanwhile) {
         const io::Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
         io::FileLock lock;
         ASSERT_TRUE(lock.take(fd.get(), LOCK_EX));
         meanwhile();
       }},
      {"ReplacementFile",
       [](const std::string& folder, const auto& meanwhile) {
         io::ReplacementFile file("test", folder + "/file");
         meanwhile();
         file.commit();
       }},
      {"ReplacementFile of a PrivateDirectory",
       [](const std::string& folder, const auto& meanwhile) {
         const io::Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
         io::ReplacementFile file("test", directory, folder + "/file", "file");
         meanwhile();
         file.commit();
       }},
      {"NewDirectory",
       [](const std::string& folder, const auto& meanwhile) {
         io::NewDirectory made("test", folder + "/directory");
         io::append_to_file("test", made.temporary() + "/file", "content");
         meanwhile();
         made.commit();
       }},
      {"DirectoryLock",
       [](const std::string& folder, const auto& meanwhile) {
         const io::DirectoryLock lock("test", folder, io::Missing::fail);
         meanwhile();
       }},
      {"NewCheckpoint",
       [](const std::string& folder, const auto& meanwhile) {
         io::NewCheckpoint made(folder, 1, false);
         made.list(
             [&] {
               meanwhile();
               return std::vector<io::ManifestFile>{{1, 1}};
             },
             1);
       }},
      {"NewCheckpoint of shards",
       [](const std::string& folder, const auto& meanwhile) {
         io::NewCheckpoint made(folder, 1, true);
         io::append_to_file("test", made.path() + "/file", "content");
         meanwhile();
       }},
      {"RunDirectory",
       [](const std::string& folder, const auto& meanwhile) {
         const training::RunDirectory run(folder + "/run");
         meanwhile();
       }},
  };
}

/// Each file and directory, with its content and whether an open file has a lock of it.
std::map<std::string, std::string> state_of(const fs::path& folder) {
  std::map<std::string, std::string> state;
  const auto add = [&](const fs::path& path) {
    const io::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    io::FileLock lock;
    state[path.string()] = lock.take(fd.get(), LOCK_SH | LOCK_NB) ? "free " : "locked ";
    if (fs::is_regular_file(path)) state[path.string()] += test::read_bytes(path.string());
  };
  add(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) add(entry.path());
  return state;
}

TEST(FileForkTest, AChildThatUnwindsLeavesWhatIsTheParents) {
  struct InChild {};
  for (const Owner& owner : owners()) {
    SCOPED_TRACE(owner.name);
    const ScratchDirectory folder;
    bool was_locked = false;
    try {
      owner.run(folder.path().string(), [&] {
        const auto before = state_of(folder.path());
        for (const auto& [path, content] : before) was_locked |= content.starts_with("locked");
        const pid_t child = ::fork();
        if (child == 0) throw InChild();
        int status = -1;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(state_of(folder.path()), before);
      });
    } catch (const InChild&) {
      ::_exit(0);
    }
    EXPECT_TRUE(was_locked);
    for (const auto& [path, content] : state_of(folder.path()))
      EXPECT_TRUE(content.starts_with("free")) << path;
  }
}

/// What a program that is started here has open.
std::set<std::string> inherited() {
  std::set<std::string> names;
  FILE* const pipe = ::popen("for f in /proc/self/fd/*; do readlink $f; done", "r");
  std::string text;
  char buffer[4096];
  for (std::size_t got; pipe && (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    text.append(buffer, got);
  if (pipe) ::pclose(pipe);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('/')) names.insert(line);
  }
  return names;
}

TEST(FileForkTest, AProgramThatIsStartedInheritsNothing) {
  const std::set<std::string> before = inherited();
  ASSERT_FALSE(before.empty()) << "what is open cannot be seen here";
  Caller caller(file_calls());
  for (int i = 0; i < 100; ++i) {
    for (const std::string& name : inherited())
      EXPECT_TRUE(before.contains(name) || name.starts_with("/proc/")) << name;
  }
}

/// Every opening of a file in the sources is close-on-exec, but for those that say why not.
TEST(FileForkTest, SourcesOpenFilesThatAreNotInherited) {
  using test::project;
  const std::regex opens(
      R"((^|\W)::(open|openat|dup|dup2|dup3|fopen|popen|memfd_create|shm_open|socket|pipe|mkstemp)\()"
      R"(|\b[io]?fstream\b|F_DUPFD)");
  // The memory of a mesh, which the processes that are launched share.
  const std::set<std::string> meant = {"::memfd_create(\"ein\", MFD_ALLOW_SEALING)",
                                       "::shm_open(name.c_str()"};
  int files = 0;
  std::size_t found = 0, exceptions = 0;
  for (const char* room : {"src", "grammar", "codegen", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / room)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      ++files;
      std::ifstream file(entry.path());
      std::string statement;
      for (std::string line; std::getline(file, line);) {
        line.erase(0, line.find_first_not_of(' '));
        if (line.starts_with("//") || line.starts_with("#")) continue;
        statement += (statement.empty() ? "" : " ") + line;
        if (!line.ends_with(';') && !line.ends_with('{') && !line.ends_with('}')) continue;
        if (std::regex_search(statement, opens)) {
          ++found;
          const auto is_here = [&](const std::string& text) {
            return statement.find(text) != text.npos;
          };
          if (std::any_of(meant.begin(), meant.end(), is_here))
            ++exceptions;
          else
            EXPECT_TRUE(is_here("CLOEXEC")) << entry.path() << ": " << statement;
        }
        statement.clear();
      }
    }
  }
  EXPECT_GT(files, 400);
  EXPECT_GT(found, 8u);
  EXPECT_EQ(exceptions, meant.size());
}

/// The text of the class of that name, up to its end; "" if `text` has none.
std::string class_in(const std::string& text, const std::string& name) {
  const std::regex head("\n( *)(class|struct) (\\w+::)?" + name + "( final)?( :[^;{]*)? \\{");
  std::smatch begin;
  if (!std::regex_search(text, begin, head)) return "";
  const std::string rest = begin.suffix();
  return rest.substr(0, rest.find("\n" + begin[1].str() + "};"));
}

/// Classes of the rooms that own more than memory: whoever ends what a child of fork() shares with
/// its parent has an OwningProcess, and the others say why they need none.
TEST(FileForkTest, DestructorsAskWhoseProcessThisIs) {
  const fs::path src = test::project / "src";
  const std::map<std::string, std::string> need_none = {
      {"Descriptor", "closes its copy of the descriptor"},
      {"Open", "closes its own descriptor"},
      {"SharedMemory", "unmaps its own mapping"},
      {"SharedSpace", "has a SharedMemory"},
      {"Ticket", "waits for an operation, which throws in a child"},
      {"Membership", "leaves by the Worker"},
      {"MpiGroup", "ends by the Mpi"},
      {"MpiTransport", "ends by the Mpi"},
      {"NcclTransport", "asks the Driver"},
      {"DeviceMemory", "asks the Driver"},
      {"PinnedMemory", "asks the Driver"},
      {"Module", "asks the Driver"},
      {"Event", "asks the Driver"},
      {"LaunchGraph", "asks the Driver"},
      {"Stream", "asks the Driver"},
      {"Scratch", "gives memory to a pool"},
      {"InflatedStream", "has memory"},
      {"Deflater", "has memory"},
      {"JsonTree", "has memory"},
      {"Prefetcher", "has a Worker"},
      {"Loop", "has memory"},
      {"KeptBytes", "counts its own process's memory"},
      {"Gpu", "has members that ask the Driver"},
      {"Storage", "gives memory to a pool"},
      {"NoFork", "is of fork() itself"},
      {"SizeScope", "is of this thread"},
      {"SizeScopePause", "is of this thread"},
      {"InFloatMode", "is of this thread"},
      {"EndOfPool", "leaves a parent's threads alone"},
      {"Pool", "is a child's own after fork()"},
      {"ThreadLimit", "is of this thread"},
  };
  const std::regex destructor(R"(~(\w+)\(\)(?!( override)? = default))");
  std::set<std::string> left;
  for (const auto& [name, why] : need_none) left.insert(name);
  int owning = 0;
  for (const char* room : {"io", "train", "mesh", "data", "cuda", "tensor", "machine", "size"}) {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(src / room)) {
      if (entry.is_regular_file()) text += test::read_bytes(entry.path().string());
    }
    std::set<std::string> names;
    for (std::sregex_iterator at(text.begin(), text.end(), destructor), end; at != end; ++at)
      names.insert((*at)[1]);
    for (const std::string& name : names) {
      left.erase(name);
      const bool owns = class_in(text, name).find("OwningProcess") != std::string::npos;
      owning += owns;
      EXPECT_TRUE(owns || need_none.contains(name))
          << room << ": ~" << name << "() may end what is a parent's";
    }
  }
  EXPECT_GE(owning, 8);
  EXPECT_EQ(left, std::set<std::string>()) << "have no destructor";
}

}  // namespace
}  // namespace ein
