// ein draw as a shell sees it, and the pictures of pages, which it makes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/project.hpp"
#include "support/scratch.hpp"
#include "support/xml.hpp"

namespace {

using ein::test::expect_fails;
using ein::test::expect_holds;
using ein::test::outcome_of;
using ein::test::project;
using ein::test::read_bytes;
using ein::test::text_of;
using ein::test::XmlCheck;
using Words = std::vector<std::string>;

TEST(DrawCommand, WritesAPicture) {
  const std::string svg = text_of(
      {"draw", "rearrange", "b s (h d) -> b h s d", "--shape", "2,128,512", "--axis", "h=8"});
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  expect_holds(svg, {"(2, 128, 512) → (2, 8, 128, 64)", "d 3 for 64"});
  const ein::test::ScratchDirectory scratch;
  EXPECT_EQ(text_of({"draw", "reduce", "b c (h 2) (w 2) -> b c h w", "--by", "max", "-o",
                     scratch.path("x.svg")}),
            "");
  EXPECT_EQ(XmlCheck(read_bytes(scratch.path("x.svg"))).mistake(), "");
  expect_holds(text_of({"draw", "rearrange", "n c -> (n c)", "--shape", "3", "--shape", "3"}),
               {"(2, 3) → (6,)"});
}

TEST(DrawCommand, DrawsAMistakeAndSaysIt) {
  const ein::test::ScratchDirectory scratch;
  const Words words{"draw",    "einsum", "b s1 h, b s2 h -> b s1 s2", "--shape", "2,3,64",
                    "--shape", "2,5,32"};
  Words to_file = words;
  to_file.insert(to_file.end(), {"-o", scratch.path("mistake.svg")});
  expect_fails(2, to_file, "axis 'h' has two sizes");
  const std::string svg = read_bytes(scratch.path("mistake.svg"));
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  expect_holds(svg, {"axis 'h' has two sizes", ">      64      32<"});
  const auto outcome = outcome_of(words);
  EXPECT_EQ(outcome.exit_code, 2);
  expect_holds(outcome.text, {svg, "ein: einsum: axis 'h' has two sizes"});
}

TEST(DrawCommand, SaysWhatItDoesNotDraw) {
  expect_fails(2, {"draw", "softmax", "b [c]"}, "it draws rearrange, repeat, reduce and einsum");
  expect_fails(2, {"draw", "program", "x.ein"}, "not program");
  expect_fails(2, {"draw", "reduce", "a b -> a"}, "reduce needs --by");
  expect_fails(1, {"draw", "rearrange", "a b -> b a", "-o", "/proc/none/x.svg"}, "/proc/none");
}

TEST(DrawCommand, DrawsTheMemoryOfATrainingStep) {
  const ein::test::ScratchDirectory scratch;
  const Words words{"step",     "memory", "--n-layer",    "1",  "--n-head",     "2",
                    "--n-embd", "32",     "--block-size", "16", "--batch-size", "2"};
  const std::string svg = text_of(words);
  EXPECT_EQ(XmlCheck(svg).mistake(), "");
  expect_holds(svg, {">forward<", ">backward<", "are alive:"});
  Words to_file = words;
  to_file.insert(to_file.end(), {"-o", scratch.path("memory.svg")});
  expect_holds(text_of(to_file), {"f32 (", "bytes wait for the backward pass, in "});
  EXPECT_EQ(XmlCheck(read_bytes(scratch.path("memory.svg"))).mistake(), "");
}

/// The words of a command as a shell reads them.
Words words_of(const std::string& line) {
  Words words;
  bool is_open = false, is_quoted = false;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

// Each picture of a page is what the command beside it makes. EIN_WRITE_GOLDEN=1 makes them anew.
TEST(DrawCommand, MakesThePicturesOfPages) {
  const std::string into = "docs/pictures/";
  std::set<std::string> made;
  std::istringstream page(read_bytes((project / "docs/draw.md").string()));
  for (std::string line; std::getline(page, line);) {
    const std::size_t begin = line.find("ein draw "), end = line.find(" -o " + into);
    if (begin == line.npos || end == line.npos) continue;
    const std::size_t name_at = end + 4 + into.size();
    const std::string name = line.substr(name_at, line.find_first_of("` ", name_at) - name_at);
    Words words = words_of(line.substr(begin, end - begin));
    words.erase(words.begin());
    const ein::test::ScratchDirectory scratch;
    words.insert(words.end(), {"-o", scratch.path(name)});
    outcome_of(words);
    const std::string svg = read_bytes(scratch.path(name));
    const std::string path = (project / into / name).string();
    if (std::getenv("EIN_WRITE_GOLDEN")) std::ofstream(path) << svg;
    EXPECT_EQ(svg, read_bytes(path)) << line;
    made.insert(name);
  }
  EXPECT_GE(made.size(), 10u);
  for (const auto& entry : std::filesystem::directory_iterator(project / into))
    EXPECT_TRUE(made.contains(entry.path().filename())) << entry.path();
}

}  // namespace
