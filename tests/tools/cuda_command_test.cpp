// ein emit cuda, ein emit cubin, ein bench and ein devices as a shell sees them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "cuda/cubin.hpp"
#include "cuda/nvrtc.hpp"
#include "support/command.hpp"
#include "support/nvrtc.hpp"

namespace ein {
namespace {

using test::expect_fails;
using test::expect_holds;
using test::text_of;

class CudaCommand : public testing::Test {
 protected:
  const test::ScratchDirectory scratch;
};

/// A product to time on a device.
std::vector<std::string> bench_on(const std::string& device) {
  return {"bench",   "einsum", "a b, b c -> a c", "--shape", "64,32",
          "--shape", "32,48",  "--device",        device};
}

std::vector<std::string> product(const std::string& form,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"emit",    form,    "einsum",  "zebra k, k quagga -> zebra quagga",
                                 "--shape", "64,32", "--shape", "32,48"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(CudaCommand, EmitCuda) {
  const std::string text = text_of(product("cuda", {"--dtype", "bf16", "--arch", "sm_80"}));
  EXPECT_TRUE(std::regex_search(
      text, std::regex("^// grid \\([0-9]+, [0-9]+, [0-9]+\\), block \\([0-9]+, [0-9]+, [0-9]+\\)"
                       ".*; on buffer 0, buffer 1, buffer 2\nextern \"C\" __global__ void")))
      << text;
  // What a user names is in no kernel.
  EXPECT_EQ(text.find("zebra"), text.npos);
  EXPECT_EQ(text.find("quagga"), text.npos);
  expect_holds(text_of({"emit", "cuda", "rearrange", "a b -> b a", "--shape", "3,4"}),
               {"no kernel"});
  expect_holds(text_of({"emit", "cuda", "reduce", "a b -> a", "--shape", "0,4", "--by", "sum"}),
               {"no kernel"});
}

TEST_F(CudaCommand, EmitCudaNeedsNothingOfCuda) {
  const std::vector<std::string> none{"EIN_NVRTC=/nowhere/libnvrtc.so",
                                      "EIN_CUDA_DRIVER=/nowhere/libcuda.so.1"};
  EXPECT_EQ(text_of(product("cuda")), text_of(product("cuda"), none));
}

TEST_F(CudaCommand, EmittedFileCompilesByItself) {
  const std::string path = scratch.path("kernels.cu");
  EXPECT_EQ(text_of(product("cuda", {"-o", path})), "");
  const std::string text = test::read_bytes(path);
  const std::string printed = text_of(product("cuda"));
  const std::size_t begin = printed.find("extern \"C\"");
  const std::string kernel = printed.substr(begin, printed.find("\n}\n", begin) - begin);
  const std::size_t found = text.find(kernel);
  ASSERT_NE(found, text.npos) << text;
  EXPECT_GT(found, 0u);  // after the vocabulary
  SKIP_WITHOUT_NVRTC();
  EXPECT_FALSE(gpu::kernels_of(gpu::compile({"kernels.cu", text})).empty());
}

TEST_F(CudaCommand, EmitCubin) {
  SKIP_WITHOUT_NVRTC();
  const std::string path = scratch.path("product.cubin");
  const std::vector<std::string> words =
      product("cubin", {"--dtype", "f16", "--arch", "sm_80", "-o", path});
  const std::string cache = "XDG_CACHE_HOME=" + scratch.path("cache");
  const std::string cold = text_of(words, {cache});
  const std::string image = test::read_bytes(path);
  const auto kernels = gpu::kernels_of({image, ""});
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels[0].sm, 80);
  EXPECT_TRUE(std::regex_search(
      cold, std::regex("kernel +registers +shared +stack +spilled +threads +code\n" +
                       kernels[0].name + " +" + std::to_string(kernels[0].registers) +
                       " +[0-9,]+ +0 +0 +[0-9,]+ +[0-9,]+\n")))
      << cold;
  expect_holds(cold, {"sm_80, NVRTC ", "compiled in ", " in " + path});

  const std::string warm = text_of(words, {cache});
  expect_holds(warm, {"from the cache in "});
  EXPECT_EQ(warm.substr(0, warm.find("sm_80")), cold.substr(0, cold.find("sm_80")));
  EXPECT_EQ(test::read_bytes(path), image);

  expect_holds(text_of(product("cubin"), {cache}), {"sm_90a, NVRTC ", "compiled in "});
  // Where nothing can be kept, it works all the same.
  test::write_bytes(scratch.path("file"), "");
  expect_holds(text_of(words, {"XDG_CACHE_HOME=" + scratch.path("file")}), {"compiled in "});
}

TEST_F(CudaCommand, SeveralKernelsAreOneCubin) {
  SKIP_WITHOUT_NVRTC();
  const std::string path = scratch.path("all.cubin");
  const std::string text = text_of(
      {"emit", "cubin", "reduce", "b c ->", "--shape", "64,1000", "--by", "logsumexp", "-o", path});
  const auto kernels = gpu::kernels_of({test::read_bytes(path), ""});
  EXPECT_GT(kernels.size(), 1u);
  for (const gpu::KernelResources& kernel : kernels) expect_holds(text, {kernel.name});
}

/// A small step; of options given again the last counts.
std::vector<std::string> step(const std::string& form, const std::vector<std::string>& more = {}) {
  std::vector<std::pair<std::string, std::string>> options{
      {"--n-layer", "3"},    {"--n-head", "2"},     {"--n-embd", "16"},
      {"--block-size", "8"}, {"--batch-size", "2"}, {"--dropout", "0.1"}};
  std::vector<std::string> words{"step", form};
  for (const auto& [name, value] : options) {
    if (std::find(more.begin(), more.end(), name) == more.end())
      words.insert(words.end(), {name, value});
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(CudaCommand, AWholeStepAsText) {
  const std::vector<std::string> none{"EIN_NVRTC=/nowhere/libnvrtc.so",
                                      "EIN_CUDA_DRIVER=/nowhere/libcuda.so.1"};
  const std::string text = text_of(step("cuda"), none);
  EXPECT_EQ(text, text_of(step("cuda")));
  expect_holds(text, {"many_f32_", "contract_", "// The launches, in order:\n// "});
  // Three layers have the kernels of one.
  const auto kernels_in = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("extern \"C\" __global__", at)) != text.npos; ++at)
      ++count;
    return count;
  };
  EXPECT_EQ(kernels_in(text), kernels_in(text_of(step("cuda", {"--n-layer", "2"}))));
}

TEST_F(CudaCommand, AWholeStepIsWarmInTheCache) {
  SKIP_WITHOUT_NVRTC();
  const std::string cache = "XDG_CACHE_HOME=" + scratch.path("cache");
  const auto words = step("cubin", {"--dtype", "bf16", "-o", scratch.path("kernels")});
  const std::string cold = text_of(words, {cache});
  std::smatch found;
  ASSERT_TRUE(std::regex_search(cold, found,
                                std::regex("([0-9]+) launches of ([0-9]+) kernels in "
                                           "([0-9]+) units; sm_90a, NVRTC")))
      << cold;
  const std::size_t units = std::stoul(found[3]);
  EXPECT_GT(std::stoul(found[1]), std::stoul(found[2]));
  EXPECT_EQ(units, (std::stoul(found[2]) + 7) / 8);
  expect_holds(cold, {" 0 units from the cache"});
  expect_holds(text_of(words, {cache}),
               {std::to_string(units) + " units from the cache, the others compiled, in "});
  std::size_t kernels = 0;
  for (std::size_t u = 0; u < units; ++u)
    kernels += gpu::kernels_of(
                   {test::read_bytes(scratch.path("kernels/" + std::to_string(u) + ".cubin")), ""})
                   .size();
  EXPECT_EQ(kernels, std::stoul(found[2]));
}

/// Sizes for which every contraction and the attention are done by tensor cores.
void expect_tensor_cores(const std::string& arch, const std::string& contractions) {
  const std::string text = text_of(
      step("cubin", {"--n-layer", "1", "--n-embd", "768", "--n-head", "12", "--block-size", "1024",
                     "--batch-size", "16", "--dtype", "bf16", "--dropout", "0", "--arch", arch}));
  expect_holds(text, {"many_f32_", "attention", contractions, "; " + arch + ", NVRTC"});
  EXPECT_EQ(text.find("contract_bf16"), text.npos) << text;
}
TEST_F(CudaCommand, AWholeStepOnTensorCores) {
  SKIP_WITHOUT_NVRTC();
  expect_tensor_cores("sm_90a", "contract_wgmma_");
}
TEST_F(CudaCommand, SlowAWholeStepOnAmperesTensorCores) {
  SKIP_WITHOUT_NVRTC();
  expect_tensor_cores("sm_80", "contract_mma_");
}

TEST_F(CudaCommand, TimeOfAStep) {
  const std::string text = text_of(step("time", {"--seconds", "0.01"}));
  expect_holds(text, {"tokens of a step", "tokens/s", "MFU", "median", "loss"});
  const auto object = nlohmann::json::parse(text_of(step("time", {"--seconds", "0.01", "--json"})));
  EXPECT_GE(object["steps"], 5);
  EXPECT_NEAR(object["tokens_per_second"].get<double>() * object["median_seconds"].get<double>(),
              16, 1e-3);
}

TEST_F(CudaCommand, MistakesOfStep) {
  expect_fails(2, step("ptx"), "unknown form 'ptx'");
  expect_fails(2, step("cuda", {"--arch", "hopper"}), "is no architecture");
  expect_fails(2, step("cuda", {"--batch-size", "0"}), "sizes must be at least 1");
  expect_fails(2, step("cuda", {"--n-head", "3"}), "3 heads do not divide");
  expect_fails(2, step("time", {"-o", "x"}), "-o is for cuda, cubin and memory");
  expect_fails(2, step("time", {"--device", "gpu"}), "is none of cpu, cuda");
  expect_fails(1, step("time", {"--device", "cuda"}), "no NVIDIA driver",
               {"EIN_CUDA_DRIVER=/nowhere/libcuda.so.1"});
  expect_fails(1, step("cubin"), "install the CUDA toolkit", {"EIN_NVRTC=/nowhere/libnvrtc.so"});
  // A GPU without a compiler.
  expect_fails(1, step("time", {"--device", "cuda"}), "install the CUDA toolkit",
               {"EIN_CUDA_DRIVER=" EIN_FAKE_CUDA, "EIN_NVRTC=/nowhere/libnvrtc.so"});
}

TEST_F(CudaCommand, EmitMistakes) {
  for (const std::string form : {"cuda", "cubin"}) {
    expect_fails(2, product(form, {"--arch", "hopper"}),
                 "'hopper' is no architecture such as sm_80");
    expect_fails(2, product(form, {"--arch", "sm_"}), "is no architecture");
    expect_fails(2, product(form, {"--arch", "sm_9x"}), "is no architecture");
    expect_fails(2, product(form, {"--arch", "sm_70"}), "sm_80 and newer");
    expect_fails(2, {"emit", form, "einsum", "a -> a"}, "emit needs --shape");
    expect_fails(2, {"emit", form, "einsum", "a b -> a", "--shape", "3"}, "operand 1 has 1 axis");
  }
  expect_fails(2, product("nest", {"-o", "x"}), "-o is for svg, cuda and cubin, not for nest");
  expect_fails(1, product("cuda", {"-o", scratch.path("no/such/folder.cu")}), "cannot be written");
  expect_fails(1, product("cuda", {"-o", scratch.path().string()}), "it is a directory");
}

TEST_F(CudaCommand, WithoutNvrtcNothingIsTouched) {
  const std::string path = scratch.path("old.cubin");
  test::write_bytes(path, "old");
  expect_fails(1, product("cubin", {"-o", path}), "install the CUDA toolkit",
               {"EIN_NVRTC=/nowhere/libnvrtc.so"});
  EXPECT_EQ(test::read_bytes(path), "old");
  EXPECT_EQ(scratch.listing(), std::vector<std::string>{"old.cubin"});
}

TEST_F(CudaCommand, AnArchitectureThatNvrtcLacks) {
  SKIP_WITHOUT_NVRTC();
  expect_fails(2, product("cubin", {"--arch", "sm_999"}),
               "does not compile for sm_999; it does for");
}

TEST_F(CudaCommand, DevicesWithoutAny) {
  const std::vector<std::string> none{"EIN_NVRTC=/nowhere/libnvrtc.so",
                                      "EIN_CUDA_DRIVER=/nowhere/libcuda.so.1"};
  const std::string text = text_of({"devices"}, none);
  expect_holds(text, {"cpu  ", "thread", "of memory", "FLOP/s f32", "FLOP/s f64", "B/s",
                      "measured on this machine",
                      "cuda     no NVIDIA driver: /nowhere/libcuda.so.1", "install NVIDIA's driver",
                      "nvrtc    no NVRTC", "install the CUDA toolkit", "kernels  kept in "});
  const std::string json = text_of({"devices", "--json"}, none);
  expect_holds(json, {"\"cpu.name\": \"", "\"cpu.threads\": ",
                      "\"cuda.missing\": \"no NVIDIA driver", "\"nvrtc.missing\": \"no NVRTC"});
  EXPECT_EQ(json.find("\"cuda.devices\""), json.npos);
}

TEST_F(CudaCommand, DevicesOfADriver) {
  const std::string driver = "EIN_CUDA_DRIVER=" EIN_FAKE_CUDA;
  const std::string text = text_of({"devices"}, {driver});
  expect_holds(text, {"cuda:0   NVIDIA H100 80GB HBM3, 132 SMs, sm_90, driver for CUDA 13.0",
                      "85.9 GB of memory", "232,448 bytes a block", "989.5 TFLOP/s bf16",
                      "67 TFLOP/s f32", "3.35 TB/s (NVIDIA H100 Tensor Core GPU datasheet)",
                      "cuda:1   Fake device, 7 SMs", "peaks unknown"});
  const std::string json = text_of({"devices", "--json"}, {driver});
  expect_holds(json,
               {"\"cuda.driver\": \"13.0\"", "\"cuda.devices\": 2", "\"cuda:0.arch\": \"sm_90\"",
                "\"cuda:0.hardware\": \"h100-sxm\"", "\"cuda:1.sms\": 7"});
  EXPECT_EQ(json.find("cuda:1.hardware"), json.npos);
  expect_holds(text_of({"devices"}, {driver, "FAKE_CUDA=version=11040"}),
               {"cuda     the NVIDIA driver is too old, for CUDA 11.4; install a driver"});
  expect_holds(text_of({"devices"}, {driver, "FAKE_CUDA=devices=0"}),
               {"cuda     the NVIDIA driver has no device"});
}

#ifdef EIN_FAKE_NVRTC
TEST_F(CudaCommand, NvrtcIsOfTheDriversMajorVersion) {
  const std::string driver = "EIN_CUDA_DRIVER=" EIN_FAKE_CUDA;
  const std::vector<std::string> step{"step", "time", "--device", "cuda"};
  for (const char* name : {"libnvrtc.so.12", "libnvrtc.so.13"})
    std::filesystem::copy_file(EIN_FAKE_NVRTC, scratch.path(name));
  const std::string both = "LD_LIBRARY_PATH=" + scratch.path().string();
  expect_holds(text_of({"devices"}, {both, driver}), {"nvrtc    13.0, "});
  expect_holds(text_of({"devices"}, {both, driver, "FAKE_CUDA=version=12040"}),
               {"nvrtc    12.0, "});
  expect_holds(text_of({"devices"}, {both, driver, "FAKE_CUDA=version=14010"}),
               {"nvrtc    13.0, "});
  expect_holds(text_of({"devices"}, {both, "EIN_CUDA_DRIVER=/nowhere/libcuda.so.1"}),
               {"nvrtc    13.0, "});
  // One that is too new says so where a kernel would be loaded, and serves where none is.
  const std::string only = "EIN_NVRTC=" + scratch.path("libnvrtc.so.13");
  const std::string why_not = "the NVIDIA driver, for CUDA 12.4, loads no kernels that " +
                              scratch.path("libnvrtc.so.13") +
                              ", NVRTC 13.0, compiles; install the NVRTC of CUDA 12";
  expect_holds(text_of({"devices"}, {only, driver, "FAKE_CUDA=version=12040"}),
               {"nvrtc    13.0, ", why_not});
  expect_fails(1, step, "cuda:0: " + why_not, {only, driver, "FAKE_CUDA=version=12040"});
  expect_fails(1, bench_on("cuda:1"), "cuda:1: " + why_not,
               {only, driver, "FAKE_CUDA=version=12040"});
}
#endif

TEST_F(CudaCommand, AGpuBeforeAmpereIsRefused) {
  const std::vector<std::string> driver{"EIN_CUDA_DRIVER=" EIN_FAKE_CUDA, "FAKE_CUDA=major=7"};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"step", "time", "--device", "cuda"}, bench_on("cuda")})
    expect_fails(1, words,
                 "is of compute capability 7.0, and kernels are made for 8.0 (Ampere) and newer",
                 driver);
}

TEST_F(CudaCommand, HelpTeachesByExamples) {
  expect_holds(text_of({"devices", "--help"}), {"Examples:", "Exit code: 0"});
  expect_holds(text_of({"emit", "--help"}), {"ein emit cuda", "ein emit cubin", "Exit code: 0"});
  expect_fails(2, {"devices", "all"}, "all");
}

TEST_F(CudaCommand, BenchOnTheProcessor) {
  const std::vector<std::string> words{"bench",   "einsum", "a b, b c -> a c", "--shape", "64,32",
                                       "--shape", "32,48"};
  const std::string text = text_of(words);
  expect_holds(text, {"device", "cpu, ", "median", "fastest", "FLOP/s", "B/s", "roofline", " %"});
  std::vector<std::string> json = words;
  json.push_back("--json");
  const auto object = nlohmann::json::parse(text_of(json));
  EXPECT_GT(object["rounds"], 0);
  EXPECT_GE(object["median_seconds"], object["fastest_seconds"]);
  // Two FLOPs for each of 64 · 32 · 48 multiply-adds.
  EXPECT_NEAR(object["flops_per_second"].get<double>() * object["median_seconds"].get<double>(),
              2.0 * 64 * 32 * 48, 1);
  expect_holds(text_of({"bench", "rearrange", "a b -> b a", "--shape", "3,4"}),
               {"nothing to time"});
  expect_holds(
      text_of({"bench", "reduce", "a b -> a", "--by", "sum", "--shape", "3,4", "--dtype", "i32"}),
      {"median"});
  std::vector<std::string> of_complex = words;
  of_complex.insert(of_complex.end(), {"--dtype", "c64"});
  expect_holds(text_of(of_complex), {"median", "roofline", " %"});
}

TEST_F(CudaCommand, MistakesOfBench) {
  for (const std::string device : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda1"})
    expect_fails(2, bench_on(device), "--device '" + device + "' is neither cpu nor cuda");
  expect_fails(1, bench_on("cuda"), "no NVIDIA driver", {"EIN_CUDA_DRIVER=/nowhere/libcuda.so"});
  expect_fails(2, {"bench", "einsum", "a b, b c -> a c"}, "bench needs --shape");
  expect_fails(2, {"bench", "parse_shape", "a b", "--shape", "2,3"},
               "parse_shape computes nothing");
}

TEST_F(CudaCommand, BenchOnADriverThatKnowsNoSuchKernel) {
  SKIP_WITHOUT_NVRTC();
  expect_fails(1, bench_on("cuda:1"), "cuModuleGetFunction", {"EIN_CUDA_DRIVER=" EIN_FAKE_CUDA});
}

}  // namespace
}  // namespace ein
