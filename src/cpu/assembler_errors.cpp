// Errors of asmjit as exceptions. Compiled without run-time type information, as asmjit is: else
// this would ask for that of its class.
#if EIN_ASMJIT

#include "cpu/assembler_errors.hpp"

namespace ein::host {
namespace {

class Thrower final : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char* /*message*/,
                   asmjit::BaseEmitter* /*origin*/) override {
    throw AssemblerError{error};
  }
};

}  // namespace

std::unique_ptr<asmjit::ErrorHandler> thrower_of_errors() { return std::make_unique<Thrower>(); }

}  // namespace ein::host

#endif
