// The words of the command line on their way through CLI11.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace ein::command {

/// CLI11 takes "-> a" for an option, drops empty values and reads "[...]" as a list. So every word
/// but options and the subcommand, and what follows the "=" of an option, travels through it behind
/// a mark, which add_word and add_words take off.
std::vector<std::string> mark_words(int argc, const char* const* argv);
/// `text` without the marks: for CLI11's messages.
std::string without_marks(std::string text);

/// An option or positional argument of one value; that of an option may not be empty.
CLI::Option* add_word(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& description);
/// An option that may be given several times, with one value each.
CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                       const std::string& description);

}  // namespace ein::command
