// The processor that the kernels were compiled for, and the one that is here.
#pragma once

namespace ein::host {

/// Throws an Error of kind `device` where this processor lacks instructions that the kernels use.
/// Code that is compiled for any processor of the architecture calls it before it calls a kernel.
void require_processor();

/// The features that the kernels were compiled for, by the compiler's names, and a null pointer;
/// empty texts for the others. A constant among the kernels: it takes no code to read it.
extern const char* const kernel_features[];

}  // namespace ein::host
