// Pages: docs/README.md names all of docs/, and what pages link to is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace {

namespace fs = std::filesystem;
using ein::test::project;
using ein::test::read_bytes;

/// The files that a page links to, without what follows '#'.
std::vector<std::string> links_of(const fs::path& page) {
  const std::string text = read_bytes(page.string());
  const std::regex link(R"(\]\(([^)#\s]+)(#[^)\s]*)?\))");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at)
    if (const std::string to = (*at)[1]; to.find("://") == to.npos) found.push_back(to);
  return found;
}

std::vector<fs::path> pages_in(const fs::path& folder) {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  return pages;
}

TEST(Pages, AreAllInTheIndex) {
  const std::vector<std::string> listed = links_of(project / "docs/README.md");
  const std::vector<fs::path> pages = pages_in(project / "docs");
  EXPECT_GT(pages.size(), 10u);
  for (const fs::path& page : pages) {
    const std::string name = page.filename();
    EXPECT_TRUE(name == "README.md" || std::count(listed.begin(), listed.end(), name) == 1)
        << name << " does not stand in docs/README.md once";
  }
}

TEST(Pages, LinkToWhatIsThere) {
  std::size_t links = 0;
  for (const char* const folder : {".", "docs", "bench", "bench/results"}) {
    for (const fs::path& page : pages_in(project / folder)) {
      for (const std::string& to : links_of(page)) {
        ++links;
        EXPECT_TRUE(fs::exists(page.parent_path() / to)) << page << " links to " << to;
      }
    }
  }
  EXPECT_GT(links, 50u);
}

}  // namespace
