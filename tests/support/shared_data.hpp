// Data beside the project, which a checkout may lack: fixtures of courses, small models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/scratch.hpp"

namespace ein::test {

/// The path of a file or directory of ../shared/data.
inline std::string shared_data(const std::string& name) {
  return (std::filesystem::path(EIN_TEST_DATA) / "../../../shared/data" / name).string();
}
inline std::string shared_bytes(const std::string& name) { return read_bytes(shared_data(name)); }

}  // namespace ein::test

#define SKIP_WITHOUT_SHARED_DATA(name)                        \
  if (!std::filesystem::exists(ein::test::shared_data(name))) \
  GTEST_SKIP() << "there is no ../shared/data/" << (name)
