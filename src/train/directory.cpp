#include "train/directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <ein/checkpoint.hpp>
#include <ein/error.hpp>
#include "io/checkpoint_directory.hpp"
#include "io/manifest.hpp"
#include "io/number.hpp"
#include "train/log.hpp"

namespace ein::training {
namespace {

namespace fs = std::filesystem;

constexpr const char *caller = "train", *lock_name = ".ein-run.lock";

bool make(const std::string& path) {
  return io::place_in(caller, path, io::Missing::make).was_made();
}

/// The process that a lock names; nothing while it is not written yet.
std::string holder(int lock) {
  std::array<char, 32> text{};
  const ssize_t bytes = ::pread(lock, text.data(), text.size(), 0);
  const auto id =
      io::number_of<pid_t>({text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0});
  return id ? ", process " + std::to_string(*id) : "";
}

/// The step of the newest checkpoint; nothing where there is none.
std::optional<std::int64_t> last_step(const std::string& directory) {
  const io::Manifest manifest = io::read_manifest(caller, directory);
  if (manifest.checkpoints.empty()) return std::nullopt;
  return manifest.checkpoints.back().step;
}

}  // namespace

RunDirectory::RunDirectory(const std::string& path)
    : path_(path), lock_path_(io::join(path, lock_name)), was_made_(make(path)) {
  for (const char* name : {log_name, picture_name}) {
    const std::string file = io::join(path, name);
    std::error_code error;
    if (fs::exists(file, error) && !fs::is_regular_file(file, error))
      io::fail(caller, file, "is not a regular file");
  }
  take_lock();
}

void RunDirectory::take_lock() {
  for (;;) {
    lock_.release();
    fd_.reset(
        ::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (fd_.get() < 0)
      io::fail(caller, lock_path_, "cannot be written: " + std::generic_category().message(errno));
    if (!lock_.take(fd_.get(), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
      io::fail(caller, path_,
               "is in use: another run" + holder(fd_.get()) +
                   ", writes to it\n  help: wait until it has ended, or give another directory");
    }
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0 || status.st_nlink > 0) break;  // else it was removed
  }
  const std::string id = std::to_string(::getpid());
  if (::ftruncate(fd_.get(), 0) != 0 ||
      ::pwrite(fd_.get(), id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    // A full disk: others are not told which process it is.
  }
}

RunDirectory::~RunDirectory() {
  if (!owner_.is_this()) return;
  ::unlink(lock_path_.c_str());
  std::error_code ignored;
  if (was_made_) fs::remove(path_, ignored);
}

void RunDirectory::require_unused() const {
  const auto refuse = [&](const std::string& has) {
    throw Error(ErrorKind::value, "train: \"" + path_ + "\" has " + has +
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
