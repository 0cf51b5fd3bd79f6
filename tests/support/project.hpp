// Where this project's own files are, for tests that read them.
#pragma once

#include <filesystem>

namespace ein::test {

inline const std::filesystem::path project =
    std::filesystem::path(EIN_TEST_DATA).parent_path().parent_path();

}  // namespace ein::test
