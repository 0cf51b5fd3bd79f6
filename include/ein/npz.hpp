// .npz files: NumPy's archives of arrays by name.
#pragma once

#include <string>
#include <vector>

#include <ein/state_dict.hpp>

namespace ein {

struct NpzOptions {
  /// The names of the arrays to load; all where there are none. Others are not looked at, so they
  /// may be of a dtype that ein lacks.
  std::vector<std::string> only{};
};

/// The arrays of an archive as numpy.savez and numpy.savez_compressed write it, by their names
/// without `.npy`, each read as load_npy reads a file. A member that is no .npy file is its bytes,
/// as numpy.load gives them: a u8 vector under its whole name. Members are stored or compressed by
/// deflate, which takes a build with zlib; sizes may have 64 bits. An Error of kind `file` when the
/// file cannot be read or breaks the format: members that share bytes, that have other names or
/// sizes than the directory says or a checksum that is not that of their bytes, names twice or not
/// in UTF-8, more content than the bytes can stand for; when a member holds a dtype that ein lacks;
/// and when a name of `only` is not there. Of kind `memory` when there is no more.
StateDict load_npz(const std::string& path, const NpzOptions& options = {});

struct SaveNpzOptions {
  bool compress = false;  ///< by deflate, as numpy.savez_compressed does; takes a build with zlib
};

/// Writes tensors as an archive that numpy.load reads, in the order of their names, each as
/// save_npy writes a file; equal arguments give equal bytes. All of it arrives at `path`, durably,
/// or the file that was there stays whole. Errors as save_npy has; of kind `value` for a name that
/// is empty, has a NUL byte, is not UTF-8 or exceeds 65,000 bytes, and for `compress` without zlib.
void save_npz(const std::string& path, const StateDict& tensors, SaveNpzOptions options = {});

}  // namespace ein
