// Memory of machine code: no page can be both written and run, and a child of fork() shares none
// that is still written.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <ein/ein.hpp>
#include "cpu/row_code.hpp"
#include "support/row_code.hpp"

namespace ein {
namespace {

/// The lines of /proc/self/maps whose permissions have all of these letters.
std::vector<std::string> mappings(const std::string& permissions) {
  std::vector<std::string> found;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string range, rights;
    words >> range >> rights;
    bool has_all = true;
    for (const char right : permissions) has_all &= rights.find(right) != std::string::npos;
    if (has_all) found.push_back(line);
  }
  return found;
}
/// Those that are of machine code.
std::size_t count_of_code(const std::string& permissions) {
  std::size_t count = 0;
  for (const std::string& line : mappings(permissions))
    count += line.find("memfd:") != std::string::npos || line.find("/vmem") != std::string::npos;
  return count;
}

/// Code that multiplies by `number`; null where it is refused.
std::shared_ptr<const host::RowCode> code_of(double number) {
  Schedule::Part part;
  part.places = {{.step = 1}, {.step = 1}};
  part.rows.nests = {{.inputs = {0}, .output = 1, .body = Ex::input(0) * Ex(number)}};
  part.rows.length = {1000};
  part.rows.compute = DType::f32;
  return host::RowCode::compile(part);
}

bool multiplies(const host::RowCode& code, float number) {
  std::vector<float> from(1000), to(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i) - 500;
  std::byte* places[] = {reinterpret_cast<std::byte*>(from.data()),
                         reinterpret_cast<std::byte*>(to.data())};
  code({places, 1000, 1, nullptr});
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to[i] != from[i] * number) return false;
  }
  return true;
}

/// Whether code of `count` numbers from `first` on multiplies by each of them, also once all of it
/// is made; every other one is given up at once.
bool all_multiply(float first, int count) {
  std::map<float, std::shared_ptr<const host::RowCode>> kept;
  for (int i = 0; i < count; ++i) {
    const float number = first + static_cast<float>(i) / 1024;
    const auto code = code_of(number);
    if (!code || !multiplies(*code, number)) return false;
    if (i % 2 == 0) kept[number] = code;
  }
  return std::all_of(kept.begin(), kept.end(),
                     [](const auto& entry) { return multiplies(*entry.second, entry.first); });
}

/// The exit code of a child of fork() that calls it.
int in_child(const std::function<int()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(call());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class CodeMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_ROW_CODE;
    ASSERT_FALSE(mappings("r").empty()) << "/proc/self/maps cannot be read";
  }
};

TEST_F(CodeMemoryTest, NoPageIsWrittenAndRun) {
  const std::shared_ptr<const host::RowCode> first = code_of(1.5);
  EXPECT_TRUE(all_multiply(2, 1000));  // more than one block of memory has room for
  EXPECT_TRUE(multiplies(*first, 1.5F));
  EXPECT_GT(count_of_code("x"), 0U) << "no code was made";
  EXPECT_EQ(mappings("wx"), std::vector<std::string>());
  EXPECT_LE(count_of_code("w"), 1U);  // what is full is only run
}

TEST_F(CodeMemoryTest, GoesWithItsCode) {
  const std::size_t before = count_of_code("x");
  std::vector<std::shared_ptr<const host::RowCode>> kept;
  for (int i = 0; i < 1000; ++i) kept.push_back(code_of(4 + i / 1024.0));
  EXPECT_GT(count_of_code("x"), before);
  kept.clear();
  EXPECT_LE(count_of_code("x"), before + 1);
}

TEST_F(CodeMemoryTest, AChildAndItsParentMakeCodeOfTheirOwn) {
  std::shared_ptr<const host::RowCode> kept = code_of(6.5), given_up = code_of(6.75);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  const char ready = 0;
  if (child == 0) {
    ::alarm(60);
    if (::write(ends[1], &ready, 1) != 1) ::_exit(2);
    const bool is_right = all_multiply(7, 500) && multiplies(*kept, 6.5F) &&
                          multiplies(*given_up, 6.75F) && mappings("wx").empty();
    ::_exit(is_right ? 0 : 1);
  }
  char got = 1;
  EXPECT_EQ(::read(ends[0], &got, 1), 1);
  given_up.reset();
  EXPECT_TRUE(all_multiply(8, 500));
  EXPECT_TRUE(multiplies(*kept, 6.5F));
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(CodeMemoryTest, WhereItIsRefusedStripsCompute) {
  const auto kept = code_of(9.5);
  const std::size_t before = count_of_code("x");
  const int refused = in_child([&] {
    // No descriptor for the second mapping of the same memory.
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 2;
    if (code_of(9.75)) return 3;
    const Tensor result = sinh(full({1000}, 0.5F)) * 9.875F;
    return std::fabs(result.to_vector<float>()[999] - std::sinh(0.5) * 9.875) < 1e-5 ? 0 : 4;
  });
  EXPECT_EQ(refused, 0);
  // With descriptors it makes code, in memory of its own.
  const int made = in_child([&] {
    const auto code = code_of(9.75);
    return code && count_of_code("x") == before + 1 && count_of_code("w") == 1 ? 0 : 4;
  });
  EXPECT_EQ(made, 0);
}

}  // namespace
}  // namespace ein
