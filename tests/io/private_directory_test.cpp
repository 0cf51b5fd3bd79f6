// Directories of the user's own: what others can change is not believed, and not written to.
#include "io/private_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <ein/error.hpp>

#include "support/expect_error.hpp"
#include "support/scratch.hpp"

namespace ein::io {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::read_bytes;
using test::ScratchDirectory;
using test::write_bytes;

constexpr uid_t somebody_else = 12345;
constexpr std::uint64_t most = 1000;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(PrivateDirectory, HasModesOfItsOwnWhateverTheUmask) {
  for (const mode_t umask : {mode_t{0}, mode_t{022}, mode_t{077}}) {
    const ScratchDirectory scratch;
    const mode_t before = ::umask(umask);
    const PrivateDirectory directory("test", scratch.path("a/b/c"));
    directory.replace("file", "content");
    ::umask(before);
    EXPECT_EQ(directory.read("file", most), "content");
    EXPECT_EQ(mode_of(scratch.path("a/b/c/file")), 0600u);
    for (const char* const made : {"a", "a/b", "a/b/c"})
      EXPECT_EQ(mode_of(scratch.path(made)), 0700u) << made;
  }
}

TEST(PrivateDirectory, FollowsNoLink) {
  const ScratchDirectory scratch;
  const PrivateDirectory directory("test", scratch.path("d"));
  write_bytes(scratch.path("victim"), "theirs");
  fs::create_symlink(scratch.path("victim"), scratch.path("d/file"));
  EXPECT_EQ(directory.read("file", most), std::nullopt);
  directory.touch("file");
  directory.replace("file", "ours");
  EXPECT_EQ(read_bytes(scratch.path("victim")), "theirs");
  EXPECT_EQ(directory.read("file", most), "ours");
  fs::create_directory_symlink(scratch.path("d"), scratch.path("link"));
  expect_error([&] { PrivateDirectory("test", scratch.path("link/")); }, ErrorKind::file,
               {"link", "cannot be opened"});
}

TEST(PrivateDirectory, BelievesNoFileThatOthersCanWrite) {
  const ScratchDirectory scratch;
  const PrivateDirectory directory("test", scratch.path("d"));
  const std::string path = scratch.path("d/file");
  for (const mode_t mode : {0620, 0602, 0666}) {
    directory.replace("file", "content");
    EXPECT_EQ(directory.read("file", most), "content");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(directory.read("file", most), std::nullopt) << mode;
  }
  directory.replace("file", "content");
  EXPECT_EQ(directory.read("file", 6), std::nullopt);  // longer
  EXPECT_EQ(directory.read("none", most), std::nullopt);
  fs::create_directory(scratch.path("d/folder"));
  EXPECT_EQ(directory.read("folder", most), std::nullopt);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), somebody_else, somebody_else), 0);
    EXPECT_EQ(directory.read("file", most), std::nullopt);
  }
}

TEST(PrivateDirectory, StaysTheSameDirectory) {
  const ScratchDirectory scratch;
  const PrivateDirectory directory("test", scratch.path("d"));
  directory.replace("file", "ours");
  fs::rename(scratch.path("d"), scratch.path("moved"));
  fs::create_directory(scratch.path("d"));
  write_bytes(scratch.path("d/file"), "theirs");
  EXPECT_EQ(directory.read("file", most), "ours");
  directory.replace("file", "new");
  EXPECT_EQ(read_bytes(scratch.path("d/file")), "theirs");
  EXPECT_EQ(read_bytes(scratch.path("moved/file")), "new");
  ASSERT_EQ(directory.entries().size(), 1u);
  EXPECT_EQ(directory.entries()[0].bytes, 3u);
  directory.remove("file");
  EXPECT_TRUE(directory.entries().empty());
  EXPECT_TRUE(fs::exists(scratch.path("d/file")));
}

TEST(PrivateDirectory, IsInNoneThatOthersCanWrite) {
  const ScratchDirectory scratch;
  const auto make = [&] { PrivateDirectory("test", scratch.path("a/b")); };
  make();
  for (const mode_t mode : {0720, 0702, 01777}) {
    ASSERT_EQ(::chmod(scratch.path("a").c_str(), mode), 0);
    expect_error(make, ErrorKind::file, {"can be written by others"});
  }
  ASSERT_EQ(::chmod(scratch.path("a").c_str(), 0755), 0);
  make();
  ASSERT_EQ(::chmod(scratch.path("a/b").c_str(), 0750), 0);
  expect_error(make, ErrorKind::file, {"is open to other users"});
  const auto entered = [&] {
    PrivateDirectory("test", scratch.path("a/b"), PrivateDirectory::Others::enter);
  };
  entered();
  ASSERT_EQ(::chmod(scratch.path("a/b").c_str(), 0770), 0);
  expect_error(entered, ErrorKind::file, {"is open to other users"});
  if (::geteuid() == 0) {
    ASSERT_EQ(::chmod(scratch.path("a/b").c_str(), 0700), 0);
    ASSERT_EQ(::chown(scratch.path("a/b").c_str(), somebody_else, somebody_else), 0);
    expect_error(make, ErrorKind::file, {"belongs to another user"});
    ASSERT_EQ(::chown(scratch.path("a/b").c_str(), 0, 0), 0);
    ASSERT_EQ(::chown(scratch.path("a").c_str(), somebody_else, somebody_else), 0);
    expect_error(make, ErrorKind::file, {"belongs to another user"});
  }
}

/// The two variables, as they are while this lives; an empty one is not set.
class CacheVariables {
 public:
  CacheVariables() : cache_(of("XDG_CACHE_HOME")), home_(of("HOME")) {}
  ~CacheVariables() { set(cache_, home_); }
  CacheVariables(const CacheVariables&) = delete;
  CacheVariables& operator=(const CacheVariables&) = delete;
  static void set(const std::string& cache, const std::string& home) {
    ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    ::setenv("HOME", home.c_str(), 1);
  }

 private:
  static std::string of(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
  }
  std::string cache_, home_;
};

TEST(UserCache, IsTheUsersOwn) {
  const ScratchDirectory scratch;
  const CacheVariables variables;
  const std::string home = scratch.path("home"), cache = scratch.path("cache");
  const auto refuses = [](const std::string& why) {
    std::string said;
    EXPECT_EQ(user_cache(&said), "");
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_EQ(user_cache(), "");
  };
  CacheVariables::set("", "");
  refuses("neither XDG_CACHE_HOME nor HOME");
  CacheVariables::set("relative", "");  // as the XDG rules say
  refuses("neither XDG_CACHE_HOME nor HOME");
  CacheVariables::set("", home);
  refuses("cannot be examined");
  EXPECT_FALSE(fs::exists(home));  // which is not ours to make

  fs::create_directory(home);
  EXPECT_EQ(user_cache(), home + "/.cache");
  EXPECT_EQ(mode_of(home + "/.cache"), 0700u);
  CacheVariables::set("relative", home);
  EXPECT_EQ(user_cache(), home + "/.cache");
  CacheVariables::set(cache, home);
  EXPECT_EQ(user_cache(), cache);
  for (const std::string& folder : {home, home + "/.cache"}) {
    CacheVariables::set("", home);
    for (const mode_t mode : {0775, 0757, 01777}) {
      ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
      refuses("\"" + folder + "\" can be written by others");
    }
    ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
    EXPECT_EQ(user_cache(), home + "/.cache");
    if (::geteuid() != 0) continue;
    ASSERT_EQ(::chown(folder.c_str(), somebody_else, somebody_else), 0);
    refuses("\"" + folder + "\" belongs to another user");
    ASSERT_EQ(::chown(folder.c_str(), 0, 0), 0);
  }
  // A user may keep it elsewhere, by a link.
  fs::remove_all(home + "/.cache");
  fs::create_directory_symlink(cache, home + "/.cache");
  EXPECT_EQ(user_cache(), home + "/.cache");
  ASSERT_EQ(::chmod(cache.c_str(), 0777), 0);
  refuses("can be written by others");
}

}  // namespace
}  // namespace ein::io
