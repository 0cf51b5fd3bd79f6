// Files made here byte by byte, as the format's text says, are the oracle. The rest are enemies:
// every rule broken, files cut and changed, writes that fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/safetensors.hpp>

#include "support/loaded_bytes.hpp"

namespace ein {
namespace {

using test::FileSizeLimit;
using test::read_bytes;
using test::write_bytes;

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, const std::string& data = {}) {
  return length_prefix(header.size()) + header + data;
}

std::string bytes_of(const Tensor& x) {
  const Tensor row_major = x.contiguous();
  std::string bytes(row_major.nbytes(), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), row_major.raw_data(), bytes.size());
  return bytes;
}

class SafetensorsTest : public test::LoadedBytes<load_safetensors, SafetensorsOptions> {
 protected:
  SafetensorsTest()
      : LoadedBytes("load_safetensors", ".safetensors", {{.mmap = false}, {.mmap = true}}) {}

  /// A header that holds one tensor "x" of these fields, with 4 bytes of data.
  void refuse_tensor(const std::string& fields, const std::string& reason) {
    SCOPED_TRACE(fields);
    expect_refused(file_of("{\"x\":{" + fields + "}}", "abcd"), reason);
  }
  ErrorKind kind_of_save(const StateDict& tensors, const Metadata& metadata = {}) {
    try {
      save_safetensors(scratch_.path("x.safetensors"), tensors, metadata);
    } catch (const Error& error) {
      what_ = error.what();
      return error.kind();
    }
    ADD_FAILURE() << "saved";
    return ErrorKind::syntax;
  }
};

const std::map<std::string, DType> format_dtypes = {
    {"F64", DType::f64},   {"F32", DType::f32},        {"F16", DType::f16},
    {"BF16", DType::bf16}, {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2},
    {"I64", DType::i64},   {"I32", DType::i32},        {"I16", DType::i16},
    {"I8", DType::i8},     {"U64", DType::u64},        {"U32", DType::u32},
    {"U16", DType::u16},   {"U8", DType::u8},          {"BOOL", DType::boolean}};

// --- Reading ---

TEST_F(SafetensorsTest, ReadsWhatTheFormatSays) {
  // 1.0f and -2.0f, then 258 and -1, little-endian; any blanks and any order of keys.
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x02\x01\x00\x00\xff\xff\xff\xff\x07",
                         17);
  const std::string header =
      "{ \"b\" : {\"shape\":[2,1],\"dtype\":\"I32\",\"data_offsets\":[8,16]},\n"
      "\"__metadata__\":{\"format\":\"pt\",\"\\u00e9\\n\":\"\"},\"none\":{\"dtype\":\"F64\","
      "\"shape\":"
      "[3,0],\"data_offsets\":[16,16]},\"scalar\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":["
      "16,"
      "17]},\"\":{\"data_offsets\":[0,8],\"dtype\":\"F32\",\"shape\":[2]}}   \n";
  for (const bool mmap : {false, true}) {
    const auto file = try_load(file_of(header, data), {.mmap = mmap});
    ASSERT_TRUE(file) << what_;
    ASSERT_EQ(file->tensors.size(), 4u);
    const Tensor& a = file->tensors.at("");
    EXPECT_EQ(a.dtype(), DType::f32);
    EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, -2}));
    const Tensor& b = file->tensors.at("b");
    EXPECT_EQ(b.dtype(), DType::i32);
    EXPECT_EQ(b.shape(), (Shape{2, 1}));
    EXPECT_EQ(b.to_vector<int>(), (std::vector<int>{258, -1}));
    EXPECT_EQ(file->tensors.at("none").shape(), (Shape{3, 0}));
    EXPECT_EQ(file->tensors.at("none").dtype(), DType::f64);
    EXPECT_EQ(file->tensors.at("scalar").rank(), 0u);
    EXPECT_EQ(file->tensors.at("scalar").item<int>(), 7);
    EXPECT_EQ(file->metadata, (Metadata{{"format", "pt"}, {"\u00e9\n", ""}}));
  }
}

TEST_F(SafetensorsTest, FilesWithoutTensors) {
  for (const std::string header : {"{}", "{\"__metadata__\":{}}", "{ }     "}) {
    const auto file = try_load(file_of(header));
    ASSERT_TRUE(file) << what_;
    EXPECT_TRUE(file->tensors.empty());
    EXPECT_TRUE(file->metadata.empty());
  }
}

TEST_F(SafetensorsTest, MappedTensorsAreReadOnlyAndOutliveTheFile) {
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const std::string path = scratch_.path("x.safetensors");
  save_safetensors(path, {{"x", x}, {"y", ones({3}, DType::boolean)}});
  const Safetensors mapped = load_safetensors(path);
  const Tensor& back = mapped.tensors.at("x");
  EXPECT_TRUE(back.storage()->read_only());
  EXPECT_THROW(back.fill(1), Error);
  EXPECT_FALSE(mapped.tensors.at("y").storage()->read_only());
  save_safetensors(path, {});
  std::filesystem::remove(path);
  EXPECT_EQ(back.to_vector<float>(), x.to_vector<float>());

  save_safetensors(path, {{"x", x}});
  const Safetensors copied = load_safetensors(path, {.mmap = false});
  copied.tensors.at("x").fill(1);
  EXPECT_EQ(load_safetensors(path).tensors.at("x").to_vector<float>(), x.to_vector<float>());
}

TEST_F(SafetensorsTest, UnalignedTensorsAreCopied) {
  const std::string header =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]}}";
  const auto file = try_load(file_of(header, std::string("\x05\x01\x02\0\0\0\0\0\0", 9)));
  ASSERT_TRUE(file) << what_;
  EXPECT_EQ(file->tensors.at("b").item<std::int64_t>(), 0x201);
  EXPECT_TRUE(file->tensors.at("a").storage()->read_only());
  EXPECT_FALSE(file->tensors.at("b").storage()->read_only());
}

TEST_F(SafetensorsTest, AnyNonzeroByteIsTrue) {
  const auto file =
      try_load(file_of("{\"x\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[0,4]}}",
                       std::string("\0\1\2\xff", 4)));
  ASSERT_TRUE(file) << what_;
  EXPECT_EQ(bytes_of(file->tensors.at("x")), std::string("\0\1\1\1", 4));
}

// --- Writing ---

TEST_F(SafetensorsTest, WritesWhatTheFormatSays) {
  const std::string path = scratch_.path("x.safetensors");
  const StateDict tensors = {
      {"z", full({}, 3, DType::u8)},    {"b", from_vector(std::vector<float>{1, -2}, {1, 2})},
      {"a\"\n\u00e9", zeros({0, 2})},   {"wide", full({1}, 1, DType::i64)},
      {"c", full({2}, 1, DType::bf16)},
  };
  save_safetensors(path, tensors, {{"k", "v\\"}, {"", "\x01"}});
  std::string header =
      "{\"__metadata__\":{\"\":\"\\u0001\",\"k\":\"v\\\\\"},"
      "\"wide\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
      "\"a\\\"\\n\u00e9\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[8,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]},"
      "\"c\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[16,20]},"
      "\"z\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[20,21]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string data("\1\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xc0\x80\x3f\x80\x3f\3", 21);
  EXPECT_EQ(read_bytes(path), file_of(header, data));
  EXPECT_EQ(scratch_.listing(), std::vector<std::string>{"x.safetensors"});

  save_safetensors(path, {});
  EXPECT_EQ(read_bytes(path), file_of("{}      "));
}

TEST_F(SafetensorsTest, RandomBitsOfEveryDtypeSurvive) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  StateDict tensors;
  for (const auto& [name, dtype] : format_dtypes) {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{7}, Shape{2, 3, 5}, Shape{4, 0, 3}, Shape{9'001}}) {
      const Tensor x = empty(shape, dtype);
      auto* bytes = static_cast<unsigned char*>(x.raw_data());
      const auto mask = static_cast<unsigned char>(dtype == DType::boolean ? 1 : 255);
      std::generate_n(bytes, x.nbytes(), [&] { return random() & mask; });
      tensors.emplace(name + shape.to_string(), x);
    }
  }
  const std::string path = scratch_.path("all.safetensors");
  save_safetensors(path, tensors, {{"seed", "11"}});
  const std::string first = read_bytes(path);
  for (const auto& [name, dtype] : format_dtypes) {
    EXPECT_NE(first.find("\"dtype\":\"" + name + '"'), std::string::npos) << name;
  }
  for (const bool mmap : {false, true}) {
    const Safetensors back = load_safetensors(path, {.mmap = mmap});
    EXPECT_EQ(back.metadata, (Metadata{{"seed", "11"}}));
    ASSERT_EQ(back.tensors.size(), tensors.size());
    for (const auto& [name, x] : tensors) {
      const Tensor& y = back.tensors.at(name);
      EXPECT_EQ(y.dtype(), x.dtype()) << name;
      EXPECT_EQ(y.shape(), x.shape()) << name;
      EXPECT_EQ(bytes_of(y), bytes_of(x)) << name;
      // What ein writes is aligned, so only bool is ever copied.
      EXPECT_EQ(y.storage()->read_only(), mmap && x.dtype() != DType::boolean) << name;
    }
    save_safetensors(path, back.tensors, back.metadata);  // replaces the file that is mapped
    EXPECT_EQ(read_bytes(path), first);
  }
}

TEST_F(SafetensorsTest, StridedTensorsAreSavedRowMajor) {
  const Tensor x = from_vector(std::vector<int>{0, 1, 2, 3, 4, 5}, {2, 3});
  const std::string path = scratch_.path("x.safetensors");
  save_safetensors(path, {{"t", x.transpose()}, {"column", x.at({every, 1})}});
  const Safetensors back = load_safetensors(path);
  EXPECT_EQ(back.tensors.at("t").shape(), (Shape{3, 2}));
  EXPECT_TRUE(back.tensors.at("t").is_contiguous());
  EXPECT_EQ(back.tensors.at("t").to_vector<int>(), (std::vector<int>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(back.tensors.at("column").to_vector<int>(), (std::vector<int>{1, 4}));
}

TEST_F(SafetensorsTest, WhatCannotBeSaved) {
  EXPECT_EQ(kind_of_save({{"__metadata__", zeros({1})}}), ErrorKind::value);
  EXPECT_EQ(kind_of_save({{"\xff", zeros({1})}}), ErrorKind::value);
  EXPECT_NE(what_.find("'\\xff'"), std::string::npos) << what_;
  EXPECT_EQ(kind_of_save({}, {{"k", "\xc0\x80"}}), ErrorKind::value);
  EXPECT_EQ(kind_of_save({}, {{"k\xed\xa0\x80", ""}}), ErrorKind::value);
  EXPECT_EQ(kind_of_save({}, {{"k", std::string(100'000'000, 'x')}}), ErrorKind::value);
  EXPECT_NE(what_.find("100000032 bytes"), std::string::npos) << what_;
  const Tensor huge(Storage::allocate(1), DType::u8, {std::int64_t{1} << 62}, {0});
  EXPECT_EQ(kind_of_save({{"a", huge}, {"b", huge}}), ErrorKind::overflow);
  EXPECT_TRUE(scratch_.listing().empty());
}

TEST_F(SafetensorsTest, AFullDiskLeavesTheOldFileWhole) {
  const std::string path = scratch_.path("x.safetensors");
  save_safetensors(path, {{"old", ones({3})}});
  const std::string before = read_bytes(path);
  const StateDict large = {{"a", zeros({10'000})}, {"b", zeros({100}, DType::f64)}};
  for (const rlim_t limit : {0, 1, 7, 8, 9, 100, 136, 935, 936, 937, 20'000, 40'935}) {
    SCOPED_TRACE(limit);
    ErrorKind kind = ErrorKind::value;
    {
      const FileSizeLimit full(limit);
      kind = kind_of_save(large);
    }
    EXPECT_EQ(kind, ErrorKind::file);
    EXPECT_EQ(read_bytes(path), before);
    EXPECT_EQ(scratch_.listing(), std::vector<std::string>{"x.safetensors"});
  }
}

// --- Rules, broken one by one ---

TEST_F(SafetensorsTest, HeaderLengths) {
  expect_refused("", "fewer than 8 bytes");
  expect_refused("1234567", "fewer than 8 bytes");
  expect_refused(length_prefix(0), "does not begin with '{'");
  expect_refused(length_prefix(1), "is cut off");
  expect_refused(length_prefix(3) + "{}", "is cut off");
  expect_refused(length_prefix(100'000'000) + "{}", "is cut off");
  expect_refused(length_prefix(100'000'001) + "{}", "at most 100000000");
  expect_refused(length_prefix(UINT64_MAX) + "{}", "18446744073709551615 bytes");
  expect_refused(length_prefix(UINT64_MAX - 7) + "{}", "at most 100000000");  // + 8 is 0
}

TEST_F(SafetensorsTest, HeadersThatAreNoObject) {
  const std::string no_brace = "does not begin with '{'", no_json = "no JSON in UTF-8 at byte";
  for (const std::string header : {" {}", "[]", "null", "\xef\xbb\xbf{}"}) {
    expect_refused(file_of(header), no_brace);
  }
  for (const std::string header :
       {"{", "{}}", "{},", "{}{}", "{\"a\"}", "{,}", "{\"__metadata__\":{},}", "{'a':{}}", "{} //",
        "{\"__metadata__\":{\"a\":\"\xff\"}}", "{\"__metadata__\":{\"a\":\"\xc0\xaf\"}}",
        "{\"__metadata__\":{\"a\":\"\xed\xa0\x80\"}}", "{\"__metadata__\":{\"\\ud800\":\"\"}}",
        "{\"__metadata__\":{\"a\nb\":\"\"}}", "{\"__metadata__\":{\"\\x\":\"\"}}"}) {
    SCOPED_TRACE(header);
    expect_refused(file_of(header), no_json);
  }
  expect_refused(file_of(std::string("{}\0", 3)), "NUL byte at byte 2");
  expect_refused(file_of(std::string("{}\0garbage", 10)), "NUL byte at byte 2");
}

TEST_F(SafetensorsTest, Metadata) {
  for (const std::string value : {"1", "-1", "1.5", "null", "true", "[]"}) {
    expect_refused(file_of("{\"__metadata__\":{\"k\":" + value + "}}"), "a string is wanted");
    expect_refused(file_of("{\"__metadata__\":" + value + "}"), "an object is wanted");
  }
  expect_refused(file_of("{\"__metadata__\":{\"k\":{}}}"), "a string is wanted");
  expect_refused(file_of("{\"__metadata__\":\"\"}"), "an object is wanted");
  expect_refused(file_of("{\"__metadata__\":{\"k\":\"a\",\"k\":\"a\"}}"), "the metadata 'k' twice");
  expect_refused(file_of("{\"__metadata__\":{},\"__metadata__\":{}}"),
                 "the key '__metadata__' twice");
  // A tensor of that name is metadata that are no strings.
  expect_refused(
      file_of("{\"__metadata__\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "abcd"),
      "a string is wanted");
}

TEST_F(SafetensorsTest, Fields) {
  const std::string good = "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]";
  EXPECT_TRUE(try_load(file_of("{\"x\":{" + good + "}}", "abcd"))) << what_;
  refuse_tensor("", "no dtype");
  refuse_tensor("\"dtype\":\"F32\",\"shape\":[1]", "no data_offsets");
  refuse_tensor("\"dtype\":\"F32\",\"data_offsets\":[0,4]", "no shape");
  refuse_tensor("\"shape\":[1],\"data_offsets\":[0,4]", "no dtype");
  refuse_tensor(good + ",\"dtype\":\"F32\"", "the field 'dtype' twice");
  refuse_tensor(good + ",\"shape\":[1]", "the field 'shape' twice");
  refuse_tensor(good + ",\"data_offsets\":[0,4]", "the field 'data_offsets' twice");
  refuse_tensor(good + ",\"strides\":[1]", "the field 'strides'");
  expect_refused(file_of("{\"x\":{" + good + "},\"x\":{" + good + "}}", "abcd"),
                 "the key 'x' twice");
  // The same key in other letters.
  expect_refused(file_of("{\"x\":{" + good + "},\"\\u0078\":{" + good + "}}", "abcd"),
                 "the key 'x' twice");
  for (const std::string value : {"1", "-1", "null", "\"F32\"", "[]", "false", "0.5"}) {
    expect_refused(file_of("{\"x\":" + value + "}", "abcd"), "an object is wanted");
  }
}

TEST_F(SafetensorsTest, TensorsOfDtypesThatEinLacksAreBytes) {
  const std::string header =
      "{\"scales\":{\"dtype\":\"F8_E8M0\",\"shape\":[1,3],\"data_offsets\":[4,7]},"
      "\"four\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[7,10]},"
      "\"later\":{\"dtype\":\"X9_Y\",\"shape\":[5],\"data_offsets\":[10,12]},"
      "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  for (const bool mmap : {false, true}) {
    const auto file =
        try_load(file_of(header, std::string("\0\0\x80?abcdefgh", 12)), {.mmap = mmap});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->tensors.size(), 1u);
    EXPECT_EQ(file->tensors.at("x").item<float>(), 1);
    ASSERT_EQ(file->foreign.size(), 3u);
    const ForeignTensor& scales = file->foreign.at("scales");
    EXPECT_EQ(scales.dtype, "F8_E8M0");
    EXPECT_EQ(scales.shape, (Shape{1, 3}));
    EXPECT_EQ(scales.bytes.dtype(), DType::u8);
    EXPECT_EQ(scales.bytes.to_vector<int>(), (std::vector<int>{'a', 'b', 'c'}));
    EXPECT_EQ(file->foreign.at("four").shape, (Shape{2, 3}));
    EXPECT_EQ(file->foreign.at("four").bytes.to_vector<int>(), (std::vector<int>{'d', 'e', 'f'}));
    EXPECT_EQ(file->foreign.at("later").bytes.numel(), 2);
  }
  const auto refuse = [&](const std::string& dtype, const std::string& shape,
                          const std::string& reason) {
    refuse_tensor("\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[0,4]",
                  reason);
  };
  refuse("F8_E8M0", "3", "4 bytes; shape (3,) of F8_E8M0 needs 3");
  refuse("F4", "7", "elements that do not fill their last byte");
  refuse("F4", "6", "4 bytes; shape (6,) of F4 needs 3");
  refuse("F6_E2M3", "4", "4 bytes; shape (4,) of F6_E2M3 needs 3");
  refuse("F4", "4611686018427387904,4", "an impossible size");
  refuse("X9", "4611686018427387904,4", "an impossible size");
}

TEST_F(SafetensorsTest, Dtypes) {
  const auto refuse = [&](const std::string& value, const std::string& reason) {
    refuse_tensor("\"dtype\":" + value + ",\"shape\":[1],\"data_offsets\":[0,4]", reason);
  };
  for (const std::string& name : {std::string("f32"), std::string(), std::string("F32 "),
                                  std::string("8F"), std::string(33, 'F')}) {
    refuse('"' + name + '"', "the dtype '" + name.substr(0, 40) + "', which is no name of one");
  }
  refuse("32", "a number as its dtype");
  refuse("[\"F32\"]", "an array as its dtype");
  refuse("{}", "an object as its dtype");
  refuse("null", "null as its dtype");
}

TEST_F(SafetensorsTest, Shapes) {
  const auto refuse = [&](const std::string& shape, const std::string& reason) {
    refuse_tensor("\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[0,4]", reason);
  };
  refuse("1", "a number as its shape");
  refuse("\"1\"", "a string as its shape");
  refuse("{}", "an object as its shape");
  refuse("[-1]", "a negative number in its shape");
  refuse("[1.0]", "not whole");
  refuse("[1e0]", "not whole");
  refuse("[\"1\"]", "a string in its shape");
  refuse("[null]", "null in its shape");
  refuse("[[1]]", "an array in its shape");
  refuse("[01]", "no JSON");
  refuse("[2]", "4 bytes; shape (2,) of f32 needs 8");
  refuse("[0]", "4 bytes; shape (0,) of f32 needs 0");
  refuse("[9223372036854775808]", "exceeds 2^63 - 1");
  refuse("[18446744073709551616]", "not whole or too large");
  refuse("[1e999]", "no JSON");
  // Products that come back to 1 modulo 2^64, or to 0 elements.
  refuse("[9223372036854775807,9223372036854775807]", "needs more than 2^63 - 1 bytes");
  refuse("[4294967296,4294967296]", "needs more than 2^63 - 1 bytes");
  refuse("[2305843009213693952]", "needs more than 2^63 - 1 bytes");
  refuse("[4611686018427387904,4,0]", "needs more than 2^63 - 1 bytes");
  std::string ones = "1";
  for (int i = 1; i < 1024; ++i) ones += ",1";
  const auto deep = try_load(file_of(
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[" + ones + "],\"data_offsets\":[0,4]}}", "abcd"));
  ASSERT_TRUE(deep) << what_;
  EXPECT_EQ(deep->tensors.at("x").rank(), 1024u);
  refuse('[' + ones + ",1]", "more than 1024 dimensions");
}

TEST_F(SafetensorsTest, Offsets) {
  const auto refuse = [&](const std::string& offsets, const std::string& reason) {
    refuse_tensor("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":" + offsets, reason);
  };
  refuse("[]", "fewer than two");
  refuse("[4]", "fewer than two");
  refuse("[0,4,4]", "more than two");
  refuse("4", "a number as its data_offsets");
  refuse("[0,\"4\"]", "a string in its data_offsets");
  refuse("[-4,0]", "a negative number in its data_offsets");
  refuse("[0,4.0]", "not whole");
  refuse("[4,0]", "go backwards");
  refuse("[18446744073709551612,0]", "go backwards");
  refuse("[0,18446744073709551615]", "18446744073709551615 bytes; shape (1,) of f32 needs 4");
  refuse("[4,8]", "a hole");
  refuse("[0,3]", "3 bytes; shape (1,) of f32 needs 4");
  refuse("[0,8]", "8 bytes; shape (1,) of f32 needs 4");
}

TEST_F(SafetensorsTest, TensorsFillTheFileExactly) {
  const auto entry = [](const std::string& name, int begin, int end) {
    return '"' + name + "\":{\"dtype\":\"U8\",\"shape\":[" +
           std::to_string(std::max(end - begin, 0)) + "],\"data_offsets\":[" +
           std::to_string(begin) + ',' + std::to_string(end) + "]}";
  };
  const auto two = [&](int b0, int e0, int b1, int e1) {
    return file_of('{' + entry("x", b0, e0) + ',' + entry("y", b1, e1) + '}', "abcd");
  };
  EXPECT_TRUE(try_load(two(0, 2, 2, 4))) << what_;
  EXPECT_TRUE(try_load(two(1, 4, 0, 1))) << what_;
  EXPECT_TRUE(try_load(two(0, 0, 0, 4))) << what_;
  EXPECT_TRUE(try_load(two(0, 4, 4, 4))) << what_;
  expect_refused(two(0, 2, 3, 4), "a hole");
  expect_refused(two(1, 2, 2, 4), "a hole");
  expect_refused(two(0, 3, 2, 4), "an overlap");
  expect_refused(two(0, 4, 0, 4), "an overlap");
  expect_refused(two(0, 4, 2, 2), "an overlap");
  expect_refused(two(0, 2, 2, 3), "has 4 bytes after its header; its tensors have 3");
  expect_refused(two(0, 2, 2, 5), "has 4 bytes after its header; its tensors have 5");
  expect_refused(file_of("{}", "a"), "has 1 bytes after its header; its tensors have 0");
}

TEST_F(SafetensorsTest, DepthCostsNothing) {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string deep = "{\"a\":";
    for (int i = 0; i < 1'000'000; ++i) deep += open;
    EXPECT_FALSE(try_load(file_of(deep)));
  }
}

// --- Damage ---

/// A file in which most kinds of bytes occur.
std::string some_file() {
  const std::string header =
      "{\"__metadata__\":{\"k\":\"\u00e9\\n\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_"
      "offsets\":"
      "[0,8]},\"b\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[8,10]}} ";
  std::string text = header;
  text.replace(text.find("I16"), 3, "F16");
  return file_of(text, "01234567ab");
}

TEST_F(SafetensorsTest, TruncatedOrExtendedAnywhere) {
  const std::string good = some_file();
  ASSERT_TRUE(try_load(good)) << what_;
  for (std::size_t n = 0; n < good.size(); ++n) {
    for (const bool mmap : {false, true}) {
      ASSERT_FALSE(try_load(good.substr(0, n), {.mmap = mmap})) << "cut at " << n;
    }
  }
  expect_refused(good + '\0', "bytes after its header");
}

TEST_F(SafetensorsTest, AnyHeaderByteChangedToAnyOther) {
  const std::string good = some_file();
  const std::size_t header_end = good.size() - 10;
  int loaded = 0;
  for (std::size_t i = 0; i < header_end; ++i) {
    std::string bytes = good;
    for (int change = 1; change < 256; ++change) {
      bytes[i] = static_cast<char>(good[i] ^ change);
      const auto file = try_load(bytes, {.mmap = (i + static_cast<std::size_t>(change)) % 2 == 0});
      if (!file) continue;
      ++loaded;
      std::size_t total = 0;
      for (const auto& [name, x] : file->tensors) total += bytes_of(x).size();
      for (const auto& [name, x] : file->foreign) total += x.bytes.nbytes();
      ASSERT_EQ(total, 10u) << "byte " << i << " ^ " << change;
    }
  }
  EXPECT_GT(loaded, 0);  // other names, other metadata, other dtypes of the same width
}

TEST_F(SafetensorsTest, WhatIsNoFileCannotBeLoaded) {
  for (const std::string& bad : {scratch_.path("missing"), scratch_.path().string(),
                                 std::string("/dev/null"), std::string("a\0b", 3), std::string()}) {
    try {
      load_safetensors(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file) << bad;
    }
  }
}

}  // namespace
}  // namespace ein
