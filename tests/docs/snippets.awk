# Makes a program of a page: each block of ```cpp is a test, which prints what the block of ```text
# behind it says, if there is one. What an example throws is printed as what() has it.
# usage: awk -v page=NAME -f snippets.awk PAGE.md

function close_test() {
  if (!open) return
  print "  } catch (const ein::Error& error) {\n    std::cout << error.what() << '\\n';\n  }"
  print "  const std::string printed = testing::internal::GetCapturedStdout();"
  if (has_text) print "  EXPECT_EQ(printed, R\"=====(" text ")=====\");"
  else print "  EXPECT_EQ(printed, \"\");"
  print "}"
  open = 0
}
BEGIN {
  print "// Made from docs/" page ".md."
  print "#include <gtest/gtest.h>\n"
  print "#include <array>\n#include <cmath>\n#include <cstdint>\n#include <iostream>\n#include <memory>\n#include <span>\n#include <string>\n#include <thread>\n#include <vector>\n"
  print "#include <ein/autograd.hpp>\n#include <ein/compile.hpp>\n#include <ein/complex.hpp>\n#include <ein/dlpack.hpp>\n#include <ein/draw.hpp>\n#include <ein/ein.hpp>\n#include <ein/mesh.hpp>\n#include <ein/nn.hpp>\n#include <ein/pipeline.hpp>\n#include <ein/shapes_only.hpp>\n#include <ein/text.hpp>\n"
  print "using namespace ein::literals;\n"
}
/^```cpp$/ {
  close_test()
  printf "\nTEST(PagesOfDocs, %s_%d) {\n", page, NR + 1
  print "  testing::internal::CaptureStdout();\n  try {"
  printf "#line %d \"docs/%s.md\"\n", NR + 1, page
  open = 1; in_code = 1; has_text = 0; text = ""
  next
}
/^```text$/ { in_text = 1; has_text = 1; next }
/^```$/ { in_code = 0; in_text = 0; next }
in_code { print }
in_text { text = text $0 "\n" }
/^#/ && !in_code && !in_text { close_test() }
END { close_test() }
