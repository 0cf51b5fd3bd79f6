// Rows that begin where wide loads may.
#pragma once

#include <span>

#include "nest/nest.hpp"

namespace ein {

/// Gives buffers that contractions read or write rows that begin at multiples of 16 bytes, as a
/// GPU's wide loads and tensor maps want: the rows become longer by elements that nothing reads or
/// writes. Of a grouped program; left alone are buffers whose size others rely on: inputs, `kept`,
/// and those of attention, scatters, collectives, sorts and functions of matrices; and those of
/// which a nest does not go row by row.
void pad_rows(Program& program, std::span<const int> kept);

}  // namespace ein
