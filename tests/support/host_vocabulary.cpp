// Writes EIN_HOST_HEADER, what emitted kernels include to run on the host, and compiles it ahead
// where the compiler can (GCC finds the result by its name; others read the text).
#include <cstdio>
#include <fstream>

#include "codegen/vocabulary.hpp"
#include "support/host_compiler.hpp"

int main() {
  const std::string header = ein::test::host_header;
  std::remove((header + ".gch").c_str());  // one of an older text
  std::ofstream file(header);
  file << "#include \"" EIN_TEST_SUPPORT "/device_on_host.hpp\"\n"
       << ein::codegen::portable_vocabulary();
  file.close();
  if (!file) return std::perror(header.c_str()), 1;
  const std::string command =
      ein::test::host_compiler() + " -x c++-header -o '" + header + ".gch' '" + header + "'";
  return std::system(command.c_str()) == 0 ? 0 : 1;
}
