// NVRTC's functions, which compile kernels for the host: for tests without a GPU, beside
// fake_cuda.cpp, which runs what this makes. Kernels become a shared library with threads as fibres
// (device_on_host.hpp) in the directory that the environment's FAKE_CUDA_DIRECTORY names; the
// "cubin" holds its path. host_compiler.hpp says how they are compiled.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "support/host_compiler.hpp"
#include "support/minimal_cubin.hpp"

namespace {

struct Program {
  std::string text, log, cubin;
};

constexpr const char* kernel_begin = "extern \"C\" __global__";

/// A way into the kernel at the beginning of `text` that takes its arguments from an array.
std::string way_in(const std::string& text) {
  const std::size_t begin = text.find(")\n") + 2;  // after the launch bounds
  const std::string name = text.substr(begin, text.find('(', begin) - begin);
  bool fibres = false;
  for (const char* word :
       {"__syncthreads", "__shfl", "combine_lanes", "combine_rows", "scan_block", "sorted<"}) {
    fibres |= text.find(word) != text.npos;
  }
  return "extern \"C\" const char* host_" + name +
         "(const unsigned* grid, const unsigned* block, void* const* arguments) {\n  return "
         "device::launch(" +
         name + ", grid, block, " + (fibres ? "true" : "false") +
         ", arguments);\n}\nextern \"C\" unsigned long size_" + name +
         "(unsigned long i) {\n  return device::size_of_argument(" + name + ", i);\n}\n";
}

/// The kernels, which come after the vocabulary, each with its way in.
std::string host_text(const std::string& text) {
  const std::size_t first = text.find(kernel_begin);
  if (first == text.npos) return "#error no kernel\n";
  std::string result =
      std::string("#include \"") + ein::test::host_header + "\"\n" + text.substr(first);
  for (std::size_t at = first, next; at != text.npos; at = next) {
    next = text.find(kernel_begin, at + 1);
    result += way_in(text.substr(at, next - at));
  }
  return result;
}

constexpr int success = 0, compilation_failed = 6;

/// Where files go.
const std::string& directory() {
  static const std::string directory = std::string(std::getenv("FAKE_CUDA_DIRECTORY")) + "/";
  return directory;
}

}  // namespace

extern "C" {

/// As the file's name says: 12.0 of libnvrtc.so.12.
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&nvrtcVersion), &info) == 0) return success;
  if (const char* number = std::strstr(info.dli_fname, "libnvrtc.so."))
    *major = std::atoi(number + 12);
  return success;
}
const char* nvrtcGetErrorString(int) { return "the host's compiler failed"; }
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return success;
}
int nvrtcGetSupportedArchs(int* archs) {
  *archs = 90;
  return success;
}
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{text, "", ""};
  return success;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return success;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  static std::atomic<int> count{0};
  // Other processes may have kernels there too.
  const std::string folder =
      directory() + "kernel" + std::to_string(::getpid()) + "-" + std::to_string(count++) + "/";
  ::mkdir(folder.c_str(), 0700);
  std::ofstream(folder + "kernel.cpp")
      << host_text(program->text);  // ccache knows it by its name, too
  program->log = ein::test::compile_on_host(folder, "kernel");
  if (!program->log.empty()) return compilation_failed;
  program->cubin =
      ein::test::minimal_cubin() + ein::test::host_kernels + folder + "kernel.so" + '\0';
  return success;
}
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size();
  return success;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  std::memcpy(log, program->log.data(), program->log.size());
  return success;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->cubin.size();
  return success;
}
int nvrtcGetCUBIN(Program* program, char* cubin) {
  std::memcpy(cubin, program->cubin.data(), program->cubin.size());
  return success;
}

}  // extern "C"
