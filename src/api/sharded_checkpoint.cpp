// Checkpoints that the processes of a mesh write together, a file each.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/error.hpp>
#include <ein/mesh.hpp>
#include "api/on_all.hpp"
#include "io/checkpoint_directory.hpp"
#include "io/file.hpp"
#include "io/safetensors_index.hpp"
#include "io/safetensors_writer.hpp"
#include "runtime/mesh.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;

/// About the same bytes of whole tensors for each process; none is empty.
std::vector<StateDict> shards_of(const StateDict& tensors, int processes) {
  std::vector<StateDict::const_pointer> largest_first;
  for (const auto& named : tensors) largest_first.push_back(&named);
  std::ranges::stable_sort(largest_first, std::ranges::greater(),
                           [](auto* named) { return named->second.nbytes(); });
  const std::size_t count = std::min(tensors.size(), static_cast<std::size_t>(processes));
  std::vector<StateDict> shards(count);
  std::vector<std::size_t> bytes(count);
  for (const auto* named : largest_first) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(bytes) - bytes.begin());
    shards[least].insert(*named);
    bytes[least] += named->second.nbytes() + 1;
  }
  return shards;
}

struct Name {
  char text[128] = "";
};

/// A name that f finds on process 0.
template <class F>
std::string from_first(const detail::MeshData& mesh, const F& f) {
  return engine::on_all(mesh,
                        [&] {
                          Name name;
                          if (mesh.here.front().process.rank() == 0)
                            f().copy(name.text, sizeof name.text - 1);
                          return name;
                        })
      .front()
      .text;
}

/// A shard that is written here. What fails is kept until all processes have gathered everything.
class ShardWriter {
 public:
  ShardWriter(const std::string& path, const StateDict& tensors, const Metadata& metadata) {
    attempt([&] { file_.emplace(io::saving, path, tensors, metadata); });
  }
  void write(const Tensor& whole) {
    attempt([&] { file_->write(whole); });
  }
  io::ManifestFile commit() {
    io::ManifestFile written;
    attempt([&] { written = file_->commit(); });
    if (error_) throw *error_;
    return written;
  }

 private:
  template <class F>
  void attempt(const F& f) {
    if (error_) return;
    try {
      f();
    } catch (const Error& error) {
      error_ = error;
    }
  }

  std::optional<io::SafetensorsWriter> file_;
  std::optional<Error> error_;
};

Tensor whole(Tensor tensor, const std::vector<MeshAxis>& axes) {
  for (const MeshAxis& axis : axes) tensor = gather_over(tensor, axis.name);
  return tensor;
}

}  // namespace

std::string save_checkpoint(const Mesh& mesh, const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata,
                            std::int64_t keep_last) {
  const NoGrad no_grad;
  if (mesh.size() == 1)
    return io::save_in_one_file(directory, step, tensors, metadata, keep_last,
                                [&](const Tensor& tensor) { return whole(tensor, mesh.axes()); });
  if (tensors.empty())
    throw Error(ErrorKind::value, std::string(io::saving) + ": there are no tensors to save");
  const detail::MeshData& data = *mesh.impl();
  Metadata described = io::metadata_of_checkpoint(step, metadata, keep_last);
  described.emplace("format", "pt");
  const std::vector<StateDict> shards = shards_of(tensors, mesh.size());

  // The elements of each file, in the order in which they are written.
  std::vector<std::vector<const Tensor*>> order;
  std::size_t longest = 0;
  for (const StateDict& shard : shards) {
    order.push_back(io::layout_safetensors(io::saving, shard, described).tensors);
    longest = std::max(longest, order.back().size());
  }

  std::unique_ptr<io::NewCheckpoint> checkpoint;  // of process 0
  const std::string folder =
      io::join(directory, from_first(data, [&] {
                 checkpoint = std::make_unique<io::NewCheckpoint>(directory, step, true);
                 return fs::path(checkpoint->path()).filename().string();
               }));

  std::vector<std::unique_ptr<ShardWriter>> writers(shards.size());  // null where not here
  for (std::size_t s = 0; s < shards.size(); ++s) {
    if (data.transport && static_cast<int>(s) != mesh.rank()) continue;
    writers[s] = std::make_unique<ShardWriter>(io::join(folder, io::shard_name(s, shards.size())),
                                               shards[s], described);
  }
  // One of each file, and then all write.
  for (std::size_t i = 0; i < longest; ++i) {
    std::vector<std::pair<ShardWriter*, Tensor>> gathered;
    for (std::size_t s = 0; s < shards.size(); ++s) {
      if (i >= order[s].size()) continue;
      Tensor tensor = whole(*order[s][i], mesh.axes());
      if (writers[s]) gathered.emplace_back(writers[s].get(), std::move(tensor));
    }
    for (auto& [writer, tensor] : gathered) writer->write(tensor);
  }

  std::vector<io::ManifestFile> files(shards.size());
  const std::vector<io::ManifestFile> of_processes = engine::on_all(data, [&] {
    // None has a file in the directory any more when process 0 removes it.
    const auto committed = std::exchange(writers, {});
    io::ManifestFile here;
    for (std::size_t s = 0; s < shards.size(); ++s) {
      if (committed[s]) here = files[s] = committed[s]->commit();
    }
    return here;
  });
  if (data.transport) std::copy_n(of_processes.begin(), shards.size(), files.begin());
  return io::join(directory, from_first(data, [&] {
                    io::replace_file(io::saving, io::join(folder, io::index_name),
                                     io::index_of(shards));
                    const auto written = [&] { return files; };
                    return fs::path(checkpoint->list(written, keep_last)).filename().string();
                  }));
}

}  // namespace ein
