#include "machine/shared_library.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "machine/protection.hpp"
#include "machine/system.hpp"

namespace ein {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      name_ = name;
      return;
    }
    const char* const reason = ::dlerror();
    why_not_ += (why_not_.empty() ? "" : "; ") + std::string(reason ? reason : name.c_str());
  }
}

void* SharedLibrary::address(const char* symbol) const {
  return handle_ ? ::dlsym(handle_, symbol) : nullptr;
}

std::vector<std::string> beside_us(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(system::own_file()).parent_path();
  // A caller can give a program with more rights another name, also one in a folder of its own.
  if (folder.empty() || system::has_more_rights()) return {name};
  return {folder / name, folder.parent_path() / "lib" / name, name};
}

}  // namespace ein
