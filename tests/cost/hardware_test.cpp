// Promised peaks, the machine's measured ones, and what is made of them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include <ein/call.hpp>
#include <ein/cost.hpp>
#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/parallel.hpp>

#include "cpu/measure.hpp"

namespace ein {
namespace {

namespace fs = std::filesystem;
using enum TensorCores;

template <class F>
ErrorKind kind_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::syntax;
}

// The datasheets' dense figures in TFLOP/s and GB/s, a second time; 0 where they have none.
struct Promise {
  const char* key;
  int sms;
  double f64, f64_tensor, f32, tf32, f16, bf16, f8, bandwidth;
};
const Promise promises[] = {
    {"v100-sxm", 80, 7.8, 0, 15.7, 0, 125, 0, 0, 900},
    {"v100-pcie", 80, 7, 0, 14, 0, 112, 0, 0, 900},
    {"t4", 40, 0, 0, 8.1, 0, 65, 0, 0, 320},
    {"a100-40gb", 108, 9.7, 19.5, 19.5, 156, 312, 312, 0, 1555},
    {"a100-pcie-80gb", 108, 9.7, 19.5, 19.5, 156, 312, 312, 0, 1935},
    {"a100-sxm-80gb", 108, 9.7, 19.5, 19.5, 156, 312, 312, 0, 2039},
    {"l4", 58, 0, 0, 30.3, 60, 121, 121, 242, 300},
    {"l40s", 142, 0, 0, 91.6, 183, 362.05, 362.05, 733, 864},
    {"rtx-4090", 128, 0, 0, 82.6, 82.6, 165.2, 165.2, 330.3, 1008},
    {"h100-sxm", 132, 34, 67, 67, 494.5, 989.5, 989.5, 1979, 3350},
    {"h100-pcie", 114, 26, 51, 51, 378, 756, 756, 1513, 2000},
    {"h100-nvl", 132, 30, 60, 60, 417.5, 835.5, 835.5, 1671, 3900},
    {"h200-sxm", 132, 34, 67, 67, 494.5, 989.5, 989.5, 1979, 4800},
    {"h200-nvl", 132, 30, 60, 60, 420, 840, 840, 1680, 4800},
    {"b200", 148, 37, 37, 75, 1125, 2250, 2250, 4500, 8000},
};

TEST(Hardware, PromisesAreTheDatasheets) {
  EXPECT_EQ(known_hardware().size(), std::size(promises));
  for (const Promise& p : promises) {
    SCOPED_TRACE(p.key);
    const auto device = find_hardware(p.key);
    ASSERT_TRUE(device);
    EXPECT_EQ(device->sms, p.sms);
    EXPECT_DOUBLE_EQ(device->bandwidth, p.bandwidth * 1e9);
    EXPECT_GE(device->memory, 16e9);
    EXPECT_NE(device->source.find("NVIDIA"), std::string::npos);
    const auto expect_peak = [&](DType dtype, TensorCores units, double tera) {
      SCOPED_TRACE(std::string(name(dtype)) + (units == yes ? " tensor cores" : ""));
      const auto peak = device->peak(dtype, units);
      EXPECT_EQ(peak.has_value(), tera > 0);
      EXPECT_DOUBLE_EQ(peak.value_or(0), tera * 1e12);
    };
    expect_peak(DType::f64, no, p.f64);
    expect_peak(DType::f64, yes, p.f64_tensor);
    expect_peak(DType::f32, no, p.f32);
    expect_peak(DType::f32, yes, p.tf32);
    expect_peak(DType::f16, yes, p.f16);
    expect_peak(DType::bf16, yes, p.bf16);
    expect_peak(DType::f8e4m3, yes, p.f8);
    expect_peak(DType::f8e5m2, yes, p.f8);
    expect_peak(DType::f16, no, 0);
    expect_peak(DType::i32, no, 0);
  }
}

TEST(Hardware, UsualUnits) {
  const Hardware h100 = hardware_named("h100-sxm");
  EXPECT_EQ(h100.peak(DType::f32), 67e12);  // not TF32
  EXPECT_EQ(h100.peak(DType::f64), 34e12);
  EXPECT_EQ(h100.peak(DType::bf16), 989.5e12);
  EXPECT_EQ(h100.peak(DType::i64), std::nullopt);
  EXPECT_EQ(hardware_named("t4").peak(DType::bf16), std::nullopt);
  EXPECT_EQ(hardware_named("v100-sxm").peak(DType::f8e4m3), std::nullopt);
}

// NVLink and PCI Express as the datasheets give them, for both directions, in GB/s; InfiniBand as
// the datasheets of the DGX systems do, in Gb/s for all 8 devices.
TEST(Hardware, LinksAreTheDatasheets) {
  const struct {
    const char* key;
    double nvlink;
    int group;
    double pcie, infiniband;
  } links[] = {{"v100-sxm", 300, 8, 32, 400},
               {"v100-pcie", 0, 0, 32, 0},
               {"t4", 0, 0, 32, 0},
               {"a100-40gb", 600, 8, 64, 1600},
               {"a100-pcie-80gb", 600, 2, 64, 0},
               {"a100-sxm-80gb", 600, 8, 64, 1600},
               {"l4", 0, 0, 64, 0},
               {"l40s", 0, 0, 64, 0},
               {"rtx-4090", 0, 0, 64, 0},
               {"h100-sxm", 900, 8, 128, 3200},
               {"h100-pcie", 600, 2, 128, 0},
               {"h100-nvl", 600, 2, 128, 0},
               {"h200-sxm", 900, 8, 128, 3200},
               {"h200-nvl", 900, 4, 128, 0},
               {"b200", 1800, 8, 128, 3200}};
  EXPECT_EQ(known_hardware().size(), std::size(links));
  for (const auto& promised : links) {
    SCOPED_TRACE(promised.key);
    const Hardware::Links found = hardware_named(promised.key).links;
    EXPECT_DOUBLE_EQ(found.nvlink, promised.nvlink / 2 * 1e9);
    EXPECT_EQ(found.nvlink_group, promised.group);
    EXPECT_DOUBLE_EQ(found.pcie, promised.pcie / 2 * 1e9);
    EXPECT_DOUBLE_EQ(found.infiniband, promised.infiniband / 8 / 8 * 1e9);
    EXPECT_EQ(found.source.starts_with("NVIDIA DGX"), promised.infiniband > 0);
  }
}

TEST(Hardware, KeysAreExactInAnyCase) {
  std::set<std::string> keys;
  for (const Hardware& device : known_hardware()) {
    EXPECT_TRUE(keys.insert(device.key).second) << device.key;
    EXPECT_EQ(find_hardware(device.key)->key, device.key);
  }
  EXPECT_EQ(find_hardware("H100-SXM")->name, "H100 SXM");
  EXPECT_EQ(find_hardware("L4")->sms, 58);
  EXPECT_EQ(find_hardware("L40S")->sms, 142);
  for (const char* unknown :
       {"", "l40", "l4s", "h100", "h100-sxm5", "a100", "h100-sxm ", "gtx-1080"}) {
    EXPECT_FALSE(find_hardware(unknown)) << unknown;
  }
}

TEST(Hardware, UnknownDeviceListsTheKnown) {
  try {
    hardware_named("h100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    const std::string text = error.what();
    EXPECT_NE(text.find("unknown device 'h100'"), std::string::npos) << text;
    for (const Hardware& device : known_hardware()) {
      EXPECT_NE(text.find(device.key), std::string::npos) << device.key;
    }
  }
}

TEST(Hardware, NamesOfDriversWithTheirCounts) {
  const auto key = [](const char* name, int sms) {
    const auto device = find_hardware(name, sms);
    return device ? device->key : "unknown";
  };
  EXPECT_EQ(key("NVIDIA H100 80GB HBM3", 132), "h100-sxm");
  EXPECT_EQ(key("NVIDIA H100 PCIe", 114), "h100-pcie");
  EXPECT_EQ(key("NVIDIA H100 NVL", 132), "h100-nvl");
  EXPECT_EQ(key("NVIDIA H200", 132), "h200-sxm");
  EXPECT_EQ(key("NVIDIA H200 NVL", 132), "h200-nvl");
  EXPECT_EQ(key("NVIDIA B200", 148), "b200");
  EXPECT_EQ(key("NVIDIA L4", 58), "l4");
  EXPECT_EQ(key("NVIDIA L40S", 142), "l40s");
  EXPECT_EQ(key("Tesla T4", 40), "t4");
  EXPECT_EQ(key("Tesla V100-SXM2-32GB", 80), "v100-sxm");
  EXPECT_EQ(key("Tesla V100-PCIE-16GB", 80), "v100-pcie");
  EXPECT_EQ(key("NVIDIA A100-SXM4-40GB", 108), "a100-40gb");
  EXPECT_EQ(key("A100-PCIE-40GB", 108), "a100-40gb");
  EXPECT_EQ(key("NVIDIA A100-SXM4-80GB", 108), "a100-sxm-80gb");
  EXPECT_EQ(key("NVIDIA A100 80GB PCIe", 108), "a100-pcie-80gb");
  EXPECT_EQ(key("NVIDIA GeForce RTX 4090", 128), "rtx-4090");
  // Relatives, and parts of a device.
  EXPECT_EQ(key("NVIDIA L40S", 58), "unknown");
  EXPECT_EQ(key("NVIDIA L40", 142), "unknown");
  EXPECT_EQ(key("NVIDIA GeForce RTX 4090 D", 114), "unknown");
  EXPECT_EQ(key("NVIDIA GeForce RTX 4090 Laptop GPU", 76), "unknown");
  EXPECT_EQ(key("NVIDIA H100 80GB HBM3", 114), "unknown");
  EXPECT_EQ(key("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16), "unknown");
  EXPECT_EQ(key("Tesla V100S-PCIE-32GB", 80), "unknown");
  EXPECT_EQ(key("NVIDIA GH200 480GB", 132), "unknown");
  EXPECT_EQ(key("", 0), "unknown");
}

TEST(Hardware, APeakThatTheUserKnowsBetter) {
  Hardware device = hardware_named("t4");
  device.set_peak(DType::f32, no, 7e12);
  device.set_peak(DType::bf16, yes, 1e12);
  EXPECT_EQ(device.peak(DType::f32), 7e12);
  EXPECT_EQ(device.peak(DType::bf16), 1e12);
  EXPECT_EQ(find_hardware("t4")->peak(DType::f32), 8.1e12);
  for (double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(kind_of([&] { device.set_peak(DType::f32, no, bad); }), ErrorKind::value);
  }
}

// --- roofline ---

Cost cost_of(Operation op, const char* pattern, const std::vector<Shape>& shapes,
             DType dtype = DType::f32) {
  CallOptions options;
  options.dtype = dtype;
  return cost(graph_of(op, runtime(pattern), shapes, options));
}

TEST(Roofline, ComputeBound) {
  const Cost cost = cost_of(Operation::einsum, "i k, k j -> i j", {{4096, 4096}, {4096, 4096}});
  const Roofline r = roofline(cost, hardware_named("h100-sxm"), DType::f32);
  const double n = 4096;
  EXPECT_DOUBLE_EQ(r.intensity, 2 * n * n * n / (3 * n * n * 4));
  EXPECT_DOUBLE_EQ(r.ridge, 20);
  EXPECT_DOUBLE_EQ(r.compute_seconds, 2 * n * n * n / 67e12);
  EXPECT_DOUBLE_EQ(r.bandwidth_seconds, 12 * n * n / 3350e9);
  EXPECT_EQ(r.seconds, r.compute_seconds);
  EXPECT_EQ(r.bound, Bound::compute);
  const Roofline tf32 = roofline(cost, hardware_named("h100-sxm"), DType::f32, yes);
  EXPECT_DOUBLE_EQ(tf32.compute_seconds, 2 * n * n * n / 494.5e12);
}

TEST(Roofline, BandwidthBound) {
  const Cost cost = cost_of(Operation::reduce, "b c -> b", {{1000, 1000}}, DType::bf16);
  const Roofline r = roofline(cost, hardware_named("a100-sxm-80gb"), DType::bf16);
  EXPECT_DOUBLE_EQ(r.intensity, 1e6 / (2e6 + 2e3));
  EXPECT_EQ(r.bound, Bound::bandwidth);
  EXPECT_DOUBLE_EQ(r.seconds, 2002e3 / 2039e9);
  EXPECT_EQ(name(r.bound), "bandwidth");
}

TEST(Roofline, WithoutArithmeticNoPeakIsNeeded) {
  const Roofline r = roofline(cost_of(Operation::rearrange, "a b -> b a", {{100, 100}}, DType::i64),
                              hardware_named("t4"), DType::i64);
  EXPECT_EQ(r.intensity, 0);
  EXPECT_DOUBLE_EQ(r.seconds, 160000 / 320e9);
  EXPECT_EQ(kind_of([] {
              roofline(cost_of(Operation::reduce, "a b -> a", {{3, 3}}, DType::bf16),
                       hardware_named("t4"), DType::bf16);
            }),
            ErrorKind::dtype);
}

TEST(Roofline, NothingAndNoBytes) {
  const Roofline nothing = roofline(Cost(), hardware_named("t4"), DType::f32);
  EXPECT_EQ(nothing.seconds, 0);
  EXPECT_EQ(nothing.intensity, 0);
  Cost cost;
  cost.model = 10;
  EXPECT_EQ(roofline(cost, hardware_named("t4"), DType::f32).intensity,
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(kind_of([] { roofline(Cost(), Hardware(), DType::f32); }), ErrorKind::value);
}

TEST(Utilisation, OfATimedRun) {
  // PaLM 540B: 238.3e3 tokens a second on 6144 chips of 275e12, 6·N + 12·L·H·Q·T FLOPs a token with
  // N = 540.35e9, L = 118, H = 48, Q = 256, T = 2048: 46.2 % (appendix B).
  const double token = 6 * 540.35e9 + 12.0 * 118 * 48 * 256 * 2048;
  EXPECT_NEAR(mfu(238.3e3 * token, 1, 6144 * 275e12), 0.462, 0.0005);
  EXPECT_DOUBLE_EQ(mfu(1e12, 2, 1e12), 0.5);
  EXPECT_DOUBLE_EQ(hfu(4e12 / 3, 2, 1e12), 2.0 / 3);
  EXPECT_EQ(mfu(0, 1, 1), 0);
  EXPECT_EQ(kind_of([] { mfu(1, 0, 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { mfu(-1, 1, 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { mfu(1, 1, 0); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { hfu(1, std::nan(""), 1); }), ErrorKind::value);
  EXPECT_EQ(kind_of([] { hfu(1, 1, -2); }), ErrorKind::value);
}

// --- this machine ---

class MeasuredCpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ein-hardware-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (before_)
      setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    else
      unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    if (!fs::exists(folder_ / "ein")) return all;
    for (const auto& entry : fs::directory_iterator(folder_ / "ein")) all.push_back(entry.path());
    return all;
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  std::optional<std::string> before_;
};

bool same(const Hardware& a, const Hardware& b) {
  return a.peak(DType::f32) == b.peak(DType::f32) && a.peak(DType::f64) == b.peak(DType::f64) &&
         a.bandwidth == b.bandwidth && a.name == b.name;
}

TEST_F(MeasuredCpu, IsPlausibleAndKept) {
  const Hardware cpu = hardware_named("CPU");
  EXPECT_EQ(cpu.key, "cpu");
  EXPECT_EQ(cpu.sms, 0);
  EXPECT_EQ(cpu.source, "measured on this machine");
  // From a slow emulator to the largest server.
  EXPECT_GT(*cpu.peak(DType::f32), 1e7 * num_threads());
  EXPECT_LT(*cpu.peak(DType::f32), 1e12 * num_threads());
  EXPECT_GT(*cpu.peak(DType::f64), 1e7 * num_threads());
  EXPECT_LT(*cpu.peak(DType::f64), *cpu.peak(DType::f32));
  EXPECT_EQ(cpu.peak(DType::f16), cpu.peak(DType::f32));
  // Pairs at a time where the processor has that; but a build with sanitizers measures its own
  // overhead.
  EXPECT_GT(*cpu.peak(DType::bf16), 0.25 * *cpu.peak(DType::f32));
  EXPECT_EQ(cpu.peak(DType::i32), std::nullopt);
  EXPECT_GT(cpu.bandwidth, 1e7);
  EXPECT_LT(cpu.bandwidth, 2e12);
  EXPECT_GT(cpu.memory, 1e8);

  struct stat status {};
  ASSERT_EQ(stat((folder_ / "ein").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(files().size(), 1u);
  // All digits agree: it was not measured again.
  EXPECT_TRUE(same(measured_cpu(), cpu));
}

/// In place of a measurement: other numbers each time.
CpuLimits numbers() {
  static int calls = 0;
  const double rate = 1e9 + ++calls;
  return {.model = {},
          .threads = 0,
          .f32 = 2 * rate,
          .f64 = rate,
          .bf16 = 4 * rate,
          .read = rate,
          .copy = rate};
}

TEST_F(MeasuredCpu, FilesThatAreNotWhatWasWrittenAreMeasuredAnew) {
  const Hardware first = host::measured_cpu(numbers);
  const fs::path path = files().at(0);
  const std::string good = content(path);
  std::string changed = good;
  const std::size_t digit = good.find("f32 ") + 4;
  changed[digit] = changed[digit] == '9' ? '8' : '9';
  std::string other = good;
  other.replace(other.find("threads "), 9, "threads 7");
  for (const std::string& bad : {good.substr(0, good.size() / 2), changed, other}) {
    std::ofstream(path, std::ios::binary) << bad;
    const Hardware again = host::measured_cpu(numbers);
    EXPECT_FALSE(same(again, first));
    EXPECT_NE(content(path), bad);
    EXPECT_TRUE(same(host::measured_cpu(numbers), again));
  }
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(MeasuredCpu, EachNumberOfThreadsIsItsOwn) {
  const int before = num_threads();
  set_num_threads(1);
  const Hardware one = host::measured_cpu(numbers);
  set_num_threads(2);
  const Hardware two = host::measured_cpu(numbers);
  set_num_threads(1);
  EXPECT_TRUE(same(host::measured_cpu(numbers), one));
  set_num_threads(before);
  EXPECT_FALSE(same(one, two));
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(MeasuredCpu, ADirectoryThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(folder_ / "ein");
  fs::permissions(folder_ / "ein", fs::perms::all);
  EXPECT_GT(*host::measured_cpu(numbers).peak(DType::f32), 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(MeasuredCpu, NoDirectoryAtAll) {
  std::ofstream(folder_ / "file") << "x";
  setenv("XDG_CACHE_HOME", (folder_ / "file").c_str(), 1);
  EXPECT_GT(*host::measured_cpu(numbers).peak(DType::f32), 0);
}

}  // namespace
}  // namespace ein
