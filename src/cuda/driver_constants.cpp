// The numbers and structures of driver_constants.hpp beside those of the header, where there is
// one.
#include "cuda/driver_constants.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>

#if CUDA_VERSION >= 12000
#include "codegen/emit.hpp"

namespace ein::gpu {

static_assert(static_cast<int>(out_of_memory) == static_cast<int>(CUDA_ERROR_OUT_OF_MEMORY));
static_assert(static_cast<int>(stub_library) == static_cast<int>(CUDA_ERROR_STUB_LIBRARY));
static_assert(static_cast<int>(no_device) == static_cast<int>(CUDA_ERROR_NO_DEVICE));
static_assert(static_cast<int>(invalid_image) == static_cast<int>(CUDA_ERROR_INVALID_IMAGE));
static_assert(static_cast<int>(no_binary_for_gpu) ==
              static_cast<int>(CUDA_ERROR_NO_BINARY_FOR_GPU));
static_assert(static_cast<int>(unsupported_version) ==
              static_cast<int>(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
static_assert(static_cast<int>(illegal_address) == static_cast<int>(CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(static_cast<int>(launch_out_of_resources) ==
              static_cast<int>(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
static_assert(static_cast<int>(misaligned_address) ==
              static_cast<int>(CUDA_ERROR_MISALIGNED_ADDRESS));
static_assert(static_cast<int>(launch_failed) == static_cast<int>(CUDA_ERROR_LAUNCH_FAILED));
static_assert(static_cast<int>(driver_mismatch) ==
              static_cast<int>(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));
static_assert(static_cast<int>(success) == static_cast<int>(CUDA_SUCCESS));
static_assert(static_cast<int>(attribute_sms) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(static_cast<int>(attribute_l2) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(static_cast<int>(attribute_threads_per_sm) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
static_assert(static_cast<int>(attribute_major) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(static_cast<int>(attribute_minor) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(static_cast<int>(attribute_shared_per_sm) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
static_assert(static_cast<int>(attribute_registers_per_sm) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
static_assert(static_cast<int>(attribute_shared_per_block) ==
              static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(static_cast<int>(kernel_dynamic_shared) ==
              static_cast<int>(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(static_cast<int>(stream_non_blocking) == static_cast<int>(CU_STREAM_NON_BLOCKING));
static_assert(static_cast<int>(pinned_for_all_devices) ==
              static_cast<int>(CU_MEMHOSTALLOC_PORTABLE));
static_assert(static_cast<int>(map_u8) == static_cast<int>(CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(static_cast<int>(map_f16) == static_cast<int>(CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(static_cast<int>(map_bf16) == static_cast<int>(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(static_cast<int>(swizzle_128_bytes) == static_cast<int>(CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(static_cast<int>(promote_256_bytes) ==
              static_cast<int>(CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
// Interleaving, filling with zeros, and the step of each dimension are 0, 0 and 1 in encode_tiled.
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0);
static_assert(sizeof(CUtensorMap) == sizeof(codegen::EncodedTensorMap) &&
              tensor_map_alignment % alignof(CUtensorMap) == 0);

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
static_assert(offsetof(KernelNode, kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func));
static_assert(offsetof(KernelNode, grid) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX));
static_assert(offsetof(KernelNode, block) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
static_assert(offsetof(KernelNode, shared_bytes) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));
static_assert(offsetof(KernelNode, arguments) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
static_assert(offsetof(KernelNode, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, extra));
static_assert(offsetof(KernelNode, library_kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
static_assert(offsetof(KernelNode, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));

static_assert(sizeof(CUdevice) == sizeof(int) && sizeof(CUdeviceptr) == 8 &&
              sizeof(CUcontext) == sizeof(void*) && sizeof(CUresult) == sizeof(Result));

}  // namespace ein::gpu
#endif
#endif
