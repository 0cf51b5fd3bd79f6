#include <ein/detail/pattern_message.hpp>

#include "graph/diagnostic.hpp"
#include "size/ask.hpp"

namespace ein {

void fail(Operation op, const grammar::Pattern& pattern, const grammar::Mistake& mistake,
          std::span<const AxisSize> given) {
  const grammar::Words words = grammar::words_for(op, pattern, mistake, given);
  if (mistake.complaint == grammar::Complaint::pattern_is_too_long) {
    throw Error(words.kind, std::string(name(op)) + ": " + std::string(words.headline.view()));
  }
  std::vector<std::string> notes;
  if (!words.help.empty()) notes.emplace_back(words.help.view());
  fail(words.kind, name(op), std::string(words.headline.view()), pattern.text,
       grammar::places_of(pattern, mistake, given), notes);
}

}  // namespace ein
