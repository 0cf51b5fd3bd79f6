// Vector code: the scalar vocabulary as instructions on vectors.
#pragma once

#include "cpu/assembler.hpp"

namespace ein::host {

/// Whether there is code for an operation on numbers of type `compute`.
bool has_vector_code(ScalarOp op, DType compute);

inline bool is_comparison(ScalarOp op) { return op >= ScalarOp::lt && op <= ScalarOp::ne; }

/// Whether it takes many instructions, each of which waits for the one before.
bool is_of_many_instructions(ScalarOp op);

/// Emits an operation, or its short form; arguments that it lacks are not read.
Assembler::Vector emit_operation(Assembler& code, ScalarOp op, bool short_form,
                                 const Assembler::Vector& x, const Assembler::Vector& y,
                                 const Assembler::Vector& z);

}  // namespace ein::host
