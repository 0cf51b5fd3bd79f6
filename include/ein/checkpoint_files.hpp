// Files of checkpoints: a directory of .safetensors files, of which one is whole whatever happens
// while the next is written. (What is computed again in a backward pass is in checkpoint.hpp.)
#pragma once

#include <cstdint>
#include <string>

#include <ein/safetensors.hpp>
#include <ein/state_dict.hpp>

namespace ein {

class Mesh;

struct Checkpoint {
  std::int64_t step = 0;
  StateDict tensors;
  Metadata metadata;
  std::string path;  ///< of the file, or the directory of files, that was loaded
  std::string note;  ///< which newer ones were passed over, and why; empty when there are none
};

/// Writes the state after `step` steps to `directory` (made if it is missing) and keeps the
/// `keep_last` checkpoints that were written last. The file `step-000123.safetensors` is written
/// under a temporary name, flushed and renamed; then `manifest.json`, which has the size and the
/// checksum (XXH64) of each, is replaced in the same way; then what is no longer kept is removed.
/// So at any moment, a kill and a full disk included, the previous checkpoint or this one can be
/// loaded. What saves of this machine that were killed have left, the next one removes: temporary
/// files, and files that were to be listed, of which the manifest has the names before they are
/// there. No other file is removed or overwritten: where there is one of that name, listed or not,
/// the new one becomes `step-000123-2.safetensors`. Savers of one directory wait for each other,
/// for a minute; loaders wait for none. The lock is a file that nobody can open who may only read
/// the directory, so they keep no saver waiting. Returns the file's path. An Error of kind `file`
/// when writing fails, another saver keeps the lock, or the manifest is damaged, `value` for a
/// negative step, keep_last < 1 and the metadata name `ein.step`, and as save_safetensors has.
std::string save_checkpoint(const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata = {},
                            std::int64_t keep_last = 3);

/// The same by all processes of a mesh, which call it with the same arguments. Each writes a file
/// of whole tensors, about as many bytes as the others; a tensor that is placed is gathered when
/// its turn comes, so a process holds few whole ones at a time. The checkpoint is a directory,
/// `step-000123`, of the files `model-00001-of-00004.safetensors` and so on, and of the index
/// `model.safetensors.index.json`, by which Hugging Face's loaders read them; these want the
/// metadata `format: pt`, which is added. The directory, too, has a temporary name until all
/// processes have written, so it is complete or not there. What fails on one process is an Error on
/// all; one of kind `value` where there are no tensors. All processes see the same file system. A
/// mesh of one process writes one file.
std::string save_checkpoint(const Mesh& mesh, const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata = {},
                            std::int64_t keep_last = 3);

/// The newest whole checkpoint of a directory, by its manifest: sizes and checksums are verified,
/// and one that is damaged is passed over for the next older. Or that in one file or in a directory
/// of shards, or of its index, which is verified if the manifest beside it lists it; the step of
/// files that no checkpoint was saved to is 0. Tensors are whole, whatever mesh they were saved on.
/// With `options.mmap` false the bytes that are verified are those that the tensors get: the file
/// is read once. Mapped, it is verified first, and who writes to it afterwards changes the tensors.
/// An Error of kind `file` when there is none, none is whole, or the manifest is damaged.
Checkpoint load_checkpoint(const std::string& path, SafetensorsOptions options = {});

/// Whether the directory has a manifest that lists a checkpoint, whole or not. False where there is
/// no such directory; an Error of kind `file` when the manifest is damaged.
bool has_checkpoint(const std::string& directory);

}  // namespace ein
