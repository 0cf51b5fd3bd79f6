#include "io/lock_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "io/number.hpp"
#include "io/temporary_name.hpp"
#include "machine/printable.hpp"

namespace ein::io {
namespace {

using Clock = std::chrono::steady_clock;

/// Of the file: whoever may write to the directory may have its lock, and nobody else.
mode_t mode_in(const struct stat& directory, const struct stat& file) {
  const bool is_of_group = directory.st_gid == file.st_gid && (directory.st_mode & S_IWGRP) != 0;
  return is_of_group ? 0660 : 0600;
}

std::string seconds_of(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << std::chrono::duration<double>(time).count();
  return text.str();
}

}  // namespace

LockFile::LockFile(std::string_view caller, const std::string& path, const Place& directory,
                   std::string name, std::string_view other, std::chrono::milliseconds patience)
    : LockFile(Begun(), directory, std::move(name)) {
  const auto end = Clock::now() + patience;
  for (std::chrono::milliseconds pause{5};;) {
    open(caller, path);
    if (!lock_.take(fd_.get(), LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
      if (Clock::now() >= end) {
        fail(caller, path,
             "is in use: " + std::string(other) + " has its lock " + name_ + ", which names " +
                 holder() +
                 (patience > no_patience ? "; it was tried for " + seconds_of(patience) + " s"
                                         : "") +
                 "\n  help: wait until it has ended, or give another directory");
      }
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(pause, patience));
      pause = std::min(2 * pause, std::chrono::milliseconds(200));
    } else if (!was_removed()) {
      break;
    }
    lock_.release();
  }
  is_taken_ = true;
  const Boot boot = this_boot();
  const std::string text = std::to_string(::getpid()) + " " + boot.host + " " + boot.id + "\n";
  if (::ftruncate(fd_.get(), 0) != 0 ||
      ::pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    // A full disk: others are not told which process it is.
  }
}

LockFile::~LockFile() {
  if (is_taken_ && owner_.is_this()) ::unlinkat(directory_.directory().get(), name_.c_str(), 0);
}

void LockFile::open(std::string_view caller, const std::string& path) {
  const int directory = directory_.directory().get();
  fd_.reset(::openat(directory, name_.c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (fd_.get() < 0)
    fail(caller, path,
         "cannot be locked: its " + name_ + " cannot be opened (" + reason(errno) + ")");
  struct stat status {
  }, around{};
  if (::fstat(fd_.get(), &status) != 0 || ::fstat(directory, &around) != 0)
    fail(caller, path, "cannot be examined: " + reason(errno));
  if (!S_ISREG(status.st_mode))
    fail(caller, path, "cannot be locked: its " + name_ + " is not a regular file");
  const mode_t wanted = mode_in(around, status);
  if (status.st_uid == ::geteuid() && (status.st_mode & 07777) != wanted &&
      ::fchmod(fd_.get(), wanted) != 0)
    fail(caller, path, "cannot be locked: " + reason(errno));
}

/// By who had the lock before; it is then no longer the directory's.
bool LockFile::was_removed() const {
  struct stat status {};
  return ::fstat(fd_.get(), &status) == 0 && status.st_nlink == 0;
}

/// What the file says of who has the lock, which may be of who had it before.
std::string LockFile::holder() const {
  std::array<char, 200> bytes{};
  const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), 0);
  std::istringstream text(std::string(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0));
  std::string word;
  Boot boot;
  text >> word >> boot.host >> boot.id;
  const auto id = number_of<pid_t>(word);
  if (!id || *id <= 0 || !text) return "no process";
  const std::string process = "process " + std::to_string(*id);
  if (boot != this_boot()) return process + " of the machine " + printable_line(boot.host);
  const bool has_ended = ::kill(*id, 0) != 0 && errno == ESRCH;
  return process + " of this machine" + (has_ended ? ", which has ended" : "");
}

}  // namespace ein::io
