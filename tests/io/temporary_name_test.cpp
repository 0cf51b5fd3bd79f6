// Names of temporary files: those that processes of this machine have left are removed, and no
// other.
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/temporary_name.hpp"
#include "support/scratch.hpp"

namespace ein::io {
namespace {

constexpr const char* another_boot = "0123456789abcdef";

std::string name_of(const std::string& host, const std::string& boot, const std::string& rest) {
  return ".ein-" + host + "-" + boot + "-" + rest + ".tmp";
}

TEST(TemporaryNames, SayWhereTheyWereMade) {
  const Boot here = this_boot();
  EXPECT_EQ(here.id.size(), 16u);
  EXPECT_EQ(here, this_boot());
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    const std::string name = temporary_name();
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(
        name.starts_with(".ein-" + here.host + "-" + here.id + "-" + std::to_string(::getpid())))
        << name;
    EXPECT_TRUE(is_temporary_of(here, name)) << name;
    EXPECT_FALSE(is_temporary_of({"node17", another_boot}, name)) << name;
  }
}

TEST(TemporaryNames, AreOfThisMachine) {
  const Boot here{"node_1.example", "00000000000000ff"};
  const auto is_ours = [&](const std::string& name) { return is_temporary_of(here, name); };
  EXPECT_TRUE(is_ours(name_of(here.host, here.id, "1-0")));
  EXPECT_TRUE(is_ours(name_of(here.host, another_boot, "1-0")));  // before it was started anew
  EXPECT_TRUE(is_ours(name_of("container7", here.id, "1-0")));    // which shares the kernel
  EXPECT_FALSE(is_ours(name_of("node_2.example", another_boot, "1-0")));
  for (const char* name :
       {".ein-1-0.tmp", ".ein-.tmp", ".ein-node_1.example-00000000000000ff-1-0.tmp2",
        "ein-node_1.example-00000000000000ff-1-0.tmp", ".ein-node_1.example-00000000000000ff-1.tmp",
        ".ein-node_1.example-00000000000000ff--0.tmp",
        ".ein-node_1.example-00000000000000ff-x-0.tmp",
        ".ein-x-node_1.example-00000000000000ff-1-0.tmp",
        ".ein-node_1.example-00000000000000ff-1-0", "", ".ein-", ".tmp", ".ein-checkpoints.lock"})
    EXPECT_FALSE(is_ours(name)) << name;
}

TEST(TemporaryNames, FilesOfOtherMachinesStay) {
  const test::ScratchDirectory scratch;
  const Boot here = this_boot();
  const std::string dead = name_of(here.host, here.id, "1-0"),
                    before = name_of(here.host, another_boot, "2-0"),
                    other = name_of("node17", another_boot, "3-0"),
                    directory = name_of(here.host, here.id, "4-0"),
                    other_directory = name_of("node17", another_boot, "5-0");
  for (const std::string& name : {dead, before, other}) test::write_bytes(scratch.path(name), "x");
  for (const std::string& name : {directory, other_directory}) {
    std::filesystem::create_directory(scratch.path(name));
    test::write_bytes(scratch.path(name + "/file"), "x");
  }
  const ReplacementFile open("test", scratch.path("file"));  // whose lock is held
  remove_abandoned_files(scratch.path().string());
  std::vector<std::string> left = scratch.listing();
  std::erase_if(left, [&](const std::string& name) {
    return name.starts_with(".ein-" + here.host + "-" + here.id + "-" + std::to_string(::getpid()));
  });
  EXPECT_EQ(left, (std::vector<std::string>{other, other_directory}));
  EXPECT_EQ(scratch.listing().size(), 3u);
}

}  // namespace
}  // namespace ein::io
