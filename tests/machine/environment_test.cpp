// Variables of the environment: which ein reads, and that a program with more rights than its
// caller reads none.
#include "machine/environment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "io/private_directory.hpp"
#include "support/expect_error.hpp"
#include "support/project.hpp"
#include "support/sanitized.hpp"
#include "support/scratch.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;

using test::project;

struct Row {
  Variable variable;
  std::string enumerator, name;
  Holds holds;
  std::string takes, without, readers;
};
std::vector<Row> rows() {
#define EIN_ROW(variable, name, holds, takes, without, readers) \
  {Variable::variable, #variable, name, Holds::holds, takes, without, readers},
  return {EIN_FOR_EACH_VARIABLE(EIN_ROW)};
#undef EIN_ROW
}

/// Sets a variable as long as it lives.
class Set {
 public:
  Set(const std::string& name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name.c_str())) before_ = before;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Set() { before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str()); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// The sources of the library and of the command.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> found;
  for (const char* const folder : {"include", "grammar", "src", "codegen", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(project / folder)) {
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp")
        found[fs::relative(entry.path(), project).string()] = read_bytes(entry.path().string());
    }
  }
  EXPECT_GT(found.size(), 400u);
  return found;
}

TEST(Environment, IsReadByOneFunction) {
  const std::regex reads(R"(\b(secure_)?getenv\b|\b_?environ\b)");
  std::set<std::string> files;
  for (const auto& [file, text] : sources()) {
    if (std::regex_search(text, reads)) files.insert(file);
  }
  // The launcher hands all of it on to what it starts.
  EXPECT_EQ(files, (std::set<std::string>{"src/machine/environment.cpp", "tools/launch.cpp"}));
}

TEST(Environment, IsReadWhereTheTableSays) {
  const std::regex names(R"(\bVariable::(\w+))");
  std::map<std::string, std::set<std::string>> readers;
  for (const auto& [file, text] : sources()) {
    for (std::sregex_iterator at(text.begin(), text.end(), names), end; at != end; ++at)
      readers[(*at)[1]].insert(file);
  }
  for (const Row& row : rows()) {
    std::set<std::string> listed;
    std::istringstream list(row.readers);
    for (std::string file; std::getline(list >> std::ws, file, ',');) listed.insert(file);
    EXPECT_EQ(listed, readers[row.enumerator]) << row.name;
    readers.erase(row.enumerator);
  }
  EXPECT_TRUE(readers.empty()) << readers.begin()->first;
}

TEST(Environment, HasAPage) {
  const auto what_it_is = [](Holds holds) {
    return holds == Holds::path ? "path of " : holds == Holds::folder ? "folder: " : "";
  };
  std::vector<std::string> wanted;
  for (const Row& row : rows()) {
    const std::string readers = std::regex_replace(row.readers, std::regex(", "), "`, `");
    wanted.push_back("| `" + row.name + "` | " + what_it_is(row.holds) + row.takes + " | " +
                     row.without + " | `" + readers + "` |");
  }
  std::vector<std::string> found;
  std::istringstream page(read_bytes((project / "docs/environment.md").string()));
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `")) found.push_back(line);
  }
  EXPECT_EQ(found, wanted);
}

TEST(Environment, APathIsWhole) {
  for (const Row& row : rows()) {
    const Set set(row.name, "folder/file");
    const auto read = [&] { return environment(row.variable, false); };
    if (row.holds == Holds::path)
      test::expect_error(read, ErrorKind::value,
                         {row.name + " is 'folder/file', which is no whole path", "from / on"});
    else
      EXPECT_EQ(read(), row.holds == Holds::folder ? "" : "folder/file") << row.name;
    EXPECT_EQ(name(row.variable), row.name);
  }
  const Set empty("EIN_NVRTC", ""), whole("EIN_MPI", "/x");
  EXPECT_EQ(environment(Variable::nvrtc, false), "");
  EXPECT_EQ(environment(Variable::mpi, false), "/x");
}

TEST(Environment, SaysNothingToAProgramWithMoreRights) {
  for (const Row& row : rows()) {
    const Set set(row.name, "/x");
    EXPECT_EQ(environment(row.variable, false), "/x");
    EXPECT_EQ(environment(row.variable, true), "") << row.name;
  }
}

#ifdef EIN_COMMAND
/// A place where set-id programs have the rights of their owner; removed at the end.
class Place {
 public:
  Place() {
    for (const fs::path& parent : {fs::temp_directory_path(), fs::current_path()}) {
      struct statvfs status {};
      if (::statvfs(parent.c_str(), &status) != 0 || (status.f_flag & ST_NOSUID)) continue;
      std::string pattern = (parent / "ein_rights_XXXXXX").string();
      if (!::mkdtemp(pattern.data())) continue;
      path_ = pattern;
      ::chmod(path_.c_str(), 0755);
      return;
    }
  }
  ~Place() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// What `program devices` prints when that user runs it.
std::string devices_as(uid_t user, const std::string& program,
                       const std::vector<std::string>& variables) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    std::vector<char*> pointers;
    for (const std::string& variable : variables)
      pointers.push_back(const_cast<char*>(variable.c_str()));
    pointers.push_back(nullptr);
    char name[] = "ein", devices[] = "devices";
    char* const words[] = {name, devices, nullptr};
    if (::setgid(user) == 0 && ::setuid(user) == 0)
      ::execve(program.c_str(), words, pointers.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return text + "exit " + std::to_string(WEXITSTATUS(status));
}

TEST(Environment, IsNotReadByASetIdProgram) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes a program of another user";
  const Place place;
  if (place.path().empty()) GTEST_SKIP() << "there is no place for set-id programs here";
  constexpr uid_t owner = 65534, caller = 65533;
  const std::string program = (place.path() / "ein").string();
  const fs::path cache = place.path() / "cache";
  fs::copy_file(EIN_COMMAND, program);
  fs::create_directory(cache);
  ASSERT_EQ(::chown(cache.c_str(), owner, owner), 0);
  ASSERT_EQ(::chown(program.c_str(), owner, owner), 0);
  const std::string holds_cache = "XDG_CACHE_HOME=" + cache.string();
  const std::vector<std::string> variables{holds_cache, "EIN_ISA=none", "EIN_NVRTC=relative"};

  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  EXPECT_NE(devices_as(caller, program, variables).find("EIN_ISA is 'none'"), std::string::npos);
  EXPECT_NE(devices_as(owner, program, {holds_cache}).find("kept in " + cache.string()),
            std::string::npos);
  fs::remove_all(cache / "ein");

  ASSERT_EQ(::chmod(program.c_str(), 06755), 0);
  const std::string text = devices_as(caller, program, variables);
  EXPECT_NE(text.find("not kept: neither XDG_CACHE_HOME nor HOME"), std::string::npos) << text;
  // Nothing may trace such a program, so a sanitizer does not find leaks, and says so.
  EXPECT_TRUE(test::is_sanitized() || text.ends_with("exit 0")) << text;
  EXPECT_TRUE(fs::is_empty(cache));
}
#endif

}  // namespace
}  // namespace ein
