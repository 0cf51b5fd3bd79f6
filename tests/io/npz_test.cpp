// .npz files: archives that NumPy and other zip tools wrote (data/npy, by make_npz.py), archives of
// our own, and enemies: members that overlap, lie, or stand for more than they can.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <ein/create.hpp>
#include <ein/npz.hpp>
#include "io/crc32.hpp"
#include "io/deflate.hpp"
#include "io/zip.hpp"
#include "support/expect_error.hpp"
#include "support/loaded_bytes.hpp"
#include "support/seeds.hpp"

namespace ein {
namespace {

using test::read_bytes;

std::string fixture(const std::string& name) {
  return std::string(EIN_TEST_DATA) + "/npy/" + name + ".npz";
}

std::vector<std::string> names_of(const StateDict& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, x] : tensors) names.push_back(name);
  return names;
}

void expect_same(const Tensor& x, const Tensor& y) {
  EXPECT_EQ(x.dtype(), y.dtype());
  EXPECT_EQ(x.shape(), y.shape());
  const Tensor a = x.contiguous(), b = y.contiguous();
  EXPECT_TRUE(a.nbytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0);
}

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  test::expect_error(f, kind, {part});
}

class Npz : public test::LoadedBytes<load_npz, NpzOptions> {
 protected:
  Npz() : LoadedBytes("load_npz", ".npz", {{}}) {}
};

// --- What others wrote ---

void expect_fixture(const StateDict& tensors) {
  const std::vector<double> six{0, 1, 2, 3, 4, 5};
  expect_same(tensors.at("x"), from_vector(six, {2, 3}).to(DType::f32));
  expect_same(tensors.at("columns"), from_vector(six, {2, 3}).to(DType::i16));
  expect_same(tensors.at("flags"), from_vector(std::vector<double>{1, 0, 1}).to(DType::boolean));
  expect_same(tensors.at("none"), zeros({0, 3}, DType::u8));
  expect_same(tensors.at("scalar"), from_vector(std::vector<double>{2.5}, {}));
  expect_same(tensors.at("deep/er name é"),
              from_vector(std::vector<double>{0, 1, 2}).to(DType::c64));
}

TEST_F(Npz, LoadsWhatNumpyWrote) {
  const StateDict stored = load_npz(fixture("stored"));
  EXPECT_EQ(stored.size(), 6u);
  expect_fixture(stored);
  EXPECT_TRUE(load_npz(fixture("empty")).empty());
}

TEST_F(Npz, CompressedMembers) {
  if (!io::can_deflate()) {
    expect_error(ErrorKind::file, "was built without zlib",
                 [] { load_npz(fixture("compressed")); });
    expect_error(ErrorKind::value, "was built without zlib", [&] {
      save_npz(path("x.npz"), {{"x", ones({2})}}, {.compress = true});
    });
    return;
  }
  const StateDict compressed = load_npz(fixture("compressed"));
  EXPECT_EQ(compressed.size(), 7u);
  expect_fixture(compressed);
  expect_same(compressed.at("zeros"), zeros({10'000}, DType::f64));
  expect_same(load_npz(fixture("streamed")).at("x"), compressed.at("x"));

  const StateDict others = load_npz(fixture("others"));
  EXPECT_EQ(names_of(others),
            (std::vector<std::string>{"folder/notes.txt", "folder/vector", "without_suffix"}));
  EXPECT_EQ(others.at("folder/notes.txt").dtype(), DType::u8);
  EXPECT_EQ(others.at("folder/notes.txt").to_vector<int>(),
            (std::vector<int>{'n', 'o', ' ', 'a', 'r', 'r', 'a', 'y'}));
  EXPECT_EQ(others.at("folder/vector").shape(), Shape{5});
  expect_same(others.at("folder/vector"), others.at("without_suffix"));
}

TEST_F(Npz, SomeOfTheNames) {
  expect_error(ErrorKind::file, "words.npy\" has the dtype '<U3', strings",
               [] { load_npz(fixture("unknown_dtype")); });
  EXPECT_EQ(names_of(load_npz(fixture("unknown_dtype"), {.only = {"x"}})),
            std::vector<std::string>{"x"});
  expect_error(ErrorKind::file, "has no member 'y.npy'", [] {
    load_npz(fixture("unknown_dtype"), {.only = {"y", "x"}});
  });
}

// --- Saving ---

StateDict random_tensors(std::mt19937& random) {
  StateDict tensors;
  for (unsigned i = random() % 6; i > 0; --i) {
    const DType dtypes[] = {DType::f32, DType::i8, DType::boolean, DType::c128};
    Tensor x = zeros({random() % 4, random() % 50}, dtypes[random() % 4]);
    auto* bytes = static_cast<unsigned char*>(x.raw_data());
    const unsigned values = random() % 2 == 0 ? 2 : 256;
    if (x.dtype() == DType::boolean || random() % 2 == 0) {
      for (std::size_t k = 0; k < x.nbytes(); ++k)
        bytes[k] =
            static_cast<unsigned char>(random() % (x.dtype() == DType::boolean ? 2 : values));
    }
    tensors.emplace("n" + std::to_string(random() % 100) + (random() % 3 == 0 ? "/ü" : ""), x);
  }
  return tensors;
}

TEST_F(Npz, RandomTensorsSurviveTheRoundTrip) {
  test::for_seeds(100, [&](unsigned seed) {
    std::mt19937 random(seed);
    const StateDict tensors = random_tensors(random);
    save_npz(path("x.npz"), tensors, {.compress = io::can_deflate() && random() % 2 == 0});
    const StateDict back = load_npz(path("x.npz"));
    ASSERT_EQ(names_of(back), names_of(tensors));
    for (const auto& [name, x] : tensors) expect_same(back.at(name), x);
    const std::string bytes = read_bytes(path("x.npz"));
    save_npz(path("x.npz"), tensors, {.compress = false});
    save_npz(path("y.npz"), tensors, {.compress = false});
    EXPECT_EQ(read_bytes(path("x.npz")), read_bytes(path("y.npz")));
  });
}

// The same records with any limit as with that of 32 bits, from which on files are too large for a
// test.
TEST_F(Npz, SizesOf64Bits) {
  const std::string text(1000, 'x');
  for (const std::uint64_t limit : {0, 1, 100, 1000, 1001, 1090, 5000}) {
    for (const bool compress : {false, io::can_deflate()}) {
      io::ZipWriter writer("test", path("x.zip"), limit);
      for (const std::string name : {"a", "b", "c"})
        writer.add(name, {{text.data(), 600}, {text.data(), 400}}, compress);
      writer.commit();
      const io::InputFile file("test", path("x.zip"));
      const auto members = io::read_zip(file);
      ASSERT_EQ(members.size(), 3u) << limit;
      for (const auto& member : members) EXPECT_EQ(io::open_member(file, member)->read(1000), text);
    }
  }
}

TEST_F(Npz, WhatCannotBeSaved) {
  save_npz(path("x.npz"), {{"x", ones({2})}});
  const std::string before = read_bytes(path("x.npz"));
  const auto refuse = [&](ErrorKind kind, const std::string& text, const StateDict& tensors) {
    expect_error(kind, text, [&] { save_npz(path("x.npz"), tensors); });
    EXPECT_EQ(read_bytes(path("x.npz")), before);
    EXPECT_EQ(scratch_.listing(), std::vector<std::string>{"x.npz"});
  };
  refuse(ErrorKind::dtype, "save_npz: NumPy has no bf16", {{"x", ones({2}, DType::bf16)}});
  refuse(ErrorKind::rank, "save_npz: NumPy's arrays", {{"x", ones(Shape(65, 1))}});
  for (const std::string& name :
       {std::string(), std::string("a\0b", 3), std::string("\xff"), std::string(65'001, 'a')})
    refuse(ErrorKind::value, "save_npz: the name '", {{"a", ones({2})}, {name, ones({2})}});
  const Tensor large = ones({1000});
  for (const rlim_t limit : {0, 1, 40, 200, 4200}) {
    const test::FileSizeLimit full(limit);
    refuse(ErrorKind::file, "x.npz\" cannot be written", {{"x", large}});
  }
}

// --- Enemies ---

TEST_F(Npz, Checksums) {
  EXPECT_EQ(io::crc32(0, "", 0), 0u);
  EXPECT_EQ(io::crc32(0, "123456789", 9), 0xcbf43926u);  // the check value of CRC-32/ISO-HDLC
  std::string text(1000, '\0');
  std::iota(text.begin(), text.end(), '\0');
  for (std::size_t cut = 0; cut <= 40; ++cut)
    EXPECT_EQ(io::crc32(io::crc32(0, text.data(), cut), text.data() + cut, text.size() - cut),
              io::crc32(0, text.data(), text.size()));
}

TEST_F(Npz, CutAnywhere) {
  for (const char* name : {"stored", "empty", "compressed"}) {
    const std::string good = read_bytes(fixture(name));
    for (std::size_t n = 0; n < good.size(); ++n)
      ASSERT_FALSE(try_load(good.substr(0, n))) << name << " cut at " << n;
  }
}

// A changed byte is found, unless it says nothing of the content: times, versions, attributes, or
// the name that the directory and the member would have to change together.
TEST_F(Npz, AnyByteChanged) {
  for (const char* name : {"stored", "compressed"}) {
    if (name == std::string("compressed") && !io::can_deflate()) continue;
    const std::string good = read_bytes(fixture(name));
    const std::size_t directory = good.find("PK\x01\x02");
    std::size_t refused = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
      const auto loaded = try_load(bytes);
      refused += !loaded;
      if (!loaded) continue;
      EXPECT_EQ(loaded->size(), name == std::string("stored") ? 6u : 7u);
      expect_fixture(*loaded);
    }
    EXPECT_GT(refused, directory * 3 / 4) << name;
  }
}

/// A stored archive of these members, which a test then spoils.
std::string archive(const std::string& path, const std::vector<std::string>& names) {
  io::ZipWriter writer("test", path);
  for (const std::string& name : names) writer.add(name, {{"content", 7}}, false);
  writer.commit();
  return read_bytes(path);
}
/// Writes a number at `at`, little-endian.
void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes.at(at + i) = static_cast<char>(value >> (8 * i));
}

TEST_F(Npz, DirectoriesThatLie) {
  const std::string good = archive(path("made"), {"aaaa", "bbbb"});
  ASSERT_TRUE(try_load(good));
  const std::size_t second = 30 + 4 + 7, directory = 2 * second, entry = 46 + 4,
                    end = directory + 2 * entry;
  const auto refuse = [&](const std::string& reason, std::size_t at, std::uint64_t value,
                          std::size_t count) {
    std::string bytes = good;
    put(bytes, at, value, count);
    expect_refused(bytes, reason);
  };
  refuse("has a member 'bbbb' that shares bytes with another", directory + entry + 42, 0, 4);
  refuse("has a member 'aaaa' that has another name in its own header", directory + 42, second, 4);
  refuse("has a member 'bbbb' that is not in the file", directory + entry + 42, 1 << 30, 4);
  refuse("has a member 'bbbb' that is not where the directory says", directory + entry + 42,
         second + 1, 4);
  refuse("has a member 'bbbb' that is cut off", second + 28, 4, 2);  // an extra field in the data
  refuse("that has another name in its own header", second + 30, 'x', 1);
  refuse("has a member 'bbbb' that is encrypted", directory + entry + 8, 1, 2);
  refuse("compressed by method 12;", directory + entry + 10, 12, 2);
  refuse("of 8 bytes, which the 7 in the archive cannot be", directory + entry + 24, 8, 4);
  refuse("bbbb\" is damaged: its checksum", directory + entry + 16, 0, 4);
  refuse("its directory has something other than a member", directory + entry, 'x', 1);
  refuse("it is a part of an archive", end + 8, 1, 2);
  refuse("its directory does not end before", end + 16, directory + 1, 4);
  refuse("is no archive, or is cut off", end, 0, 1);
  expect_refused(archive(path("made"), {"same", "same"}), "has a member 'same' twice");
  expect_refused(archive(path("made"), {"same", "same.npy"}), "same.npy\" is not a .npy file");
  expect_refused(archive(path("made"), {"\xff"}), "has a member '\\xff' whose name is not UTF-8");
  expect_refused(archive(path("made"), {std::string("a\0b", 3)}), "has a NUL byte");
  expect_refused("\x93NUMPY", "is no archive");
  EXPECT_TRUE(try_load(archive(path("made"), {"folder/"}))->empty());
}

TEST_F(Npz, Bombs) {
  if (!io::can_deflate()) {  // a member that is not decompressed is refused, whatever its size
    std::string bytes = read_bytes(fixture("compressed"));
    put(bytes, bytes.find("PK\x01\x02") + 24, 0xfffffffe, 4);
    EXPECT_FALSE(try_load(bytes));
    return;
  }
  io::ZipWriter writer("test", path("made"));
  writer.add("x", {{std::string(1 << 20, '\0').data(), 1 << 20}}, true);
  writer.commit();
  const std::string good = read_bytes(path("made"));
  EXPECT_LT(good.size(), 2000u);
  ASSERT_TRUE(try_load(good)) << what_;
  const std::size_t directory = good.find("PK\x01\x02");
  const auto with_size = [&](std::uint64_t size) {
    std::string bytes = good;
    put(bytes, directory + 24, size, 4);
    return bytes;
  };
  // No more is asked of the system than the bytes can stand for, and no less is taken.
  expect_refused(with_size(0xfffffffe), "in the archive cannot be");
  expect_refused(with_size((1 << 20) + 1), "it stands for fewer bytes than its archive says");
  expect_refused(with_size((1 << 20) - 1), "its checksum is not that of its bytes");
  std::string bytes = good;
  put(bytes, directory + 20, 100, 4);  // compressed bytes
  expect_refused(bytes, "in the archive cannot be");
}

}  // namespace
}  // namespace ein
