#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "machine/printable.hpp"

namespace ein::io {
namespace {

constexpr int most_links = 40;  // as Linux follows

/// A directory on the way, which may be one that can be passed but not read.
int open_on_the_way(int at, const char* name) {
#ifdef O_PATH
  return ::openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
#else
  return ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
#endif
}

}  // namespace

bool may_follow(mode_t directory, uid_t directory_owner, uid_t link_owner, uid_t user) {
  constexpr mode_t shared = S_ISVTX | S_IWOTH;
  return (directory & shared) != shared || link_owner == user || link_owner == directory_owner;
}

Place::Place(std::string caller, const std::string& path, Missing missing)
    : caller_(std::move(caller)),
      path_(path.ends_with("/.") ? path.substr(0, path.size() - 2) : path) {
  if (path.find('\0') != path.npos) fail("is cut by a NUL byte");
  push(path);
  for (int links = 0;;) {
    if (rest_.empty()) fail("is no path of a file");
    const std::string component = std::move(rest_.back());
    rest_.pop_back();
    if (follow(component, links)) continue;
    if (rest_.empty()) {
      name_ = component;
      break;
    }
    enter(component, missing);
  }
  open_for_flushing();
}

Place::Place(std::string caller, const std::string& path, const Descriptor& directory,
             const std::string& name)
    : caller_(std::move(caller)),
      path_(path),
      name_(name),
      directory_(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0)) {
  if (directory_.get() < 0) fail("cannot be written: " + reason(errno));
}

/// Puts the components of a path in front of those that are left, and begins at its root.
void Place::push(std::string_view path) {
  if (directory_.get() < 0 || path.starts_with('/'))
    directory_.reset(open_on_the_way(AT_FDCWD, path.starts_with('/') ? "/" : "."));
  if (path.empty() || (path.ends_with('/') && rest_.empty())) fail("is no path of a file");
  std::vector<std::string> components;
  for (std::size_t begin = 0, end = 0; begin < path.size(); begin = end + 1) {
    end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (!component.empty() && (component != "." || (end == path.size() && rest_.empty())))
      components.emplace_back(component);
  }
  rest_.insert(rest_.end(), components.rbegin(), components.rend());
}

/// Puts where a link leads in its place; false for what is no link.
bool Place::follow(const std::string& component, int& links) {
  struct stat status {
  }, around{};
  if (::fstatat(directory_.get(), component.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISLNK(status.st_mode))
    return false;
  if (++links > most_links) fail("cannot be written: it is a link to a link, too many times");
  if (::fstat(directory_.get(), &around) != 0 ||
      !may_follow(around.st_mode, around.st_uid, status.st_uid, ::geteuid())) {
    fail("cannot be written: \"" + printable_line(component) +
         "\" is another user's link, in a directory where everybody may make one\n"
         "  help: give the path that the link leads to, if it is meant");
  }
  std::array<char, PATH_MAX> target{};
  const ssize_t length =
      ::readlinkat(directory_.get(), component.c_str(), target.data(), target.size());
  if (length < 0) fail("cannot be written: its link cannot be read (" + reason(errno) + ")");
  push({target.data(), static_cast<std::size_t>(length)});
  return true;
}

void Place::enter(const std::string& component, Missing missing) {
  was_made_ = false;
  int next = open_on_the_way(directory_.get(), component.c_str());
  if (next < 0 && errno == ENOENT && missing == Missing::make) {
    was_made_ = ::mkdirat(directory_.get(), component.c_str(), 0777) == 0;
    if (was_made_ || errno == EEXIST) next = open_on_the_way(directory_.get(), component.c_str());
  }
  if (next < 0 && missing == Missing::make) fail("cannot be made: " + reason(errno));
  if (next < 0) fail("cannot be written: its directory cannot be opened (" + reason(errno) + ")");
  directory_.reset(next);
}

/// A directory that may be written to but not listed stays open as a place alone.
void Place::open_for_flushing() {
  const int listed = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed >= 0) return directory_.reset(listed);
  if (errno != EACCES || directory_.get() < 0)
    fail("cannot be written: its directory cannot be opened (" + reason(errno) + ")");
}

Place place_in(const std::string& caller, const std::string& directory, Missing missing) {
  if (directory.empty()) fail(caller, directory, "cannot be opened: " + reason(ENOENT));
  return Place(caller, join(directory, "."), missing);
}

}  // namespace ein::io
