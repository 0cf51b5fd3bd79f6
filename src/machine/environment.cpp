#include "machine/environment.hpp"

#include <cstdlib>

#include <ein/error.hpp>

namespace ein {
namespace {

struct Row {
  const char* name;
  Holds holds;
};
#define EIN_ROW(variable, name, holds, ...) {name, Holds::holds},
constexpr Row rows[] = {EIN_FOR_EACH_VARIABLE(EIN_ROW)};
#undef EIN_ROW

}  // namespace

std::string_view name(Variable variable) { return rows[static_cast<std::size_t>(variable)].name; }

std::string environment(Variable variable, bool has_more_rights) {
  const Row& row = rows[static_cast<std::size_t>(variable)];
  const char* const value = has_more_rights ? nullptr : std::getenv(row.name);
  const std::string text = value ? value : "";
  if (text.empty() || text[0] == '/' || row.holds == Holds::words) return text;
  if (row.holds == Holds::folder) return "";
  throw Error(ErrorKind::value, std::string(row.name) + " is '" + text +
                                    "', which is no whole path\n"
                                    "  help: give the path of the library from / on");
}

}  // namespace ein
