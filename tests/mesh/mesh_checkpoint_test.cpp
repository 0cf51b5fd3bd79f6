// Checkpoints that the processes of a mesh write together. One process stands for all of them;
// mesh_processes_test.cpp runs the first suite on processes that were launched.
#include <ein/checkpoint_files.hpp>

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <ein/create.hpp>
#include <ein/mesh.hpp>

#include "support/expect_error.hpp"
#include "support/launched.hpp"
#include "support/scratch.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using test::get_values;
using test::is_launched;
using Names = std::vector<std::string>;

template <class F>
void expect_error(ErrorKind kind, const std::string& part, F&& f) {
  test::expect_error(std::forward<F>(f), kind, {part});
}

class MeshCheckpointTest : public testing::Test {
 protected:
  MeshCheckpointTest() {
    if (!is_launched()) return;
    // One for all processes, which have the launcher in common.
    directory_ = (fs::temp_directory_path() / ("ein_mesh_" + std::to_string(::getppid()))).string();
    if (mesh_.rank() == 0) fs::remove_all(directory_);
    meet();
  }
  ~MeshCheckpointTest() override {
    meet();
    if (is_launched() && mesh_.rank() == 0) fs::remove_all(directory_);
    meet();
  }
  /// Returns when all processes are here.
  void meet() const { reshard(place(zeros({4}), mesh_, "i@data@model"), "i@data@model -> i"); }

  StateDict whole(std::int64_t step) const {
    const Tensor rows = arange(48).to(DType::f32).reshape({8, 6}) + static_cast<float>(step);
    return {{"model.a", rows},
            {"model.b", arange(24).to(DType::f64).reshape({4, 6})},
            {"model.c", (rows * 0.5F).to(DType::bf16)},
            {"model.d", rows * 2.F},
            {"model.e", rows * 3.F},
            {"optimizer.step", from_vector(std::vector<std::int64_t>{step}, {})}};
  }
  StateDict placed(std::int64_t step) const {
    StateDict tensors = whole(step);
    const auto on_mesh = [&](const char* name, const auto& pattern) {
      tensors.at(name) = place(tensors.at(name), mesh_, pattern);
    };
    on_mesh("model.a", runtime("i@data j@model"));
    on_mesh("model.b", runtime("i@model@data j"));
    on_mesh("model.c", runtime("i j@data"));
    on_mesh("model.d", runtime("i@data j"));
    return tensors;
  }
  std::string save(std::int64_t step, std::int64_t keep_last = 3) const {
    return save_checkpoint(mesh_, directory_, step, placed(step), {{"place", "here"}}, keep_last);
  }
  void expect_whole(const StateDict& tensors, std::int64_t step) const {
    const StateDict wanted = whole(step);
    ASSERT_EQ(tensors.size(), wanted.size());
    for (const auto& [name, tensor] : wanted) {
      EXPECT_EQ(tensors.at(name).shape(), tensor.shape());
      EXPECT_EQ(tensors.at(name).dtype(), tensor.dtype());
      EXPECT_EQ(get_values(tensors.at(name)), get_values(tensor)) << name;
    }
  }
  void expect_whole(const Checkpoint& checkpoint, std::int64_t step) const {
    EXPECT_EQ(checkpoint.step, step);
    EXPECT_EQ(checkpoint.metadata.at("place"), "here");
    expect_whole(checkpoint.tensors, step);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  Names listing(const std::string& of) const {
    Names names;
    for (const auto& entry : fs::directory_iterator(of)) {
      std::string name = entry.path().filename().string();
      // The process that saves has its lock a little longer than the others.
      if (!name.starts_with('.')) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Mesh mesh_ = test::mesh_of({{"data", 2}, {"model", 2}});
  test::ScratchDirectory scratch_;
  std::string directory_ = scratch_.path("run");
};

TEST_F(MeshCheckpointTest, EachProcessWritesAFileOfWholeTensors) {
  const std::string saved = save(12);
  EXPECT_EQ(saved, path("step-000012"));
  const Names shards{"model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                     "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors"};
  Names files = shards;
  files.push_back("model.safetensors.index.json");
  EXPECT_EQ(listing(saved), files);
  EXPECT_EQ(listing(directory_), (Names{"manifest.json", "step-000012"}));

  const Checkpoint loaded = load_checkpoint(directory_);
  expect_whole(loaded, 12);
  EXPECT_EQ(loaded.path, saved);
  EXPECT_EQ(loaded.note, "");
  expect_whole(load_checkpoint(saved), 12);
  expect_whole(load_checkpoint(saved + "/"), 12);
  expect_whole(load_checkpoint(saved + "/" + files.back()), 12);

  // As other programs read it: a tensor is in the file that the index says, and there alone.
  const auto index = nlohmann::json::parse(test::read_bytes(saved + "/" + files.back()));
  std::size_t bytes = 0, largest = 0, count = 0;
  for (const std::string& shard : shards) {
    std::size_t of_shard = 0;
    for (const auto& [name, tensor] : load_safetensors(saved + "/" + shard).tensors) {
      EXPECT_EQ(index["weight_map"][name], shard);
      of_shard += tensor.nbytes();
      ++count;
    }
    bytes += of_shard;
    largest = std::max(largest, of_shard);
  }
  EXPECT_EQ(count, index["weight_map"].size());
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  EXPECT_LE(largest, bytes / 4 + 48 * 4);
  expect_whole(load_safetensors(saved + "/" + files.back()).tensors, 12);
}

TEST_F(MeshCheckpointTest, TheLastFewAreKept) {
  for (std::int64_t step = 1; step <= 3; ++step) save(step, 2);
  EXPECT_EQ(save(3, 2), path("step-000003-2"));
  EXPECT_EQ(listing(directory_), (Names{"manifest.json", "step-000003", "step-000003-2"}));
  expect_whole(load_checkpoint(directory_), 3);
  meet();
  // A file of one process is among them like any other.
  if (mesh_.rank() == 0) save_checkpoint(directory_, 4, whole(4), {{"place", "here"}}, 2);
  meet();
  EXPECT_EQ(listing(directory_),
            (Names{"manifest.json", "step-000003-2", "step-000004.safetensors"}));
  expect_whole(load_checkpoint(directory_), 4);
}

TEST_F(MeshCheckpointTest, WhatFailsOnOneProcessIsAnErrorOnAll) {
  save(1);
  {
    std::optional<test::FileSizeLimit> full;
    if (!is_launched() || mesh_.rank() == 2) full.emplace(150);
    expect_error(ErrorKind::file, "cannot be written", [&] { save(2); });
  }
  meet();
  EXPECT_EQ(listing(directory_), (Names{"manifest.json", "step-000001"}));
  expect_whole(load_checkpoint(directory_), 1);
  expect_error(ErrorKind::value, "step -1 is negative", [&] { save(-1); });
  expect_error(ErrorKind::value, "is taken", [&] {
    save_checkpoint(mesh_, directory_, 1, placed(1), {{"ein.step", "1"}});
  });
  expect_error(ErrorKind::file, "cannot be made",
               [&] { save_checkpoint(mesh_, path("manifest.json"), 1, placed(1)); });
  save(2);
  expect_whole(load_checkpoint(directory_), 2);
}

TEST_F(MeshCheckpointTest, FewTensorsAreInFewFiles) {
  const auto save = [&](const StateDict& tensors) {
    return save_checkpoint(mesh_, directory_, 1, tensors);
  };
  const std::string one = save({{"a", place(ones({4}), mesh_, "i@data")}});
  EXPECT_EQ(listing(one),
            (Names{"model-00001-of-00001.safetensors", "model.safetensors.index.json"}));
  EXPECT_EQ(get_values(load_checkpoint(one).tensors.at("a")), std::vector<double>(4, 1));
  expect_error(ErrorKind::value, "there are no tensors to save", [&] { save({}); });
}

// A mesh of one process has no others to save with.
class CheckpointOfOneProcess : public MeshCheckpointTest {};

TEST_F(CheckpointOfOneProcess, PlacedTensorsAreWhole) {
  const Mesh one({{"data", 1}, {"model", 1}}, "loop");
  const Tensor x = arange(6.0).view({2, 3});
  const StateDict tensors{
      {"rows", place(x, one, "i@data j")}, {"both", place(x, one, "i@model j@data")}, {"whole", x}};
  const StateDict loaded = load_checkpoint(save_checkpoint(one, directory_, 1, tensors)).tensors;
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : loaded) EXPECT_EQ(get_values(tensor), get_values(x)) << name;
}

// What follows damages files, which processes would do at the same time.
class DamagedShards : public MeshCheckpointTest {};

TEST_F(DamagedShards, AreNoticed) {
  save(1);
  const std::string newest = save(2);
  const auto damage = [&](const std::string& name, const std::string& text) {
    SCOPED_TRACE(name + ": " + text.substr(0, 80));
    const std::string file = newest + "/" + name, good = test::read_bytes(file);
    test::write_bytes(file, text);
    const Checkpoint older = load_checkpoint(directory_);
    expect_whole(older, 1);
    EXPECT_NE(older.note.find(newest), std::string::npos) << older.note;
    expect_error(ErrorKind::file, name, [&] { load_checkpoint(newest); });
    test::write_bytes(file, good);
  };
  const std::string shard = "model-00002-of-00004.safetensors",
                    index = "model.safetensors.index.json";
  std::string bytes = test::read_bytes(newest + "/" + shard);
  damage(shard, bytes.substr(0, bytes.size() - 1));
  bytes.back() ^= 1;
  damage(shard, bytes);
  damage(index, "");
  damage(index, "[]");
  damage(index, R"({"weight_map":{"model.a":1}})");
  damage(index, R"({"weight_map":{"model.a":"../step-000001.safetensors"}})");
  damage(index, R"({"weight_map":{"model.a":".safetensors"}})");
  damage(index, R"({"weight_map":{"model.a":"model"}})");
  damage(index, std::string(1000, '['));
  expect_whole(load_checkpoint(directory_), 2);

  // Of an index that says something else than the files.
  const auto refuse = [&](auto change, const std::string& reason) {
    auto json = nlohmann::json::parse(test::read_bytes(newest + "/" + index));
    change(json["weight_map"]);
    const std::string other = newest + "/other.safetensors.index.json";
    test::write_bytes(other, json.dump());
    expect_error(ErrorKind::file, reason, [&] { load_safetensors(other); });
    fs::remove(other);
  };
  refuse([](auto& map) { map.erase("model.a"); },
         "has a tensor 'model.a', which the index does not place there");
  refuse([](auto& map) { map["model.x"] = map["model.a"]; }, "tensors; its index places");
  refuse([](auto& map) { map["model.x"] = "none.safetensors"; }, "cannot be opened");
  fs::remove(newest + "/" + shard);
  expect_whole(load_checkpoint(directory_), 1);
}

TEST_F(DamagedShards, LeftoversOfARunThatDied) {
  save(1);
  // Announced and renamed, and died before the manifest listed it.
  auto manifest = nlohmann::json::parse(test::read_bytes(path("manifest.json")));
  manifest["dropped"].push_back("step-000002");
  test::write_bytes(path("manifest.json"), manifest.dump());
  fs::copy(path("step-000001"), path("step-000002"), fs::copy_options::recursive);
  // And one that somebody else has put there.
  fs::copy(path("step-000001"), path("step-000003"), fs::copy_options::recursive);
  expect_whole(load_checkpoint(directory_), 1);
  EXPECT_EQ(save(3), path("step-000003-2"));
  EXPECT_FALSE(fs::exists(path("step-000002")));
  EXPECT_EQ(save(2), path("step-000002"));
  expect_whole(load_checkpoint(directory_), 2);
}

}  // namespace
}  // namespace ein
