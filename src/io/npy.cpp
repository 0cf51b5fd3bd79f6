#include <ein/npy.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include <ein/error.hpp>

#include "io/byte_stream.hpp"
#include "io/elements.hpp"
#include "io/file.hpp"
#include "io/npy_file.hpp"
#include "io/npy_header.hpp"

namespace ein {
namespace {

constexpr std::size_t longest_header =
    10'000;  // NumPy's limit as well, for files it does not trust

struct Preamble {
  io::NpyHeader header;
  std::size_t data_begin;  // bytes before the elements
};

Preamble read_preamble(io::ByteStream& in) {
  std::string start = in.read(std::min<std::uint64_t>(10, in.left()));
  if (!start.starts_with(io::npy_magic)) {
    in.fail(start.starts_with("PK") ? "is an .npz archive, which load_npz reads"
                                    : "is not a .npy file: it does not start with \\x93NUMPY");
  }
  const auto byte = [&](std::size_t i) {
    return std::size_t{static_cast<unsigned char>(start[i])};
  };
  const std::size_t prefix_size = start.size() > 6 && byte(6) != 1 ? 12 : 10;
  if (prefix_size == 12) start += in.read(std::min<std::uint64_t>(2, in.left()));
  if (start.size() < prefix_size)
    in.fail("is cut off: it ends within its first " + std::to_string(prefix_size) + " bytes");
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    in.fail("has version " + std::to_string(major) + "." + std::to_string(minor) +
            " of the format; 1.0, 2.0 and 3.0 are known");
  }
  std::size_t length = byte(8) + (byte(9) << 8);
  if (major > 1) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > longest_header) {
    in.fail("has a header of " + std::to_string(length) + " bytes; at most " +
            std::to_string(longest_header) + " are allowed");
  }
  if (length > in.left()) {
    in.fail("is cut off: its header has " + std::to_string(length) + " bytes, the file " +
            std::to_string(in.left() + prefix_size));
  }
  return {io::parse_npy_header(in.read(length), in.caller(), in.path()), prefix_size + length};
}

/// Bytes of the elements that the header announces. NumPy, too, leaves alone what is behind them.
std::size_t checked_data_bytes(const io::ByteStream& in, const io::NpyHeader& header) {
  const auto element_size = static_cast<std::int64_t>(size_of(header.dtype));
  std::int64_t bytes = 0;
  try {
    bytes = checked_numel(header.shape, element_size) * element_size;
  } catch (const Error& error) {
    in.fail(std::string("cannot be so large: ") + error.what());
  }
  if (in.left() < static_cast<std::uint64_t>(bytes)) {
    in.fail("has " + std::to_string(in.left()) + " bytes of elements; shape " +
            header.shape.to_string() + " of " + std::string(name(header.dtype)) + " needs " +
            std::to_string(bytes));
  }
  return static_cast<std::size_t>(bytes);
}

template <class Word>
Word swap_bytes(Word word) {
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
}

template <class Word>
void swap_all(std::byte* data, std::size_t bytes) {
  for (std::byte* end = data + bytes; data != end; data += sizeof(Word)) {
    Word word;
    std::memcpy(&word, data, sizeof word);
    word = swap_bytes(word);
    std::memcpy(data, &word, sizeof word);
  }
}

void swap_elements(std::byte* data, std::size_t bytes, std::size_t element_size) {
  if (element_size == 2) swap_all<std::uint16_t>(data, bytes);
  if (element_size == 4) swap_all<std::uint32_t>(data, bytes);
  if (element_size == 8) swap_all<std::uint64_t>(data, bytes);
}

Tensor tensor_of(std::shared_ptr<Storage> storage, io::NpyHeader header) {
  if (header.swapped)
    swap_elements(storage->data(), storage->bytes(), size_of(real_dtype(header.dtype)));
  Strides strides = contiguous_strides(
      header.shape, header.fortran_order ? Order::column_major : Order::row_major);
  return Tensor(std::move(storage), header.dtype, std::move(header.shape), std::move(strides));
}

}  // namespace

Tensor io::read_npy(ByteStream& in) {
  NpyHeader header = read_preamble(in).header;
  auto storage = Storage::allocate(checked_data_bytes(in, header));
  in.read(storage->data(), storage->bytes());
  make_valid(*storage, header.dtype);
  return tensor_of(std::move(storage), std::move(header));
}

Tensor load_npy(const std::string& path, NpyOptions options) {
  const io::InputFile file("load_npy", path);
  io::FileStream in(file);
  Preamble preamble = read_preamble(in);
  const std::size_t bytes = checked_data_bytes(in, preamble.header);
  const bool maps = options.mmap && !preamble.header.swapped;
  auto storage = io::read_elements(file, maps ? file.map() : nullptr, preamble.data_begin, bytes,
                                   preamble.header.dtype);
  return tensor_of(std::move(storage), std::move(preamble.header));
}

std::string io::npy_header_for(const std::string& caller, const Tensor& x) {
  const DType dtype = x.dtype();
  if (!has_npy_type(dtype)) {
    throw Error(ErrorKind::dtype, caller + ": NumPy has no " + std::string(name(dtype)) +
                                      "; cast to f32 first: x.to(ein::DType::f32)");
  }
  if (x.rank() > npy_max_rank) {
    throw Error(ErrorKind::rank, caller +
                                     ": NumPy's arrays have at most 64 dimensions, the tensor " +
                                     std::to_string(x.rank()));
  }
  return write_npy_header(dtype, x.shape());
}

void save_npy(const std::string& path, const Tensor& x) {
  const std::string header = io::npy_header_for("save_npy", x);
  const Tensor elements = x.to(cpu).contiguous();
  io::ReplacementFile file("save_npy", path);
  file.write(header.data(), header.size());
  file.write(elements.raw_data(), elements.nbytes());
  file.commit();
}

}  // namespace ein
