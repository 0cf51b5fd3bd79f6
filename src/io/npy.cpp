#include <ein/npy.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include <ein/error.hpp>

#include "io/elements.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"

namespace ein {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header =
    10'000;  // NumPy's limit as well, for files it does not trust

struct Preamble {
  io::NpyHeader header;
  std::size_t data_begin;  // bytes before the elements
};

Preamble read_preamble(const io::InputFile& file) {
  std::array<char, 12> prefix{};
  file.read(0, prefix.data(), std::min<std::uint64_t>(prefix.size(), file.size()));
  const std::string_view start(prefix.data(), prefix.size());
  if (!start.starts_with(magic)) {
    file.fail(start.starts_with("PK") ? "is an .npz archive; unpack it, each member is a .npy file"
                                      : "is not a .npy file: it does not start with \\x93NUMPY");
  }
  const auto byte = [&](std::size_t i) {
    return std::size_t{static_cast<unsigned char>(start[i])};
  };
  const std::size_t major = byte(6), minor = byte(7);
  const std::size_t prefix_size = major == 1 ? 10 : 12;
  if (file.size() < prefix_size) {
    file.fail("is cut off: it ends within its first " + std::to_string(prefix_size) + " bytes");
  }
  if (major < 1 || major > 3 || minor != 0) {
    file.fail("has version " + std::to_string(major) + "." + std::to_string(minor) +
              " of the format; 1.0, 2.0 and 3.0 are known");
  }
  std::size_t length = byte(8) + (byte(9) << 8);
  if (major > 1) length += (byte(10) << 16) + (byte(11) << 24);
  if (length > longest_header) {
    file.fail("has a header of " + std::to_string(length) + " bytes; at most " +
              std::to_string(longest_header) + " are allowed");
  }
  if (length > file.size() - prefix_size) {
    file.fail("is cut off: its header has " + std::to_string(length) + " bytes, the file " +
              std::to_string(file.size()));
  }
  return {io::parse_npy_header(file.read(prefix_size, length), file.path()), prefix_size + length};
}

/// Bytes of the elements that the header announces, which are what the rest of the file is.
std::size_t checked_data_bytes(const io::InputFile& file, const Preamble& preamble) {
  const Shape& shape = preamble.header.shape;
  const auto element_size = static_cast<std::int64_t>(size_of(preamble.header.dtype));
  std::int64_t bytes = 0;
  try {
    bytes = checked_numel(shape, element_size) * element_size;
  } catch (const Error& error) {
    file.fail(std::string("cannot be so large: ") + error.what());
  }
  const std::uint64_t present = file.size() - preamble.data_begin;
  if (present != static_cast<std::uint64_t>(bytes)) {
    file.fail("has " + std::to_string(present) + " bytes of elements; shape " + shape.to_string() +
              " of " + std::string(name(preamble.header.dtype)) + " has " + std::to_string(bytes));
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

}  // namespace

Tensor load_npy(const std::string& path, NpyOptions options) {
  const io::InputFile file("load_npy", path);
  Preamble preamble = read_preamble(file);
  io::NpyHeader& header = preamble.header;
  const std::size_t bytes = checked_data_bytes(file, preamble);

  const std::shared_ptr<std::byte> mapping = options.mmap && !header.swapped ? file.map() : nullptr;
  auto storage = io::read_elements(file, mapping, preamble.data_begin, bytes, header.dtype);
  if (header.swapped) swap_elements(storage->data(), bytes, size_of(real_dtype(header.dtype)));
  Strides strides = contiguous_strides(
      header.shape, header.fortran_order ? Order::column_major : Order::row_major);
  return Tensor(std::move(storage), header.dtype, std::move(header.shape), std::move(strides));
}

void save_npy(const std::string& path, const Tensor& x) {
  const DType dtype = x.dtype();
  if (!io::has_npy_type(dtype)) {
    throw Error(ErrorKind::dtype, "save_npy: NumPy has no " + std::string(name(dtype)) +
                                      "; cast to f32 first: x.to(ein::DType::f32)");
  }
  if (x.rank() > io::npy_max_rank) {
    throw Error(ErrorKind::rank,
                "save_npy: NumPy's arrays have at most 64 dimensions, the tensor " +
                    std::to_string(x.rank()));
  }
  const Tensor elements = x.to(cpu).contiguous();
  const std::string header = io::write_npy_header(dtype, x.shape());
  io::ReplacementFile file("save_npy", path);
  file.write(header.data(), header.size());
  file.write(elements.raw_data(), elements.nbytes());
  file.commit();
}

}  // namespace ein
