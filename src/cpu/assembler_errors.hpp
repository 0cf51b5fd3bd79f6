// Errors of asmjit: no memory, or an instruction that there is not.
#pragma once

#include <asmjit/core.h>

#include <memory>

namespace ein::host {

/// Thrown in place of the first instruction that asmjit refuses: code without it would be wrong.
struct AssemblerError {
  asmjit::Error error;
};

/// Throws it at the first error of a holder, which it outlives.
class ErrorThrower {
 public:
  ErrorThrower();
  ~ErrorThrower();
  ErrorThrower(const ErrorThrower&) = delete;
  ErrorThrower& operator=(const ErrorThrower&) = delete;

  void watch(asmjit::CodeHolder& holder) const;

 private:
  struct Handler;
  const std::unique_ptr<Handler> handler_;
};

}  // namespace ein::host
