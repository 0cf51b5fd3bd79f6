// The rooms of docs/architecture.md: each uses those above it.
#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
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

/// The table of the page.
struct Rooms {
  std::map<std::string, int> row_of;  // by what includes of their headers begin with
  std::string for_all;                // headers that all may use

  Rooms() {
    const std::string page = read_bytes((project / "docs/architecture.md").string());
    const std::size_t begin = page.find("## Rooms"), end = page.find("## Laws");
    std::istringstream lines(page.substr(begin, end - begin));
    int row = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('|')) {
        for (const std::string& header : matches(line, "`(cpu/\\w+\\.hpp)`"))
          for_all += header + ' ';
        continue;
      }
      const std::string first_cell = line.substr(0, line.find('|', 1));
      for (const std::string& room : matches(first_cell, "`(?:src/)?(\\w+)/`")) row_of[room] = row;
      ++row;
    }
  }
};

TEST(Rooms, UseThoseAboveThem) {
  const auto [row_of, for_all] = Rooms();
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

#ifdef EIN_OBJECTS
std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return name ? name.get() : symbol;
}

/// The symbols of an object file: what it defines, but for what headers define, and what it wants.
struct Symbols {
  std::vector<std::string> defined, wanted;

  explicit Symbols(const std::string& object) {
    const std::unique_ptr<FILE, decltype(&pclose)> nm(
        popen(("nm -P '" + object + "'").c_str(), "r"), &pclose);
    for (char line[65536]; std::fgets(line, sizeof line, nm.get());) {
      std::istringstream words(line);
      std::string name, kind;
      words >> name >> kind;
      if (kind == "U") wanted.push_back(name);
      if (kind == "T" || kind == "D" || kind == "B" || kind == "R") defined.push_back(name);
    }
  }
};

/// What the machine at hand has, and the device of which a tensor is if nothing else is said.
bool is_for_all(const std::string& name) {
  return name == "ein::host::level()" || name == "ein::measured_cpu()" ||
         name == "ein::detail::cpu_kind";
}

/// A header may declare what a room below defines; what the linker joins tells.
TEST(Rooms, AreLinkedWithThoseAboveThem) {
  const Rooms rooms;
  const auto row = [&](const std::string& room) { return rooms.row_of.at(room); };
  std::map<std::string, std::string> home;                 // of a symbol, the room
  std::map<std::string, std::set<std::string>> wanted_by;  // symbols by rooms
  std::ifstream objects(EIN_OBJECTS);
  int files = 0;
  for (std::string object; std::getline(objects, object);) {
    const std::vector<std::string> of =
        matches(object, "\\.dir/(?:\\./)?(?:Unity/unity_)?(?:src[_/])?([a-z]+)[_/]");
    if (of.empty() || !rooms.row_of.contains(of[0])) continue;
    ++files;
    const Symbols symbols(object);
    for (const std::string& symbol : symbols.defined) home[symbol] = of[0];
    wanted_by[of[0]].insert(symbols.wanted.begin(), symbols.wanted.end());
  }
  EXPECT_GT(files, 40);
  EXPECT_GT(home.size(), 2000u);
  // Members of Tensor that compute, and public functions of which gradients, traces and maps are
  // made.
  const std::set<std::string> known{"io -> runtime", "io -> api", "tensor -> runtime",
                                    "runtime -> api", "compile -> runtime"};
  std::set<std::string> found;
  for (const auto& [room, symbols] : wanted_by) {
    for (const std::string& symbol : symbols) {
      const auto at = home.find(symbol);
      if (at == home.end() || row(at->second) <= row(room)) continue;
      const std::string name = demangled(symbol), arrow = room + " -> " + at->second;
      if (is_for_all(name)) continue;
      found.insert(arrow);
      EXPECT_TRUE(known.contains(arrow)) << arrow << ": " << name;
    }
  }
  EXPECT_EQ(found, known);
}
#endif

/// With size/ask.hpp `==` of sizes does not compile, and each guard is asked for.
TEST(Rooms, AskForGuards) {
  int files = 0;
  for (const char* const room :
       {"src/graph", "src/draw", "src/linalg", "src/nest", "src/cost", "src/autograd", "src/passes",
        "src/schedule", "src/mesh", "src/cpu", "codegen", "src/cuda", "src/compile"}) {
    for (const auto& entry : fs::directory_iterator(project / room)) {
      if (entry.path().extension() != ".cpp") continue;
      ++files;
      EXPECT_NE(read_bytes(entry.path().string()).find("#include \"size/ask.hpp\""),
                std::string::npos)
          << entry.path();
    }
  }
  EXPECT_GT(files, 150);
}

}  // namespace
