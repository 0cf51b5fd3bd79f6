#include "text/split.hpp"

#include <array>

namespace ein {
namespace {

struct Row {
  SplitRule rule;
  std::string_view name, pattern;
};

#define EIN_CASELESS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
#define EIN_ENDS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/// As the models' files have them.
constexpr std::array<Row, 5> rows{{
    {SplitRule::gpt2, "gpt2",
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitRule::llama3, "llama3",
     EIN_CASELESS R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EIN_ENDS},
    {SplitRule::qwen2, "qwen2",
     EIN_CASELESS R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EIN_ENDS},
    {SplitRule::qwen35, "qwen35",
     EIN_CASELESS
     R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" EIN_ENDS},
    {SplitRule::smollm2, "smollm2", ""},
}};

#undef EIN_CASELESS
#undef EIN_ENDS

const Row& row_of(SplitRule rule) { return *std::ranges::find(rows, rule, &Row::rule); }

}  // namespace

std::string_view name(SplitRule rule) { return row_of(rule).name; }

std::optional<SplitRule> split_rule_named(std::string_view name) {
  const auto row = std::ranges::find(rows, name, &Row::name);
  if (row == rows.end()) return std::nullopt;
  return row->rule;
}

namespace text {

std::optional<SplitRule> rule_of_pattern(std::string_view pattern) {
  const auto row = std::ranges::find(rows, pattern, &Row::pattern);
  if (row == rows.end() || pattern.empty()) return std::nullopt;
  return row->rule;
}

std::string_view pattern_of(SplitRule rule) { return row_of(rule).pattern; }

Splitter::Splitter(SplitRule rule)
    : of_marks_(rule == SplitRule::qwen35 ? Class::letter : Class::other),
      is_gpt2_(rule == SplitRule::gpt2 || rule == SplitRule::smollm2),
      cuts_digits_(rule == SplitRule::smollm2),
      digits_(rule == SplitRule::llama3 ? 3 : 1) {}

Splitter::Seen Splitter::see(std::size_t at) {
  if (is_end(at)) return {};
  const auto byte = static_cast<unsigned char>(text_[at]);
  if (byte < 0x80) return {ascii_classes[byte], 1};
  const Character c = character_at(text_, at);
  const auto of = static_cast<Class>(classes_(c.value));
  return {of == Class::mark ? of_marks_ : of, c.length};
}

std::size_t Splitter::run(Class of, std::size_t at) {
  for (;;) {
    while (at < text_.size() && static_cast<unsigned char>(text_[at]) < 0x80) {
      if (ascii_classes[static_cast<unsigned char>(text_[at])] != of) return at;
      ++at;
    }
    if (is_end(at)) return at;
    const Seen seen = see(at);
    if (seen.of != of) return at;
    at += seen.length;
  }
}

/// 's 't 'm 'd 'll 've 're, of llama3 in any case, where U+017F is an s too; 0 if there is none.
std::size_t Splitter::contraction(std::size_t at) {
  if (text_[at] != '\'' || is_end(at + 1)) return 0;
  const auto letter = [&](std::size_t i) {
    const char c = text_[i];
    return !is_gpt2_ && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (!is_gpt2_ && text_.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  if ((first != 'l' && first != 'v' && first != 'r') || is_end(at + 2)) return 0;
  return letter(at + 2) == (first == 'l' ? 'l' : 'e') ? at + 3 : 0;
}

/// A run of white space; all but its last character where something follows that takes it.
std::size_t Splitter::white_space(std::size_t at) {
  std::size_t end = at, last = at, line = at;  // line: behind the last end of a line
  for (Seen seen = see(end); seen.length > 0 && seen.of == Class::space; seen = see(end)) {
    last = end;
    end += seen.length;
    if (text_[last] == '\n' || text_[last] == '\r') line = end;
  }
  if (!is_gpt2_ && line > at) return line;
  if (end == text_.size() || last == at) return end;
  if (cuts_digits_ && see(end).of == Class::number) return end;
  return last;
}

std::size_t Splitter::next_of_gpt2(std::size_t at) {
  if (const std::size_t end = contraction(at)) return end;
  const Seen first = see(at);
  if (cuts_digits_ && first.of == Class::number) return at + first.length;
  std::size_t begin = at;
  Class of = first.of;
  if (text_[at] == ' ') {
    const Seen second = see(at + 1);
    if (second.of != Class::space && !(cuts_digits_ && second.of == Class::number)) {
      begin = at + 1;
      of = second.of;
    }
  }
  return of == Class::space ? white_space(at) : run(of, begin);
}

std::size_t Splitter::next_of_llama3(std::size_t at) {
  if (const std::size_t end = contraction(at)) return end;
  const Seen first = see(at);
  std::size_t end = at + first.length;
  if (first.of == Class::letter) return run(Class::letter, end);
  if (first.of == Class::number) {
    for (int i = 1; i < digits_; ++i) {
      const Seen next = see(end);
      if (next.of != Class::number) break;
      end += next.length;
    }
    return end;
  }
  Seen second;
  if (text_[at] != '\r' && text_[at] != '\n') {
    second = see(end);
    if (second.of == Class::letter) return run(Class::letter, end);
  }
  if (first.of == Class::space && !(text_[at] == ' ' && second.of == Class::other))
    return white_space(at);
  end = run(Class::other, end);
  while (!is_end(end) && (text_[end] == '\r' || text_[end] == '\n')) ++end;
  return end;
}

}  // namespace text
}  // namespace ein
