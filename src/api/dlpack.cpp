// Tensors of other libraries, and for them.
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ein/detail/wrap_elements.hpp>
#include <ein/dlpack.hpp>
#include <ein/error.hpp>
#include "api/dlpack.hpp"
#include "tensor/rank.hpp"

namespace ein {
namespace {

template <class T>
consteval DLDataType dlpack_type_of() {
  constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bool>)
    return {kDLBool, bits, 1};
  else if constexpr (std::is_integral_v<T>)
    return {std::is_signed_v<T> ? kDLInt : kDLUInt, bits, 1};
  else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, f16>)
    return {kDLFloat, bits, 1};
  else if constexpr (std::is_same_v<T, bf16>)
    return {kDLBfloat, bits, 1};
  else if constexpr (std::is_same_v<T, f8e4m3>)
    return {kDLFloat8_e4m3fn, bits, 1};
  else if constexpr (std::is_same_v<T, f8e5m2>)
    return {kDLFloat8_e5m2, bits, 1};
  else if constexpr (detail::ComplexNumber<T>)
    return {kDLComplex, bits, 1};  // any other has no return: it does not compile
}

struct DTypeOfBoth {
  DType ours;
  DLDataType theirs;
};
constexpr DTypeOfBoth dlpack_dtypes[] = {
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  {DType::dtype, dlpack_type_of<type>()},
#define EIN_COMPLEX(dtype, type, text, npy, safetensors, cuda, typed) \
  {DType::dtype, dlpack_type_of<type>()},
#include <ein/detail/dtypes.hpp>
};

[[noreturn]] void refuse(ErrorKind kind, const std::string& why) {
  throw Error(kind, "from_dlpack: " + why);
}

DType our_dtype(const DLDataType& type) {
  for (const DTypeOfBoth& both : dlpack_dtypes) {
    if (both.theirs == type) return both.ours;
  }
  refuse(ErrorKind::dtype, "no dtype of ein has elements of code " + std::to_string(type.code) +
                               ", " + std::to_string(type.bits) + " bits and " +
                               std::to_string(type.lanes) + " lanes\n  help: ein has " +
                               list_dtypes());
}

Device our_device(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      return cpu;
    case kDLCUDA:
    case kDLCUDAManaged: {
      const int count = device_count(cuda);
      if (device.device_id >= 0 && device.device_id < count) return cuda(device.device_id);
      refuse(ErrorKind::device, "the memory is of GPU " + std::to_string(device.device_id) +
                                    ", and ein finds " + std::to_string(count));
    }
  }
  refuse(ErrorKind::device,
         "ein cannot use memory of a device of type " + std::to_string(device.device_type) +
             "\n  help: it can that of the CPU and of CUDA; copy it there first");
}

/// The elements of `x`, kept by `owner`.
Tensor shared_elements(const DLTensor& x, bool read_only, std::shared_ptr<void> owner) {
  const DType dtype = our_dtype(x.dtype);
  const Device device = our_device(x.device);
  if (x.ndim < 0) refuse(ErrorKind::rank, "the tensor has " + std::to_string(x.ndim) + " axes");
  const auto rank = static_cast<std::size_t>(x.ndim);
  require_possible_rank(rank);
  if (rank > 0 && x.shape == nullptr) refuse(ErrorKind::shape, "the tensor has no shape");
  Shape shape(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) shape[d] = x.shape[d];
  checked_numel(shape, static_cast<std::int64_t>(size_of(dtype)));
  Strides strides = contiguous_strides(shape);
  for (std::size_t d = 0; d < rank && x.strides != nullptr; ++d) strides[d] = x.strides[d];
  const auto data = reinterpret_cast<std::uintptr_t>(x.data);
  std::uintptr_t first = 0;
  if (data != 0 && __builtin_add_overflow(data, x.byte_offset, &first)) {
    refuse(ErrorKind::overflow,
           "the byte offset " + std::to_string(x.byte_offset) + " is beyond all memory");
  }
  return detail::wrap_elements(reinterpret_cast<const void*>(first), read_only, dtype,
                               std::move(shape), std::move(strides), std::move(owner), device);
}

/// What owns `managed` once `take` has been called: until then the caller does.
template <class Managed>
class ForeignOwner {
 public:
  explicit ForeignOwner(Managed* managed) : managed_(managed) {}
  ForeignOwner(const ForeignOwner&) = delete;
  ForeignOwner& operator=(const ForeignOwner&) = delete;
  ~ForeignOwner() {
    if (is_taken_) detail::drop_dlpack(managed_);
  }
  void take() { is_taken_ = true; }

 private:
  Managed* managed_;
  bool is_taken_ = false;
};

template <class Managed>
Tensor taken_foreign(Managed* managed, bool read_only) {
  const auto owner = std::make_shared<ForeignOwner<Managed>>(managed);
  Tensor shared = shared_elements(managed->dl_tensor, read_only, owner);
  owner->take();
  return shared;
}

/// A tensor that another library holds.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor kept;
  std::vector<std::int64_t> sizes, strides;

  explicit Exported(const Tensor& x) : kept(x) {
    for (std::size_t d = 0; d < x.rank(); ++d) {
      sizes.push_back(x.shape()[d]);
      strides.push_back(x.strides()[d]);
    }
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { delete static_cast<Exported*>(self->manager_ctx); };
    DLTensor& to = managed.dl_tensor;
    const Device device = x.device();
    const bool is_of_host = device == cpu;
    to.device = {is_of_host ? kDLCPU : kDLCUDA, is_of_host ? 0 : device.index()};
    to.ndim = static_cast<std::int32_t>(x.rank());
    to.dtype = dlpack_type(x.dtype());
    to.shape = sizes.data();
    to.strides = strides.data();
    to.data = x.storage()->data() + x.offset() * static_cast<std::int64_t>(x.element_size());
  }
};

void require_exportable(const Tensor& x) {
  if (!x.storage()) detail::no_elements_here(x.impl());
  if (x.requires_grad()) {
    throw Error(ErrorKind::value,
                "to_dlpack: gradients flow through the tensor, and another library would lose "
                "them\n  help: give x.detach()");
  }
  if (x.device() != cpu) synchronize(x.device());
}

}  // namespace

DLDataType dlpack_type(DType dtype) {
  DLDataType type{};
  for (const DTypeOfBoth& both : dlpack_dtypes) {
    if (both.ours == dtype) type = both.theirs;
  }
  return type;
}

void detail::drop_dlpack(DLManagedTensorVersioned* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}
void detail::drop_dlpack(DLManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  if (managed == nullptr) refuse(ErrorKind::value, "there is no tensor at a null address");
  if (managed->version.major != 1) {
    refuse(ErrorKind::value, "the tensor is of DLPack " + std::to_string(managed->version.major) +
                                 "." + std::to_string(managed->version.minor) +
                                 ", and ein reads 1.x");
  }
  return taken_foreign(managed, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
}

Tensor from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) refuse(ErrorKind::value, "there is no tensor at a null address");
  return taken_foreign(managed, false);
}

DLManagedTensorVersioned* to_dlpack(const Tensor& x) {
  require_exportable(x);
  auto* const made = new Exported<DLManagedTensorVersioned>(x);
  made->managed.version = {1, 0};
  made->managed.flags = x.storage()->read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return &made->managed;
}

DLManagedTensor* to_dlpack_unversioned(const Tensor& x) {
  require_exportable(x);
  if (x.storage()->read_only()) {
    throw Error(ErrorKind::value,
                "to_dlpack_unversioned: the tensor is read-only, which DLPack before 1.0 cannot "
                "say\n  help: give x.clone()");
  }
  return &(new Exported<DLManagedTensor>(x))->managed;
}

}  // namespace ein
