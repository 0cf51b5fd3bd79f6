// Who may keep whom from writing to a directory: its lock, and the files that it stands on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>

#include "io/checkpoint_directory.hpp"
#include "io/lock_file.hpp"
#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "train/directory.hpp"

namespace ein {
namespace {

using namespace std::chrono_literals;
using test::expect_error;

const std::string lock_name = ".ein-checkpoints.lock";

/// Whether f() ends without an error in a few seconds.
bool ends(const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    try {
      f();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

/// What a user who may only read a directory can lock of it: the directory, and files that others
/// may open.
class Stranger {
 public:
  explicit Stranger(const std::string& directory) {
    take(directory);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (mode_of(entry.path().string()) & (S_IROTH | S_IWOTH)) take(entry.path().string());
    }
  }
  bool has_locked_all() const { return has_locked_all_; }

 private:
  void take(const std::string& path) {
    files_.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    has_locked_all_ &= ::flock(files_.back().get(), LOCK_EX | LOCK_NB) == 0;
  }

  std::deque<io::Descriptor> files_;
  bool has_locked_all_ = true;
};

TEST(LockFileTest, WhoMayOnlyReadKeepsNobodyWaiting) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path("steps");
  save_checkpoint(folder, 1, {{"x", ones({10})}});
  const Stranger stranger(folder);
  EXPECT_TRUE(stranger.has_locked_all());
  EXPECT_TRUE(ends([&] { load_checkpoint(folder); }));
  EXPECT_TRUE(ends([&] { save_checkpoint(folder, 2, {{"x", ones({10})}}); }));
  EXPECT_TRUE(ends([&] { const training::RunDirectory run(folder); }));
  EXPECT_EQ(load_checkpoint(folder).step, 2);
}

/// A lock that is held finds no stranger who can open its file.
TEST(LockFileTest, OnlyTheOwnerMayOpenIt) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path().string();
  ::chmod(folder.c_str(), 0755);
  {
    const training::RunDirectory run(folder);
    const io::DirectoryLock lock("test", folder, io::Missing::fail);
    EXPECT_EQ(mode_of(scratch.path(".ein-run.lock")), mode_t{0600});
    EXPECT_EQ(mode_of(scratch.path(lock_name)), mode_t{0600});
  }
  EXPECT_EQ(scratch.listing(), std::vector<std::string>());
  test::write_bytes(scratch.path(lock_name), "of one that was killed, by an umask of 0");
  ::chmod(scratch.path(lock_name).c_str(), 0666);
  {
    const io::DirectoryLock lock("test", folder, io::Missing::fail);
    EXPECT_EQ(mode_of(scratch.path(lock_name)), mode_t{0600});
  }
  // Those who may write to the directory.
  ASSERT_EQ(::chown(folder.c_str(), ::geteuid(), ::getegid()), 0);
  ::chmod(folder.c_str(), 0775);
  const io::DirectoryLock lock("test", folder, io::Missing::fail);
  EXPECT_EQ(mode_of(scratch.path(lock_name)), mode_t{0660});
}

TEST(LockFileTest, AnErrorNamesTheHolderAfterAWhile) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path().string();
  const io::DirectoryLock lock("test", folder, io::Missing::fail);
  const auto take = [&] {
    const io::DirectoryLock other("other", folder, io::Missing::fail, 50ms);
  };
  const std::string in_use = "other: \"" + folder + "\" is in use: another save has its lock " +
                             lock_name + ", which names ";
  const auto begin = std::chrono::steady_clock::now();
  expect_error(take, ErrorKind::file,
               {in_use + "process " + std::to_string(::getpid()) +
                    " of this machine; it was tried for 0.05 s\n",
                "help: wait until it has ended"});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);

  // What the file says may be of one that had the lock before, or of nobody.
  const std::string good = test::read_bytes(scratch.path(lock_name));
  const std::string here = good.substr(good.find(' '));
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  const std::string number = std::to_string(ended);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "no process; "},
      {"12345", "no process; "},
      {"-1" + here, "no process; "},
      {"0" + here, "no process; "},
      {"99999999999999999999" + here, "no process; "},
      {std::string(300, '1'), "no process; "},
      {number + here, "process " + number + " of this machine, which has ended; "},
      {"77 node17 0123456789abcdef\n", "process 77 of the machine node17; "},
      {"77 \x1b[2Jnode 0123456789abcdef\n", "process 77 of the machine ?[2Jnode; "}};
  for (const auto& [text, said] : cases) {
    test::write_bytes(scratch.path(lock_name), text);
    expect_error(take, ErrorKind::file, {in_use + said});
  }
}

TEST(LockFileTest, ARunDoesNotWait) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path().string();
  const training::RunDirectory run(folder);
  const auto begin = std::chrono::steady_clock::now();
  expect_error([&] { const training::RunDirectory other(folder); }, ErrorKind::file,
               {"train: \"" + folder + "\" is in use: another run has its lock .ein-run.lock, " +
                "which names process " + std::to_string(::getpid()) + " of this machine\n"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(LockFileTest, WhatIsNoFileIsLeftAlone) {
  const test::ScratchDirectory scratch;
  const std::string folder = scratch.path().string(), victim = scratch.path("victim"),
                    place = scratch.path(lock_name);
  const auto take = [&] { const io::DirectoryLock lock("test", folder, io::Missing::fail, 50ms); };
  test::write_bytes(victim, "secret");
  std::filesystem::create_symlink("victim", place);
  expect_error(take, ErrorKind::file, {"cannot be locked: its " + lock_name});
  EXPECT_EQ(test::read_bytes(victim), "secret");
  std::filesystem::remove(place);
  ASSERT_EQ(::mkfifo(place.c_str(), 0600), 0);
  expect_error(take, ErrorKind::file, {"is not a regular file"});
  std::filesystem::remove(place);
  std::filesystem::create_directory(place);
  expect_error(take, ErrorKind::file, {"cannot be locked: its " + lock_name});
}

}  // namespace
}  // namespace ein
