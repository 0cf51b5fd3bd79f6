// An account as text and as JSON, and for pages and tables of others.
#include <cstdio>
#include <functional>

#include "account.hpp"
#include "report.hpp"

namespace ein::command {
namespace {

/// For people: 8,030,261,248; a name of a device; 2.1 ms.
std::string value_of(const Account& line) {
  if (const auto* count = std::get_if<Count>(&line.value)) return grouped(*count);
  if (const auto* text = std::get_if<std::string>(&line.value)) return *text;
  if (const auto* number = std::get_if<double>(&line.value))
    return line.unit == "s" ? duration(*number) : shown(*number);
  return "";
}

/// With a prefix, where there are many: "16.06 GB".
std::string rounded(const Account& line) {
  const auto* count = std::get_if<Count>(&line.value);
  if (!count || *count < Count(10000)) return "";
  return with_prefix(count->approximate(), line.unit);
}

std::string share_of(const Account& line, const Account* whole) {
  if (!whole || !whole->is_sum) return "";
  const auto *part = std::get_if<Count>(&line.value), *all = std::get_if<Count>(&whole->value);
  if (!part || !all || *all == Count(0)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part->approximate() / all->approximate());
  return text;
}

std::string note_of(const Account& line) {
  if (!line.is_estimate) return line.note;
  return line.note.empty() ? "estimate" : "estimate: " + line.note;
}

/// A line, its path, the line that it is part of, and how deep it stands.
using Visit = std::function<void(const Account& line, const std::string& path, const Account* whole,
                                 int depth)>;

void walk(const Account& line, const std::string& path, const Account* whole, int depth,
          const Visit& visit) {
  visit(line, path, whole, depth);
  for (const Account& part : line.parts)
    walk(part, path.empty() ? part.key : path + "." + part.key, &line, depth + 1, visit);
}

/// Every line but the root.
void walk(const Account& root, const Visit& visit) {
  for (const Account& section : root.parts) walk(section, section.key, nullptr, 0, visit);
}

bool has_value(const Account& line) { return !std::holds_alternative<std::monostate>(line.value); }

}  // namespace

std::string account_text(const Account& root) {
  Table table({false, true, true, true, false});
  bool is_first = true;
  walk(root, [&](const Account& line, const std::string&, const Account* whole, int depth) {
    if (depth == 0 && !is_first && !line.parts.empty()) table.add({""});
    is_first = false;
    table.add({std::string(static_cast<std::size_t>(2 * depth), ' ') + line.name, value_of(line),
               rounded(line), share_of(line, whole), note_of(line)});
  });
  return table.text();
}

std::string account_json(const Account& root) {
  Json json;
  std::string estimates;
  walk(root, [&](const Account& line, const std::string& path, const Account*, int) {
    if (!has_value(line)) return;
    if (const auto* count = std::get_if<Count>(&line.value)) json.add(path, *count);
    if (const auto* number = std::get_if<double>(&line.value)) json.add(path, *number);
    if (const auto* text = std::get_if<std::string>(&line.value)) json.add(path, *text);
    if (line.is_estimate) estimates += (estimates.empty() ? "" : " ") + path;
  });
  json.add("estimates", estimates);
  return json.text();
}

}  // namespace ein::command
