#include "tensor/processor.hpp"

namespace ein::host {

// A macro that the compiler has defined is 1; any other is its own name.
constexpr const char* const kernel_features[] = {
#define EIN_TEXT(value) #value
#define EIN_FEATURE_IF(value, name) EIN_TEXT(value)[0] == '1' ? name : "",
#define EIN_FEATURE(macro, name) EIN_FEATURE_IF(macro, name)
#include "tensor/kernel_features.hpp"
    nullptr};

}  // namespace ein::host
