// Checkpoints: a directory of .safetensors files, of which one is whole whatever happens while the
// next is written.
#pragma once

#include <cstdint>
#include <string>

#include <ein/safetensors.hpp>
#include <ein/state_dict.hpp>

namespace ein {

struct Checkpoint {
  std::int64_t step = 0;
  StateDict tensors;
  Metadata metadata;
  std::string path;  ///< of the file that was loaded
  std::string note;  ///< which newer ones were passed over, and why; empty when there are none
};

/// Writes the state after `step` steps to `directory` (made if it is missing) and keeps the
/// `keep_last` checkpoints that were written last. The file `step-000123.safetensors` is written
/// under a temporary name, flushed and renamed; then `manifest.json`, which has the size and the
/// checksum (XXH64) of each, is replaced in the same way; then what is no longer kept is removed,
/// as are temporary files of runs that died. So at any moment, a kill and a full disk included, the
/// previous checkpoint or this one can be loaded. One that is listed is never overwritten: a second
/// one of the same step becomes `step-000123-2.safetensors`. Savers and loaders of one directory
/// wait for each other. Returns the file's path. An Error of kind `file` when writing fails or the
/// manifest is damaged, `value` for a negative step, keep_last < 1 and the metadata name
/// `ein.step`, and as save_safetensors has.
std::string save_checkpoint(const std::string& directory, std::int64_t step,
                            const StateDict& tensors, const Metadata& metadata = {},
                            std::int64_t keep_last = 3);

/// The newest whole checkpoint of a directory, by its manifest: size and checksum are verified, and
/// one that is damaged is passed over for the next older. Or that in one file, which is verified if
/// the manifest beside it lists it; the step of a file that no checkpoint was saved to is 0. An
/// Error of kind `file` when there is none, none is whole, or the manifest is damaged.
Checkpoint load_checkpoint(const std::string& path, SafetensorsOptions options = {});

/// Whether the directory has a manifest that lists a checkpoint, whole or not. False where there is
/// no such directory; an Error of kind `file` when the manifest is damaged.
bool has_checkpoint(const std::string& directory);

}  // namespace ein
