// What must hold of a tensor before a call writes to it.
#pragma once

#include <ein/tensor.hpp>

namespace ein::engine {

/// An Error of kind `value` where x is a value of a trace, its storage is read-only, or elements of
/// it share memory. `what` names the call, as in those below.
void require_writable(const Tensor& x, const char* what);

/// An Error of kind `value` where gradients flow through x: a write would be lost to them.
void require_no_flow(const Tensor& x, const char* what);
/// The same where gradients flow through what is written.
void require_no_flow_from(const Tensor& source, const Tensor& target, const char* what);

/// Whether the bytes that two tensors span overlap.
bool may_overlap(const Tensor& a, const Tensor& b);
/// Whether two tensors lie in one block of memory, or in blocks that overlap: memory of the caller
/// may be wrapped more than once.
bool share_memory(const Tensor& a, const Tensor& b);

}  // namespace ein::engine
