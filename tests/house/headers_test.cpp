// Headers: all.hpp has all that programs may include, but what needs Eigen.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace {

namespace fs = std::filesystem;
using ein::test::project;

/// Adds a header, <ein/NAME>, and those that it includes.
void add_with_included(const std::string& header, std::set<std::string>& found) {
  const fs::path in_include = project / "include" / header;
  const fs::path file = fs::exists(in_include) ? in_include : project / "grammar" / header;
  if (!fs::exists(file) || !found.insert(header).second) return;
  const std::string text = ein::test::read_bytes(file.string());
  const std::regex include("#include <(ein/[^>]+)>");
  for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
    add_with_included((*at)[1], found);
}

TEST(Headers, AllHasAllButEigens) {
  std::set<std::string> found, of_eigen;
  add_with_included("ein/all.hpp", found);
  for (const char* header : {"ein/eigen.hpp", "ein/eigen_tensor.hpp"}) {
    EXPECT_FALSE(found.contains(header));
    add_with_included(header, of_eigen);
  }
  std::size_t headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(project / "include")) {
    if (entry.path().extension() != ".hpp") continue;
    ++headers;
    const std::string name = fs::relative(entry.path(), project / "include").string();
    EXPECT_TRUE(found.contains(name) || of_eigen.contains(name)) << name;
  }
  EXPECT_GT(headers, 50u);
}

}  // namespace
