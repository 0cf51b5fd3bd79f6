// Lines of an account, and how kinds of layers are called in them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ein/account.hpp>

#include "account/layers.hpp"

namespace ein::accounting {

inline Account amount(std::string key, std::string name, Count count, std::string unit = "",
                      std::string note = "") {
  return {.key = std::move(key),
          .name = std::move(name),
          .value = count,
          .unit = std::move(unit),
          .note = std::move(note)};
}

inline Account estimate(Account line) {
  line.is_estimate = true;
  return line;
}

inline Account summed(Account line) {
  line.is_sum = true;
  return line;
}

/// "full", "window_512", "full_mixture".
inline std::string key_of(const LayerKind& kind) {
  const std::int64_t window = kind.attention.window;
  std::string key = window > 0 ? "window_" + std::to_string(window) : "full";
  return kind.has_mixture ? key + "_mixture" : key;
}

/// "22 layers, window 512".
inline std::string name_of(const LayerKind& kind) {
  std::string name =
      std::to_string(kind.layers.size()) + (kind.layers.size() == 1 ? " layer" : " layers");
  if (kind.attention.window > 0) name += ", window " + std::to_string(kind.attention.window);
  if (kind.has_mixture) name += ", experts";
  return name;
}

/// Kinds whose windows and networks are alike, as those that differ in rotary bases alone, have one
/// name each: numbers behind it.
inline std::vector<std::string> keys_of(const std::vector<LayerKind>& kinds) {
  std::vector<std::string> keys;
  for (const LayerKind& kind : kinds) {
    std::string key = key_of(kind);
    const auto same = std::ranges::count_if(
        keys, [&](const std::string& k) { return k == key || k.starts_with(key + "_of_"); });
    keys.push_back(same == 0 ? key : key + "_of_" + std::to_string(same + 1));
  }
  return keys;
}

/// Appends `memory`, and with a device `times`, `fits` and `plans`: see account().
void add_memory(Account& root, const CountedDecoder& decoder, const nn::DecoderConfig& config,
                const AccountOptions& options);

}  // namespace ein::accounting
