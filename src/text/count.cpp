#include "text/count.hpp"

#include <algorithm>

#include "machine/parallel.hpp"

namespace ein::text {
namespace {

constexpr std::size_t part_bytes = 1 << 15;

/// The last place in (begin, end) where every rule ends a pre-token, whatever is before and behind:
/// a blank or an end of line that follows a letter. `begin` where there is none.
std::size_t last_certain_end(std::string_view text, std::size_t begin, std::size_t end,
                             RangeTable& classes) {
  for (std::size_t at = end; --at > begin;) {
    if (text[at] != ' ' && text[at] != '\n') continue;
    std::size_t before = at - 1;
    while (before > begin && at - before < 4 &&
           (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80)
      --before;
    const Character c = character_at(text, before);
    if (before + c.length == at && static_cast<Class>(classes(c.value)) == Class::letter) return at;
  }
  return begin;
}

}  // namespace

void Counts::add(std::string_view bytes, std::int64_t count, std::size_t hash) {
  if (2 * used_ >= rows_.size()) grow();
  const std::size_t mask = rows_.size() - 1;
  std::size_t at = hash & mask;
  for (; rows_[at].count > 0; at = (at + 1) & mask) {
    Row& row = rows_[at];
    if (row.hash == hash && this->bytes(row) == bytes) {
      row.count += count;
      return;
    }
  }
  rows_[at] = {hash, bytes_.size(), bytes.size(), count};
  bytes_ += bytes;
  ++used_;
}

void Counts::grow() {
  std::vector<Row> old(std::max<std::size_t>(1024, 2 * rows_.size()));
  old.swap(rows_);
  const std::size_t mask = rows_.size() - 1;
  for (const Row& row : old) {
    if (row.count == 0) continue;
    std::size_t at = row.hash & mask;
    while (rows_[at].count > 0) at = (at + 1) & mask;
    rows_[at] = row;
  }
}

PreTokenCounter::PreTokenCounter(const Cuts& cuts)
    : cuts_(cuts), counts_(2 * static_cast<std::size_t>(host::started_threads())) {}

/// Adds the parts of a text between special tokens, and says how much of it they are.
std::size_t PreTokenCounter::cut(std::string_view text, bool ends) {
  RangeTable classes(class_ranges);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const bool is_rest = text.size() - begin <= part_bytes;
    std::size_t end = text.size();
    // Where a part has no such place, it goes on to one further behind.
    if (!is_rest || !ends) {
      std::size_t reach = std::min(begin + part_bytes, text.size());
      while ((end = last_certain_end(text, begin, reach, classes)) == begin && reach < text.size())
        reach = std::min(text.size(), reach + (reach - begin));
      if (end == begin) {
        if (!ends) return begin;
        end = text.size();
      }
    }
    parts_.push_back({text, begin, end});
    begin = end;
  }
  return begin;
}

void PreTokenCounter::count_parts() {
  const std::size_t jobs = counts_.size();
  host::parallel_for(static_cast<std::int64_t>(jobs), [&](std::int64_t job) {
    const auto number = static_cast<std::size_t>(job);
    Splitter splitter(cuts_.split);
    for (std::size_t i = number * parts_.size() / jobs; i < (number + 1) * parts_.size() / jobs;
         ++i) {
      const Part& part = parts_[i];
      for (std::size_t at = part.begin; at < part.end;) {
        const std::size_t end = splitter.next(part.text, at, true);
        counts_[number].add(part.text.substr(at, end - at), 1);
        at = end;
      }
    }
  });
  parts_.clear();
}

std::size_t PreTokenCounter::count(std::string_view text, bool is_last) {
  std::size_t from = 0;
  for (;;) {
    const AddedTokens::Found found = cuts_.of_text.find(text, from, is_last);
    const bool ends = found.id >= 0 || is_last;
    const std::size_t done = from + cut(text.substr(from, found.begin - from), ends);
    if (found.id < 0) {
      count_parts();
      return done;
    }
    from = found.end;
  }
}

Counts PreTokenCounter::finish() {
  for (std::size_t i = 1; i < counts_.size(); ++i) {
    counts_[0].add(counts_[i]);
    counts_[i] = {};
  }
  return std::move(counts_[0]);
}

}  // namespace ein::text
