#include "io/temporary_name.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "io/xxh64.hpp"
#include "machine/system.hpp"

namespace ein::io {
namespace {

constexpr std::string_view mark = ".ein-", ending = ".tmp";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_plain(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
}

/// The parts between '-'.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find('-')) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

}  // namespace

Boot this_boot() {
  constexpr std::size_t longest = 64;  // of what Linux takes
  std::array<char, longest + 1> host{};
  if (::gethostname(host.data(), longest) != 0) host = {"unknown"};
  Boot boot{host.data(), ""};
  std::replace_if(
      boot.host.begin(), boot.host.end(), [](char c) { return !is_plain(c); }, '_');
  const std::string id = system::boot_id();
  boot.id = hex(xxh64(id.empty() ? boot.host : id));
  return boot;
}

std::string temporary_name() {
  static std::atomic<std::uint64_t> next{0};
  const Boot boot = this_boot();
  return std::string(mark) + boot.host + "-" + boot.id + "-" + std::to_string(::getpid()) + "-" +
         std::to_string(next++) + std::string(ending);
}

bool is_temporary_of(const Boot& here, std::string_view name) {
  if (!name.starts_with(mark) || !name.ends_with(ending)) return false;
  name.remove_prefix(mark.size());
  name.remove_suffix(ending.size());
  const std::vector<std::string_view> parts = parts_of(name);
  const auto is_number = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), is_digit);
  };
  if (parts.size() != 4 || !is_number(parts[2]) || !is_number(parts[3])) return false;
  return parts[0] == here.host || parts[1] == here.id;
}

}  // namespace ein::io
