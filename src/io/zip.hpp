// Zip archives (APPNOTE.TXT of PKWARE, also with 64-bit sizes), read with suspicion.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/byte_stream.hpp"
#include "io/file.hpp"

namespace ein::io {

/// A file in an archive.
struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint32_t checksum = 0;    // CRC-32 of the content
  std::uint64_t compressed = 0;  // bytes in the archive
  std::uint64_t size = 0;        // bytes of the content
  std::uint64_t begin = 0;       // of the compressed bytes in the archive
};

/// The members of an archive, as its directory lists them, without those that are directories
/// themselves. They do not share a byte with each other or with the directory, no name is there
/// twice, and none has more content than its bytes can stand for. An Error of kind `file`
/// otherwise, and for members that are encrypted or compressed by anything but deflate.
std::vector<ZipMember> read_zip(const InputFile& file);

/// The content of a member; errors name "archive/member". What it gives is not verified.
std::unique_ptr<ByteStream> open_member(const InputFile& file, const ZipMember& member);

/// An archive that is written member by member, and is whole or not there, as ReplacementFile is.
class ZipWriter {
 public:
  /// Sizes and places from `zip64` on are written as 64-bit ones: others do not fit into the 32
  /// bits that there are for them.
  ZipWriter(const std::string& caller, const std::string& path, std::uint64_t zip64 = 0xffffffff);

  /// A member of these pieces, one behind the other, of the given name: bytes in UTF-8.
  struct Piece {
    const void* data;
    std::size_t bytes;
  };
  void add(const std::string& name, const std::vector<Piece>& pieces, bool compress);
  /// Writes the directory, and puts the file at its path.
  void commit();

 private:
  void write(const std::string& bytes);

  std::string caller_;
  std::uint64_t zip64_, at_ = 0;
  std::vector<std::pair<ZipMember, std::uint64_t>> members_;  // and where their headers are
  ReplacementFile file_;
};

}  // namespace ein::io
