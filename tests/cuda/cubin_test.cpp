// What is read out of a cubin: against the compiler's own words, and with every kind of damage.
#include "cuda/cubin.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <ein/error.hpp>

#include "support/nvrtc.hpp"

namespace ein::gpu {
namespace {

constexpr const char* four_kernels = R"(
extern __shared__ float dynamic[];
extern "C" __global__ void __launch_bounds__(256) plain(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
extern "C" __global__ void shares(const float* x, float* y, int n) {
  __shared__ float s[512];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[511 - threadIdx.x] + dynamic[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(128) indexes(const float* x, float* y, int n) {
  float a[64];
  for (int i = 0; i < 64; i++) a[(i * n) & 63] = x[i];
  y[0] = a[n & 63];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* x, float* y, int n, char last) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; i++) a[i] = x[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; i++) y[i * 7] = a[95 - i] * a[i];
})";

std::vector<std::string> architectures() {
  std::vector<std::string> names{"sm_80", "sm_90a"};
  if (nvrtc_version() >= CudaVersion{12, 8}) names.push_back("sm_100a");
  return names;
}

const KernelResources& named(const std::vector<KernelResources>& kernels, const std::string& name) {
  for (const KernelResources& kernel : kernels) {
    if (kernel.name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

/// The number before `unit` in what ptxas -v says of the kernel; 0 if it does not mention it.
std::int64_t said(const std::string& log, const std::string& kernel, const std::string& unit) {
  const std::size_t begin = log.find("Compiling entry function '" + kernel + "'");
  EXPECT_NE(begin, log.npos) << log;
  const std::string part = log.substr(begin, log.find("Compiling entry", begin + 10) - begin);
  std::smatch match;
  return std::regex_search(part, match, std::regex("([0-9]+) " + unit)) ? std::stoll(match[1]) : 0;
}

TEST(Cubin, TellsWhatTheCompilerSaid) {
  SKIP_WITHOUT_NVRTC();
  for (const std::string& arch : architectures()) {
    const Cubin cubin = compile({"four.cu", four_kernels, arch});
    const std::vector<KernelResources> kernels = kernels_of(cubin);
    ASSERT_EQ(kernels.size(), 4u) << arch;
    for (const KernelResources& kernel : kernels) {
      SCOPED_TRACE(arch + " " + kernel.name);
      EXPECT_EQ("sm_" + std::to_string(kernel.sm), arch.substr(0, arch.find('a')));
      EXPECT_EQ(kernel.registers, said(cubin.log, kernel.name, "registers"));
      EXPECT_EQ(kernel.shared_bytes, said(cubin.log, kernel.name, "bytes smem"));
      EXPECT_EQ(kernel.stack_bytes, said(cubin.log, kernel.name, "bytes stack frame"));
      ASSERT_TRUE(kernel.spills);
      EXPECT_EQ(kernel.spills->stored, said(cubin.log, kernel.name, "bytes spill stores"));
      EXPECT_EQ(kernel.spills->loaded, said(cubin.log, kernel.name, "bytes spill loads"));
      EXPECT_EQ(kernel.parameter_bytes, kernel.name == "spills" ? 21 : 20);
      EXPECT_GT(kernel.code_bytes, 0);
    }
    EXPECT_EQ(named(kernels, "shares").shared_bytes, 2048);
    EXPECT_EQ(named(kernels, "plain").shared_bytes, 0);
    EXPECT_EQ(named(kernels, "plain").max_threads, 256);
    EXPECT_EQ(named(kernels, "shares").max_threads, 0);
    EXPECT_EQ(named(kernels, "indexes").max_threads, 128);
    EXPECT_GE(named(kernels, "indexes").stack_bytes, 256);
    EXPECT_EQ(named(kernels, "indexes").spills->stored, 0);
    EXPECT_EQ(named(kernels, "spills").max_threads, 1024);
    EXPECT_EQ(named(kernels, "spills").registers, 32);
    EXPECT_GT(named(kernels, "spills").spills->stored, 0);
    EXPECT_GT(named(kernels, "spills").spills->loaded, 0);
  }
}

TEST(Cubin, WithoutLogNoSpillsAreTold) {
  SKIP_WITHOUT_NVRTC();
  Cubin cubin = compile({"four.cu", four_kernels, "sm_80"});
  cubin.log.clear();
  for (const KernelResources& kernel : kernels_of(cubin)) EXPECT_FALSE(kernel.spills);
  cubin.log = "ptxas info : Function properties for plain\n 0 bytes stack frame, 7 bytes spill";
  EXPECT_FALSE(named(kernels_of(cubin), "plain").spills);
  cubin.log += " stores, 99999999999999999999 bytes spill loads\n";
  EXPECT_FALSE(named(kernels_of(cubin), "plain").spills);
}

/// Reads it; any outcome but an Error of kind `file`, or a plausible answer, is a failure.
void read_damaged(const Cubin& cubin, int& refused) {
  try {
    for (const KernelResources& kernel : kernels_of(cubin)) {
      ASSERT_FALSE(kernel.name.empty());
      ASSERT_LE(kernel.registers, 255);
      ASSERT_LE(kernel.max_threads, 1024);
      ASSERT_GE(kernel.shared_bytes, 0);
      ASSERT_LE(kernel.code_bytes, static_cast<std::int64_t>(cubin.image.size()));
    }
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::file) << error.what();
    ++refused;
  }
}

TEST(Cubin, Truncated) {
  SKIP_WITHOUT_NVRTC();
  const Cubin whole = compile({"four.cu", four_kernels, "sm_90a"});
  int refused = 0, tried = 0;
  for (std::size_t size = 0; size < whole.image.size(); size += 1 + size / 200) {
    read_damaged({whole.image.substr(0, size), whole.log}, refused);
    ++tried;
  }
  EXPECT_EQ(refused, tried);
}

TEST(Cubin, Damaged) {
  SKIP_WITHOUT_NVRTC();
  const unsigned seed = 20261121;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const std::string& arch : architectures()) {
    const Cubin whole = compile({"four.cu", four_kernels, arch});
    // Where what is read lies: the header, the sections' headers, the symbols and the attributes.
    std::uint64_t headers = 0;
    for (int i = 7; i >= 0; --i)
      headers =
          headers << 8 | static_cast<unsigned char>(whole.image[40 + static_cast<std::size_t>(i)]);
    const std::size_t size = whole.image.size();
    const std::vector<std::pair<std::size_t, std::size_t>> places{
        {0, 64},
        {headers, std::min(size, headers + 64 * 30)},
        {64, std::min<std::size_t>(size, 6000)},
        {0, size}};
    int refused = 0;
    for (int trial = 0; trial < 3000; ++trial) {
      Cubin cubin = whole;
      const auto [begin, end] = places[random() % places.size()];
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
        const std::size_t at = begin + random() % (end - begin);
        constexpr unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
        cubin.image[at] = static_cast<char>(random() % 2 ? extremes[random() % 5] : random());
      }
      read_damaged(cubin, refused);
    }
    EXPECT_GT(refused, 100);
  }
}

TEST(Cubin, Noise) {
  const unsigned seed = 6;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string image(random() % 300, '\0');
    for (char& c : image) c = static_cast<char>(random() % 4 ? 0 : random());
    const std::string magic(
        "\x7f"
        "ELF\2\1\1\x41",
        8);
    for (std::size_t i = 0; i < magic.size() && i < image.size(); ++i) image[i] = magic[i];
    if (image.size() >= 64) image[18] = static_cast<char>(190), image[19] = 0, image[58] = 64;
    read_damaged({image, ""}, refused);
  }
  EXPECT_EQ(refused, 2000);
}

TEST(Cubin, OtherFiles) {
  int refused = 0;
  for (const std::string& text : {std::string(), std::string("cubin"), std::string(1000, '\0'),
                                  std::string("\x7f"
                                              "ELF")}) {
    read_damaged({text, ""}, refused);
  }
  EXPECT_EQ(refused, 4);
}

}  // namespace
}  // namespace ein::gpu
