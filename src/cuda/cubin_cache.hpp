// CubinCache: compiled kernels kept on disk between processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/nvrtc.hpp"
#include "io/private_directory.hpp"

namespace ein::gpu {

/// A directory of cubins, each under everything that it was made from: text, options, architecture
/// and NVRTC's version. Several processes and threads may use one directory at a time. An entry is
/// written whole or not at all; one that is truncated, damaged or of another source counts as
/// absent, and is replaced by the next put().
class CubinCache {
 public:
  static constexpr std::uint64_t default_max_bytes = std::uint64_t{256} << 20;

  /// In that directory, as io::PrivateDirectory makes and checks it.
  explicit CubinCache(std::string directory, std::uint64_t max_bytes = default_max_bytes);
  /// In $XDG_CACHE_HOME/ein/cubin or ~/.cache/ein/cubin; nothing where that cannot be used, and
  /// `why_not` says why.
  static std::optional<CubinCache> of_user(std::string* why_not = nullptr);
  /// What of_user() gave when this was called first.
  static const std::optional<CubinCache>& of_process();

  const std::string& directory() const { return directory_->path(); }
  /// The file of an entry, whether it is there or not.
  std::string path(const Source& source) const;

  std::optional<Cubin> find(const Source& source) const;
  /// Then removes the entries that were unused for the longest time until all together have at most
  /// `max_bytes`. An Error of kind `file` when the disk is full and the like.
  void put(const Source& source, const Cubin& cubin) const;

 private:
  void remove_oldest() const;

  std::shared_ptr<const io::PrivateDirectory> directory_;
  std::uint64_t max_bytes_;
};

/// The bytes of an entry's file.
std::string entry_bytes(std::string_view key, const Cubin& cubin);
/// What they hold; nothing where they are not those of an entry under this key.
std::optional<Cubin> entry_of(std::string_view bytes, std::string_view key);

struct Compiled {
  Cubin cubin;
  bool was_cached = false;
};

/// Compiles all sources, several at a time on the threads of operations; results in their order.
/// One that occurs several times is compiled once. With a cache, what it has is taken from there,
/// and what it lacks is put there where that works. An Error as compile() throws it, of the first
/// source that fails.
std::vector<Compiled> compile_all(std::span<const Source> sources,
                                  const CubinCache* cache = nullptr);

}  // namespace ein::gpu
