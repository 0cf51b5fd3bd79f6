#include "nn/config_reader.hpp"

#include "io/file.hpp"

namespace ein::nn {

using nlohmann::json;

ConfigReader::ConfigReader(const json& object, std::string path, std::string inside)
    : object_(object), path_(std::move(path)), inside_(std::move(inside)) {}

void ConfigReader::fail(const std::string& key, const std::string& what) const {
  io::fail("load_decoder", path_, "is no decoder's: " + io::in_quotes(inside_ + key) + " " + what);
}

bool ConfigReader::has(const std::string& key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

bool ConfigReader::is_null(const std::string& key) {
  read_.insert(key);
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

const json* ConfigReader::find(const std::string& key) {
  read_.insert(key);
  return has(key) ? &*object_.find(key) : nullptr;
}

std::int64_t ConfigReader::integer(const std::string& key, std::int64_t otherwise,
                                   std::int64_t least, std::int64_t most) {
  const json* const value = find(key);
  if (!value) return otherwise;
  if (!value->is_number_integer()) fail(key, "is no whole number");
  const bool is_inside = value->is_number_unsigned()
                             ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                             : value->get<std::int64_t>() >= 0;
  if (!is_inside || value->get<std::int64_t>() < least) {
    fail(key, "is " + value->dump() + ", a whole number from " + std::to_string(least) + " to " +
                  std::to_string(most) + " is wanted");
  }
  return value->get<std::int64_t>();
}

double ConfigReader::number(const std::string& key, double otherwise, const Domain& domain) {
  const json* const value = find(key);
  if (!value) return otherwise;
  if (!value->is_number()) fail(key, "is no number");
  const auto number = value->get<double>();
  if (!domain.has(number))
    fail(key, "is " + value->dump() + ", " + domain.wanted(key) + " is wanted");
  return number;
}

bool ConfigReader::boolean(const std::string& key, bool otherwise) {
  const json* const value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) fail(key, "is neither true nor false");
  return value->get<bool>();
}

std::string ConfigReader::text(const std::string& key, const std::string& otherwise) {
  const json* const value = find(key);
  if (!value) return otherwise;
  if (!value->is_string()) fail(key, "is no text");
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(const std::string& key) {
  std::vector<std::string> all;
  const json* const list = array(key);
  if (!list) return all;
  for (const json& item : *list) {
    if (!item.is_string()) fail(key, "has something else than texts");
    all.push_back(item.get<std::string>());
  }
  return all;
}

const json* ConfigReader::object(const std::string& key) {
  const json* const value = find(key);
  if (value && !value->is_object()) fail(key, "is no object");
  return value;
}
const json* ConfigReader::array(const std::string& key) {
  const json* const value = find(key);
  if (value && !value->is_array()) fail(key, "is no array");
  return value;
}

ConfigReader ConfigReader::within(const std::string& key, const json& object) const {
  return ConfigReader(object, path_, inside_ + key + ".");
}

void ConfigReader::ignore(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) read_.emplace(key);
}

void ConfigReader::require_boolean(const std::string& key, bool value) {
  if (boolean(key, value) == value) return;
  fail(key, std::string("is ") + (value ? "false" : "true") + ", which ein does not compute");
}

void ConfigReader::require_all_known() const {
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key)) fail(key, "is a key that ein does not know");
  }
}

void ConfigReader::require_all_read() const {
  for (const auto& [key, value] : object_.items()) {
    const bool says_nothing = value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
                              (value.is_structured() && value.empty());
    if (read_.contains(key) || says_nothing) continue;
    fail(key, "is a key that ein does not know: it may change what the model computes");
  }
}

}  // namespace ein::nn
