#include "cuda/nvrtc.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include <ein/error.hpp>

#include "cuda/driver.hpp"
#include "io/file.hpp"
#include "io/number.hpp"
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "machine/shared_library.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

// What is used of <nvrtc.h> (NVRTC User Guide), declared here so that ein builds without it.
struct NvrtcProgram;
enum NvrtcResult : int { nvrtc_success = 0, nvrtc_out_of_memory = 1, nvrtc_compilation_failed = 6 };

constexpr const char* where_from =
    "install the CUDA toolkit 12.0 or newer (Debian and Ubuntu: NVIDIA's package "
    "cuda-nvrtc-13-0), or set EIN_NVRTC to the path of a libnvrtc.so (pip's nvidia-cuda-nvrtc has "
    "one)";

/// The newest CUDA whose cubins the driver loads: those of its own major version and of older ones.
/// Any where there is no driver, as kernels are then only compiled.
int newest_major() {
  const Driver& driver = Driver::of_system();
  return driver.missing().empty() ? driver.version().major : std::numeric_limits<int>::max();
}

std::vector<std::string> places(int newest) {
  if (const std::string given = environment(Variable::nvrtc); !given.empty()) return {given};
  constexpr int newest_known = 13;
  std::vector<std::string> names;
  for (int major = std::min(newest, newest_known); major >= oldest_cuda.major; --major)
    names.push_back("libnvrtc.so." + std::to_string(major));
  names.push_back("libnvrtc.so");
  for (const std::string& toolkit :
       {environment(Variable::cuda_home), std::string("/usr/local/cuda")}) {
    if (!toolkit.empty()) names.push_back(toolkit + "/lib64/libnvrtc.so");
  }
  for (int major = newest_known; major > newest; --major)
    names.push_back("libnvrtc.so." + std::to_string(major));
  return names;
}

struct Nvrtc {
  SharedLibrary library;
  std::string missing;  // why this is none; empty if all is there
  CudaVersion version;
  std::vector<int> architectures;

  NvrtcResult (*get_version)(int*, int*) = nullptr;
  const char* (*error_text)(NvrtcResult) = nullptr;
  NvrtcResult (*architecture_count)(int*) = nullptr;
  NvrtcResult (*get_architectures)(int*) = nullptr;
  NvrtcResult (*create)(NvrtcProgram**, const char*, const char*, int, const char* const*,
                        const char* const*) = nullptr;
  NvrtcResult (*destroy)(NvrtcProgram**) = nullptr;
  NvrtcResult (*compile)(NvrtcProgram*, int, const char* const*) = nullptr;
  NvrtcResult (*log_size)(NvrtcProgram*, std::size_t*) = nullptr;
  NvrtcResult (*log)(NvrtcProgram*, char*) = nullptr;
  NvrtcResult (*cubin_size)(NvrtcProgram*, std::size_t*) = nullptr;
  NvrtcResult (*cubin)(NvrtcProgram*, char*) = nullptr;

  explicit Nvrtc(const std::string& name) : library({name}) { missing = find_functions(); }

  std::string find_functions() {
    if (!library.is_open()) return library.why_not();
    const auto find = [this](const char* symbol, auto*& function) {
      library.find(symbol, function);
      return function != nullptr;
    };
    const bool is_nvrtc =
        find("nvrtcVersion", get_version) && find("nvrtcGetErrorString", error_text) &&
        find("nvrtcGetNumSupportedArchs", architecture_count) &&
        find("nvrtcGetSupportedArchs", get_architectures) && find("nvrtcCreateProgram", create) &&
        find("nvrtcDestroyProgram", destroy) && find("nvrtcCompileProgram", compile) &&
        find("nvrtcGetProgramLogSize", log_size) && find("nvrtcGetProgramLog", log) &&
        find("nvrtcGetCUBINSize", cubin_size) && find("nvrtcGetCUBIN", cubin);
    if (!is_nvrtc) return library.name() + " lacks functions of NVRTC 12";
    if (get_version(&version.major, &version.minor) != nvrtc_success)
      return library.name() + " does not tell its version";
    if (version < oldest_cuda) return library.name() + " is too old, " + to_string(version);
    int count = 0;
    if (architecture_count(&count) == nvrtc_success && count > 0) {
      architectures.resize(static_cast<std::size_t>(count));
      if (get_architectures(architectures.data()) != nvrtc_success) architectures.clear();
    }
    std::sort(architectures.begin(), architectures.end());
    return "";
  }
};

/// The first whose cubins the driver loads, or else the first, with which kernels can be looked at.
Nvrtc choose() {
  const int newest = newest_major();
  std::optional<Nvrtc> too_new;
  std::string missing;
  for (const std::string& name : places(newest)) {
    Nvrtc nvrtc(name);
    if (!nvrtc.missing.empty()) {
      missing += (missing.empty() ? "" : "; ") + nvrtc.missing;
    } else if (nvrtc.version.major <= newest) {
      return nvrtc;
    } else if (!too_new) {
      too_new = nvrtc;
    }
  }
  if (too_new) return *too_new;
  Nvrtc none("");
  none.missing = "no NVRTC, which compiles CUDA kernels: " + missing + "; " + where_from;
  return none;
}

const Nvrtc& found() {
  return made_once([] { return choose(); });
}

const Nvrtc& needed() {
  const Nvrtc& nvrtc = found();
  if (!nvrtc.missing.empty()) throw Error(ErrorKind::device, nvrtc.missing);
  return nvrtc;
}

/// sm_90, sm_90a, sm_100f.
void check_architecture(const Nvrtc& nvrtc, const std::string& arch) {
  std::string_view digits = arch;
  const bool has_prefix = digits.starts_with("sm_");
  if (has_prefix) digits.remove_prefix(3);
  if (digits.ends_with('a') || digits.ends_with('f')) digits.remove_suffix(1);
  const auto sm = io::number_of<int>(digits);
  if (!has_prefix || !sm || *sm <= 0 || digits.front() == '0') {
    throw Error(ErrorKind::value, "no architecture is called " + io::in_quotes(arch) +
                                      "; they are sm_80, sm_90a, sm_100a and the like");
  }
  const std::vector<int>& known = nvrtc.architectures;
  if (known.empty() || std::binary_search(known.begin(), known.end(), *sm)) return;
  std::string list;
  for (const int each : known) list += (list.empty() ? "sm_" : ", sm_") + std::to_string(each);
  throw Error(ErrorKind::value, "NVRTC " + to_string(nvrtc.version) + " does not compile for " +
                                    arch + "; it does for " + list);
}

void check(const Nvrtc& nvrtc, NvrtcResult result, const Source& source) {
  if (result == nvrtc_success) return;
  throw Error(result == nvrtc_out_of_memory ? ErrorKind::memory : ErrorKind::device,
              "NVRTC: " + source.name + ": " + nvrtc.error_text(result));
}

/// What one of the pairs of functions "size, content" tells.
template <class Size, class Content>
std::string content(const Nvrtc& nvrtc, const Source& source, NvrtcProgram* program, Size size_of,
                    Content content_of) {
  std::size_t size = 0;
  check(nvrtc, size_of(program, &size), source);
  std::string text(size, '\0');
  if (size > 0) check(nvrtc, content_of(program, text.data()), source);
  return text;
}

}  // namespace

std::string to_string(CudaVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

bool nvrtc_is_available(std::string* why) {
  const Nvrtc& nvrtc = found();
  if (why) *why = nvrtc.missing;
  return nvrtc.missing.empty();
}

CudaVersion nvrtc_version() { return needed().version; }

std::vector<int> nvrtc_architectures() { return needed().architectures; }

std::string why_not_on(CudaVersion driver) {
  const Nvrtc& nvrtc = needed();
  if (nvrtc.version.major <= driver.major) return "";
  return "the NVIDIA driver, for CUDA " + to_string(driver) + ", loads no kernels that " +
         nvrtc.library.name() + ", NVRTC " + to_string(nvrtc.version) +
         ", compiles; install the NVRTC of CUDA " + std::to_string(driver.major) +
         ", or set EIN_NVRTC to the path of one, or update the driver to one for CUDA " +
         std::to_string(nvrtc.version.major);
}

Cubin compile(const Source& source) {
  const Nvrtc& nvrtc = needed();
  check_architecture(nvrtc, source.arch);
  if (source.text.find('\0') != std::string::npos) {
    throw Error(ErrorKind::value, "NVRTC: " + source.name + " is cut by a NUL byte");
  }
  const auto destroy = [&](NvrtcProgram* program) { nvrtc.destroy(&program); };
  NvrtcProgram* created = nullptr;
  check(nvrtc,
        nvrtc.create(&created, source.text.c_str(), source.name.c_str(), 0, nullptr, nullptr),
        source);
  const std::unique_ptr<NvrtcProgram, decltype(destroy)> program(created, destroy);

  const std::string architecture = "--gpu-architecture=" + source.arch;
  std::vector<const char*> options{architecture.c_str(), "--ptxas-options=-v"};
  for (const std::string& option : source.options) options.push_back(option.c_str());
  const NvrtcResult result =
      nvrtc.compile(program.get(), static_cast<int>(options.size()), options.data());
  Cubin cubin;
  cubin.log = content(nvrtc, source, program.get(), nvrtc.log_size, nvrtc.log);
  while (cubin.log.ends_with('\0')) cubin.log.pop_back();
  if (result != nvrtc_success) {
    throw Error(result == nvrtc_out_of_memory ? ErrorKind::memory : ErrorKind::device,
                "NVRTC: " + source.name + " for " + source.arch + ": " + nvrtc.error_text(result) +
                    (cubin.log.empty() ? "" : "\n" + cubin.log));
  }
  cubin.image = content(nvrtc, source, program.get(), nvrtc.cubin_size, nvrtc.cubin);
  if (cubin.image.empty()) {
    throw Error(ErrorKind::device, "NVRTC: " + source.name + " gave no machine code");
  }
  return cubin;
}

}  // namespace ein::gpu
