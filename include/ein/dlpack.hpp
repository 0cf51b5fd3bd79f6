// DLPack: tensors of other libraries, and tensors for them, without a copy.
//
// The structs are those of dlpack.h (github.com/dmlc/dlpack, 1.x), which need not be here: include
// that of the other library, if you want to look into one.
#pragma once

#include <memory>

#include <ein/tensor.hpp>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace ein {

/// The elements of a tensor of another library, shared in both directions: its shape, strides
/// (negative ones, too) and dtype; read-only if its flags say so. The tensor takes over `managed`,
/// and calls its deleter when no tensor views the memory any more, on whatever thread that is.
/// Where it throws, `managed` stays the caller's. A producer says how large its memory is by shape
/// and strides alone, so these are believed.
///
/// Memory of the host (kDLCPU, kDLCUDAHost) is on ein::cpu; kDLCUDA and kDLCUDAManaged on ein::cuda
/// of that number. What the producer does on a GPU's stream must be done, or come before what is
/// later given to all streams: ein does not wait for it.
///
/// Errors: kind `value` for null, for a version other than 1.x, for elements at null or at an
/// address that is not aligned; `dtype` for elements that ein has no dtype for; `rank`, `shape` and
/// `overflow` for sizes and strides that no memory has; `device` for memory that ein cannot use.
Tensor from_dlpack(DLManagedTensorVersioned* managed);
/// The same of DLPack before 1.0, which has no flags: the memory may be written to.
Tensor from_dlpack(DLManagedTensor* managed);

/// A tensor for another library, DLPack 1.0: the elements of `x`, shared, with its strides; flagged
/// read-only if its storage is. The consumer calls the deleter when it needs them no more. On a GPU
/// all that ein has been given is done first.
///
/// Errors: kind `value` where gradients flow through `x`, which detach() leaves behind, and where
/// `x` has no elements yet, as in a function that ein::compile traces; `placement` where it is a
/// part of a mesh's.
DLManagedTensorVersioned* to_dlpack(const Tensor& x);
/// The same for a library that reads DLPack before 1.0. A read-only storage is an Error of kind
/// `value`, as nothing would say that it is.
DLManagedTensor* to_dlpack_unversioned(const Tensor& x);

namespace detail {
/// Calls the deleter, if there is one.
void drop_dlpack(DLManagedTensorVersioned* managed);
void drop_dlpack(DLManagedTensor* managed);

struct DropDlpack {
  void operator()(DLManagedTensorVersioned* managed) const { drop_dlpack(managed); }
  void operator()(DLManagedTensor* managed) const { drop_dlpack(managed); }
};
}  // namespace detail

/// Owns one that nobody has taken.
using DlpackPointer = std::unique_ptr<DLManagedTensorVersioned, detail::DropDlpack>;

}  // namespace ein
