#include <ein/hardware.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ein/error.hpp>
#include "graph/diagnostic.hpp"
#include "machine/fork.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

/// A line of the table: dense FLOP/s and bytes/s as the datasheet has them, 0 where it has nothing.
/// `half` is FP16 and, from Ampere on, BF16. Drivers report the names without "NVIDIA " as well.
struct Line {
  const char* key;
  const char* name;
  std::vector<std::string_view> drivers;
  int sms;
  double f64, f64_tensor, f32, tf32, half, f8;
  bool has_bf16;
  double bandwidth, memory;
  const char* source;
  Hardware::Links links;
};

constexpr const char* v100 = "NVIDIA V100 Tensor Core GPU datasheet";
constexpr const char* a100 = "NVIDIA A100 Tensor Core GPU datasheet";
constexpr const char* h100 = "NVIDIA H100 Tensor Core GPU datasheet";
constexpr const char* h200 = "NVIDIA H200 Tensor Core GPU datasheet";

/// PCI Express with 16 lanes.
constexpr double gen3 = 16e9, gen4 = 32e9, gen5 = 64e9;
Hardware::Links pcie_alone(double pcie) { return {.pcie = pcie}; }
/// NVLink bridges between cards.
Hardware::Links bridged(double nvlink, int group, double pcie) {
  return {.nvlink = nvlink, .nvlink_group = group, .pcie = pcie};
}
// Adapters of 100, 200 and 400 Gb/s for 8 devices: 4 in the DGX-1, 8 in the others.
Hardware::Links dgx1() { return {150e9, 8, gen3, 4 * 12.5e9 / 8, "NVIDIA DGX-1 datasheet"}; }
Hardware::Links dgx_a100() { return {300e9, 8, gen4, 25e9, "NVIDIA DGX A100 datasheet"}; }
Hardware::Links dgx_h100() { return {450e9, 8, gen5, 50e9, "NVIDIA DGX H100 datasheet"}; }
Hardware::Links dgx_h200() { return {450e9, 8, gen5, 50e9, "NVIDIA DGX H200 datasheet"}; }
Hardware::Links dgx_b200() { return {900e9, 8, gen5, 50e9, "NVIDIA DGX B200 datasheet"}; }

const std::vector<Line>& lines() {
  // clang-format off
  return made_once([] { return std::vector<Line>{
      // key, name, drivers, SMs,
      //     f64, f64 tensor, f32, tf32, f16 and bf16, f8, has bf16, bandwidth, memory, source, links
      {"v100-sxm", "V100 SXM2", {"tesla v100-sxm2-16gb", "tesla v100-sxm2-32gb"}, 80,
           7.8e12, 0, 15.7e12, 0, 125e12, 0, false, 900e9, 16e9, v100, dgx1()},
      {"v100-pcie", "V100 PCIe", {"tesla v100-pcie-16gb", "tesla v100-pcie-32gb"}, 80,
           7e12, 0, 14e12, 0, 112e12, 0, false, 900e9, 16e9, v100, pcie_alone(gen3)},
      {"t4", "T4", {"tesla t4", "t4"}, 40,
           0, 0, 8.1e12, 0, 65e12, 0, false, 320e9, 16e9,
           "NVIDIA T4 Tensor Core GPU datasheet", pcie_alone(gen3)},
      {"a100-40gb", "A100 40 GB", {"a100-sxm4-40gb", "a100-pcie-40gb"}, 108,
           9.7e12, 19.5e12, 19.5e12, 156e12, 312e12, 0, true, 1555e9, 40e9, a100, dgx_a100()},
      {"a100-pcie-80gb", "A100 PCIe 80 GB", {"a100 80gb pcie"}, 108,
           9.7e12, 19.5e12, 19.5e12, 156e12, 312e12, 0, true, 1935e9, 80e9, a100,
           bridged(300e9, 2, gen4)},
      {"a100-sxm-80gb", "A100 SXM 80 GB", {"a100-sxm4-80gb"}, 108,
           9.7e12, 19.5e12, 19.5e12, 156e12, 312e12, 0, true, 2039e9, 80e9, a100, dgx_a100()},
      {"l4", "L4", {"l4"}, 58,
           0, 0, 30.3e12, 60e12, 121e12, 242e12, true, 300e9, 24e9,
           "NVIDIA L4 Tensor Core GPU datasheet", pcie_alone(gen4)},
      {"l40s", "L40S", {"l40s"}, 142,
           0, 0, 91.6e12, 183e12, 362.05e12, 733e12, true, 864e9, 48e9,
           "NVIDIA L40S GPU datasheet", pcie_alone(gen4)},
      {"rtx-4090", "GeForce RTX 4090", {"geforce rtx 4090"}, 128,
           0, 0, 82.6e12, 82.6e12, 165.2e12, 330.3e12, true, 1008e9, 24e9,
           "NVIDIA Ada GPU architecture whitepaper", pcie_alone(gen4)},
      {"h100-sxm", "H100 SXM", {"h100 80gb hbm3"}, 132,
           34e12, 67e12, 67e12, 494.5e12, 989.5e12, 1979e12, true, 3350e9, 80e9, h100, dgx_h100()},
      {"h100-pcie", "H100 PCIe", {"h100 pcie"}, 114,
           26e12, 51e12, 51e12, 378e12, 756e12, 1513e12, true, 2000e9, 80e9, h100,
           bridged(300e9, 2, gen5)},
      {"h100-nvl", "H100 NVL", {"h100 nvl"}, 132,
           30e12, 60e12, 60e12, 417.5e12, 835.5e12, 1671e12, true, 3900e9, 94e9, h100,
           bridged(300e9, 2, gen5)},
      {"h200-sxm", "H200 SXM", {"h200"}, 132,
           34e12, 67e12, 67e12, 494.5e12, 989.5e12, 1979e12, true, 4800e9, 141e9, h200, dgx_h200()},
      {"h200-nvl", "H200 NVL", {"h200 nvl"}, 132,
           30e12, 60e12, 60e12, 420e12, 840e12, 1680e12, true, 4800e9, 141e9, h200,
           bridged(450e9, 4, gen5)},
      {"b200", "B200", {"b200"}, 148,
           37e12, 37e12, 75e12, 1125e12, 2250e12, 4500e12, true, 8000e9, 180e9,
           "NVIDIA Blackwell (HGX B200) datasheet", dgx_b200()},
  }; });
  // clang-format on
}

Hardware hardware_of(const Line& line) {
  Hardware h{line.key,       line.name,   line.sms,    {},
             line.bandwidth, line.memory, line.source, line.links};
  const auto add = [&h](DType dtype, TensorCores units, double flops) {
    if (flops > 0) h.peaks.push_back({dtype, units, flops});
  };
  add(DType::f64, TensorCores::no, line.f64);
  add(DType::f64, TensorCores::yes, line.f64_tensor);
  add(DType::f32, TensorCores::no, line.f32);
  add(DType::f32, TensorCores::yes, line.tf32);
  add(DType::f16, TensorCores::yes, line.half);
  add(DType::bf16, TensorCores::yes, line.has_bf16 ? line.half : 0);
  add(DType::f8e4m3, TensorCores::yes, line.f8);
  add(DType::f8e5m2, TensorCores::yes, line.f8);
  return h;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

std::optional<double> Hardware::peak(DType dtype, TensorCores units) const {
  for (const Peak& p : peaks) {
    if (p.dtype == dtype && p.units == units) return p.flops;
  }
  return std::nullopt;
}

std::optional<double> Hardware::peak(DType dtype) const {
  const TensorCores usual = usual_units(dtype);
  const auto there = peak(dtype, usual);
  return there ? there
               : peak(dtype, usual == TensorCores::yes ? TensorCores::no : TensorCores::yes);
}

void Hardware::set_peak(DType dtype, TensorCores units, double flops) {
  if (!std::isfinite(flops) || flops <= 0) {
    throw Error(ErrorKind::value,
                "a peak is a positive number of FLOP/s, not " + std::to_string(flops));
  }
  for (Peak& p : peaks) {
    if (p.dtype == dtype && p.units == units) {
      p.flops = flops;
      return;
    }
  }
  peaks.push_back({dtype, units, flops});
}

std::span<const Hardware> known_hardware() {
  return made_once([] {
    std::vector<Hardware> all;
    for (const Line& line : lines()) all.push_back(hardware_of(line));
    return all;
  });
}

std::optional<Hardware> find_hardware(std::string_view key) {
  const std::string wanted = lower_case(key);
  for (const Hardware& device : known_hardware()) {
    if (device.key == wanted) return device;
  }
  return std::nullopt;
}

std::optional<Hardware> find_hardware(std::string_view driver_name, int sms) {
  std::string wanted = lower_case(driver_name);
  if (wanted.starts_with("nvidia ")) wanted.erase(0, 7);
  for (std::size_t i = 0; i < lines().size(); ++i) {
    const Line& line = lines()[i];
    const bool named =
        std::find(line.drivers.begin(), line.drivers.end(), wanted) != line.drivers.end();
    if (named && line.sms == sms) return known_hardware()[i];
  }
  return std::nullopt;
}

Hardware hardware_named(std::string_view key) {
  if (lower_case(key) == "cpu") return measured_cpu();
  if (auto device = find_hardware(key)) return *device;
  std::string keys = "cpu";
  for (const Hardware& device : known_hardware()) keys += ", " + device.key;
  throw Error(ErrorKind::value, "unknown device " + quoted(key) + "; known are " + keys);
}

std::string_view name(Bound bound) { return bound == Bound::compute ? "compute" : "bandwidth"; }

namespace {

Roofline roofline_at(const Cost& cost, const Hardware& hardware, DType dtype,
                     std::optional<double> peak) {
  const double flops = cost.model.approximate();
  const double bytes = cost.bytes().approximate();
  if (flops > 0 && !peak) {
    throw Error(ErrorKind::dtype, hardware.name + " promises no peak for " +
                                      std::string(name(dtype)) + " on these units");
  }
  if (!(hardware.bandwidth > 0)) {
    throw Error(ErrorKind::value,
                "the bandwidth of " + hardware.name + " is not a positive number");
  }
  Roofline r{};
  if (flops > 0) r.intensity = bytes > 0 ? flops / bytes : std::numeric_limits<double>::infinity();
  if (peak) r.ridge = *peak / hardware.bandwidth;
  r.compute_seconds = flops > 0 ? flops / *peak : 0;
  r.bandwidth_seconds = bytes / hardware.bandwidth;
  r.bound = r.compute_seconds > r.bandwidth_seconds ? Bound::compute : Bound::bandwidth;
  r.seconds = std::max(r.compute_seconds, r.bandwidth_seconds);
  return r;
}

double utilisation(const char* what, double flops, double seconds, double peak) {
  if (!(flops >= 0) || !(seconds > 0) || !(peak > 0) || !std::isfinite(flops / seconds / peak)) {
    throw Error(ErrorKind::value, std::string(what) + ": there is no utilisation of " +
                                      std::to_string(flops) + " FLOPs in " +
                                      std::to_string(seconds) + " s at a peak of " +
                                      std::to_string(peak) + " FLOP/s");
  }
  return flops / seconds / peak;
}

}  // namespace

Roofline roofline(const Cost& cost, const Hardware& hardware, DType dtype) {
  return roofline_at(cost, hardware, dtype, hardware.peak(dtype));
}
Roofline roofline(const Cost& cost, const Hardware& hardware, DType dtype, TensorCores units) {
  return roofline_at(cost, hardware, dtype, hardware.peak(dtype, units));
}

double mfu(double model_flops, double seconds, double peak) {
  return utilisation("mfu", model_flops, seconds, peak);
}
double hfu(double executed_flops, double seconds, double peak) {
  return utilisation("hfu", executed_flops, seconds, peak);
}

}  // namespace ein
