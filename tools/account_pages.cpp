// An account as text and as JSON, and for pages and tables of others.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "account.hpp"
#include "draw/svg.hpp"
#include "report.hpp"

namespace ein::command {
namespace {

/// For people: 8,030,261,248; a name of a device; 2.1 ms.
std::string value_of(const Account& line) {
  if (const auto* count = std::get_if<Count>(&line.value)) return grouped(*count);
  if (const auto* text = std::get_if<std::string>(&line.value)) return *text;
  if (const auto* number = std::get_if<double>(&line.value))
    return line.unit == "s"    ? duration(*number)
           : line.unit.empty() ? shown(*number)
                               : with_prefix(*number, line.unit);
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
    const bool is_text = std::holds_alternative<std::string>(line.value);
    table.add({std::string(static_cast<std::size_t>(2 * depth), ' ') + line.name,
               is_text ? "" : value_of(line), rounded(line), share_of(line, whole),
               is_text ? value_of(line) : note_of(line)});
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

namespace {

/// All digits, for programs.
std::string digits_of(const Account& line) {
  if (const auto* count = std::get_if<Count>(&line.value)) return to_string(*count);
  if (const auto* text = std::get_if<std::string>(&line.value)) return *text;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, std::get<double>(line.value)).ptr;
  return {text, end};
}

/// `text` with others in place of some characters.
std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<char, const char*>> others) {
  std::string result;
  for (const char c : text) {
    const auto other = std::ranges::find(others, c, &std::pair<char, const char*>::first);
    if (other == others.end())
      result += c;
    else
      result += other->second;
  }
  return result;
}

std::string in_csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == text.npos) return text;
  return "\"" + replaced(text, {{'"', "\"\""}}) + "\"";
}

std::string in_latex(const std::string& text) {
  std::string result = replaced(text, {{'\\', "\\textbackslash{}"},
                                       {'&', "\\&"},
                                       {'%', "\\%"},
                                       {'$', "\\$"},
                                       {'#', "\\#"},
                                       {'_', "\\_"},
                                       {'{', "\\{"},
                                       {'}', "\\}"},
                                       {'~', "\\textasciitilde{}"},
                                       {'^', "\\textasciicircum{}"}});
  // What plain LaTeX has no letters for.
  constexpr std::pair<const char*, const char*> signs[] = {
      {"·", "$\\cdot$"},   {"×", "$\\times$"},  {"Σ", "$\\Sigma$"}, {"²", "$^2$"},
      {"⌊", "$\\lfloor$"}, {"⌋", "$\\rfloor$"}, {"µ", "$\\mu$"}};
  for (const auto& [sign, words] : signs) {
    const std::string_view from = sign;
    for (std::size_t at = result.find(from); at != result.npos;
         at = result.find(from, at + std::string_view(words).size()))
      result.replace(at, from.size(), words);
  }
  return result;
}

/// Of the lines of a section: name, value, share and note, each as `row` has them.
template <class Row>
void rows_of(const Account& section, const Row& row) {
  walk(section, section.key, nullptr, 0,
       [&](const Account& line, const std::string&, const Account* whole, int depth) {
         if (depth == 0 && !has_value(line)) return;
         row(line, value_of(line), share_of(line, whole), note_of(line), depth);
       });
}

std::string headline_of(const Account& section) {
  return section.name + (section.note.empty() || has_value(section) ? "" : ": " + section.note);
}

}  // namespace

std::string account_csv(const Account& root) {
  std::string text = "path,name,value,unit,estimate,note\n";
  walk(root, [&](const Account& line, const std::string& path, const Account*, int) {
    if (!has_value(line)) return;
    text += in_csv(path) + "," + in_csv(line.name) + "," + in_csv(digits_of(line)) + "," +
            line.unit + "," + (line.is_estimate ? "yes" : "no") + "," + in_csv(line.note) + "\n";
  });
  return text;
}

std::string account_markdown(const Account& root) {
  std::string text;
  for (const Account& section : root.parts) {
    text += (text.empty() ? "" : "\n") + std::string("## ") + headline_of(section) +
            "\n\n| | | share | |\n|---|--:|--:|---|\n";
    rows_of(section, [&](const Account& line, const std::string& value, const std::string& share,
                         const std::string& note, int depth) {
      std::string indent;
      for (int i = 1; i < depth; ++i) indent += "&emsp;";
      const bool has_unit = std::holds_alternative<Count>(line.value) && !line.unit.empty();
      text += "| " + indent + replaced(line.name, {{'|', "\\|"}}) + " | " + value +
              (has_unit ? " " + line.unit : "") + " | " + share + " | " +
              replaced(note, {{'|', "\\|"}}) + " |\n";
    });
  }
  return text;
}

std::string account_latex(const Account& root) {
  std::string text;
  for (const Account& section : root.parts) {
    text += (text.empty() ? "" : "\n") + std::string("\\paragraph{") +
            in_latex(headline_of(section)) +
            "}\n\\begin{tabular}{lrrl}\n\\hline\n & & share & \\\\\n\\hline\n";
    rows_of(section, [&](const Account& line, const std::string& value, const std::string& share,
                         const std::string& note, int depth) {
      const bool has_unit = std::holds_alternative<Count>(line.value) && !line.unit.empty();
      text += "\\hspace{" + std::to_string(depth > 0 ? depth - 1 : 0) + "em}" +
              in_latex(line.name) + " & " + in_latex(value) +
              (has_unit ? " " + in_latex(line.unit) : "") + " & " + in_latex(share) + " & " +
              in_latex(note) + " \\\\\n";
    });
    text += "\\hline\n\\end{tabular}\n";
  }
  return text;
}

namespace {

constexpr const char* style =
    R"(:root { color-scheme: light dark; --text: #1a1a1a; --page: #ffffff; --line: #c8c8c8; --bar: #2f6db5; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --page: #161616; --line: #4a4a4a; --bar: #6ea8e8; } }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: var(--text); background: var(--page); }
table { border-collapse: collapse; width: 100%; margin: 0 0 2rem; }
caption { text-align: left; font-weight: bold; padding: .5rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .6rem; text-align: left; font-weight: normal; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th { font-weight: bold; }
.bar { background: var(--bar); height: .9rem; min-width: 1px; }
)";

/// The part of each kind of memory in a sum, as a bar beside its number.
std::string bars_of(const Account& whole) {
  std::string text = "<table>\n<caption>Memory of " + draw::escaped(whole.name) + ": " +
                     draw::escaped(rounded(whole)) +
                     "</caption>\n<thead><tr><th scope=\"col\">kind</th><th scope=\"col\">"
                     "bytes</th><th scope=\"col\">share</th><th scope=\"col\" "
                     "aria-hidden=\"true\"></th></tr></thead>\n<tbody>\n";
  for (const Account& part : whole.parts) {
    const std::string share = share_of(part, &whole);
    text += "<tr><th scope=\"row\">" + draw::escaped(part.name) + "</th><td class=\"n\">" +
            value_of(part) + "</td><td class=\"n\">" + share +
            "</td><td style=\"width:50%\" aria-hidden=\"true\"><div class=\"bar\" style=\"width:" +
            replaced(share, {{' ', ""}}) + "\"></div></td></tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

}  // namespace

std::string account_html(const Account& root, const std::string& title) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>" +
      draw::escaped(title) + "</title>\n<style>\n" + style +
      "</style>\n</head>\n<body>\n<main>\n<h1>" + draw::escaped(title) + "</h1>\n";
  if (const Account* memory = root.find("memory")) {
    for (const Account& whole : memory->parts) {
      if (whole.is_sum) text += bars_of(whole);
    }
  }
  for (const Account& section : root.parts) {
    text += "<table>\n<caption>" + draw::escaped(headline_of(section)) +
            "</caption>\n<thead><tr><th scope=\"col\">what</th><th scope=\"col\">value</th>"
            "<th scope=\"col\">share</th><th scope=\"col\">note</th></tr></thead>\n<tbody>\n";
    rows_of(section, [&](const Account& line, const std::string& value, const std::string& share,
                         const std::string& note, int depth) {
      const bool has_unit = std::holds_alternative<Count>(line.value) && !line.unit.empty();
      text +=
          "<tr><th scope=\"row\" style=\"padding-left:" + std::to_string(depth > 0 ? depth : 1) +
          "rem\">" + draw::escaped(line.name) + "</th><td class=\"n\">" + draw::escaped(value) +
          (has_unit ? " " + draw::escaped(line.unit) : "") + "</td><td class=\"n\">" + share +
          "</td><td>" + draw::escaped(note) + "</td></tr>\n";
    });
    text += "</tbody>\n</table>\n";
  }
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace ein::command
