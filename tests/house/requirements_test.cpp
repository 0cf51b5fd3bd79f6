// Python packages that are installed for comparisons: the files whose hashes are written down.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/project.hpp"

#include "support/scratch.hpp"

namespace {

namespace fs = std::filesystem;
using ein::test::project;

/// The lines of a file; one that a backslash ends goes on in the next.
std::vector<std::string> lines_of(const fs::path& file) {
  const std::string text =
      std::regex_replace(ein::test::read_bytes(file.string()), std::regex("\\\\\n"), " ");
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Requirements, HaveVersionsAndHashes) {
  const std::regex locked(R"([\w.-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+ *)");
  int files = 0, packages = 0;
  for (const char* const folder : {"bench", "tests", "scripts"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / folder)) {
      const std::string name = entry.path().filename().string();
      if (name.find("requirements") == name.npos || !name.ends_with(".txt")) continue;
      ++files;
      for (const std::string& line : lines_of(entry.path())) {
        if (line.empty() || line.starts_with('#')) continue;
        ++packages;
        EXPECT_TRUE(std::regex_match(line, locked)) << entry.path() << ": " << line.substr(0, 60);
      }
    }
  }
  EXPECT_EQ(files, 2);
  EXPECT_GT(packages, 20);
}

TEST(Requirements, AreInstalledByTheirHashes) {
  std::vector<fs::path> files{project / "Makefile", project / ".ci/run",
                              project / "bench/peers/README.md"};
  for (const auto& entry : fs::directory_iterator(project / "scripts")) files.push_back(entry);
  int found = 0;
  for (const fs::path& file : files) {
    for (const std::string& line : lines_of(file)) {
      if (line.find("pip install") == line.npos) continue;
      ++found;
      const bool downloads = line.find("--no-index") == line.npos;
      EXPECT_TRUE(!downloads || line.find("--require-hashes") != line.npos) << file << ": " << line;
    }
  }
  EXPECT_EQ(found, 4);
}

}  // namespace
