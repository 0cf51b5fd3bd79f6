// Files that NumPy wrote (data/npy, by its make.py) are the oracle for reading and, byte for byte,
// for writing. The rest are enemies: cut, changed and absurd files, and writes that fail.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <ein/complex.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/npy.hpp>

#include "support/loaded_bytes.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::FileSizeLimit;
using test::read_bytes;

std::string fixture(const std::string& name) {
  return std::string(EIN_TEST_DATA) + "/npy/" + name + ".npy";
}

/// A version 1.0 file with this header, padded as NumPy pads.
std::string npy_file(std::string header, const std::string& data) {
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() % 256);
  bytes += static_cast<char>(header.size() / 256);
  return bytes + header + data;
}

class Npy : public test::LoadedBytes<load_npy, NpyOptions> {
 protected:
  Npy() : LoadedBytes("load_npy", ".npy", {{.mmap = false}, {.mmap = true}}) {}

  std::vector<std::string> listing() const { return scratch_.listing(); }

  const fs::path& directory_ = scratch_.path();
};

ErrorKind kind_of_save(const std::string& path, const Tensor& x, std::string* what = nullptr) {
  try {
    save_npy(path, x);
  } catch (const Error& error) {
    if (what) *what = error.what();
    return error.kind();
  }
  ADD_FAILURE() << "saved " << path;
  return ErrorKind::value;
}

// --- What NumPy wrote ---

const std::map<std::string, DType> dtypes = {
    {"f8", DType::f64}, {"f4", DType::f32}, {"f2", DType::f16}, {"i8", DType::i64},
    {"i4", DType::i32}, {"i2", DType::i16}, {"i1", DType::i8},  {"u8", DType::u64},
    {"u4", DType::u32}, {"u2", DType::u16}, {"u1", DType::u8},  {"b1", DType::boolean}};
const std::map<std::string, Shape> shapes = {
    {"scalar", {}}, {"vector", {5}}, {"matrix", {2, 3}}, {"cube", {2, 3, 4}}, {"none", {2, 0, 3}}};

double wrapped(DType dtype, std::int64_t value) {
  return visit(dtype,
               [&]<class T>(std::type_identity<T>) { return convert<double>(convert<T>(value)); });
}

/// The elements that make.py writes.
std::vector<double> expected(DType dtype, std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t k = 0; k < n; ++k) {
    const double value = is_floating(dtype)        ? static_cast<double>(k - 5) * 0.75
                         : dtype == DType::u8      ? static_cast<double>(k * 37 % 256)
                         : dtype == DType::boolean ? static_cast<double>(k % 3 == 0)
                         : is_unsigned(dtype)      ? wrapped(dtype, k * 1000003)
                                                   : wrapped(dtype, (k - 5) * 1000003);
    values.push_back(value);
  }
  return values;
}

TEST_F(Npy, LoadsWhatNumpyWrote) {
  for (const auto& [code, dtype] : dtypes) {
    for (const auto& [name, shape] : shapes) {
      for (const bool mmap : {false, true}) {
        SCOPED_TRACE(code + " " + name);
        const Tensor x = load_npy(fixture(code + "_" + name), {.mmap = mmap});
        EXPECT_EQ(x.dtype(), dtype);
        EXPECT_EQ(x.shape(), shape);
        EXPECT_TRUE(x.is_contiguous());
        EXPECT_EQ(x.to_vector<double>(), expected(dtype, numel(shape)));
        EXPECT_EQ(x.storage()->read_only(), mmap && dtype != DType::boolean);
      }
    }
  }
}

TEST_F(Npy, FortranOrderIsAStridedView) {
  for (const auto& [code, dtype] : dtypes) {
    SCOPED_TRACE(code);
    const Tensor x = load_npy(fixture(code + "_cube_fortran"));
    EXPECT_EQ(x.shape(), (Shape{2, 3, 4}));
    EXPECT_EQ(x.strides(), (Strides{1, 2, 6}));
    EXPECT_EQ(x.to_vector<double>(), expected(dtype, 24));
  }
}

TEST_F(Npy, OtherByteOrderIsSwapped) {
  for (const std::string code : {"f8", "f4", "f2", "i8", "i4", "i2", "u8", "u4", "u2"}) {
    SCOPED_TRACE(code);
    const Tensor x = load_npy(fixture(code + "_matrix_big"), {.mmap = true});
    EXPECT_EQ(x.dtype(), dtypes.at(code));
    EXPECT_FALSE(x.storage()->read_only());
    EXPECT_EQ(x.to_vector<double>(), expected(x.dtype(), 6));
  }
  const Tensor x = load_npy(fixture("f4_matrix_big_fortran"));
  EXPECT_EQ(x.strides(), (Strides{1, 2}));
  EXPECT_EQ(x.to_vector<double>(), expected(DType::f32, 6));
}

TEST_F(Npy, AllVersions) {
  for (const std::string name : {"f4_vector_v2", "f4_vector_v3"}) {
    EXPECT_EQ(read_bytes(fixture(name))[6], name.back() - '0');
    EXPECT_EQ(load_npy(fixture(name)).to_vector<double>(), expected(DType::f32, 5));
  }
  const Tensor deep = load_npy(fixture("u1_sixty_four"));
  EXPECT_EQ(deep.rank(), 64u);
  EXPECT_EQ(deep.to_vector<double>(), expected(DType::u8, 3));
}

TEST_F(Npy, SpecialValuesKeepTheirBits) {
  for (const std::string code : {"f8", "f4", "f2", "i8", "u8"}) {
    const Tensor x = load_npy(fixture(code + "_special"));
    const std::string bytes = read_bytes(fixture(code + "_special"));
    ASSERT_LE(x.nbytes(), bytes.size());
    EXPECT_EQ(std::memcmp(x.raw_data(), bytes.data() + bytes.size() - x.nbytes(), x.nbytes()), 0);
  }
  const auto wide = load_npy(fixture("i8_special")).to_vector<std::int64_t>();
  EXPECT_EQ(wide, (std::vector<std::int64_t>{INT64_MAX, INT64_MIN, (std::int64_t{1} << 53) + 1}));
  const auto positive = load_npy(fixture("u8_special")).to_vector<std::uint64_t>();
  EXPECT_EQ(positive, (std::vector<std::uint64_t>{UINT64_MAX, std::uint64_t{1} << 63,
                                                  (std::uint64_t{1} << 53) + 1}));
}

TEST_F(Npy, ComplexNumbers) {
  for (const DType dtype : {DType::c64, DType::c128}) {
    const std::string code = dtype == DType::c64 ? "c8" : "c16";
    for (const char* const order : {"", "_fortran", "_big"}) {
      SCOPED_TRACE(code + order);
      const Tensor x = load_npy(fixture(code + "_matrix" + order));
      EXPECT_EQ(x.dtype(), dtype);
      EXPECT_EQ(x.shape(), (Shape{2, 3}));
      const auto values = x.to(DType::c128).to_vector<std::complex<double>>();
      for (std::size_t k = 0; k < values.size(); ++k) {
        const auto number = static_cast<double>(k);
        EXPECT_EQ(values[k], std::complex<double>((number - 5) * 0.75, number));
      }
      save_npy(path("x.npy"), x);
      EXPECT_EQ(read_bytes(path("x.npy")), read_bytes(fixture(code + "_matrix")));
    }
  }
}

TEST_F(Npy, RefusesOtherDtypesByName) {
  const std::map<std::string, std::string> names = {
      {"c32", "extended complex"}, {"S3", "byte strings"}, {"U3", "strings"},
      {"V2", "bfloat16"},          {"M8", "dates"},        {"m8", "time differences"},
      {"f16", "extended"},         {"O", "pickle"},        {"structured", "structured"}};
  for (const auto& [code, word] : names) {
    SCOPED_TRACE(code);
    expect_refused(read_bytes(fixture("refused_" + code)), word);
  }
}

// --- Saving ---

TEST_F(Npy, SavesByteForByteWhatNumpyWrites) {
  if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
  for (const auto& [code, dtype] : dtypes) {
    for (const auto& [name, shape] : shapes) {
      SCOPED_TRACE(code + " " + name);
      const Tensor x = from_vector(expected(dtype, numel(shape)), shape).to(dtype);
      save_npy(path("x.npy"), x);
      EXPECT_EQ(read_bytes(path("x.npy")), read_bytes(fixture(code + "_" + name)));
    }
  }
  EXPECT_EQ(listing(), std::vector<std::string>{"x.npy"});
}

TEST_F(Npy, StridedTensorsAreSavedRowMajor) {
  const Tensor cube = load_npy(fixture("i4_cube_fortran"));
  save_npy(path("cube.npy"), cube);
  EXPECT_EQ(read_bytes(path("cube.npy")), read_bytes(fixture("i4_cube")));

  const Tensor x = from_vector(expected(DType::f32, 24), {4, 6}).to(DType::f32);
  const Tensor part = x.at({slice(1, 4, 2), slice(0, 6, 3)}).transpose();
  save_npy(path("part.npy"), part);
  const Tensor back = load_npy(path("part.npy"));
  EXPECT_EQ(back.shape(), (Shape{2, 2}));
  EXPECT_EQ(back.strides(), (Strides{2, 1}));
  EXPECT_EQ(back.to_vector<double>(), part.to_vector<double>());
}

TEST_F(Npy, RandomBitsSurviveTheRoundTrip) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& [code, dtype] : dtypes) {
    for (const std::int64_t n : {0, 1, 7, 4096, 100'003}) {
      const Tensor x = empty({n}, dtype);
      auto* bytes = static_cast<unsigned char*>(x.raw_data());
      const auto mask = static_cast<unsigned char>(dtype == DType::boolean ? 1 : 255);
      std::generate_n(bytes, x.nbytes(), [&] { return random() & mask; });
      save_npy(path("x.npy"), x);
      for (const bool mmap : {false, true}) {
        const Tensor back = load_npy(path("x.npy"), {.mmap = mmap});
        ASSERT_EQ(back.shape(), x.shape());
        ASSERT_EQ(back.dtype(), dtype);
        EXPECT_TRUE(std::equal(bytes, bytes + x.nbytes(),
                               static_cast<const unsigned char*>(back.raw_data())));
      }
    }
  }
}

TEST_F(Npy, DtypesAndRanksThatNumpyLacks) {
  for (const DType dtype : {DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    std::string what;
    EXPECT_EQ(kind_of_save(path("x.npy"), zeros({2}, dtype), &what), ErrorKind::dtype);
    EXPECT_NE(what.find("x.to(ein::DType::f32)"), std::string::npos) << what;
  }
  save_npy(path("most.npy"), zeros(Shape(64, 1)));
  EXPECT_EQ(load_npy(path("most.npy")).rank(), 64u);
  EXPECT_EQ(kind_of_save(path("x.npy"), zeros(Shape(65, 1))), ErrorKind::rank);
  EXPECT_EQ(listing(), std::vector<std::string>{"most.npy"});
}

// --- Mapping ---

TEST_F(Npy, MappedTensorsAreReadOnlyAndOutliveTheFile) {
  const Tensor x = from_vector(expected(DType::f64, 24), {4, 6});
  save_npy(path("x.npy"), x);
  const Tensor mapped = load_npy(path("x.npy"), {.mmap = true});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.raw_data()) % 64, 0u);
  EXPECT_THROW(mapped.fill(1), Error);
  save_npy(path("x.npy"), zeros({3}));  // replaces the name, not the mapped bytes
  EXPECT_EQ(mapped.to_vector<double>(), x.to_vector<double>());
  fs::remove(path("x.npy"));
  EXPECT_EQ(mapped[3].to_vector<double>(), x[3].to_vector<double>());
}

TEST_F(Npy, UnalignedElementsAreNotMapped) {
  // As other writers make them: no padding.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += std::string(1, '\0') + header;
  ASSERT_NE(bytes.size() % 4, 0u);
  const float values[] = {1.5f, -2.0f};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  for (const bool mmap : {false, true}) {
    const auto x = try_load(bytes, {.mmap = mmap});
    ASSERT_TRUE(x) << what_;
    EXPECT_FALSE(x->storage()->read_only());
    EXPECT_EQ(x->to_vector<double>(), (std::vector<double>{1.5, -2}));
  }
}

// --- Headers ---

std::string hex_of(const Tensor& x) {
  const Tensor elements = x.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(elements.raw_data());
  std::string digits;
  for (std::size_t i = 0; i < elements.nbytes(); ++i) {
    for (const int digit : {bytes[i] / 16, bytes[i] % 16}) digits += "0123456789abcdef"[digit];
  }
  return digits;
}

// headers.py asks numpy.load what it makes of headers as other writers have them; EIN_NPY_HEADERS
// may name a longer list than the one that is here.
TEST_F(Npy, HeadersAreReadAsNumpyReadsThem) {
  const char* const list = std::getenv("EIN_NPY_HEADERS");
  std::istringstream lines(
      read_bytes(list ? list : std::string(EIN_TEST_DATA) + "/npy/headers.jsonl"));
  std::string data(2048, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(7 * i + 1);
  int loaded = 0, refused = 0;
  for (std::string line; std::getline(lines, line) && !HasFailure();) {
    SCOPED_TRACE(line);
    const auto [version, header, verdict] =
        nlohmann::json::parse(line).get<std::tuple<int, std::string, nlohmann::json>>();
    std::string bytes = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      bytes += static_cast<char>(header.size() >> (8 * i));
    const auto x = try_load(bytes + header + data, {.mmap = loaded % 2 == 0});
    if (verdict.is_string()) {
      // NumPy takes Python 2's "3L" in versions 1 and 2 alone.
      EXPECT_TRUE(!x || (version == 3 && header.find('L') != header.npos));
      ++refused;
      continue;
    }
    ASSERT_TRUE(x) << what_;
    EXPECT_EQ(std::vector<std::int64_t>(x->shape().begin(), x->shape().end()),
              verdict[0].get<std::vector<std::int64_t>>());
    EXPECT_EQ(hex_of(*x), verdict[1].get<std::string>());
    ++loaded;
  }
  EXPECT_GT(loaded, 200);
  EXPECT_GT(refused, 200);
}

TEST_F(Npy, HeaderVariants) {
  const std::string data(24, '\x01');
  for (const std::string header : {
           "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}",
           "{\"fortran_order\" : False,\"shape\":(2,3,),\"descr\":\"<f4\",}",
           "  {  'descr'\t:'<f4' ,\n 'fortran_order':False,'shape':( 2 , 3 , ) , }  ",
           "{'descr': '=f4', 'fortran_order': False, 'shape': (2L, 3L), }",
       }) {
    const auto x = try_load(npy_file(header, data));
    ASSERT_TRUE(x) << header << "\n" << what_;
    EXPECT_EQ(x->shape(), (Shape{2, 3}));
    EXPECT_EQ(x->dtype(), DType::f32);
  }
}

TEST_F(Npy, BadHeadersAreRefused) {
  const auto refuse = [&](const std::string& header, const std::string& reason) {
    SCOPED_TRACE(header);
    expect_refused(npy_file(header, std::string(24, '\x01')), reason);
  };
  const std::string good = "'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)";
  refuse("", "'{' is wanted");
  refuse("{}", "has a header without the key 'descr'");
  refuse("{'descr': '<f4', 'shape': (2, 3)}", "has a header without the key 'fortran_order'");
  refuse("{'descr': '<f4', 'fortran_order': False}", "has a header without the key 'shape'");
  refuse("{" + good + ", 'order': 1}", "has a header with the key 'order'");
  refuse("{" + good, "'}' is wanted");
  refuse("{" + good + "} {", "the end of the header is wanted");
  refuse("{" + good + ",,}", "a key in quotes is wanted");
  refuse("{'descr\": '<f4'}", "has a header with the key 'descr\": '");
  refuse("{'descr' '<f4'}", "':' is wanted");
  refuse("{'\x01\xff': 1}", "has a header with the key '\\x01\\xff'");
  const auto descr = [&](const std::string& value, const std::string& reason) {
    refuse("{'descr': " + value + ", 'fortran_order': False, 'shape': (2, 3)}", reason);
  };
  descr("''", "no type that ein knows");
  descr("'!f4'", "no type that ein knows");
  descr("'<float32'", "no type that ein knows");
  descr("'<'", "no type that ein knows");
  descr("'<f44'", "no type that ein knows");
  descr("None", "descr in quotes is wanted");
  descr("'<f4", "has the dtype '<f4, '");  // the next quote ends it
  refuse("{'descr", "a closing quote is wanted");
  descr("('<f4', (2,))", "an array of arrays");
  descr("[('a', '<f4')]", "structured");
  descr("'\\x3cf4'", "which has an escape in it");
  const auto order = [&](const std::string& value) {
    refuse("{'descr': '<f4', 'fortran_order': " + value + ", 'shape': (2, 3)}", "is wanted");
  };
  order("0");
  order("'False'");
  order("Falsey");
  order("");
  const auto shape = [&](const std::string& value, const std::string& reason) {
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': " + value + "}", reason);
  };
  shape("(6)", "no tuple");
  shape("6", "'(' is wanted");
  shape("[2, 3]", "'(' is wanted");
  shape("(,)", "a size is wanted");
  shape("(2 3)", "',' is wanted");
  shape("(2,, 3)", "a size is wanted");
  shape("(2, 3", "',' is wanted");
  shape("(2.0, 3)", "',' is wanted");
  shape("(-2, -3)", "negative size");
  shape("(02, 3)", "a size is wanted");
  shape("(2, 4)", "has 24 bytes of elements; shape (2, 4) of f32 needs 32");
  shape("(9223372036854775808,)", "exceeds 2^63 - 1");
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1, ";
  shape(ones + ")", "more than 64 dimensions");
}

TEST_F(Npy, ShapesWhoseProductOverflows) {
  for (const std::string shape :
       {"(4611686018427387904, 4)", "(2305843009213693952, 2)", "(4294967296, 4294967296)",
        "(4294967296, 4294967296, 0)", "(9223372036854775807, 9223372036854775807)",
        "(9223372036854775807,)"}) {
    SCOPED_TRACE(shape);
    for (const std::string data : {"", "abcdefgh"}) {
      const std::string header =
          "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
      expect_refused(npy_file(header, data), "needs more than 2^63 - 1 bytes");
    }
  }
  // Fits 63 bits, but not the file; nothing of that size is allocated.
  expect_refused(
      npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }", "ab"),
      "has 2 bytes of elements");
}

TEST_F(Npy, AbsurdPrefixes) {
  const std::string good = read_bytes(fixture("f4_matrix"));
  expect_refused("", "is not a .npy file");
  expect_refused("PK\x03\x04 and so on", ".npz");
  std::string bytes = good;
  bytes[6] = 4;
  expect_refused(bytes, "version 4.0");
  bytes = good;
  bytes[7] = 1;
  expect_refused(bytes, "version 1.1");
  bytes = good;
  bytes[8] = '\xff';
  expect_refused(bytes, "is cut off: its header has 255 bytes");
  bytes[9] = '\xff';
  expect_refused(bytes, "has a header of 65535 bytes");
  bytes = read_bytes(fixture("f4_vector_v2"));
  bytes[8] = bytes[9] = bytes[10] = bytes[11] = '\xff';
  expect_refused(bytes, "has a header of 4294967295 bytes");

  // The limit is on what the file announces, whether or not it has that much.
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
  const auto padded = [&](std::size_t length) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(length % 256);
    file += static_cast<char>(length / 256);
    return file + header + std::string(length - 1 - header.size(), ' ') + "\nx";
  };
  EXPECT_TRUE(try_load(padded(10'000))) << what_;
  expect_refused(padded(10'001), "at most 10000");
}

TEST_F(Npy, TruncatedAnywhereOrExtended) {
  for (const std::string name : {"f4_matrix", "f4_vector_v2", "b1_vector", "i8_cube_fortran"}) {
    const std::string good = read_bytes(fixture(name));
    for (std::size_t n = 0; n < good.size(); ++n) {
      for (const bool mmap : {false, true}) {
        ASSERT_FALSE(try_load(good.substr(0, n), {.mmap = mmap})) << name << " cut at " << n;
      }
    }
    EXPECT_TRUE(try_load(good)) << what_;
    // What is behind the elements is another's.
    const auto x = try_load(good + "another array");
    ASSERT_TRUE(x) << what_;
    EXPECT_EQ(x->nbytes(), load_npy(fixture(name)).nbytes());
  }
}

TEST_F(Npy, AnyHeaderByteChangedToAnyOther) {
  bool all_changes = true;  // and then the single bits
  for (const std::string name : {"f4_matrix", "f2_special", "u1_vector"}) {
    const std::string good = read_bytes(fixture(name));
    const std::size_t data_begin = good.find('\n') + 1;
    int loaded = 0;
    for (std::size_t i = 0; i < data_begin; ++i) {
      std::string bytes = good;
      for (int change = 1; change < 256; change += all_changes ? 1 : change) {
        bytes[i] = static_cast<char>(good[i] ^ change);
        const auto x = try_load(bytes, {.mmap = (i + change) % 2 == 0});
        if (!x) continue;
        ++loaded;
        // Whatever it is now, it has the file's bytes, in one order or another, from where its
        // header ends.
        const std::size_t begin = 10 + static_cast<unsigned char>(bytes[8]);
        std::string elements = bytes.substr(begin, x->nbytes());
        std::sort(elements.begin(), elements.end());
        std::string held(x->nbytes(), '\0');
        const Tensor row_major = x->contiguous();
        if (x->numel() > 0) std::memcpy(held.data(), row_major.raw_data(), held.size());
        std::sort(held.begin(), held.end());
        if (x->dtype() != DType::boolean) {
          ASSERT_EQ(held, elements) << name << " byte " << i << " ^ " << change;
        }
      }
    }
    EXPECT_GT(loaded, 0) << name;  // with '<' as '>', one bit away
    all_changes = false;
  }
}

TEST_F(Npy, AnyNonzeroByteIsTrue) {
  const auto x = try_load(
      npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }", {"\0\1\2\x80\xff", 5}),
      {.mmap = true});
  ASSERT_TRUE(x) << what_;
  const auto* bytes = static_cast<const unsigned char*>(x->raw_data());
  EXPECT_EQ(std::vector<int>(bytes, bytes + 5), (std::vector<int>{0, 1, 1, 1, 1}));
}

TEST_F(Npy, WhatIsNoFileCannotBeLoaded) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& bad : {path("missing.npy"), directory_.string(), path("pipe"),
                                 std::string("/dev/null"), std::string("a\0b", 3)}) {
    try {
      load_npy(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file) << bad;
    }
  }
}

// --- Writes that fail ---

TEST_F(Npy, AFullDiskLeavesTheOldFileWhole) {
  const Tensor old = from_vector(expected(DType::f64, 24), {4, 6});
  const Tensor large = zeros({1000, 1000});
  save_npy(path("x.npy"), old);
  const std::string before = read_bytes(path("x.npy"));
  for (const rlim_t limit : {0, 1, 127, 128, 129, 4096, 3'999'999, 4'000'127}) {
    SCOPED_TRACE(limit);
    ErrorKind kind = ErrorKind::value;
    std::string what;
    {
      const FileSizeLimit full(limit);
      kind = kind_of_save(path("x.npy"), large, &what);
    }
    EXPECT_EQ(kind, ErrorKind::file);
    EXPECT_NE(what.find("x.npy"), std::string::npos) << what;
    EXPECT_EQ(read_bytes(path("x.npy")), before);
    EXPECT_EQ(listing(), std::vector<std::string>{"x.npy"});
  }
  {
    const FileSizeLimit enough(4'000'128);
    save_npy(path("x.npy"), large);
  }
  EXPECT_EQ(load_npy(path("x.npy")).shape(), (Shape{1000, 1000}));
}

TEST_F(Npy, TargetsThatCannotBeReplaced) {
  fs::create_directory(path("directory"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("circle", path("circle"));
  fs::create_symlink("missing/x.npy", path("to_missing"));
  const auto before = listing();
  const std::string long_name(300, 'x');
  for (const std::string& bad :
       {path("missing/x.npy"), path("pipe/x.npy"), path("directory"), path("directory/"),
        path("pipe"), path("circle"), path("to_missing"), path(long_name), std::string(),
        path("x.npy") + std::string("\0.npy", 5)}) {
    SCOPED_TRACE(bad);
    EXPECT_EQ(kind_of_save(bad, zeros({2})), ErrorKind::file);
  }
  EXPECT_EQ(listing(), before);
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(Npy, PermissionsAndLinksAreKept) {
  const mode_t mask = ::umask(027);
  save_npy(path("x.npy"), zeros({2}));
  ::umask(mask);
  const auto mode = [&](const std::string& name) {
    return static_cast<unsigned>(fs::status(path(name)).permissions());
  };
  EXPECT_EQ(mode("x.npy"), 0640u);
  fs::permissions(path("x.npy"), fs::perms(0602));
  fs::create_symlink("x.npy", path("link.npy"));
  save_npy(path("link.npy"), ones({3}));
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_EQ(mode("x.npy"), 0602u);
  EXPECT_EQ(load_npy(path("x.npy")).to_vector<double>(), (std::vector<double>{1, 1, 1}));
}

TEST_F(Npy, ADirectoryThatCannotBeListedIsWrittenTo) {
  fs::create_directory(path("closed"));
  fs::permissions(path("closed"), fs::perms(0333));
  fs::permissions(path(""), fs::perms(0755));
  const pid_t child = ::fork();
  if (child == 0) {  // as a user whom permissions bind
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    try {
      save_npy(path("closed/x.npy"), ones({3}));
      save_npy(path("closed/x.npy"), ones({4}));
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  fs::permissions(path("closed"), fs::perms(0755));
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(load_npy(path("closed/x.npy")).numel(), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("closed")), {}), 1);
}

TEST_F(Npy, LinksToFilesThatDoNotExistYet) {
  fs::create_directory(path("data"));
  fs::create_symlink("data/x.npy", path("relative"));
  fs::create_symlink("relative", path("twice"));
  fs::create_symlink(path("data/y.npy"), path("absolute"));
  save_npy(path("twice"), ones({3}));
  save_npy(path("absolute"), ones({4}));
  EXPECT_TRUE(fs::is_symlink(path("twice")) && fs::is_symlink(path("relative")) &&
              fs::is_symlink(path("absolute")));
  EXPECT_EQ(load_npy(path("data/x.npy")).numel(), 3);
  EXPECT_EQ(load_npy(path("data/y.npy")).numel(), 4);
}

TEST_F(Npy, RelativePaths) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  save_npy("here.npy", ones({3}));
  fs::current_path(before);
  EXPECT_EQ(load_npy(path("here.npy")).numel(), 3);
}

}  // namespace
}  // namespace ein
