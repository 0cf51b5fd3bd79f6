// The driver's calls, on a driver that is none: tests/support/fake_cuda.cpp.
#include "cuda/driver.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <ein/error.hpp>

#include "support/expect_error.hpp"
#include "support/host_tensor_map.hpp"
#include "support/minimal_cubin.hpp"

namespace ein::gpu {
namespace {

using test::expect_error;

/// What FAKE_CUDA says while this lives.
class Setting {
 public:
  explicit Setting(const std::string& words) { ::setenv("FAKE_CUDA", words.c_str(), 1); }
  ~Setting() { ::unsetenv("FAKE_CUDA"); }
};

int fake_count(const char* function) {
  void* const library = ::dlopen(EIN_FAKE_CUDA, RTLD_NOW);
  return reinterpret_cast<int (*)()>(::dlsym(library, function))();
}

std::string missing_with(const std::string& words) {
  const Setting setting(words);
  return Driver({EIN_FAKE_CUDA}).missing();
}

Cubin minimal_cubin() { return {test::minimal_cubin(), ""}; }

TEST(Driver, NoLibrary) {
  Driver driver({"/nowhere/libcuda.so.1"});
  EXPECT_NE(driver.missing().find("no NVIDIA driver: /nowhere/libcuda.so.1"), std::string::npos)
      << driver.missing();
  EXPECT_NE(driver.missing().find("install NVIDIA's driver"), std::string::npos);
  expect_error([&] { driver.version(); }, ErrorKind::device, {driver.missing()});
  expect_error([&] { driver.device_count(); }, ErrorKind::device, {driver.missing()});
  expect_error([&] { driver.info(0); }, ErrorKind::device, {driver.missing()});
  expect_error([&] { DeviceMemory(driver, 0, 16); }, ErrorKind::device, {driver.missing()});
  expect_error([&] { Stream(driver, 0); }, ErrorKind::device, {driver.missing()});
}

TEST(Driver, AnotherLibraryOrNoneAtAll) {
  EXPECT_NE(Driver({"libm.so.6"}).missing().find("libm.so.6 is too old, it lacks cuInit"),
            std::string::npos);
  const std::string path = testing::TempDir() + "/ein-no-library-" + std::to_string(::getpid());
  std::ofstream(path) << "no library";
  EXPECT_NE(Driver({path}).missing().find("no NVIDIA driver: "), std::string::npos);
  ::unlink(path.c_str());
}

TEST(Driver, TriesLibrariesInOrder) {
  EXPECT_EQ(Driver({"/nowhere/libcuda.so.1", EIN_FAKE_CUDA}).missing(), "");
}

TEST(Driver, SaysWhatIsMissing) {
  EXPECT_EQ(missing_with(""), "");
  EXPECT_EQ(
      missing_with("version=11040"),
      "the NVIDIA driver is too old, for CUDA 11.4; install a driver of version 525 or newer");
  EXPECT_NE(missing_with("cuInit=100").find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  EXPECT_NE(missing_with("cuInit=34").find("stub"), std::string::npos);
  EXPECT_NE(missing_with("cuInit=803").find("reboot"), std::string::npos);
  EXPECT_NE(missing_with("cuInit=999").find("error 999"), std::string::npos);
  EXPECT_NE(missing_with("devices=0").find("has no device"), std::string::npos);
  EXPECT_NE(missing_with("cuDriverGetVersion=1").find("its version"), std::string::npos);
  EXPECT_NE(missing_with("cuDeviceGetCount=3").find("its devices"), std::string::npos);
}

TEST(Driver, Devices) {
  Driver driver({EIN_FAKE_CUDA});
  EXPECT_EQ(driver.version(), (CudaVersion{13, 0}));
  ASSERT_EQ(driver.device_count(), 2);
  const DeviceInfo info = driver.info(0);
  EXPECT_EQ(info.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(info.major, 9);
  EXPECT_EQ(info.minor, 0);
  EXPECT_EQ(info.sms, 132);
  EXPECT_EQ(info.memory, std::uint64_t{80} << 30);
  EXPECT_EQ(info.l2_bytes, 50 << 20);
  EXPECT_EQ(info.shared_bytes_per_block, 232448);
  EXPECT_EQ(info.shared_bytes_per_sm, 233472);
  EXPECT_EQ(info.registers_per_sm, 65536);
  EXPECT_EQ(info.threads_per_sm, 2048);
  EXPECT_EQ(driver.info(1).sms, 7);
  expect_error([&] { driver.info(2); }, ErrorKind::value, {"cuda:2", "the number of devices is 2"});
  expect_error([&] { driver.info(-1); }, ErrorKind::value, {"cuda:-1"});
}

TEST(Driver, AProcessOfSeveralHasOneDevice) {
  Driver driver({EIN_FAKE_CUDA}, 3);
  ASSERT_EQ(driver.device_count(), 1);
  EXPECT_EQ(driver.info(0).sms, 7);  // of two devices the second
  expect_error([&] { driver.info(1); }, ErrorKind::value,
               {"the number of devices is 1", "each of several processes"});
  const DeviceMemory memory(driver, 0, 16);
  EXPECT_NE(memory.address(), 0u);
  Driver first({EIN_FAKE_CUDA}, 2);
  EXPECT_EQ(first.info(0).sms, 132);
}

TEST(Driver, AChildOfForkIsRefused) {
  Driver driver({EIN_FAKE_CUDA});
  const DeviceMemory memory(driver, 0, 16);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bool is_refused = false;
    try {
      DeviceMemory(driver, 0, 16);
    } catch (const Error& error) {
      is_refused = error.kind() == ErrorKind::device &&
                   std::string(error.what()).find("fork()") != std::string::npos;
    }
    ::_exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(driver.device_count(), 2);
}

TEST(Driver, KernelOnEachDevice) {
  Driver driver({EIN_FAKE_CUDA});
  for (int device : {0, 1}) {
    std::vector<float> x(100), y(100);
    std::iota(x.begin(), x.end(), 0.0f);
    Stream stream(driver, device);
    const Module module(driver, device, minimal_cubin());
    const DeviceMemory from(driver, device, 400), middle(driver, device, 400),
        to(driver, device, 400);
    const PinnedMemory back(driver, device, 400);
    stream.copy_in(from.address(), x.data(), 400);
    stream.copy(middle.address(), from.address(), 400);
    stream.fill(to.address(), 0, 400);
    std::uint64_t a = middle.address(), b = to.address();
    int count = 70;
    Event before(driver, device), after(driver, device);
    stream.record(before);
    Launch launch{module.kernel("ein_add", 100000), {3, 1, 1}, {32, 1, 1}, 100000};
    stream.launch(launch, std::vector<void*>{&a, &b, &count});
    stream.record(after);
    stream.wait(before);
    stream.copy_out(back.data(), to.address(), 400);
    stream.synchronize();
    after.wait();
    EXPECT_FLOAT_EQ(static_cast<float>(after.seconds_since(before)), 1.5e-3f);
    const auto* result = static_cast<const float*>(back.data());
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(result[i], i < 70 ? static_cast<float>(i) + 1 : 0.0f) << i;
    }
  }
}

TEST(Driver, TensorMaps) {
  Driver driver({EIN_FAKE_CUDA});
  const codegen::TensorMap map{.buffer = 0,
                               .offset = 0,
                               .dtype = DType::bf16,
                               .sizes = {72, 130, 3},
                               .strides = {144, 18720},
                               .box = {64, 128, 1}};
  const auto encoded = std::bit_cast<HostTensorMap>(driver.encode(1, map, 0x1000));
  EXPECT_EQ(encoded.mark, HostTensorMap::right_mark);
  EXPECT_EQ(encoded.rank, 3u);
  EXPECT_EQ(encoded.address, 0x1000u);
  EXPECT_EQ(encoded.sizes[1], 130u);
  EXPECT_EQ(encoded.strides[1], 18720u);
  EXPECT_EQ(encoded.box[0], 64u);
  try {
    driver.encode(0, map, 0x1008);
    FAIL() << "an address that is no multiple of 16";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("cuTensorMapEncodeTiled"), std::string::npos);
  }
}

TEST(Driver, FromManyThreads) {
  Driver driver({EIN_FAKE_CUDA});
  const Module module(driver, 1, minimal_cubin());
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Stream stream(driver, 1);
      const DeviceMemory memory(driver, 1, 4);
      const float x = static_cast<float>(t);
      stream.copy_in(memory.address(), &x, 4);
      std::uint64_t address = memory.address();
      int count = 1;
      stream.launch({module.kernel("ein_add", 0)}, std::vector<void*>{&address, &address, &count});
      stream.copy_out(&results[static_cast<std::size_t>(t)], address, 4);
      stream.synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 8; ++t)
    EXPECT_EQ(results[static_cast<std::size_t>(t)], static_cast<float>(t) + 1);
}

TEST(Driver, GivesEverythingBack) {
  const int held = fake_count("fake_cuda_held"), retained = fake_count("fake_cuda_retained");
  {
    Driver driver({EIN_FAKE_CUDA});
    const DeviceMemory memory(driver, 0, 16), empty(driver, 0, 0);
    EXPECT_EQ(empty.address(), 0u);
    const PinnedMemory pinned(driver, 1, 16);
    const Stream stream(driver, 0);
    const Event event(driver, 1);
    const Module module(driver, 0, minimal_cubin());
    EXPECT_EQ(fake_count("fake_cuda_held") - held, 5);
    EXPECT_EQ(fake_count("fake_cuda_retained") - retained, 2);
  }
  EXPECT_EQ(fake_count("fake_cuda_held"), held);
  EXPECT_EQ(fake_count("fake_cuda_retained"), retained);
}

TEST(Driver, ErrorsSayWhatToDo) {
  Driver driver({EIN_FAKE_CUDA});
  Stream stream(driver, 1);
  const Module module(driver, 1, minimal_cubin());
  {
    const Setting setting("cuDevicePrimaryCtxRetain=46");
    expect_error([&] { DeviceMemory(driver, 0, 1); }, ErrorKind::device,
                 {"cuDevicePrimaryCtxRetain", "error 46"});
  }
  {
    const Setting setting("cuMemAlloc_v2=2");
    expect_error([&] { DeviceMemory(driver, 1, 1000); }, ErrorKind::memory,
                 {"cuda:1: cuMemAlloc of 1000 bytes", "85899345920 bytes 12345 are free",
                  "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"});
  }
  {
    const Setting setting("cuMemHostAlloc=2");
    expect_error([&] { PinnedMemory(driver, 1, 1000); }, ErrorKind::memory,
                 {"cuda:1: cuMemHostAlloc of 1000 bytes"});
  }
  {
    const Setting setting("cuModuleLoadData=209");
    expect_error([&] { Module(driver, 0, minimal_cubin()); }, ErrorKind::device,
                 {"cuda:0: cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU", "update the driver"});
  }
  const DeviceMemory memory(driver, 0, 4);  // works after the failure
  expect_error([&] { module.kernel("ein_absent", 0); }, ErrorKind::device,
               {"cuModuleGetFunction ein_absent"});
  expect_error([&] { module.kernel("ein_add", 300000); }, ErrorKind::device,
               {"300000 bytes of shared memory"});
  expect_error(
      [&] {
        stream.launch({module.kernel("ein_add", 0), {0, 1, 1}}, {});
      },
      ErrorKind::device, {"cuda:1: cuLaunchKernel"});
  std::uint64_t address = memory.address();
  int count = 0;
  const std::vector<void*> arguments{&address, &address, &count};
  const Setting setting("kernel=700");
  stream.launch({module.kernel("ein_add", 0)}, arguments);
  expect_error([&] { stream.synchronize(); }, ErrorKind::device,
               {"cuda:1: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS", "compute-sanitizer"});
}

TEST(Driver, RefusesImagesThatAreNotWhole) {
  Driver driver({EIN_FAKE_CUDA});
  for (std::size_t size : {0, 3, 63, 100, 263}) {
    Cubin cubin = minimal_cubin();
    cubin.image.resize(size);
    expect_error([&] { Module(driver, 0, cubin); }, ErrorKind::file, {"cubin: "});
  }
}

}  // namespace
}  // namespace ein::gpu
