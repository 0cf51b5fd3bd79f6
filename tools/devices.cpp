// ein devices: what this machine computes on, and what is missing.
#include <algorithm>
#include <memory>

#include <ein/hardware.hpp>
#include <ein/parallel.hpp>

#include "cpu/level.hpp"
#include "cuda/cubin_cache.hpp"
#include "cuda/driver.hpp"
#include "cuda/nvrtc.hpp"
#include "machine/parallel.hpp"
#include "machine/printable.hpp"
#include "machine/system.hpp"
#include "report.hpp"
#include "subcommands.hpp"
#include "words.hpp"

namespace ein::command {
namespace {

constexpr const char* examples = R"(Examples:
  ein devices
  ein devices --json

The processors' peaks and bandwidth are measured, once, which takes about a second. A GPU's peaks
are what its datasheet promises, without sparsity. A device that is missing is no error.

EIN_ISA=v2, v3 or v4 allows no more than that level of x86-64: v2 has SSE4.2, v3 AVX2, v4 AVX-512;
EIN_ISA=v4_bf16 allows AVX512-BF16 too, but no AMX.

EIN_CUDA_DRIVER and EIN_NVRTC name the libraries of the driver and of NVRTC, where those that the
system finds are not the right ones.

Exit code: 0.)";

/// "L1 48KiB, L2 1MiB, L3 32MiB": what the first processor reads data through.
std::string caches() {
  std::string list;
  for (const system::Cache& cache : system::data_caches()) {
    const bool is_mega = cache.bytes % (1 << 20) == 0;
    list += (list.empty() ? "L" : ", L") + std::to_string(cache.level) + " " +
            std::to_string(cache.bytes >> (is_mega ? 20 : 10)) + (is_mega ? "MiB" : "KiB");
  }
  return list;
}

/// "989.5 TFLOP/s bf16 (tensor cores), 67 TFLOP/s f32": those of them that there are.
std::string peaks_of(const Hardware& hardware) {
  std::string list;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
    const auto peak = hardware.peak(dtype);
    if (!peak) continue;
    list += (list.empty() ? "" : ", ") + with_prefix(*peak, "FLOP/s ") + std::string(name(dtype));
  }
  return list;
}

std::string architectures() {
  std::string list;
  for (const int sm : gpu::nvrtc_architectures())
    list += (list.empty() ? "sm_" : " sm_") + std::to_string(sm);
  return list;
}

std::string devices(bool json_is_wanted) {
  Table table({false, false});
  Json json;
  const Hardware cpu = measured_cpu();
  const int cores = system::cores();
  table.add({"cpu", cpu.name + (cores > 0 ? " on " + std::to_string(cores) +
                                                (cores == 1 ? " core" : " cores")
                                          : "")});
  table.add({"", "instructions: " + std::string(host::name(host::isa())) + ", kernels of " +
                     std::string(host::name(host::bf16_products().isa))});
  if (host::started_threads() < num_threads())
    table.add({"", std::to_string(host::started_threads()) + " of " +
                       std::to_string(num_threads()) + " threads, as the system starts no more"});
  const std::string cache_list = caches();
  table.add({"", with_prefix(cpu.memory, "B") + " of memory" +
                     (cache_list.empty() ? "" : "; caches " + cache_list)});
  table.add({"", with_prefix(*cpu.peak(DType::bf16), "FLOP/s ") + "bf16, " +
                     with_prefix(*cpu.peak(DType::f32), "FLOP/s ") + "f32, " +
                     with_prefix(*cpu.peak(DType::f64), "FLOP/s ") + "f64, " +
                     with_prefix(cpu.bandwidth, "B/s") + " (" + cpu.source + ")"});
  json.add("cpu.name", cpu.name);
  json.add("cpu.cores", Count(cores));
  json.add("cpu.threads", Count(host::started_threads()));
  json.add("cpu.instructions", std::string(host::name(host::isa())));
  json.add("cpu.memory", cpu.memory);
  json.add("cpu.flops.bf16", *cpu.peak(DType::bf16));
  json.add("cpu.flops.f32", *cpu.peak(DType::f32));
  json.add("cpu.flops.f64", *cpu.peak(DType::f64));
  json.add("cpu.bandwidth", cpu.bandwidth);

  const gpu::Driver& driver = gpu::Driver::of_system();
  if (!driver.missing().empty()) {
    table.add({"cuda", driver.missing()});
    json.add("cuda.missing", driver.missing());
  } else {
    const std::string version = to_string(driver.version());
    json.add("cuda.driver", version);
    json.add("cuda.devices", Count(driver.device_count()));
    for (int i = 0; i < driver.device_count(); ++i) {
      const gpu::DeviceInfo info = driver.info(i);
      const std::string key = "cuda:" + std::to_string(i);
      const std::string sm = "sm_" + std::to_string(info.major) + std::to_string(info.minor);
      const auto memory = static_cast<double>(info.memory);
      table.add({key, info.name + ", " + std::to_string(info.sms) + " SMs, " + sm +
                          ", driver for CUDA " + version});
      table.add({"", with_prefix(memory, "B") + " of memory; L2 " +
                         with_prefix(info.l2_bytes, "B") + "; shared memory " +
                         grouped(info.shared_bytes_per_block) + " bytes a block"});
      const auto hardware = find_hardware(info.name, info.sms);
      table.add({"", hardware
                         ? peaks_of(*hardware) + ", " + with_prefix(hardware->bandwidth, "B/s") +
                               " (" + hardware->source + ")"
                         : "peaks unknown"});
      json.add(key + ".name", info.name);
      json.add(key + ".arch", sm);
      json.add(key + ".sms", Count(info.sms));
      json.add(key + ".memory", Count(info.memory));
      if (hardware) json.add(key + ".hardware", hardware->key);
    }
  }

  std::string missing;
  if (gpu::nvrtc_is_available(&missing)) {
    const std::string version = to_string(gpu::nvrtc_version());
    table.add({"nvrtc", version + ", compiles for " + architectures()});
    json.add("nvrtc", version);
    const std::string why_not = driver.missing().empty() ? gpu::why_not_on(driver.version()) : "";
    if (!why_not.empty()) {
      table.add({"", why_not});
      json.add("nvrtc.why_not", why_not);
    }
    json.add("nvrtc.architectures", architectures());
  } else {
    table.add({"nvrtc", missing});
    json.add("nvrtc.missing", missing);
  }
  if (const auto cache = gpu::CubinCache::of_user(&missing)) {
    table.add({"kernels", "kept in " + printable_line(cache->directory())});
    json.add("kernels", cache->directory());
  } else {
    table.add({"kernels", "not kept: " + missing});
    json.add("kernels.why_not", missing);
  }
  return json_is_wanted ? json.text() : table.text();
}

}  // namespace

void add_devices(CLI::App& app, std::string& output) {
  CLI::App* command =
      app.add_subcommand("devices", "Print what this machine computes on, and what is missing");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print one JSON object");
  command->footer(examples);
  command->callback([json, &output] { output = devices(*json); });
}

}  // namespace ein::command
