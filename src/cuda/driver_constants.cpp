// The numbers and structures of driver_constants.hpp beside those of the header, where there is
// one.
#include "cuda/driver_constants.hpp"

#if __has_include(<cuda.h>)
#include <cuda.h>

#if CUDA_VERSION >= 12000
#include "codegen/emit.hpp"
#include "size/ask.hpp"

namespace ein::gpu {

#define EIN_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
EIN_SAME(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
EIN_SAME(stub_library, CUDA_ERROR_STUB_LIBRARY);
EIN_SAME(no_device, CUDA_ERROR_NO_DEVICE);
EIN_SAME(invalid_image, CUDA_ERROR_INVALID_IMAGE);
EIN_SAME(no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
EIN_SAME(unsupported_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
EIN_SAME(illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
EIN_SAME(launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
EIN_SAME(misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
EIN_SAME(launch_failed, CUDA_ERROR_LAUNCH_FAILED);
EIN_SAME(driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
EIN_SAME(success, CUDA_SUCCESS);
EIN_SAME(attribute_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EIN_SAME(attribute_l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EIN_SAME(attribute_threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
EIN_SAME(attribute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EIN_SAME(attribute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EIN_SAME(attribute_shared_per_sm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
EIN_SAME(attribute_registers_per_sm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
EIN_SAME(attribute_shared_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EIN_SAME(kernel_dynamic_shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EIN_SAME(stream_non_blocking, CU_STREAM_NON_BLOCKING);
EIN_SAME(pinned_for_all_devices, CU_MEMHOSTALLOC_PORTABLE);
EIN_SAME(map_u8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
EIN_SAME(map_f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
EIN_SAME(map_bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
EIN_SAME(swizzle_128_bytes, CU_TENSOR_MAP_SWIZZLE_128B);
EIN_SAME(promote_256_bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
// Interleaving, filling with zeros, and the step of each dimension are 0, 0 and 1 in encode_tiled.
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0);
static_assert(sizeof(CUtensorMap) == sizeof(codegen::EncodedTensorMap) &&
              tensor_map_alignment % alignof(CUtensorMap) == 0);

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
EIN_SAME(offsetof(KernelNode, kernel), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func));
EIN_SAME(offsetof(KernelNode, grid), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX));
EIN_SAME(offsetof(KernelNode, block), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
EIN_SAME(offsetof(KernelNode, shared_bytes), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));
EIN_SAME(offsetof(KernelNode, arguments), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
EIN_SAME(offsetof(KernelNode, extra), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, extra));
EIN_SAME(offsetof(KernelNode, library_kernel), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
EIN_SAME(offsetof(KernelNode, context), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));

static_assert(sizeof(CUdevice) == sizeof(int) && sizeof(CUdeviceptr) == 8 &&
              sizeof(CUcontext) == sizeof(void*) && sizeof(CUresult) == sizeof(Result));

#undef EIN_SAME

}  // namespace ein::gpu
#endif
#endif
