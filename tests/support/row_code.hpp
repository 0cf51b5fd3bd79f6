// For tests of what is compiled for this processor.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "cpu/row_code.hpp"

/// Skips a test where nothing can be, and says why: the processor, or how ein was built.
#define SKIP_WITHOUT_ROW_CODE \
  if (!ein::host::RowCode::missing().empty()) GTEST_SKIP() << ein::host::RowCode::missing()

namespace ein::test {

/// The instruction sets of this processor that machine code is made for, AVX-512 once.
inline std::vector<host::Isa> isas_with_row_code() {
  std::vector<host::Isa> isas;
  for (const host::Isa isa : host::isas_here()) {
    if (isa <= host::Isa::v4 && host::RowCode::missing(isa).empty()) isas.push_back(isa);
  }
  return isas;
}

}  // namespace ein::test
