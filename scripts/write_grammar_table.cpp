// Writes the rules of the grammar as data: see make-grammar-table.
#include <cstdio>

#include "grammar/reflect.hpp"

namespace {

using namespace ein::grammar;

const char* name(Construct construct) {
  constexpr const char* names[] = {"seq",    "sor",  "star", "plus",   "opt",  "at",
                                   "not_at", "must", "eof",  "string", "byte", "code_point"};
  return names[static_cast<int>(construct)];
}

const char* name(Event event) {
  constexpr const char* names[] = {"none",
#define EIN_EVENT(rule) #rule,
                                   EIN_EVENTS(EIN_EVENT)
#undef EIN_EVENT
  };
  return names[static_cast<int>(event)];
}

}  // namespace

int main() {
  Reflection rules;
  const int pattern = rules.add<rules::pattern>(), shape_spec = rules.add<rules::shape_spec>();
  rules.add_beginnings();
  std::printf(
      "// The rules of rules.hpp as data. Written by scripts/make-grammar-table: do not edit.\n"
      "// parse.cpp does not compile where they differ.\n"
      "// clang-format off\n"
      "#pragma once\n\n#include <ein/grammar/node.hpp>\n\n"
      "namespace ein::grammar::table {\n\n"
      "inline constexpr std::uint16_t pattern = %d, shape_spec = %d;\n\n"
      "inline constexpr Node nodes[] = {\n",
      pattern, shape_spec);
  for (const Node& node : rules.nodes) {
    std::printf("  {Construct::%s, Event::%s, %d, %d, 0x%X},\n", name(node.construct),
                name(node.event), node.first, node.last, node.begins);
  }
  std::printf("};\n\ninline constexpr std::uint16_t parts[] = {");
  for (std::size_t i = 0; i < rules.parts.size(); ++i)
    std::printf("%s%d,", i % 20 == 0 ? "\n  " : " ", rules.parts[i]);
  std::printf("\n};\n\ninline constexpr CharacterRange ranges[] = {");
  for (std::size_t i = 0; i < rules.ranges.size(); ++i) {
    std::printf("%s{0x%X, 0x%X},", i % 6 == 0 ? "\n  " : " ", rules.ranges[i].low,
                rules.ranges[i].high);
  }
  std::printf("\n};\n\ninline constexpr std::uint8_t kinds[] = {");
  for (std::size_t i = 0; i < rules.kinds.size(); ++i)
    std::printf("%s%d,", i % 20 == 0 ? "\n  " : " ", rules.kinds[i]);
  std::printf("\n};\n\n}  // namespace ein::grammar::table\n");
}
