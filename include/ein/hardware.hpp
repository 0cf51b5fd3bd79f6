// Hardware: what a device promises, and how far a computation or a run is from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ein/cost.hpp>
#include <ein/device.hpp>
#include <ein/dtype.hpp>

namespace ein {

/// Whether the matrix units do the arithmetic. With them f32 is TF32 (10 bits of mantissa) and f64
/// is the FP64 tensor rate; without them f32 is IEEE single precision on the vector units.
enum class TensorCores : bool { no, yes };

/// What arithmetic in the dtype runs on where nothing else is said: f64 and f32 on vector units,
/// the 16- and 8-bit floats on tensor cores.
constexpr TensorCores usual_units(DType dtype) {
  return is_floating(dtype) && dtype != DType::f64 && dtype != DType::f32 ? TensorCores::yes
                                                                          : TensorCores::no;
}

/// A device's limits: dense peaks (no 2:4 sparsity) in FLOP/s, a fused multiply-add counted as 2,
/// and memory.
struct Hardware {
  struct Peak {
    DType dtype;
    TensorCores units;
    double flops;
  };
  std::string key;   ///< "h100-sxm"; "cpu"
  std::string name;  ///< "H100 SXM"
  int sms = 0;       ///< streaming multiprocessors; 0 for a CPU
  std::vector<Peak> peaks{};
  double bandwidth = 0;  ///< of memory, bytes per second
  double memory = 0;     ///< bytes
  std::string source{};  ///< who says so: a datasheet, or a measurement

  /// What one device sends in one direction, bytes per second, while as much arrives: half of what
  /// datasheets give for both. 0 where nothing is promised.
  struct Links {
    double nvlink = 0;     ///< to the devices that it joins, all together
    int nvlink_group = 0;  ///< how many those are, this one among them: 8 on a board, 2 by a bridge
    double pcie = 0;       ///< to the host
    double infiniband = 0;  ///< a device's share of the adapters of NVIDIA's DGX system
    std::string source{};   ///< of InfiniBand; the others are in the device's own datasheet
  };
  Links links{};

  /// The peak on these units; nothing where none is promised.
  std::optional<double> peak(DType dtype, TensorCores units) const;
  /// The peak on the usual units, or on the others where the device lacks those.
  std::optional<double> peak(DType dtype) const;
  /// Sets a peak that the user knows better. An Error of kind `value` unless it is finite and
  /// positive.
  void set_peak(DType dtype, TensorCores units, double flops);
};

/// Every device of the table, in the vendor's datasheets' figures.
std::span<const Hardware> known_hardware();

/// The device with this key, in any case: "h100-sxm". Nothing else matches, neither "h100" nor
/// "L40".
std::optional<Hardware> find_hardware(std::string_view key);
/// The device that a driver reports under this name with so many streaming multiprocessors: a name
/// in full, such as "NVIDIA H100 80GB HBM3", 132. Parts of a device (MIG) and relatives with other
/// counts are unknown.
std::optional<Hardware> find_hardware(std::string_view driver_name, int sms);
/// find_hardware(key), "cpu" for measured_cpu(); an Error of kind `value` that lists the keys
/// otherwise.
Hardware hardware_named(std::string_view key);

/// What this machine's processors do, measured.
struct CpuLimits {
  std::string model;          ///< as the system names the processor
  int threads = 0;            ///< num_threads() at the time
  double f32 = 0, f64 = 0;    ///< fused multiply-adds on registers, FLOP/s of all threads
  double bf16 = 0;            ///< sums of products of pairs (AMX, AVX512-BF16), or f32's
  double read = 0, copy = 0;  ///< of arrays beyond every cache, bytes/s; a copied byte counts twice
};
/// Measures, which takes about a second: chains of multiply-adds as wide as this build's vectors,
/// and passes over large arrays, each the best of several. An Error of kind `memory` when the
/// arrays do not fit.
CpuLimits measure_cpu();

/// This machine as a device: peaks of f64, f32 and bf16, that of f32 for the other narrow floats
/// too, which compute in it; the bandwidth is the higher of reading and copying. Measured once for
/// each processor model and number of threads, and kept in $XDG_CACHE_HOME/ein or ~/.cache/ein; a
/// directory that is missing and cannot be made, or that others may write to, is not used, and a
/// file that is not what was written is measured anew.
Hardware measured_cpu();

/// What stands behind a device: measured_cpu(), or the GPU by its name; nothing for a GPU that is
/// not in the table. Errors as those of the device's first tensor.
std::optional<Hardware> find_hardware(Device device);

enum class Bound : std::uint8_t { compute, bandwidth };
std::string_view name(Bound bound);

/// The least time that a device needs (Williams, Waterman, Patterson: Roofline, CACM 2009).
struct Roofline {
  double intensity;  ///< FLOP (model count) per byte; infinite when no byte moves, 0 when nothing
                     ///< happens
  double ridge;  ///< the intensity from which on compute is the limit; 0 when no peak was wanted
  double compute_seconds;    ///< at the peak
  double bandwidth_seconds;  ///< at the full bandwidth
  double seconds;            ///< the larger of the two
  Bound bound;               ///< which of the two that is
};
/// An Error of kind `dtype` when the device promises no peak for arithmetic in it; what does no
/// arithmetic needs none.
Roofline roofline(const Cost& cost, const Hardware& hardware, DType dtype);
Roofline roofline(const Cost& cost, const Hardware& hardware, DType dtype, TensorCores units);

/// Model FLOPs utilisation: FLOPs that the model needs over those that the devices could have done,
/// model_flops / (seconds · peak); what is computed again does not count (PaLM, appendix B:
/// Chowdhery et al. 2022). `peak` is of all devices together. Above 1 the peak or the count is
/// wrong. An Error of kind `value` unless time and peak are positive and the FLOPs are not
/// negative.
double mfu(double model_flops, double seconds, double peak);
/// Hardware FLOPs utilisation: the same with every FLOP that was executed, recomputation included.
double hfu(double executed_flops, double seconds, double peak);

}  // namespace ein
