// Errors of asmjit as exceptions. Compiled without run-time type information, as asmjit is: else
// this would ask for that of its class.
#if EIN_ASMJIT

#include "cpu/assembler_errors.hpp"
#include "size/ask.hpp"

namespace ein::host {

struct ErrorThrower::Handler final : asmjit::ErrorHandler {
  void handleError(asmjit::Error error, const char* /*message*/,
                   asmjit::BaseEmitter* /*origin*/) override {
    throw AssemblerError{error};
  }
};

ErrorThrower::ErrorThrower() : handler_(std::make_unique<Handler>()) {}
ErrorThrower::~ErrorThrower() = default;

void ErrorThrower::watch(asmjit::CodeHolder& holder) const {
  holder.setErrorHandler(handler_.get());
}

}  // namespace ein::host

#endif
