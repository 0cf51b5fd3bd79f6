// SharedLibrary: a library of another vendor, opened while the program runs.
#pragma once

#include <string>
#include <vector>

namespace ein {

/// A shared library, which stays open as long as the process: its threads and exit handlers may
/// outlive any object of ours.
class SharedLibrary {
 public:
  /// Opens the first of `names` (file names for the loader, or paths) that opens; otherwise
  /// is_open() is false and why_not() is what the loader says of each.
  explicit SharedLibrary(const std::vector<std::string>& names);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& why_not() const { return why_not_; }
  /// The name under which it opened.
  const std::string& name() const { return name_; }
  /// The function `symbol`, or null if the library lacks it.
  template <class Function>
  void find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_, why_not_;
};

/// Where a library that is installed with ein may be: in the folder of the file that has this code,
/// a library or a program, in `lib` beside that folder, and where the loader looks; there alone in
/// a program with more rights than its caller.
std::vector<std::string> beside_us(const std::string& name);

}  // namespace ein
