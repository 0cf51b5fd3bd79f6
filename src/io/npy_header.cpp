#include "io/npy_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "io/file.hpp"

namespace ein::io {
namespace {

using namespace std::string_view_literals;

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

struct Alias {
  std::string_view name, code;
};

constexpr std::string_view code_of_long = sizeof(long) == 8 ? "i8" : "i4",
                           code_of_unsigned_long = sizeof(long) == 8 ? "u8" : "u4";

/// NumPy's characters for types, which may have a byte order before them as codes have.
constexpr std::array characters = {
    Alias{"?", "b1"},  Alias{"b", "i1"},         Alias{"B", "u1"},
    Alias{"h", "i2"},  Alias{"H", "u2"},         Alias{"i", "i4"},
    Alias{"I", "u4"},  Alias{"l", code_of_long}, Alias{"L", code_of_unsigned_long},
    Alias{"q", "i8"},  Alias{"Q", "u8"},         Alias{"p", "i8"},
    Alias{"P", "u8"},  Alias{"n", "i8"},         Alias{"N", "u8"},
    Alias{"e", "f2"},  Alias{"f", "f4"},         Alias{"d", "f8"},
    Alias{"g", "f16"}, Alias{"F", "c8"},         Alias{"D", "c16"},
    Alias{"G", "c32"}, Alias{"c", "S1"}};

/// Its names, which stand alone.
constexpr std::array names = {Alias{"bool", "b1"},
                              Alias{"bool_", "b1"},
                              Alias{"int8", "i1"},
                              Alias{"int16", "i2"},
                              Alias{"int32", "i4"},
                              Alias{"int64", "i8"},
                              Alias{"uint8", "u1"},
                              Alias{"uint16", "u2"},
                              Alias{"uint32", "u4"},
                              Alias{"uint64", "u8"},
                              Alias{"float16", "f2"},
                              Alias{"float32", "f4"},
                              Alias{"float64", "f8"},
                              Alias{"complex64", "c8"},
                              Alias{"complex128", "c16"},
                              Alias{"byte", "i1"},
                              Alias{"ubyte", "u1"},
                              Alias{"short", "i2"},
                              Alias{"ushort", "u2"},
                              Alias{"intc", "i4"},
                              Alias{"uintc", "u4"},
                              Alias{"long", code_of_long},
                              Alias{"ulong", code_of_unsigned_long},
                              Alias{"longlong", "i8"},
                              Alias{"ulonglong", "u8"},
                              Alias{"int", "i8"},
                              Alias{"int_", "i8"},
                              Alias{"uint", "u8"},
                              Alias{"intp", "i8"},
                              Alias{"uintp", "u8"},
                              Alias{"half", "f2"},
                              Alias{"single", "f4"},
                              Alias{"double", "f8"},
                              Alias{"float", "f8"},
                              Alias{"csingle", "c8"},
                              Alias{"cdouble", "c16"},
                              Alias{"complex", "c16"},
                              Alias{"longdouble", "f16"},
                              Alias{"float128", "f16"},
                              Alias{"complex256", "c32"},
                              Alias{"str", "U"},
                              Alias{"str_", "U"},
                              Alias{"unicode", "U"},
                              Alias{"bytes", "S"},
                              Alias{"bytes_", "S"},
                              Alias{"object", "O"},
                              Alias{"void", "V"}};

/// What `name` stands for; itself where it is in no row.
std::string_view find_alias(std::span<const Alias> aliases, std::string_view name) {
  const auto found = std::ranges::find(aliases, name, &Alias::name);
  return found == aliases.end() ? name : found->code;
}

/// What an array of another type holds, and what to do about it in Python.
std::string describe_unsupported(std::string_view code) {
  if (code == "f12" || code == "f16") return "an extended float; save x.astype(np.float64)";
  static constexpr std::array kinds = {
      Alias{"c", "an extended complex number; save x.astype(np.complex128)"},
      Alias{"O", "Python objects, which take a pickle to load; save x.astype(np.float32)"},
      Alias{"S", "byte strings; save the bytes with x.view(np.uint8)"},
      Alias{"a", "byte strings; save the bytes with x.view(np.uint8)"},
      Alias{"U", "strings; save an array of numbers"},
      Alias{"V", "raw bytes, as NumPy saves bfloat16 and float8; save x.astype(np.float32)"},
      Alias{"M", "dates; save x.astype(np.int64)"},
      Alias{"m", "time differences; save x.astype(np.int64)"}};
  for (const Alias& kind : kinds) {
    if (code.starts_with(kind.name)) return std::string(kind.code);
  }
  return "no type that ein knows; save x.astype(np.float32)";
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// A parser of the one kind of Python literal that a header is.
class Parser {
 public:
  Parser(std::string_view text, const std::string& caller, const std::string& path)
      : text_(text), caller_(caller), path_(path) {}

  NpyHeader parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string("a key");
      const auto begin = [&](bool& seen) {
        expect(':');
        seen = true;  // as in Python, the last of several counts
      };
      if (key == "descr") {
        begin(has_descr);
        descr();
      } else if (key == "fortran_order") {
        begin(has_order);
        header_.fortran_order = boolean();
      } else if (key == "shape") {
        begin(has_shape);
        shape();
      } else {
        fail("has a header with the key " + in_quotes(key) +
             "; descr, fortran_order and shape are wanted");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) malformed("the end of the header");
    if (!has_descr) fail("has a header without the key 'descr'");
    if (!has_order) fail("has a header without the key 'fortran_order'");
    if (!has_shape) fail("has a header without the key 'shape'");
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }
  [[noreturn]] void malformed(std::string_view wanted) const {
    fail("has a malformed header: " + std::string(wanted) + " is wanted at byte " +
         std::to_string(at_) + " of it" +
         (at_ < text_.size() ? ", got " + in_quotes(text_.substr(at_, 1)) : ""));
  }

  /// And comments, and ends of lines that a backslash takes away.
  void skip_space() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\n\r\f", at_), text_.size());
      if (text_.substr(at_).starts_with("\\\n")) {
        at_ += 2;
      } else if (at_ < text_.size() && text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed(in_quotes({&wanted, 1}));
  }
  /// Letters, digits and underscores; empty where something else follows.
  std::string_view word() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// The text between quotes, behind which there may be an u (Python 2's) or an r.
  std::string_view string(std::string_view wanted) {
    const std::size_t before = at_;
    const std::string_view prefix = word();
    const bool is_known =
        prefix.empty() || (prefix.size() == 1 && "uUrR"sv.find(prefix[0]) != prefix.npos);
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (!is_known || (quote != '\'' && quote != '"')) {
      at_ = before;
      skip_space();
      malformed(std::string(wanted) + " in quotes");
    }
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) malformed("a closing quote");
    const std::string_view text = text_.substr(begin, end - begin);
    if (text.find_first_of("\\\n") != text.npos)
      fail("has a header with the string " + in_quotes(text) + ", which has an escape in it");
    at_ = end + 1;
    return text;
  }

  /// How many parentheses open here, which close() wants behind a value.
  int open() {
    int count = 0;
    while (accept('(')) ++count;
    return count;
  }
  void close(int count) {
    for (; count > 0; --count) expect(')');
  }

  bool boolean() {
    const int parentheses = open();
    skip_space();
    const std::size_t before = at_;
    const std::string_view value = word();
    if (value != "True" && value != "False") {
      at_ = before;
      malformed("True or False");
    }
    close(parentheses);
    return value == "True";
  }

  void descr() {
    skip_space();
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '[') fail("holds a structured array; save each field on its own");
    if (!accept('(')) return dtype(string("descr"));
    dtype(string("descr"));
    if (accept(')')) return;
    expect(',');
    // ('<f4', ()) is '<f4'; with sizes in the parentheses each element would be an array.
    expect('(');
    if (!accept(')')) fail("holds an array of arrays; save x.reshape(...) of numbers");
    accept(',');
    expect(')');
  }

  void dtype(std::string_view descr) {
    const char order = descr.empty() ? '\0' : descr.front();
    const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    std::string_view code = find_alias(characters, descr.substr(has_order ? 1 : 0));
    if (!has_order) code = find_alias(names, code);
    for (const DType dtype : all_dtypes) {
      if (!has_npy_type(dtype) || npy_code(dtype) != code) continue;
      header_.dtype = dtype;
      header_.swapped =
          size_of(dtype) > 1 && (order == '<' || order == '>') && order != native_order;
      return;
    }
    fail("has the dtype " + in_quotes(descr) + ", " + describe_unsupported(code) + " (ein loads " +
         known_codes() + ")");
  }

  /// A whole number of Python: 12, 1_000, 0x1f, +3, 12L of Python 2, and these in parentheses.
  std::int64_t size() {
    const int parentheses = open();
    const bool is_negative = accept('-');
    if (!is_negative) accept('+');
    skip_space();
    const std::size_t begin = at_;
    std::string_view text = word();
    if (text.ends_with('L')) {
      text.remove_suffix(1);
    } else if (const std::size_t behind = at_; word() != "L") {
      at_ = behind;
    }
    const std::optional<std::int64_t> value = whole_number(text);
    if (!value) {
      at_ = begin;
      malformed("a size");
    }
    if (*value < 0) fail("has a size in its shape that exceeds 2^63 - 1");
    if (is_negative && *value > 0) fail("has a negative size in its shape");
    close(parentheses);
    return *value;
  }

  /// Nothing where it is none; -1 where it exceeds 2^63 - 1.
  static std::optional<std::int64_t> whole_number(std::string_view text) {
    const auto is_based = [&](char small, char large) {
      return text.size() > 2 && text[0] == '0' && (text[1] == small || text[1] == large);
    };
    const int base = is_based('x', 'X') ? 16 : is_based('o', 'O') ? 8 : is_based('b', 'B') ? 2 : 10;
    if (base != 10) text.remove_prefix(2);
    std::string digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool is_between =
          text[i] == '_' && i + 1 < text.size() && text[i + 1] != '_' && (i > 0 || base != 10);
      if (!is_between) digits += text[i];
    }
    const bool is_zero = digits.find_first_not_of('0') == digits.npos;
    if (digits.empty() || (base == 10 && digits[0] == '0' && !is_zero)) return std::nullopt;
    std::int64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value, base);
    if (rest != end || error == std::errc::invalid_argument) return std::nullopt;
    return error == std::errc() ? value : -1;
  }

  void shape() {
    header_.shape = {};
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
  const std::string &caller_, &path_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

}  // namespace

bool has_npy_type(DType dtype) { return !npy_code(dtype).empty(); }

NpyHeader parse_npy_header(std::string_view text, const std::string& caller,
                           const std::string& path) {
  return Parser(text, caller, path).parse();
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
