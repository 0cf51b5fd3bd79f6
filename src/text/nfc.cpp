#include "text/nfc.hpp"

#include <vector>

namespace ein::text {
namespace {

constexpr std::uint8_t not_stable = 255;  // of combining_ranges

// Hangul syllables are computed (The Unicode Standard, section 3.12).
constexpr char32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161, trails = 0x11A7;
constexpr char32_t lead_count = 19, vowel_count = 21, trail_count = 28;
constexpr char32_t syllable_count = lead_count * vowel_count * trail_count;

constexpr std::uint64_t field = 0x1FFFFF;
constexpr char32_t character_of(std::uint64_t row) { return row >> 42 & field; }
constexpr char32_t first_of(std::uint64_t row) { return row >> 21 & field; }
constexpr char32_t second_of(std::uint64_t row) { return row & field; }

struct Mark {
  char32_t value;
  std::uint8_t combining;
};

/// A part of a text that begins with a character which nothing before it changes.
class Segment {
 public:
  explicit Segment(RangeTable& combining) : combining_(combining) {}

  void add(char32_t c) {
    if (c >= syllables && c < syllables + syllable_count) {
      const char32_t index = c - syllables;
      add(leads + index / (vowel_count * trail_count));
      add(vowels + index % (vowel_count * trail_count) / trail_count);
      if (index % trail_count) add(trails + index % trail_count);
      return;
    }
    const auto row = std::ranges::lower_bound(decompositions, c, {}, character_of);
    if (row != decompositions.end() && character_of(*row) == c) {
      add(first_of(*row));
      if (second_of(*row)) add(second_of(*row));
      return;
    }
    const std::uint8_t combining = combining_(c);
    marks_.push_back({c, combining == not_stable ? std::uint8_t{0} : combining});
  }

  /// Appends the characters in NFC, and forgets them.
  void finish(std::string& text) {
    order();
    compose();
    for (const Mark& mark : marks_) append_utf8(text, mark.value);
    marks_.clear();
  }

 private:
  /// Marks of each run without class 0 by their class (The Unicode Standard, D109).
  void order() {
    for (auto begin = marks_.begin(); begin != marks_.end();) {
      if (begin->combining == 0) {
        ++begin;
        continue;
      }
      const auto end = std::find_if(begin, marks_.end(), [](Mark m) { return m.combining == 0; });
      std::stable_sort(begin, end, [](Mark a, Mark b) { return a.combining < b.combining; });
      begin = end;
    }
  }

  /// The same section, D117: a mark joins the last character of class 0 unless one between them
  /// blocks it.
  void compose() {
    std::size_t kept = 0, starter = marks_.size();
    for (const Mark mark : marks_) {
      if (starter < kept) {
        const bool touches = starter + 1 == kept;
        if (touches ||
            (marks_[kept - 1].combining != 0 && marks_[kept - 1].combining < mark.combining)) {
          if (const char32_t joined = composed(marks_[starter].value, mark.value)) {
            marks_[starter].value = joined;
            continue;
          }
        }
      }
      if (mark.combining == 0) starter = kept;
      marks_[kept++] = mark;
    }
    marks_.resize(kept);
  }

  /// 0: they are not composed.
  static char32_t composed(char32_t first, char32_t second) {
    if (first >= leads && first < leads + lead_count && second >= vowels &&
        second < vowels + vowel_count)
      return syllables + ((first - leads) * vowel_count + (second - vowels)) * trail_count;
    if (first >= syllables && first < syllables + syllable_count &&
        (first - syllables) % trail_count == 0 && second > trails && second < trails + trail_count)
      return first + (second - trails);
    const auto parts = [](std::uint16_t i) { return decompositions[i] & (field << 21 | field); };
    const std::uint64_t wanted = std::uint64_t{first} << 21 | second;
    const auto found = std::ranges::lower_bound(compositions, wanted, {}, parts);
    if (found == compositions.end() || parts(*found) != wanted) return 0;
    return character_of(decompositions[*found]);
  }

  RangeTable& combining_;
  std::vector<Mark> marks_;
};

}  // namespace

bool is_plainly_nfc(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

Normalized nfc(std::string_view text, bool is_last) {
  Normalized result;
  result.text.reserve(text.size());
  RangeTable combining{combining_ranges};
  Segment segment(combining);
  const std::size_t end = text.size() - (is_last ? 0 : cut_character(text));
  // [begin, at) is the segment at hand: its first character is stable, or that of the text. What is
  // before `done` is in the result.
  std::size_t done = 0, begin = 0, at = 0;
  bool is_stable = true;  // all of the segment, which is then one character or none
  const auto close = [&] {
    if (!is_stable) {
      result.text.append(text.substr(done, begin - done));
      for (std::size_t i = begin; i < at;) {
        const Character c = character_at(text, i);
        segment.add(c.value);
        i += c.length;
      }
      segment.finish(result.text);
      done = at;
    }
    begin = at;
    is_stable = true;
  };
  while (at < end) {
    const Character c = character_at(text, at);
    if (c.value == Character::none) {
      close();
      begin = ++at;
      continue;
    }
    const bool is_plain = c.value < 0x300 || combining(c.value) == 0;
    if (is_plain) close();
    is_stable &= is_plain;
    at += c.length;
  }
  if (is_last) close();
  result.text.append(text.substr(done, begin - done));
  result.bytes = begin;
  return result;
}

}  // namespace ein::text
