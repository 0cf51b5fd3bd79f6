// Bytes that are read one after the other, of a file or of what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "io/file.hpp"

namespace ein::io {

/// Errors are of kind `file` and name `caller` and the path.
class ByteStream {
 public:
  ByteStream(std::string caller, std::string path, std::uint64_t bytes)
      : caller_(std::move(caller)), path_(std::move(path)), left_(bytes) {}
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& caller() const { return caller_; }
  const std::string& path() const { return path_; }
  /// Bytes that are still to be read.
  std::uint64_t left() const { return left_; }
  /// The next ones, of which there are as many.
  void read(void* to, std::size_t bytes) {
    if (bytes > left_) fail("ends before its content does");
    left_ -= bytes;
    read_next(to, bytes);
  }
  std::string read(std::size_t bytes) {
    std::string text(bytes, '\0');
    read(text.data(), bytes);
    return text;
  }
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }

 private:
  virtual void read_next(void* to, std::size_t bytes) = 0;

  std::string caller_, path_;
  std::uint64_t left_;
};

/// A part of a file, or all of it.
class FileStream : public ByteStream {
 public:
  explicit FileStream(const InputFile& file) : FileStream(file, file.path(), 0, file.size()) {}
  /// Errors name `path` in place of the file's.
  FileStream(const InputFile& file, std::string path, std::uint64_t begin, std::uint64_t bytes)
      : ByteStream(file.caller(), std::move(path), bytes), file_(file), at_(begin) {}

 private:
  void read_next(void* to, std::size_t bytes) override {
    file_.read(at_, to, bytes);
    at_ += bytes;
  }

  const InputFile& file_;
  std::uint64_t at_;
};

}  // namespace ein::io
