// Errors of asmjit: no memory, or an instruction that there is not.
#pragma once

#include <asmjit/core.h>

#include <memory>

namespace ein::host {

/// Thrown in place of the first instruction that asmjit refuses: code without it would be wrong.
struct AssemblerError {
  asmjit::Error error;
};

/// For CodeHolder::setErrorHandler; outlives the holder.
std::unique_ptr<asmjit::ErrorHandler> thrower_of_errors();

}  // namespace ein::host
