#include "graph/after_pass.hpp"

#include <cstdio>

#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "size/ask.hpp"

namespace ein {

bool verifies_passes() {
#ifdef NDEBUG
  return made_once([] { return !environment(Variable::verify).empty(); });
#else
  return true;
#endif
}

bool prints_pass(std::string_view pass) {
  const std::string& asked = made_once([] { return environment(Variable::print); });
  if (asked.empty()) return false;
  if (asked == "all") return true;
  const std::string list = "," + asked + ",";
  return list.find("," + std::string(pass) + ",") != std::string::npos;
}

void print_pass(std::string_view pass, const std::string& text) {
  std::string all = "== ";
  all.append(pass).append("\n").append(text);
  if (!all.ends_with('\n')) all += '\n';
  all += '\n';
  std::fputs(all.c_str(), stderr);
}

}  // namespace ein
