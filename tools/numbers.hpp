// Options of a training step: numbers, a dtype, a device.
#pragma once

#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/device.hpp>
#include <ein/dtype.hpp>
#include <ein/error.hpp>

#include "graph/diagnostic.hpp"
#include "io/number.hpp"
#include "words.hpp"

namespace ein::command {

/// Options with a number each, read when the command runs.
class Numbers {
 public:
  template <class T>
  CLI::Option* add(CLI::App& app, const std::string& name, T& value,
                   const std::string& description) {
    auto& word = *words_.emplace_back(std::make_unique<std::string>());
    CLI::Option* const option = add_word(app, name, word, description);
    option->default_str(shown(value));
    readers_.push_back([&word, &value, name] {
      if (!word.empty()) value = number_of<T>(name, word);
    });
    return option;
  }
  /// A number that need not be given; `otherwise` says what then holds.
  template <class T>
  CLI::Option* add(CLI::App& app, const std::string& name, std::optional<T>& value,
                   const std::string& description, const std::string& otherwise) {
    auto& word = *words_.emplace_back(std::make_unique<std::string>());
    CLI::Option* const option = add_word(app, name, word, description);
    option->default_str(otherwise);
    readers_.push_back([&word, &value, name] {
      if (!word.empty()) value = number_of<T>(name, word);
    });
    return option;
  }
  void read() const {
    for (const auto& reader : readers_) reader();
  }

 private:
  template <class T>
  static T number_of(const std::string& name, const std::string& word) {
    const std::optional<T> number = io::number_of<T>(word);
    if (!number) {
      throw Error(ErrorKind::value, name + ": " + ein::quoted(word) + " is no " +
                                        (std::is_integral_v<T> ? "whole number" : "number"));
    }
    return *number;
  }
  template <class T>
  static std::string shown(T value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return std::string(text, end);
  }
  std::vector<std::unique_ptr<std::string>> words_;
  std::vector<std::function<void()>> readers_;
};

/// --dtype: f32, bf16 or f16; an Error of kind `value` for others.
DType training_dtype(const std::string& word);
/// --device: "cpu", "cuda", "cuda:1"; an Error of kind `value` for others.
Device device_named(const std::string& word);

}  // namespace ein::command
