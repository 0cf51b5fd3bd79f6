#include "io/npy_header.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <utility>

#include "io/file.hpp"

namespace ein::io {
namespace {

constexpr char native_order = std::endian::native == std::endian::little ? '<' : '>';

/// NumPy's code of the dtype; "" where NumPy has none.
std::string_view npy_code(DType dtype) { return detail::row_of(dtype).npy; }

std::string known_codes() {
  std::string codes;
  for (const DType dtype : all_dtypes) {
    if (has_npy_type(dtype)) codes += (codes.empty() ? "" : " ") + std::string(npy_code(dtype));
  }
  return codes;
}

/// What an array of another type is, and what to do about it in Python.
std::string describe_unsupported(std::string_view code) {
  struct Named {
    std::string_view code, text;
  };
  if (code == "f12" || code == "f16") return "an extended float, save x.astype(np.float64)";
  static constexpr std::array kinds = {
      Named{"c", "an extended complex number, save x.astype(np.complex128)"},
      Named{"O", "Python objects, which take a pickle to load; save x.astype(np.float32)"},
      Named{"S", "byte strings, save the bytes with x.view(np.uint8)"},
      Named{"a", "byte strings, save the bytes with x.view(np.uint8)"},
      Named{"U", "strings, save an array of numbers"},
      Named{"V", "raw bytes, as NumPy saves bfloat16 and float8; save x.astype(np.float32)"},
      Named{"M", "dates, save x.astype(np.int64)"},
      Named{"m", "time differences, save x.astype(np.int64)"}};
  for (const Named& kind : kinds) {
    if (code.starts_with(kind.code)) return std::string(kind.text);
  }
  return "no type that ein knows";
}

/// A parser of the one kind of Python literal that a header is.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyHeader parse() {
    if (text_.empty() || text_.back() != '\n') fail("its header does not end with a newline");
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string("a key");
      const auto first = [&](bool& seen) {
        if (seen) fail("its header has the key " + in_quotes(key) + " twice");
        seen = true;
        expect(':');
      };
      if (key == "descr") {
        first(has_descr);
        descr();
      } else if (key == "fortran_order") {
        first(has_order);
        header_.fortran_order = boolean();
      } else if (key == "shape") {
        first(has_shape);
        shape();
      } else {
        fail("its header has the key " + in_quotes(key) +
             "; descr, fortran_order and shape are wanted");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) malformed("the end of the header");
    if (!has_descr) fail("its header lacks the key 'descr'");
    if (!has_order) fail("its header lacks the key 'fortran_order'");
    if (!has_shape) fail("its header lacks the key 'shape'");
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { io::fail("load_npy", path_, what); }
  [[noreturn]] void malformed(std::string_view wanted) const {
    fail("has a malformed header: " + std::string(wanted) + " is wanted at byte " +
         std::to_string(at_) + " of it" +
         (at_ < text_.size() ? ", got " + in_quotes(text_.substr(at_, 1)) : ""));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r\f", at_), text_.size()); }
  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed(in_quotes({&wanted, 1}));
  }
  bool accept(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// The text between quotes. None that is valid here has an escape in it.
  std::string_view string(std::string_view wanted) {
    const char quote = accept('\'') ? '\'' : accept('"') ? '"' : '\0';
    if (quote == '\0') malformed(std::string(wanted) + " in quotes");
    const std::size_t begin = at_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) malformed("a closing quote");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    if (accept("True")) return true;
    if (!accept("False")) malformed("True or False");
    return false;
  }

  void descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      fail("holds a structured array; save each field on its own");
    }
    const std::string_view descr = string("descr");
    const char order = descr.empty() ? '\0' : descr.front();
    if (order != '<' && order != '>' && order != '|' && order != '=') {
      fail("has the descr " + in_quotes(descr) + ", which begins with no byte order (< > | =)");
    }
    const std::string_view code = descr.substr(1);
    for (const DType dtype : all_dtypes) {
      if (!has_npy_type(dtype) || npy_code(dtype) != code) continue;
      const bool one_byte = size_of(dtype) == 1;
      if (order == '|' && !one_byte)
        fail("has the descr " + in_quotes(descr) + " without byte order");
      header_.dtype = dtype;
      header_.swapped = !one_byte && order != '=' && order != native_order;
      return;
    }
    fail("has the descr " + in_quotes(descr) + ": " + describe_unsupported(code) + " (ein loads " +
         known_codes() + ")");
  }

  std::int64_t size() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '-') fail("has a negative size in its shape");
    std::int64_t value = 0;
    const char* end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error == std::errc::invalid_argument) malformed("a size");
    if (error != std::errc()) fail("has a size in its shape that exceeds 2^63 - 1");
    const auto begin = std::exchange(at_, static_cast<std::size_t>(rest - text_.data()));
    if (text_[begin] == '0' && at_ - begin > 1) fail("has a size in its shape that begins with 0");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
    return value;
  }

  void shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) malformed("','");
      if (header_.shape.rank() == npy_max_rank) fail("has more than 64 dimensions");
      header_.shape.push_back(size());
      comma = accept(',');
    }
    if (header_.shape.rank() == 1 && !comma) fail("has a shape that is no tuple");
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

}  // namespace

bool has_npy_type(DType dtype) { return !npy_code(dtype).empty(); }

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

std::string write_npy_header(DType dtype, const Shape& shape) {
  const std::string_view code = npy_code(dtype);
  assert(!code.empty() && shape.rank() <= npy_max_rank);
  constexpr std::size_t prefix = 10, alignment = 64;
  std::string text("\x93NUMPY\x01\x00\x00\x00", prefix);
  text += "{'descr': '";
  text += size_of(dtype) == 1 ? '|' : native_order;
  text += code;
  text += "', 'fortran_order': False, 'shape': " + shape.to_string() + ", }";
  // Room for the first size to grow to 21 digits, which lets NumPy append to a file in place.
  if (!shape.empty()) text.append(21 - std::to_string(shape[0]).size(), ' ');
  text.append(alignment - 1 - text.size() % alignment, ' ');
  text += '\n';
  const std::size_t length = text.size() - prefix;
  text[8] = static_cast<char>(length % 256);
  text[9] = static_cast<char>(length / 256);
  return text;
}

}  // namespace ein::io
