// NVRTC: kernels compiled without a GPU, and what is said where there is none.
#include "cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <ein/error.hpp>

#include "cuda/cubin_cache.hpp"
#include "support/expect_error.hpp"
#include "support/nvrtc.hpp"

namespace ein::gpu {
namespace {

using test::expect_error;

constexpr const char* scale =
    R"(extern "C" __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
})";

TEST(Nvrtc, Version) {
  SKIP_WITHOUT_NVRTC();
  std::string why_not;
  EXPECT_TRUE(nvrtc_is_available(&why_not));
  EXPECT_EQ(why_not, "");
  EXPECT_GE(nvrtc_version(), (CudaVersion{12, 0}));
  const std::vector<int> architectures = nvrtc_architectures();
  EXPECT_TRUE(std::is_sorted(architectures.begin(), architectures.end()));
  for (int sm : {80, 90})
    EXPECT_TRUE(std::count(architectures.begin(), architectures.end(), sm)) << sm;
  EXPECT_EQ(to_string(CudaVersion{12, 4}), "12.4");
  EXPECT_LT((CudaVersion{12, 9}), (CudaVersion{13, 0}));
}

TEST(Nvrtc, CompilesForEachArchitecture) {
  SKIP_WITHOUT_NVRTC();
  for (const auto& [arch, sm, since] :
       {std::tuple{"sm_80", 80, CudaVersion{12, 0}}, std::tuple{"sm_90a", 90, CudaVersion{12, 0}},
        std::tuple{"sm_100a", 100, CudaVersion{12, 8}}}) {
    if (nvrtc_version() < since) continue;
    const Cubin cubin = compile({"scale.cu", scale, arch});
    const auto kernels = kernels_of(cubin);
    ASSERT_EQ(kernels.size(), 1u) << arch;
    EXPECT_EQ(kernels[0].name, "scale");
    EXPECT_EQ(kernels[0].sm, sm);
  }
}

TEST(Nvrtc, AcceleratedInstructionsAreOfTheirArchitecture) {
  SKIP_WITHOUT_NVRTC();
  const std::string text = R"(extern "C" __global__ void fence() {
  asm volatile("wgmma.fence.sync.aligned;");
})";
  EXPECT_EQ(kernels_of(compile({"fence.cu", text, "sm_90a"})).size(), 1u);
  expect_error(
      [&] {
        compile({"fence.cu", text, "sm_90"});
      },
      ErrorKind::device, {"fence.cu for sm_90", "wgmma"});
}

TEST(Nvrtc, MistakesCarryTheLog) {
  SKIP_WITHOUT_NVRTC();
  expect_error(
      [] {
        compile({"wrong.cu", "extern \"C\" __global__ void f() {\n  undefined_name;\n}"});
      },
      ErrorKind::device, {"NVRTC: wrong.cu for sm_90a", "wrong.cu(2)", "undefined_name"});
  expect_error(
      [] {
        compile({"wrong.cu", scale, "sm_80", {"--no-such-option"}});
      },
      ErrorKind::device, {"wrong.cu for sm_80", "no-such-option"});
  expect_error(
      [] {
        compile({"nul.cu", std::string("a\0b", 3)});
      },
      ErrorKind::value, {"nul.cu is cut by a NUL byte"});
}

TEST(Nvrtc, Options) {
  SKIP_WITHOUT_NVRTC();
  const std::string text = "#ifndef EXTENT\n#error no extent\n#endif\n" + std::string(scale);
  EXPECT_FALSE(compile({"scale.cu", text, "sm_80", {"--define-macro=EXTENT=4"}}).image.empty());
  expect_error([&] { compile({"scale.cu", text, "sm_80"}); }, ErrorKind::device, {"no extent"});
}

TEST(Nvrtc, Architectures) {
  SKIP_WITHOUT_NVRTC();
  for (const char* arch : {"", "sm_", "90", "sm_090", "sm_90b", "sm_90aa", "sm_-9",
                           "sm_90 --version", "sm_99999999999", "compute_90"}) {
    expect_error(
        [&] {
          compile({"scale.cu", scale, arch});
        },
        ErrorKind::value, {"no architecture is called '" + std::string(arch) + "'"});
  }
  expect_error(
      [] {
        compile({"scale.cu", scale, "sm_999"});
      },
      ErrorKind::value, {"does not compile for sm_999; it does for sm_", "sm_90"});
}

TEST(Nvrtc, ManyThreads) {
  SKIP_WITHOUT_NVRTC();
  std::vector<std::thread> threads;
  std::atomic<int> good{0}, bad{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const std::string name = "kernel" + std::to_string(t) + std::to_string(i);
        std::string text = scale;
        text.replace(text.find("scale"), 5, name);
        if ((t + i) % 4 == 0) text += "mistake_of_" + name + ";";
        try {
          good += kernels_of(compile({name + ".cu", text, "sm_80"})).at(0).name == name;
        } catch (const Error& error) {
          bad += std::string(error.what()).find("mistake_of_" + name) != std::string::npos;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 9);
  EXPECT_EQ(bad, 3);
}

TEST(Nvrtc, CompileAllInOrder) {
  SKIP_WITHOUT_NVRTC();
  std::vector<Source> sources;
  for (int i = 0; i < 6; ++i) {
    std::string text = scale;
    text.replace(text.find("scale"), 5, "kernel" + std::to_string(i % 4));
    sources.push_back({"kernels.cu", text, "sm_80"});
  }
  const std::vector<Compiled> compiled = compile_all(sources);
  ASSERT_EQ(compiled.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FALSE(compiled[i].was_cached);
    EXPECT_EQ(kernels_of(compiled[i].cubin).at(0).name, "kernel" + std::to_string(i % 4));
  }
  EXPECT_TRUE(compile_all({}).empty());

  // Of two mistakes the first.
  sources[3].text += "third_mistake;";
  sources[1].text += "first_mistake;";
  expect_error([&] { compile_all(sources); }, ErrorKind::device, {"first_mistake"});
}

/// In a process of its own, since NVRTC is looked for once.
TEST(NvrtcDeathTest, AbsentSaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](const char* library) {
    ::setenv("EIN_NVRTC", library, 1);
    std::string why;
    const bool is_available = nvrtc_is_available(&why);
    const auto is_refused = [&why](auto&& f) {
      try {
        f();
      } catch (const Error& error) {
        return error.kind() == ErrorKind::device && error.what() == why;
      }
      return false;
    };
    const bool all = is_refused([] { nvrtc_version(); }) &&
                     is_refused([] { nvrtc_architectures(); }) && is_refused([] {
                       compile({"scale.cu", scale});
                     }) &&
                     is_refused([] {
                       compile_all(std::vector<Source>{{"scale.cu", scale}});
                     });
    std::fprintf(stderr, "%s", why.c_str());
    std::exit(!is_available && all ? 0 : 1);
  };
  EXPECT_EXIT(run("/nowhere/libnvrtc.so"), testing::ExitedWithCode(0),
              "no NVRTC.*/nowhere/libnvrtc.so: .*install the CUDA toolkit.*EIN_NVRTC");
  Dl_info library{};  // another library's whole path
  double (*const of_libm)(double) = &::cbrt;
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(of_libm), &library), 0);
  EXPECT_EXIT(run(library.dli_fname), testing::ExitedWithCode(0),
              "libm.so.6 lacks functions of NVRTC 12; install the CUDA toolkit");
}

}  // namespace
}  // namespace ein::gpu
