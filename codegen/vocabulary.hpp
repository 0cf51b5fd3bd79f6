// The device vocabulary: what the text of kernels is written in.
#pragma once

#include <string>
#include <string_view>

namespace ein::codegen {

/// The sections of the vocabulary that `kernel` needs, as text that comes before it.
std::string vocabulary_for(std::string_view kernel);

/// All sections.
std::string vocabulary();
/// All sections but those that speak the language of the machine, which a host replaces by its own.
std::string portable_vocabulary();

}  // namespace ein::codegen
