// For tests of what is compiled for this processor.
#pragma once

#include <gtest/gtest.h>

#include "cpu/row_code.hpp"

/// Skips a test where nothing can be, and says why: the processor, or how ein was built.
#define SKIP_WITHOUT_ROW_CODE \
  if (!ein::host::RowCode::missing().empty()) GTEST_SKIP() << ein::host::RowCode::missing()
