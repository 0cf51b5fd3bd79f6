// What is used of <cuda.h> (CUDA Driver API), declared here so that ein builds without it;
// driver_constants.cpp holds it against the header where there is one. Handles are pointers, a
// device is a number, an address of device memory has 64 bits.
#pragma once

#include <cstddef>

namespace ein::gpu {

using Result = int;

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* kernel;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void** arguments;
  void **extra = nullptr, *library_kernel = nullptr, *context = nullptr;
};

// Of CUresult.
inline constexpr Result success = 0, out_of_memory = 2, stub_library = 34, no_device = 100,
                        invalid_image = 200, no_binary_for_gpu = 209, unsupported_version = 222,
                        illegal_address = 700, launch_out_of_resources = 701,
                        misaligned_address = 716, launch_failed = 719, driver_mismatch = 803;

// Of CUdevice_attribute, CUfunction_attribute and the flags.
inline constexpr int attribute_sms = 16, attribute_l2 = 38, attribute_threads_per_sm = 39,
                     attribute_major = 75, attribute_minor = 76, attribute_shared_per_sm = 81,
                     attribute_registers_per_sm = 82, attribute_shared_per_block = 97,
                     kernel_dynamic_shared = 8;
inline constexpr unsigned stream_non_blocking = 1, pinned_for_all_devices = 1;

// Of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion.
inline constexpr int map_u8 = 0, map_f16 = 6, map_bf16 = 9, swizzle_128_bytes = 3,
                     promote_256_bytes = 3;
/// Of CUtensorMap from CUDA 13 on; 64 before.
inline constexpr std::size_t tensor_map_alignment = 128;

}  // namespace ein::gpu
