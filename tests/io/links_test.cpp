// Links on the way to a file that is written: whose are followed, and that what is written goes
// where the link led when the writing began.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/npy.hpp>
#include <ein/npz.hpp>
#include <ein/safetensors.hpp>
#include <ein/text.hpp>

#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "train/directory.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::read_bytes;
using test::write_bytes;

constexpr uid_t other_user = 12345;

struct Writer {
  const char* name;
  std::function<void(const std::string& path)> write;
};

/// Every function of the library that writes a file at a path.
std::vector<Writer> writers_of_files() {
  const Tensor x = ones({3});
  return {
      {"save_npy", [=](const std::string& path) { save_npy(path, x); }},
      {"save_npz",
       [=](const std::string& path) {
         save_npz(path, {{"x", x}});
       }},
      {"save_safetensors",
       [=](const std::string& path) {
         save_safetensors(path, {{"x", x}});
       }},
      {"save_tokens",
       [](const std::string& path) {
         save_tokens(path, Tokens(zeros({3}, DType::u8)), TokenType::u8);
       }},
      {"save_bpe",
       [](const std::string& path) { save_bpe(path, train_bpe("", {.vocabulary_size = 256})); }},
      {"save_bpe_files: vocabulary",
       [](const std::string& path) {
         const test::ScratchDirectory other;
         save_bpe_files(path, other.path("merges"), train_bpe("", {.vocabulary_size = 256}));
       }},
      {"save_bpe_files: merges",
       [](const std::string& path) {
         const test::ScratchDirectory other;
         save_bpe_files(other.path("vocabulary"), path, train_bpe("", {.vocabulary_size = 256}));
       }},
      {"append_to_file",
       [](const std::string& path) { io::append_to_file("test", path, "line\n"); }},
      {"replace_file", [](const std::string& path) { io::replace_file("test", path, "all"); }},
  };
}

/// Every one that writes into a directory.
std::vector<Writer> writers_of_directories() {
  const Tensor x = ones({3});
  return {
      {"save_checkpoint",
       [=](const std::string& path) {
         save_checkpoint(path, 1, {{"x", x}}, {}, 1);
       }},
      {"RunDirectory",
       [](const std::string& path) {
         const training::RunDirectory run(path);
         io::append_to_file("test", path + "/log.jsonl", "line\n");
       }},
      {"a directory that is missing",
       [=](const std::string& path) {
         save_checkpoint(path + "/new/steps", 1, {{"x", x}});
       }},
      {"NewDirectory",
       [](const std::string& path) { io::NewDirectory("test", path + "/made").commit(); }},
  };
}

/// A directory `shared` beside a directory `victim`, which has a file.
class LinksTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"shared", "victim"}) fs::create_directory(scratch_.path(name));
    ::chmod(scratch_.path("shared").c_str(), 01777);
    write_bytes(scratch_.path("victim/file"), "secret");
  }
  /// A link that leads to `target`, of another user if that is wanted.
  std::string link_to(const std::string& target, uid_t owner) const {
    const std::string link = scratch_.path("shared/link");
    fs::remove(link);
    fs::create_symlink(target, link);
    EXPECT_EQ(::lchown(link.c_str(), owner, static_cast<gid_t>(-1)), 0);
    return link;
  }
  std::vector<std::string> victims() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path("victim")))
      names.push_back(entry.path().filename().string());
    return names;
  }

  test::ScratchDirectory scratch_;
};

TEST(LinkRule, IsThatOfTheKernel) {
  constexpr uid_t owner = 1, other = 2, user = 3;
  for (const mode_t directory : {0755, 0777, 01755, 01777}) {
    SCOPED_TRACE(directory);
    EXPECT_TRUE(io::may_follow(directory, owner, user, user));
    EXPECT_TRUE(io::may_follow(directory, owner, owner, user));
    EXPECT_EQ(io::may_follow(directory, owner, other, user), directory != 01777);
    EXPECT_TRUE(io::may_follow(directory, user, user, user));
    EXPECT_EQ(io::may_follow(directory, user, other, user), directory != 01777);
  }
}

TEST_F(LinksTest, OfAnotherUserInASharedDirectoryAreNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links of another user";
  const std::vector<std::string> refusal = {"\"link\" is another user's link, in a directory"};
  for (const char* target : {"../victim/file", "../victim/new"}) {
    const std::string link = link_to(target, other_user);
    for (const Writer& writer : writers_of_files()) {
      SCOPED_TRACE(writer.name);
      expect_error([&] { writer.write(link); }, ErrorKind::file, refusal);
    }
  }
  const std::string link = link_to(scratch_.path("victim"), other_user);
  for (const Writer& writer : writers_of_directories()) {
    SCOPED_TRACE(writer.name);
    expect_error([&] { writer.write(link); }, ErrorKind::file, refusal);
  }
  for (const Writer& writer : writers_of_files()) {
    SCOPED_TRACE(writer.name);
    expect_error([&] { writer.write(link + "/file"); }, ErrorKind::file, refusal);
  }
  EXPECT_EQ(read_bytes(scratch_.path("victim/file")), "secret");
  EXPECT_EQ(victims(), std::vector<std::string>{"file"});
}

/// By the rule of the kernel: one's own, those of the directory's owner, those in other
/// directories.
TEST_F(LinksTest, OthersAreFollowed) {
  const std::string link = scratch_.path("shared/link"), shared = scratch_.path("shared");
  const auto expect_followed = [&] {
    for (const Writer& writer : writers_of_files()) {
      SCOPED_TRACE(writer.name);
      fs::remove(scratch_.path("victim/new"));
      EXPECT_NO_THROW(writer.write(link));
      EXPECT_TRUE(fs::is_regular_file(scratch_.path("victim/new")));
      EXPECT_TRUE(fs::is_symlink(link));
    }
  };
  link_to("../victim/new", ::geteuid());
  expect_followed();
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links of another user";
  link_to("../victim/new", other_user);
  ::chmod(shared.c_str(), 0777);
  expect_followed();
  ::chmod(shared.c_str(), 01755);
  expect_followed();
  ::chmod(shared.c_str(), 01777);
  ASSERT_EQ(::chown(shared.c_str(), other_user, static_cast<gid_t>(-1)), 0);
  expect_followed();
}

TEST_F(LinksTest, ALinkThatIsSwappedChangesNothing) {
  const std::string link = link_to("../victim/new", ::geteuid());
  io::ReplacementFile file("test", link);
  file.write("all", 3);
  link_to("../victim/file", ::geteuid());
  file.commit();
  EXPECT_EQ(read_bytes(scratch_.path("victim/file")), "secret");
  EXPECT_EQ(read_bytes(scratch_.path("victim/new")), "all");
}

TEST_F(LinksTest, ADirectoryThatIsSwappedChangesNothing) {
  fs::create_directory(scratch_.path("mine"));
  io::ReplacementFile file("test", scratch_.path("mine/file"));
  file.write("all", 3);
  io::NewDirectory made("test", scratch_.path("mine/steps"));
  fs::rename(scratch_.path("mine"), scratch_.path("moved"));
  fs::create_symlink("victim", scratch_.path("mine"));
  file.commit();
  made.commit();
  EXPECT_EQ(read_bytes(scratch_.path("moved/file")), "all");
  EXPECT_TRUE(fs::is_directory(scratch_.path("moved/steps")));
  EXPECT_EQ(read_bytes(scratch_.path("victim/file")), "secret");
  EXPECT_EQ(victims(), std::vector<std::string>{"file"});
}

TEST_F(LinksTest, LinksThatLeadNowhereAreErrors) {
  const std::string link = link_to("link", ::geteuid());
  expect_error([&] { save_npy(link, ones({3})); }, ErrorKind::file, {"too many times"});
  link_to("../victim/", ::geteuid());
  expect_error([&] { save_npy(link, ones({3})); }, ErrorKind::file, {"is no path of a file"});
  link_to("../nobody/file", ::geteuid());
  expect_error([&] { save_npy(link, ones({3})); }, ErrorKind::file, {"cannot be opened"});
  for (const char* end : {"", "/", "/.", "/.."}) {
    expect_error([&] { save_npy(scratch_.path("victim") + end, ones({3})); }, ErrorKind::file,
                 {end == std::string("/") ? "is no path of a file" : "it is a directory"});
  }
}

/// Of paths as they are written: with "..", "." and too many slashes.
TEST_F(LinksTest, PathsLeadWhereTheKernelsLead) {
  fs::create_directories(scratch_.path("victim/a/b"));
  fs::create_symlink("victim/a/b", scratch_.path("deep"));
  fs::create_symlink("victim/a/b/", scratch_.path("slash"));
  fs::create_symlink("victim/a/b/.", scratch_.path("dot"));
  const fs::path before = fs::current_path();
  fs::current_path(scratch_.path());
  for (const char* path : {"x", "./x", "victim//a/./b/../x", "deep/../x", "deep/x", "slash/x",
                           "dot/x", "slash/../x", "victim/../x", "deep/../../../x", ".//.//x"}) {
    SCOPED_TRACE(path);
    io::append_to_file("test", path, "all");
    EXPECT_EQ(read_bytes(path), "all");  // by the kernel
    fs::remove(path);
  }
  fs::current_path(before);
}

TEST_F(LinksTest, ADirectoryIsReplacedAtOnce) {
  const std::string path = scratch_.path("steps");
  const auto put = [&](const std::string& content) {
    io::NewDirectory made("test", path);
    write_bytes(made.temporary() + "/file", content);
    made.commit();
  };
  put("0");
  std::atomic<bool> ends{false};
  std::atomic<int> missing{0};
  std::thread reader([&] {
    while (!ends) missing += !fs::exists(path);
  });
  for (int i = 1; i <= 300; ++i) {
    put(std::to_string(i));
    EXPECT_EQ(read_bytes(path + "/file"), std::to_string(i));
  }
  ends = true;
  reader.join();
  EXPECT_EQ(missing, 0);
  EXPECT_EQ(scratch_.listing(), (std::vector<std::string>{"shared", "steps", "victim"}));
}

}  // namespace
}  // namespace ein
