// Figures that another program computed, as JSON in the tests' data.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace ein::test {

inline nlohmann::json figures(const std::string& name) {
  std::ifstream file(std::string(EIN_TEST_DATA) + "/" + name);
  if (!file) throw std::runtime_error("no tests/fixtures/" + name);
  return nlohmann::json::parse(file);
}

}  // namespace ein::test
