// Runs a program where it must give the same bits as elsewhere.
#pragma once

#include <string>

#include "program.hpp"

namespace ein::attack {

/// What the results and states of an eager and of a compiled call are, bit for bit but for NaN, or
/// the Error that they end with.
std::string outcome_of(const Program& program);

/// In a floating-point mode that the seed says: on two threads, and again, what it gives on one,
/// and the same mode after it. Empty if so.
std::string wrong_in_a_mode(const Program& program);

/// In a child of fork(), what it gives in the parent.
std::string wrong_in_a_child(const Program& program);

}  // namespace ein::attack
