// ConfigReader: an object of a config.json, key by key, so that none is overlooked.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/nn/hugging_face.hpp>

#include "graph/domain.hpp"
#include "io/json.hpp"

namespace ein::nn {

/// Of the text of a config.json, which may be any bytes; errors name `path`. See
/// read_decoder_config.
DescribedDecoder parse_decoder_config(std::string_view text, const std::string& path);

class ConfigReader {
 public:
  /// `object` outlives this; `path` is the file's, and `inside` names an object within it, as
  /// "rope_scaling.".
  ConfigReader(const nlohmann::json& object, std::string path, std::string inside = "");

  /// Whether the key is there and not null. All readers below take null for an absent key.
  bool has(const std::string& key) const;
  /// Whether the key is there and null.
  bool is_null(const std::string& key);
  /// A whole number from `least` to `most`.
  std::int64_t integer(const std::string& key, std::int64_t otherwise, std::int64_t least = 1,
                       std::int64_t most = std::numeric_limits<std::int32_t>::max());
  double number(const std::string& key, double otherwise, const Domain& domain);
  bool boolean(const std::string& key, bool otherwise);
  std::string text(const std::string& key, const std::string& otherwise);
  std::vector<std::string> texts(const std::string& key);
  /// Null where the key is absent.
  const nlohmann::json* object(const std::string& key);
  const nlohmann::json* array(const std::string& key);
  /// Of an object within this one.
  ConfigReader within(const std::string& key, const nlohmann::json& object) const;

  /// The key says nothing of what is computed, or what it says is known from others.
  void ignore(std::span<const std::string_view> keys);
  void ignore(std::initializer_list<std::string_view> keys) {
    ignore(std::span(keys.begin(), keys.size()));
  }
  /// An Error unless the key is absent or `value`: ein computes nothing else.
  void require_boolean(const std::string& key, bool value);
  /// An Error that names a key that nobody has read, unless it is null, false or empty.
  void require_all_read() const;
  /// The same, whatever the key says.
  void require_all_known() const;

  /// Throws an Error of kind `file`: the path, the key in quotes, `what`.
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  const nlohmann::json* find(const std::string& key);

  const nlohmann::json& object_;
  std::string path_, inside_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace ein::nn
