// How many axes a tensor may have.
#pragma once

#include <cstddef>

namespace ein {

/// An Error of kind `rank` above 1024.
void require_possible_rank(std::size_t rank);

}  // namespace ein
