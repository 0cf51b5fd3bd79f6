#include "words.hpp"

#include <algorithm>
#include <string_view>

namespace ein::command {
namespace {

constexpr char mark = '\1';

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// "-o", "--shape", "--": no pattern begins like that, nor a size.
bool is_option(std::string_view word) {
  if (word == "--") return true;
  if (word.substr(0, 2) == "--") return word.size() > 2 && is_letter(word[2]);
  return word.size() > 1 && word[0] == '-' && is_letter(word[1]);
}

}  // namespace

std::vector<std::string> mark_words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  int subcommands = 1;
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (options_end || !is_option(word)) {
      words.push_back(subcommands > 0 ? word : mark + word);
      if (subcommands-- > 0 && (word == "napkin" || word == "tokenize"))
        subcommands = 1;  // their own: train, fit ...
    } else if (word[1] == '-' && equals != word.npos) {
      words.push_back(word.substr(0, equals + 1) + mark + word.substr(equals + 1));
    } else {
      words.push_back(word);
      options_end = word == "--";
    }
  }
  return words;
}

std::string without_marks(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), mark), text.end());
  return text;
}

namespace {
std::string unmarked(const std::string& word) {
  return !word.empty() && word[0] == mark ? word.substr(1) : word;
}
}  // namespace

CLI::Option* add_word(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& description) {
  const auto take = [&value, name](const std::string& word) {
    value = unmarked(word);
    // It would pass for one that is not given.
    if (value.empty() && name.starts_with('-'))
      throw CLI::ValidationError(name, "its value is empty");
  };
  return app.add_option_function<std::string>(name, take, description);
}

CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                       const std::string& description) {
  const auto take = [&values](const std::vector<std::string>& words) {
    std::transform(words.begin(), words.end(), std::back_inserter(values), unmarked);
  };
  return app.add_option_function<std::vector<std::string>>(name, take, description)
      ->allow_extra_args(false);
}

}  // namespace ein::command
