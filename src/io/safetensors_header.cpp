#include "io/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <ein/error.hpp>
#include "io/elements.hpp"
#include "io/json.hpp"

namespace ein::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and elements are exchanged as they lie in memory");

constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::size_t length_bytes = sizeof(std::uint64_t);
constexpr std::size_t most_dimensions = 1024;  // what a Tensor may have
constexpr std::string_view metadata_key = "__metadata__";

std::string_view format_name(DType dtype) { return detail::row_of(dtype).safetensors; }

bool has_format_name(DType dtype) { return !format_name(dtype).empty(); }

/// Bits of an element of the dtypes of the format that ein lacks; 0 of those that are not here,
/// which a later version may have.
std::int64_t bits_of_foreign(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::int64_t> known[] = {
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"F4", 4}};
  for (const auto& [name, bits] : known) {
    if (name == dtype) return bits;
  }
  return 0;
}

bool may_be_dtype(std::string_view name) {
  constexpr std::size_t longest = 32;
  return !name.empty() && name.size() <= longest && name[0] >= 'A' && name[0] <= 'Z' &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == name.npos;
}

/// Takes the events of a JSON parser. What is not wanted is refused at once, so nothing nests
/// deeper than the format does and nothing but tensors and metadata takes memory.
class HeaderBuilder {
 public:
  explicit HeaderBuilder(const InputFile& file) : file_(file) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() { unwanted("null"); }
  bool boolean(bool) { unwanted("true or false"); }
  bool number_integer(std::int64_t) { unwanted("a negative number"); }
  bool number_float(double, const std::string&) {
    unwanted("a number that is not whole or too large");
  }
  bool binary(std::vector<std::uint8_t>&) { unwanted("binary"); }
  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::shape) {
      if (value > std::uint64_t{INT64_MAX}) fail("a size that exceeds 2^63 - 1");
      if (entry_.shape.rank() == most_dimensions) fail("more than 1024 dimensions");
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ != Place::offsets) unwanted("a number");
    if (offsets_ == 2) fail("more than two data_offsets");
    (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    return true;
  }
  bool string(std::string& value) {
    if (place_ == Place::metadata) {
      header_.metadata[name_] = std::move(value);
      return true;
    }
    if (place_ != Place::tensor || field_ != dtype) unwanted("a string");
    for (const DType known : all_dtypes) {
      if (has_format_name(known) && format_name(known) == value) {
        entry_.dtype = known;
        return true;
      }
    }
    if (!may_be_dtype(value)) fail("the dtype " + in_quotes(value) + ", which is no name of one");
    entry_.foreign = std::move(value);
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::root;
    } else if (place_ == Place::root && name_ == metadata_key) {
      place_ = Place::metadata;
    } else if (place_ == Place::root) {
      place_ = Place::tensor;
      entry_ = {};
      seen_ = {};
    } else {
      unwanted("an object");
    }
    return true;
  }
  bool key(std::string& key) {
    switch (place_) {
      case Place::root:
        name_ = key;
        if (key == metadata_key ? std::exchange(has_metadata_, true)
                                : header_.tensors.contains(key)) {
          file_.fail("has the key " + in_quotes(key) + " twice");
        }
        return true;
      case Place::metadata:
        name_ = key;
        if (header_.metadata.contains(key))
          file_.fail("has the metadata " + in_quotes(key) + " twice");
        return true;
      default:
        field_ = static_cast<Field>(std::ranges::find(field_names, key) - field_names.begin());
        if (field_ == field_names.size()) {
          fail("the field " + in_quotes(key) + "; dtype, shape and data_offsets are wanted");
        }
        if (std::exchange(seen_[field_], true)) fail("the field " + in_quotes(key) + " twice");
        return true;
    }
  }
  bool end_object() {
    if (place_ == Place::tensor) {
      for (std::size_t i = 0; i < field_names.size(); ++i) {
        if (!seen_[i]) fail("no " + std::string(field_names[i]));
      }
      header_.tensors.emplace(name_, std::move(entry_));
    }
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ != Place::tensor || field_ == dtype) unwanted("an array");
    place_ = field_ == shape ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() {
    if (place_ == Place::offsets && offsets_ != 2) fail("fewer than two data_offsets");
    place_ = Place::tensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    file_.fail("has a header that is no JSON in UTF-8 at byte " + std::to_string(position) +
               " of it");
  }

 private:
  enum class Place { outside, root, metadata, tensor, shape, offsets };
  enum Field : std::size_t { dtype, shape, data_offsets };
  static constexpr std::array<std::string_view, 3> field_names = {"dtype", "shape", "data_offsets"};

  [[noreturn]] void fail(const std::string& what) const {
    file_.fail("has a tensor " + in_quotes(name_) + " with " + what);
  }
  [[noreturn]] void unwanted(const std::string& what) const {
    switch (place_) {
      case Place::outside:
        file_.fail("has a header that is " + what + "; an object is wanted");
      case Place::root:
        file_.fail("has an entry " + in_quotes(name_) + " that is " + what +
                   "; an object is wanted");
      case Place::metadata:
        file_.fail("has metadata " + in_quotes(name_) + " that is " + what +
                   "; a string is wanted");
      case Place::tensor:
        fail(what + " as its " + std::string(field_names[field_]));
      default:
        fail(what + " in its " + std::string(field_names[field_]) + "; whole numbers are wanted");
    }
  }

  const InputFile& file_;
  SafetensorsHeader header_;
  Place place_ = Place::outside;
  std::string name_;  // of the tensor or the metadata
  SafetensorsEntry entry_;
  Field field_ = dtype;
  std::array<bool, 3> seen_{};
  int offsets_ = 0;
  bool has_metadata_ = false;
};

/// Each tensor has the bytes that its shape needs, and together they have all the data's, once
/// each.
void check_offsets(const InputFile& file, const SafetensorsHeader& header) {
  std::vector<decltype(header.tensors)::const_pointer> order;
  for (const auto& named : header.tensors) order.push_back(&named);
  std::ranges::sort(order, {}, [](auto* p) { return std::pair(p->second.begin, p->second.end); });

  std::uint64_t end = 0;
  for (const auto* named : order) {
    const auto& [name, entry] = *named;
    const auto fail = [&, &name = name](const std::string& what) {
      file.fail("has a tensor " + in_quotes(name) + " with " + what);
    };
    const std::string place = std::to_string(entry.begin) + " to " + std::to_string(entry.end);
    if (entry.end < entry.begin) fail("data_offsets that go backwards, from " + place);
    if (entry.begin != end) {
      fail("bytes " + place + ", while those before it end at " + std::to_string(end) +
           (entry.begin > end ? ": a hole" : ": an overlap"));
    }
    end = entry.end;
    const bool is_foreign = !entry.foreign.empty();
    const std::int64_t bits = is_foreign ? bits_of_foreign(entry.foreign)
                                         : 8 * static_cast<std::int64_t>(size_of(entry.dtype));
    std::int64_t bytes = 0;
    try {
      // Of the smallest elements two are in a byte.
      const std::int64_t elements = checked_numel(entry.shape, std::max<std::int64_t>(bits / 8, 1));
      if (bits == 0) continue;
      bytes = bits % 8 == 0 ? elements * (bits / 8) : elements / 8 * bits + elements % 8 * bits / 8;
      if (elements % 8 * bits % 8 != 0) fail("elements that do not fill their last byte");
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::file) throw;
      fail(std::string("an impossible size: ") + error.what());
    }
    if (entry.end - entry.begin != static_cast<std::uint64_t>(bytes)) {
      const std::string dtype = is_foreign ? entry.foreign : std::string(ein::name(entry.dtype));
      fail(std::to_string(entry.end - entry.begin) + " bytes; shape " + entry.shape.to_string() +
           " of " + dtype + " needs " + std::to_string(bytes));
    }
  }
  if (const std::uint64_t present = file.size() - header.data_begin; present != end) {
    file.fail("has " + std::to_string(present) + " bytes after its header; its tensors have " +
              std::to_string(end));
  }
}

/// `text` as a JSON string.
std::string json_string(std::string_view caller, std::string_view what, const std::string& text) {
  if (!is_utf8(text))
    throw Error(ErrorKind::value, std::string(caller) + ": the " + std::string(what) + " " +
                                      in_quotes(text) + " is not valid UTF-8");
  return io::json_string(text);
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file, Xxh64* checksum) {
  if (file.size() < length_bytes) file.fail("is no .safetensors file: it has fewer than 8 bytes");
  std::uint64_t length = 0;
  read_summed(file, 0, &length, length_bytes, checksum);
  if (length > longest_header) {
    file.fail("is no .safetensors file: its header would have " + std::to_string(length) +
              " bytes; at most 100000000 are allowed");
  }
  if (length > file.size() - length_bytes) {
    file.fail("is cut off: its header has " + std::to_string(length) + " bytes, the file " +
              std::to_string(file.size()));
  }
  std::string text(length, '\0');
  read_summed(file, length_bytes, text.data(), length, checksum);
  // The parser takes a byte order mark, blanks before the object, and a NUL byte as the end.
  if (!text.starts_with('{'))
    file.fail("is no .safetensors file: its header does not begin with '{'");
  if (const auto nul = text.find('\0'); nul != text.npos) {
    file.fail("has a header with a NUL byte at byte " + std::to_string(nul) + " of it");
  }
  HeaderBuilder builder(file);
  nlohmann::json::sax_parse(text, &builder);
  SafetensorsHeader header = builder.take();
  header.data_begin = length_bytes + length;
  check_offsets(file, header);
  return header;
}

SafetensorsLayout layout_safetensors(std::string_view caller, const StateDict& tensors,
                                     const Metadata& metadata) {
  const auto fail = [&](ErrorKind kind, const std::string& what) {
    throw Error(kind, std::string(caller) + ": " + what);
  };
  std::vector<StateDict::const_pointer> order;
  for (const auto& named : tensors) order.push_back(&named);
  // Wider first keeps every tensor aligned to its elements.
  std::ranges::sort(order, {}, [](auto* p) {
    return std::pair(-static_cast<int>(p->second.element_size()), std::string_view(p->first));
  });

  SafetensorsLayout layout;
  std::string& text = layout.header;
  text.assign(length_bytes, '\0');
  text += '{';
  const auto separate = [&] { text += text.size() == length_bytes + 1 ? "" : ","; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [name, value] : metadata) {
      if (!text.ends_with('{')) text += ',';
      text += json_string(caller, "name of metadata", name) + ':' +
              json_string(caller, "metadata", value);
    }
    text += '}';
  }
  std::int64_t end = 0;
  for (const auto* named : order) {
    const auto& [name, tensor] = *named;
    if (name == metadata_key) fail(ErrorKind::value, "no tensor may be named __metadata__");
    if (!has_format_name(tensor.dtype())) {
      fail(ErrorKind::dtype, "the format has no " + std::string(ein::name(tensor.dtype())) +
                                 ", which tensor " + in_quotes(name) + " holds");
    }
    const std::int64_t begin = end;
    if (__builtin_add_overflow(end, static_cast<std::int64_t>(tensor.nbytes()), &end)) {
      fail(ErrorKind::overflow, "the tensors have more than 2^63 - 1 bytes");
    }
    separate();
    text += json_string(caller, "name", name) + ":{\"dtype\":\"" +
            std::string(format_name(tensor.dtype())) + "\",\"shape\":[";
    for (const std::int64_t size : tensor.shape()) {
      if (!text.ends_with('[')) text += ',';
      text += std::to_string(size);
    }
    text += "],\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
    layout.tensors.push_back(&tensor);
  }
  text += '}';
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  const std::uint64_t length = text.size() - length_bytes;
  if (length > longest_header) {
    fail(ErrorKind::value, "names and metadata make a header of " + std::to_string(length) +
                               " bytes; at most 100000000 are allowed");
  }
  text.replace(0, length_bytes, reinterpret_cast<const char*>(&length), length_bytes);
  return layout;
}

}  // namespace ein::io
