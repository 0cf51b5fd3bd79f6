// XML documents: what is wrong with them, and how often something is in them.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace ein::test {

/// What is wrong with an XML document: tags that do not match, attributes that are not quoted or
/// come twice, characters that must be escaped. Empty when nothing is.
class XmlCheck {
 public:
  explicit XmlCheck(const std::string& text) : text_(text) {}
  std::string mistake() {
    std::vector<std::string> open;
    while (at_ < text_.size()) {
      if (text_[at_] != '<') {
        if (!character()) return wrong("a character that must be escaped");
        continue;
      }
      ++at_;
      const bool closes = take('/');
      const std::string name = word();
      if (name.empty()) return wrong("a tag without a name");
      if (closes) {
        if (open.empty() || open.back() != name || !take('>'))
          return wrong("</" + name + "> closes nothing");
        open.pop_back();
        if (open.empty()) break;
        continue;
      }
      std::set<std::string> attributes;
      while (take(' ')) {
        const std::string attribute = word();
        if (attribute.empty() || !attributes.insert(attribute).second)
          return wrong("attribute '" + attribute + "'");
        if (!take('=') || !take('"')) return wrong("an attribute without quotes");
        while (at_ < text_.size() && text_[at_] != '"') {
          if (text_[at_] == '<' || !character()) return wrong("a character in an attribute");
        }
        if (!take('"')) return wrong("an attribute that does not end");
      }
      const bool is_empty = take('/');
      if (!take('>')) return wrong("a tag that does not end");
      if (!is_empty) open.push_back(name);
    }
    if (!open.empty()) return wrong("<" + open.back() + "> is not closed");
    return text_.find_first_not_of('\n', at_) == std::string::npos ? ""
                                                                   : wrong("text after the end");
  }

 private:
  bool take(char c) { return at_ < text_.size() && text_[at_] == c && ++at_; }
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool character() {
    if (text_[at_] == '>') return false;  // ours are all escaped
    if (text_[at_] != '&') return ++at_;
    const std::size_t end = text_.find(';', at_);
    const std::set<std::string> known{"&amp", "&lt", "&gt", "&quot"};
    if (end == std::string::npos || !known.contains(text_.substr(at_, end - at_))) return false;
    at_ = end + 1;
    return true;
  }
  std::string wrong(const std::string& what) const {
    return what + " at " + std::to_string(at_) + ": " + text_.substr(at_, 40);
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace ein::test
