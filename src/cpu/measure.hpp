// What `measured_cpu` returns.
#pragma once

#include <string>
#include <string_view>

#include <ein/hardware.hpp>

namespace ein::host {

Hardware measured_cpu();
/// The same, with what is called where no file has what it finds.
Hardware measured_cpu(CpuLimits (*measure)());

/// The text in which limits are kept: with the processor, the threads and the build that they hold
/// for, and a checksum.
std::string limits_text(const CpuLimits& limits);
/// Reads the rates of limits whose model and threads are given. False where the text is not what
/// limits_text() writes for them.
bool read_limits(std::string_view text, CpuLimits& limits);

}  // namespace ein::host
