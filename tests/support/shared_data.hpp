// Files beside the repository that are not part of it, for tests that are more thorough where they
// are there.
#pragma once

#include <filesystem>
#include <string>

#include "support/project.hpp"
#include "support/scratch.hpp"

namespace ein::test {

inline const std::filesystem::path shared_data = project.parent_path() / "shared" / "data";

inline std::string shared_bytes(const std::string& path) {
  return read_bytes((shared_data / path).string());
}

}  // namespace ein::test
