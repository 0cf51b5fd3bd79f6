#include "io/deflate.hpp"

#include <ein/error.hpp>

#ifdef EIN_HAS_ZLIB
#include <zlib.h>

#include <algorithm>
#include <array>
#endif

namespace ein::io {

#ifdef EIN_HAS_ZLIB

namespace {

constexpr int raw_deflate = -15;           // zlib's windowBits for no header of its own
constexpr std::size_t longest = 1u << 30;  // in a call of zlib, whose counts have 32 bits

class InflatedStream : public ByteStream {
 public:
  InflatedStream(std::unique_ptr<ByteStream> compressed, std::uint64_t bytes)
      : ByteStream(compressed->caller(), compressed->path(), bytes),
        compressed_(std::move(compressed)) {
    if (::inflateInit2(&zlib_, raw_deflate) != Z_OK)
      throw Error(ErrorKind::memory, caller() + ": there is no memory to decompress");
  }
  ~InflatedStream() override { ::inflateEnd(&zlib_); }

 private:
  void read_next(void* to, std::size_t bytes) override {
    zlib_.next_out = static_cast<Bytef*>(to);
    while (bytes > 0) {
      const std::size_t now = std::min(bytes, longest);
      zlib_.avail_out = static_cast<uInt>(now);
      inflate_all();
      bytes -= now;
    }
  }
  /// Until avail_out is 0.
  void inflate_all() {
    while (zlib_.avail_out > 0) {
      if (zlib_.avail_in == 0) {
        const std::size_t next = std::min<std::uint64_t>(input_.size(), compressed_->left());
        compressed_->read(input_.data(), next);
        zlib_.next_in = input_.data();
        zlib_.avail_in = static_cast<uInt>(next);
      }
      const int result = ::inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR)
        throw Error(ErrorKind::memory, caller() + ": there is no memory to decompress");
      if (result == Z_STREAM_END && zlib_.avail_out > 0)
        fail("is damaged: it stands for fewer bytes than its archive says");
      if (result == Z_BUF_ERROR || (result == Z_OK && zlib_.avail_out > 0 && zlib_.avail_in == 0 &&
                                    compressed_->left() == 0))
        fail("is damaged: its compressed bytes end too early");
      if (result != Z_OK && result != Z_STREAM_END)
        fail("is damaged: its bytes are not compressed by deflate");
    }
  }

  std::unique_ptr<ByteStream> compressed_;
  z_stream zlib_{};
  std::array<Bytef, 1 << 14> input_;
};

}  // namespace

bool can_deflate() { return true; }

std::unique_ptr<ByteStream> inflated(std::unique_ptr<ByteStream> compressed, std::uint64_t bytes) {
  return std::make_unique<InflatedStream>(std::move(compressed), bytes);
}

struct Deflater::State {
  z_stream zlib{};

  void deflate(int flush, std::string& to) {
    int result = Z_OK;
    do {
      std::array<Bytef, 1 << 14> output;
      zlib.next_out = output.data();
      zlib.avail_out = static_cast<uInt>(output.size());
      result = ::deflate(&zlib, flush);
      to.append(reinterpret_cast<const char*>(output.data()), output.size() - zlib.avail_out);
    } while (flush == Z_FINISH ? result != Z_STREAM_END : zlib.avail_in > 0 || zlib.avail_out == 0);
  }
};

Deflater::Deflater(const std::string& caller) : state_(std::make_unique<State>()) {
  if (::deflateInit2(&state_->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, raw_deflate, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ErrorKind::memory, caller + ": there is no memory to compress");
}

Deflater::~Deflater() { ::deflateEnd(&state_->zlib); }

void Deflater::add(const void* data, std::size_t bytes, std::string& to) {
  // zlib reads what is not declared const.
  state_->zlib.next_in = static_cast<Bytef*>(const_cast<void*>(data));
  while (bytes > 0) {
    const std::size_t now = std::min(bytes, longest);
    state_->zlib.avail_in = static_cast<uInt>(now);
    state_->deflate(Z_NO_FLUSH, to);
    bytes -= now;
  }
}

void Deflater::finish(std::string& to) { state_->deflate(Z_FINISH, to); }

#else

bool can_deflate() { return false; }

std::unique_ptr<ByteStream> inflated(std::unique_ptr<ByteStream> compressed, std::uint64_t) {
  compressed->fail(
      "is compressed, and this ein was built without zlib\n  help: build it where zlib1g-dev is "
      "installed, or write the file with numpy.savez in place of savez_compressed");
}

struct Deflater::State {};

Deflater::Deflater(const std::string& caller) {
  throw Error(ErrorKind::value, caller +
                                    ": this ein was built without zlib\n  help: build it where "
                                    "zlib1g-dev is installed, or do not compress");
}

Deflater::~Deflater() = default;

void Deflater::add(const void*, std::size_t, std::string&) {}
void Deflater::finish(std::string&) {}

#endif

}  // namespace ein::io
