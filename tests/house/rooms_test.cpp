// The rooms of docs/architecture.md: each uses those above it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace {

namespace fs = std::filesystem;
using ein::test::project;
using ein::test::read_bytes;

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

TEST(Rooms, UseThoseAboveThem) {
  const std::string page = read_bytes((project / "docs/architecture.md").string());
  const std::size_t begin = page.find("## Rooms"), end = page.find("## Laws");
  ASSERT_LT(begin, end);
  std::map<std::string, int> row_of;  // by what includes of its headers begin with
  std::string for_all;                // what all may use
  std::istringstream lines(page.substr(begin, end - begin));
  int row = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) {
      for (const std::string& header : matches(line, "`(cpu/\\w+\\.hpp)`")) for_all += header + ' ';
      continue;
    }
    const std::string first_cell = line.substr(0, line.find('|', 1));
    for (const std::string& room : matches(first_cell, "`(?:src/)?(\\w+)/`")) row_of[room] = row;
    ++row;
  }
  for (const auto& entry : fs::directory_iterator(project / "src")) {
    EXPECT_TRUE(!entry.is_directory() || row_of.contains(entry.path().filename()))
        << entry.path() << " is no room of docs/architecture.md";
  }
  int files = 0;
  std::set<std::string> upward;
  for (const auto& [room, own_row] : row_of) {
    const fs::path in_src = project / "src" / room;
    const fs::path folder = fs::exists(in_src) ? in_src : project / room;
    if (room == "tools" || room == "samples" || room == "tests" || room == "bench") continue;
    ASSERT_TRUE(fs::exists(folder)) << folder;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      ++files;
      for (const std::string& header :
           matches(read_bytes((entry.path()).string()), "#include \"(\\w+/[^\"]+)\"")) {
        const auto used = row_of.find(header.substr(0, header.find('/')));
        if (used == row_of.end()) continue;
        if (for_all.find(header) == std::string::npos)
          EXPECT_LE(used->second, own_row) << entry.path() << " includes " << header;
        else if (used->second > own_row)
          upward.insert(room + " -> " + used->first);
      }
    }
  }
  EXPECT_GT(files, 400);
  // By what all may use.
  EXPECT_EQ(upward, (std::set<std::string>{"mesh -> cpu", "nest -> cpu", "tensor -> cpu"}));
}

/// With size/ask.hpp `==` of sizes does not compile, and each guard is asked for.
TEST(Rooms, AskForGuards) {
  int files = 0;
  for (const char* const room : {"graph", "nest", "passes", "schedule", "compile"}) {
    for (const auto& entry : fs::directory_iterator(project / "src" / room)) {
      if (entry.path().extension() != ".cpp") continue;
      ++files;
      EXPECT_NE(read_bytes(entry.path().string()).find("#include \"size/ask.hpp\""),
                std::string::npos)
          << entry.path();
    }
  }
  EXPECT_GT(files, 60);
}

}  // namespace
