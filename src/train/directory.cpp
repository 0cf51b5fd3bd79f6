#include "train/directory.hpp"

#include <filesystem>
#include <optional>
#include <system_error>

#include <ein/checkpoint_files.hpp>
#include <ein/error.hpp>
#include "io/checkpoint_directory.hpp"
#include "io/manifest.hpp"
#include "machine/printable.hpp"
#include "train/log.hpp"

namespace ein::training {
namespace {

namespace fs = std::filesystem;

constexpr const char *caller = "train", *lock_name = ".ein-run.lock";

/// The step of the newest checkpoint; nothing where there is none.
std::optional<std::int64_t> last_step(const std::string& directory) {
  const io::Manifest manifest = io::read_manifest(caller, directory);
  if (manifest.checkpoints.empty()) return std::nullopt;
  return manifest.checkpoints.back().step;
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path)
    : path_(path), place_(io::place_in(caller, path, io::Missing::make)) {
  for (const char* name : {log_name, picture_name}) {
    const std::string file = io::join(path, name);
    std::error_code error;
    if (fs::exists(file, error) && !fs::is_regular_file(file, error))
      io::fail(caller, file, "is not a regular file");
  }
  lock_.emplace(caller, path, place_, lock_name, "another run", io::no_patience);
}

RunDirectory::~RunDirectory() {
  if (!owner_.is_this()) return;
  lock_.reset();
  std::error_code ignored;
  if (place_.was_made()) fs::remove(path_, ignored);
}

void RunDirectory::require_unused() const {
  const auto refuse = [&](const std::string& has) {
    throw Error(ErrorKind::value, "train: \"" + printable_line(path_) + "\" has " + has +
                                      "\n  help: --resume goes on with it, --overwrite removes it, "
                                      "another --out leaves it alone");
  };
  if (const auto step = last_step(path_)) refuse("a run up to step " + std::to_string(*step));
  std::error_code error;
  const std::uintmax_t logged = fs::file_size(io::join(path_, log_name), error);
  if (!error && logged > 0) refuse("the log of a run, log.jsonl, and no checkpoint");
}

void RunDirectory::clear() const {
  io::remove_checkpoints(caller, path_);
  for (const char* name : {log_name, picture_name}) {
    std::error_code error;
    const std::string file = io::join(path_, name);
    if (!fs::remove(file, error) && error)
      io::fail(caller, file, "cannot be removed: " + error.message());
  }
}

}  // namespace ein::training
