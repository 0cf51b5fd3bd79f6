// Mistakes in memory, for run.cmake: the program is to end by SIGABRT.   overflows KIND LONG_TEXT
#include <cstring>
#include <string>
#include <vector>

namespace {

volatile int sink;

__attribute__((noinline)) void copy_into_few(const char* text) {
  char few[8];
  std::strcpy(few, text);
  sink = few[0];
}

__attribute__((noinline)) void write_behind(const char* text) {
  volatile char few[8];
  for (std::size_t i = 0; text[i]; ++i) few[i] = text[i];
  sink = few[0];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 0;
  const std::string kind = argv[1];
  if (kind == "fortify") copy_into_few(argv[2]);
  if (kind == "stack") write_behind(argv[2]);
  if (kind == "assertions") sink = std::vector<int>(8)[std::strlen(argv[2])];
  return 0;
}
