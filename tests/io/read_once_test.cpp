// Files that strangers can write to, read without being mapped: each byte is read once, so what was
// checked is what is used, and what happens to the file afterwards changes nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <ein/checkpoint_files.hpp>
#include <ein/create.hpp>
#include <ein/data.hpp>
#include <ein/mesh.hpp>
#include <ein/npy.hpp>
#include <ein/npz.hpp>
#include <ein/safetensors.hpp>

#include "support/scratch.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t elements = 1 << 18;

/// Saves and loads the numbers from 0 on, of which a loader gives the last.
struct Loader {
  const char* name;
  std::function<void(const std::string& path, const Tensor& x)> save;
  std::function<Tensor(const std::string& path)> load;
};

std::vector<Loader> loaders() {
  const auto tensor = [](Checkpoint checkpoint) { return checkpoint.tensors.at("x"); };
  const auto shards = [](const std::string& path, const Tensor& x) {
    save_checkpoint(Mesh({{"data", 2}}), path, 1, {{"x", x}, {"y", x}});
  };
  const auto file = [](const std::string& path, const Tensor& x) {
    save_checkpoint(path, 1, {{"x", x}, {"flags", ones({3}, DType::boolean)}, {"none", ones({0})}});
  };
  return {
      {"load_npy", save_npy, [](const std::string& path) { return load_npy(path); }},
      {"load_npz",
       [](const std::string& path, const Tensor& x) {
         save_npz(path, {{"x", x}});
       },
       [](const std::string& path) { return load_npz(path).at("x"); }},
      {"load_safetensors",
       [](const std::string& path, const Tensor& x) {
         save_safetensors(path, {{"x", x}, {"flags", ones({3}, DType::boolean)}});
       },
       [](const std::string& path) {
         return load_safetensors(path, {.mmap = false}).tensors.at("x");
       }},
      {"load_checkpoint of a directory", file,
       [=](const std::string& path) { return tensor(load_checkpoint(path, {.mmap = false})); }},
      {"load_checkpoint of a file", file,
       [=](const std::string& path) {
         return tensor(load_checkpoint(path + "/step-000001.safetensors", {.mmap = false}));
       }},
      {"load_checkpoint of shards", shards,
       [=](const std::string& path) { return tensor(load_checkpoint(path, {.mmap = false})); }},
      {"load_safetensors of an index", shards,
       [](const std::string& path) {
         return load_safetensors(path + "/step-000001/model.safetensors.index.json",
                                 {.mmap = false})
             .tensors.at("x");
       }},
      {"Tokens::open",
       [](const std::string& path, const Tensor& x) {
         save_tokens(path, Tokens(x.to(DType::i64)), TokenType::i32);
       },
       [](const std::string& path) {
         return Tokens::open(path, TokenType::i32, {.mmap = false}).read(0, elements);
       }},
      {"Tokens::open_npy",
       [](const std::string& path, const Tensor& x) { save_npy(path, x.to(DType::i32)); },
       [](const std::string& path) {
         return Tokens::open_npy(path, {.mmap = false}).read(0, elements);
       }},
  };
}

/// Bytes that this process has read of files until now.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  file >> name >> bytes;
  EXPECT_EQ(name, "rchar:") << "this system does not count what is read";
  return bytes;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  return files;
}

TEST(ReadOnce, EveryByteOfWhatIsNotMapped) {
  for (const Loader& loader : loaders()) {
    SCOPED_TRACE(loader.name);
    const test::ScratchDirectory scratch;
    loader.save(scratch.path("x"), arange(elements).to(DType::f32));
    std::uint64_t bytes = 0;
    for (const std::string& file : files_in(scratch.path())) bytes += fs::file_size(file);
    const std::uint64_t before = bytes_read();
    const Tensor x = loader.load(scratch.path("x"));
    const std::uint64_t read = bytes_read() - before;
    EXPECT_GE(read, std::uint64_t{elements * 4});
    // The end of an archive is also where its directory is looked for.
    const std::uint64_t more = std::string(loader.name) == "load_npz" ? 66'000 : 4096;
    EXPECT_LE(read, bytes + more) << bytes << " bytes are there";
    // A mapped file would end the process here.
    for (const std::string& file : files_in(scratch.path())) fs::resize_file(file, 0);
    EXPECT_EQ(x(elements - 1).item(), elements - 1);
    EXPECT_EQ(x(elements / 2).item(), elements / 2);
  }
}

}  // namespace
}  // namespace ein
