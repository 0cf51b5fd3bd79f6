// PrivateDirectory: what programs of one user keep for each other, and nobody else can change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.hpp"

namespace ein::io {

/// Where programs keep what they can make again: $XDG_CACHE_HOME or ~/.cache, made if it is
/// missing; empty if there is no such place, if it or ~ is another user's, or others than the user
/// can write there; then `why_not` says so.
std::string user_cache(std::string* why_not = nullptr);

/// A directory that is the user's and stays open: what others put in its place later is not read.
/// Files in it are the user's, of mode 0600. Errors are of kind `file` and name `caller` and the
/// path.
class PrivateDirectory {
 public:
  enum class Others { enter, stay_out };
  /// Makes it, of mode 0700, and what is missing of its parents. An Error when it cannot be made,
  /// is a symbolic link, belongs to another user, when others can write there or in the directory
  /// that has it, or enter it and are to stay out.
  PrivateDirectory(std::string caller, std::string path, Others others = Others::stay_out);

  const std::string& path() const { return path_; }
  /// All of a file; nothing where there is none that is regular, the user's and at most so long.
  std::optional<std::string> read(const std::string& name, std::uint64_t most_bytes) const;
  /// Puts a file there, whole or not at all, in place of what has that name.
  void replace(const std::string& name, std::string_view bytes) const;
  /// Notes that it was used just now.
  void touch(const std::string& name) const;
  void remove(const std::string& name) const;

  struct Entry {
    std::string name;
    std::uint64_t bytes;
    std::int64_t used;  // nanoseconds of the system's clock
  };
  std::vector<Entry> entries() const;

 private:
  std::string caller_, path_;
  Descriptor directory_;
};

}  // namespace ein::io
