// Files that are read with suspicion, and files that are replaced whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "machine/owning_process.hpp"
#include "machine/system.hpp"

namespace ein::io {

/// Throws an Error of kind `file`: "caller: "path" what".
[[noreturn]] void fail(std::string_view caller, const std::string& path, const std::string& what);
/// What an errno says.
std::string reason(int error);

/// The path of `name` in a directory.
std::string join(const std::string& directory, std::string_view name);

/// Bytes from a file as an error message may show them: in quotes, printable, the first forty.
std::string in_quotes(std::string_view bytes);

/// A file descriptor that closes itself, and is none of the standard streams.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(system::beside_streams(fd)) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void reset(int fd) {
    close();
    fd_ = system::beside_streams(fd);
  }
  /// False, with errno set, when the system reports an error that it had put off.
  bool close();

 private:
  int fd_;
};

/// The lock (flock) of an open file. It is released before the descriptor is closed: a child of
/// fork() has a copy of that, with which the lock would last as long as the child. The child's copy
/// of this releases nothing: the lock is of the open file, which both processes share.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock() { release(); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// LOCK_EX or LOCK_SH, with LOCK_NB unless it is to wait. False, with errno, where it is not
  /// taken. The descriptor is to be open until the lock is released.
  bool take(int fd, int how);
  void release();

 private:
  int fd_ = -1;
  OwningProcess owner_;
};

/// A regular file open for reading. Errors are of kind `file` and name `caller` and the path.
class InputFile {
 public:
  InputFile(std::string caller, const std::string& path);

  const std::string& caller() const { return caller_; }
  const std::string& path() const { return path_; }
  /// Bytes, when the file was opened.
  std::uint64_t size() const { return size_; }
  /// Reads exactly `bytes` from `offset` on; an error when the file ends before.
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;
  /// The same as a text; all of the file.
  std::string read(std::uint64_t offset, std::size_t bytes) const;
  std::string read() const { return read(0, size_); }
  /// All of the file, which must not be empty, as read-only memory.
  std::shared_ptr<std::byte> map() const;
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }

 private:
  std::string caller_, path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

/// What is done where a directory on the way is missing.
enum class Missing { fail, make };

/// Whether `user` may follow a link of `link_owner` in a directory of this mode and owner: the rule
/// of fs.protected_symlinks (may_follow_link in Linux's fs/namei.c).
bool may_follow(mode_t directory, uid_t directory_owner, uid_t link_owner, uid_t user);

/// The place of a file that is to be written. Symbolic links are followed here, once, by the rule
/// of Linux's `fs.protected_symlinks`, on every system: one in a directory that everybody may write
/// to and that is sticky, as /tmp, is followed only if it belongs to this process's user or to the
/// directory's owner. What is written then goes into `directory()`, so a link or a directory that
/// is swapped meanwhile changes nothing. Errors are of kind `file` and name `caller` and the path.
class Place {
 public:
  Place(std::string caller, const std::string& path, Missing missing = Missing::fail);
  /// `name` in that open directory, whose path is for messages; a link there is itself meant.
  Place(std::string caller, const std::string& path, const Descriptor& directory,
        const std::string& name);

  const Descriptor& directory() const { return directory_; }
  /// No link and no path; "." for the place of a directory itself, whose path ends with "/.".
  const std::string& name() const { return name_; }
  /// Whether `directory()` was made here.
  bool was_made() const { return was_made_; }

 private:
  void push(std::string_view path);
  bool follow(const std::string& component, int& links);
  void enter(const std::string& component, Missing missing);
  void open_for_flushing();
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }

  std::string caller_, path_, name_;
  std::vector<std::string> rest_;  // components still to be walked, the next one last
  Descriptor directory_;
  bool was_made_ = false;
};

/// The place of what is in a directory.
Place place_in(const std::string& caller, const std::string& directory,
               Missing missing = Missing::fail);

/// For constructors that begin with another one: where they throw after it, the destructor runs,
/// which removes what they have made.
struct Begun {};

/// The future content of a file. It is written to a temporary file in the same directory, which is
/// locked (flock) as long as this lives, and the file at `path` is the old one until commit().
/// Symbolic links are followed as Place has it; what exists and is no regular file is refused.
/// Errors are of kind `file` and name `caller` and the path.
class ReplacementFile {
 public:
  ReplacementFile(std::string caller, const std::string& path);
  /// In that open directory, whose path is for messages, what is `name` there, of any kind but a
  /// directory; a link is itself replaced. Others than the user cannot read the new one.
  ReplacementFile(std::string caller, const Descriptor& directory, const std::string& path,
                  const std::string& name);
  /// Removes the temporary file unless it was committed, or is of a parent that called fork().
  ~ReplacementFile();
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  void write(const void* from, std::size_t bytes);
  /// Puts the new content at `path`, and returns when it is on the disk.
  void commit();

 private:
  template <class... Where>
  ReplacementFile(Begun, std::string caller, const std::string& path, const Where&... where)
      : caller_(std::move(caller)), path_(path), place_(caller_, path, where...) {}
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }
  /// A temporary file that has no more than these permissions.
  void begin(mode_t mode);
  void make_temporary(mode_t mode);

  std::string caller_, path_;
  Place place_;
  std::string temporary_;
  Descriptor fd_;
  Descriptor locked_;  // the same open file, which is locked past the close of fd_
  FileLock lock_;
  OwningProcess owner_;
};

/// A directory that is there with all of its content or not at all. Files are written to a
/// temporary one beside it, which is locked (flock) as long as this lives, until commit(). Symbolic
/// links are followed up to the directory around it, as Place has it. Errors are of kind `file` and
/// name `caller` and the path.
class NewDirectory {
 public:
  NewDirectory(std::string caller, const std::string& path);
  /// Removes the temporary directory unless it was committed, or is of a parent that called fork().
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  /// Where files are written meanwhile.
  const std::string& temporary() const { return temporary_; }
  /// Puts the directory at `path` and returns when it is on the disk. One that is there changes
  /// places with it at once, and is removed then; only on file systems that cannot do that there is
  /// a moment with neither.
  void commit();

 private:
  NewDirectory(Begun, std::string caller, const std::string& path)
      : caller_(std::move(caller)),
        path_(path),
        name_(std::filesystem::path(path).filename().string()),
        place_(place_in(caller_, std::filesystem::path(path).parent_path().string())) {}
  [[noreturn]] void fail(const std::string& what) const { io::fail(caller_, path_, what); }

  void take_place(const std::string& temporary_name);

  std::string caller_, path_, name_;
  Place place_;  // of the directory around it
  std::string temporary_;
  Descriptor fd_;
  FileLock lock_;
  OwningProcess owner_;
};

/// Replaces the file at `path` by these bytes.
void replace_file(std::string caller, const std::string& path, std::string_view bytes);

/// Writes these bytes behind those of the file at `path`, which it makes if it is missing. Symbolic
/// links are followed as Place has it. Errors are of kind `file`.
void append_to_file(std::string_view caller, const std::string& path, std::string_view bytes);

/// What a directory has, in no order; nothing where it cannot be read. The standard library's
/// iterator ends the process where there is no memory.
std::vector<std::string> listing_of(const std::string& directory);
std::vector<std::string> listing_of(const Descriptor& directory);

/// Removes the temporary files and directories in `directory` whose ReplacementFile or NewDirectory
/// was of this machine and is gone, because its process died.
void remove_abandoned_files(const std::string& directory);

}  // namespace ein::io
