// The way of a text to its added tokens and pre-tokens, whole or in pieces.
#pragma once

#include <string>
#include <string_view>

#include "text/added.hpp"
#include "text/nfc.hpp"
#include "text/split.hpp"

namespace ein::text {

/// What cuts a text, in this order.
struct Cuts {
  AddedTokens of_text;        // those that are found in the text as it is
  bool normalizes = false;    // NFC of what is between them
  AddedTokens of_normalized;  // those that are found then
  bool adds_space = false;    // before what is between all of them, unless one is there
  SplitRule split = SplitRule::gpt2;
};

/// Calls sink.added_token(id) and sink.pre_token(bytes) in the order of the text. Each step keeps
/// the end of a piece on which the next one may still decide.
template <class Sink>
class PreTokens {
 public:
  PreTokens(const Cuts& cuts, Sink& sink) : cuts_(cuts), sink_(sink), splitter_(cuts.split) {}

  /// After the last piece another text may begin.
  void push(std::string_view text, bool is_last) {
    step(text_, text, is_last, [&](std::string_view whole) {
      return between(cuts_.of_text, whole, is_last,
                     [&](std::string_view part, bool ends) { normalize(part, ends); });
    });
  }

 private:
  /// What a step has kept. A step that keeps much waits for as much more, so that it does not read
  /// it for each piece.
  struct Kept {
    std::string bytes;
    std::size_t enough = 0;
  };

  /// `take` is given what was kept and the piece, and says how many bytes of that are done.
  template <class Take>
  static void step(Kept& kept, std::string_view piece, bool ends, const Take& take) {
    if (kept.bytes.empty()) {
      kept.bytes.assign(piece.substr(take(piece)));
    } else {
      kept.bytes += piece;
      if (!ends && kept.bytes.size() < kept.enough) return;
      kept.bytes.erase(0, take(kept.bytes));
    }
    kept.enough = 2 * kept.bytes.size();
  }

  /// Calls part(text, whether it ends there) for what is between added tokens.
  template <class Part>
  std::size_t between(const AddedTokens& tokens, std::string_view text, bool ends,
                      const Part& part) {
    for (std::size_t from = 0;;) {
      const AddedTokens::Found found = tokens.find(text, from, ends);
      part(text.substr(from, found.begin - from), found.id >= 0 || ends);
      if (found.id < 0) return found.begin;
      sink_.added_token(found.id);
      from = found.end;
    }
  }

  void normalize(std::string_view text, bool ends) {
    if (!cuts_.normalizes) return cut_again(text, ends);
    step(not_normalized_, text, ends, [&](std::string_view whole) {
      if (ends && is_plainly_nfc(whole)) {
        cut_again(whole, true);
        return whole.size();
      }
      const Normalized normalized = nfc(whole, ends);
      cut_again(normalized.text, ends);
      return normalized.bytes;
    });
  }

  void cut_again(std::string_view text, bool ends) {
    if (cuts_.of_normalized.empty()) return split(text, ends);
    step(normalized_, text, ends, [&](std::string_view whole) {
      return between(cuts_.of_normalized, whole, ends,
                     [&](std::string_view part, bool is_end) { split(part, is_end); });
    });
  }

  void split(std::string_view text, bool ends) {
    if (begins_ && !text.empty()) {
      begins_ = false;
      if (cuts_.adds_space && text.front() != ' ') not_split_.bytes = ' ';
    }
    step(not_split_, text, ends, [&](std::string_view whole) {
      const std::string_view characters =
          ends ? whole : whole.substr(0, whole.size() - cut_character(whole));
      std::size_t at = 0;
      while (at < characters.size()) {
        const std::size_t end = splitter_.next(characters, at, ends);
        if (end == 0) break;
        sink_.pre_token(characters.substr(at, end - at));
        at = end;
      }
      return at;
    });
    begins_ |= ends;
  }

  const Cuts& cuts_;
  Sink& sink_;
  Splitter splitter_;
  Kept text_, not_normalized_, normalized_, not_split_;
  bool begins_ = true;
};

}  // namespace ein::text
