// The run-time parser.
#pragma once

#include <ein/grammar/events.hpp>

namespace ein::grammar {

/// Reads `text` with PEGTL. The result holds the pattern or the first mistake; it never throws for
/// a malformed text.
Reading parse_pattern(std::string_view text);

}  // namespace ein::grammar
