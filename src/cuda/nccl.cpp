#include "cuda/nccl.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cuda/gpu.hpp"
#include "machine/environment.hpp"
#include "machine/fork.hpp"
#include "machine/shared_library.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

// Numbers and functions as nccl.h of NCCL 2.32 declares them (PyPI: nvidia-nccl-cu13).
using Result = int;
constexpr Result success = 0, invalid_usage = 5, in_progress = 7;

/// ncclUniqueId: by it those find each other who make a communicator.
struct Id {
  char bytes[128];
};

/// ncclDataType_t of numbers that are combined.
std::optional<int> number_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return 0;
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::i32:
      return 2;
    case DType::u32:
      return 3;
    case DType::i64:
      return 4;
    case DType::u64:
      return 5;
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 9;
    case DType::f8e4m3:
      return 10;
    case DType::f8e5m2:
      return 11;
    default:
      return std::nullopt;
  }
}
constexpr int bytes_as = 1;  // ncclUint8: what is moved as it is

/// ncclRedOp_t. A bool is a byte, 0 or 1, whose sum is a maximum and whose product is a minimum.
int number_of(Combine combine, DType dtype) {
  constexpr int sum = 0, product = 1, max = 2, min = 3;
  const bool is_bool = dtype == DType::boolean;
  if (combine == Combine::sum) return is_bool ? max : sum;
  if (combine == Combine::prod) return is_bool ? min : product;
  return combine == Combine::max ? max : min;
}

// Each with its symbol and its parameters.
#define EIN_FOR_EACH_NCCL_FUNCTION(F)                                                             \
  F(make_id, "ncclGetUniqueId", Id*)                                                              \
  F(make_communicator, "ncclCommInitRank", void**, int, Id, int)                                  \
  F(async_error, "ncclCommGetAsyncError", void*, Result*)                                         \
  F(all_reduce, "ncclAllReduce", const void*, void*, std::size_t, int, int, void*, void*)         \
  F(reduce_scatter, "ncclReduceScatter", const void*, void*, std::size_t, int, int, void*, void*) \
  F(all_gather, "ncclAllGather", const void*, void*, std::size_t, int, void*, void*)              \
  F(send, "ncclSend", const void*, std::size_t, int, int, void*, void*)                           \
  F(receive, "ncclRecv", void*, std::size_t, int, int, void*, void*)                              \
  F(begin_group, "ncclGroupStart", )                                                              \
  F(end_group, "ncclGroupEnd", )

/// The library, and why there is none to be used.
struct Nccl {
  SharedLibrary library;
  std::string missing;
  const char* (*error_text)(Result) = nullptr;
  const char* (*last_error)(void*) = nullptr;
#define EIN_FUNCTION(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  EIN_FOR_EACH_NCCL_FUNCTION(EIN_FUNCTION)
#undef EIN_FUNCTION

  explicit Nccl(const std::string& name) : library({name}) {
    if (!library.is_open()) {
      missing = library.why_not();
      return;
    }
    const auto find = [&](const char* symbol, auto*& function) {
      library.find(symbol, function);
      if (!function && missing.empty()) missing = name + " lacks " + symbol;
    };
    find("ncclGetErrorString", error_text);
    find("ncclGetLastError", last_error);
#define EIN_FUNCTION(name, symbol, ...) find(symbol, name);
    EIN_FOR_EACH_NCCL_FUNCTION(EIN_FUNCTION)
#undef EIN_FUNCTION
  }

  static const Nccl& of_system() {
    return made_once([] {
      const std::string given = environment(Variable::nccl);
      return Nccl(given.empty() ? "libnccl.so.2" : given);
    });
  }

  std::string reason(Result result, void* communicator) const {
    const char *const text = error_text(result), *const more = last_error(communicator);
    return std::string(text ? text : "") + (more && *more ? "; " + std::string(more) : "");
  }
};

[[noreturn]] void refuse(const std::string& why, const std::string& help) {
  throw Error(ErrorKind::peer, "nccl: " + why + "\n  help: " + help);
}

constexpr const char* how_to_install =
    "pip install nvidia-nccl-cu13 (nvidia-nccl-cu12 for a driver of CUDA 12), or NVIDIA's package "
    "libnccl2; name its libnccl.so.2 in EIN_NCCL if it is not where the loader looks";

/// What the processes of a group tell each other before they meet.
struct Greeting {
  char why_not[384];  // no NCCL; empty if there is one
  Id id;              // of the first process
};

class NcclGroup final : public mesh::Group {
 public:
  NcclGroup(std::vector<int> ranks, int rank, mesh::Group& host, Gpu& gpu)
      : Group(std::move(ranks), rank), host_(host), gpu_(gpu) {
    if (size() > 1) meet();
  }

  void tell(const void* from, void* to, std::int64_t bytes) override {
    host_.tell(from, to, bytes);
  }

 private:
  /// Makes the communicator. It is never destroyed: NCCL would wait for the others to do so too,
  /// which they may never.
  void meet() {
    Greeting own{};
    const auto miss = [&](const std::string& why) {
      std::strncpy(own.why_not, why.c_str(), sizeof own.why_not - 1);
    };
    const Nccl& nccl = Nccl::of_system();
    gpu_.driver().on(gpu_.index());
    if (!nccl.missing.empty()) {
      miss(nccl.missing);
    } else if (rank() == 0) {
      if (const Result result = nccl.make_id(&own.id); result != success)
        miss("ncclGetUniqueId: " + nccl.reason(result, nullptr));
    }
    std::vector<Greeting> all(static_cast<std::size_t>(size()));
    host_.tell(&own, all.data(), sizeof own);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].why_not[0] != '\0')
        refuse(mesh::list_processes({ranks()[r]}) + ": " + all[r].why_not, how_to_install);
    }
    check("ncclCommInitRank",
          nccl.make_communicator(&communicator_, size(), all.front().id, rank()));
  }

  void check(std::string_view what, Result result) const {
    if (result == success || result == in_progress) return;
    refuse(std::string(what) + ": " + Nccl::of_system().reason(result, communicator_),
           result == invalid_usage && !communicator_
               ? "each process has a GPU of its own: start as many as there are on the machine"
               : "NCCL_DEBUG=INFO says more; another process may have ended");
  }

  std::shared_ptr<mesh::Running> begin(const mesh::Request& request, bool) override {
    if (request.collective == Collective::barrier) {
      gpu_.stream().synchronize();
      std::vector<char> all(static_cast<std::size_t>(size()));
      tell("", all.data(), 1);
    } else if (request.count > 0) {
      enqueue(request);
    }
    return nullptr;
  }

  void enqueue(const mesh::Request& request) {
    const Nccl& nccl = Nccl::of_system();
    const NoForkLock lock(mutex_);
    gpu_.driver().on(gpu_.index());
    Result failed = success;
    check("ncclCommGetAsyncError", nccl.async_error(communicator_, &failed));
    const std::string what(name(request.collective));
    check(what + ", before this one", failed);
    void* const stream = gpu_.stream().get();
    const auto count = static_cast<std::size_t>(request.count);
    const std::size_t bytes = count * size_of(request.dtype);
    if (combines(request.collective)) {
      const std::optional<int> dtype = number_of(request.dtype);
      if (!dtype)
        throw Error(ErrorKind::dtype, what + ": NCCL cannot combine " +
                                          std::string(ein::name(request.dtype)) +
                                          "\n  help: convert to i32 first");
      check(what,
            (request.collective == Collective::all_reduce ? nccl.all_reduce : nccl.reduce_scatter)(
                request.from, request.to, count, *dtype, number_of(request.combine, request.dtype),
                communicator_, stream));
    } else if (request.collective == Collective::all_gather) {
      check(what,
            nccl.all_gather(request.from, request.to, bytes, bytes_as, communicator_, stream));
    } else if (request.collective == Collective::send) {
      check(what,
            request.receives
                ? nccl.receive(request.to, bytes, bytes_as, request.peer, communicator_, stream)
                : nccl.send(request.from, bytes, bytes_as, request.peer, communicator_, stream));
    } else {
      check("ncclGroupStart", nccl.begin_group());
      for (int peer = 0; peer < size(); ++peer) {
        const std::size_t at = static_cast<std::size_t>(peer) * bytes;
        check(what, nccl.send(request.from + at, bytes, bytes_as, peer, communicator_, stream));
        check(what, nccl.receive(request.to + at, bytes, bytes_as, peer, communicator_, stream));
      }
      check("ncclGroupEnd", nccl.end_group());
    }
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    gpu_.stream().copy(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from),
                       bytes);
  }

  mesh::Group& host_;
  Gpu& gpu_;
  std::mutex mutex_;  // of the communicator, which takes one call at a time
  void* communicator_ = nullptr;
};

class NcclTransport final : public mesh::Transport {
 public:
  NcclTransport(mesh::Transport& host, Gpu& gpu) : host_(host), gpu_(gpu) {
    set_place(host.rank(), host.size());
  }
  /// Others may wait for what this process has started.
  ~NcclTransport() override {
    tell_others_of_leaving();
    end_groups();
  }

  std::string_view name() const override { return "nccl"; }

 private:
  /// Others receive what is under way.
  void tell_others_of_leaving() override {
    try {
      gpu_.stream().synchronize();
    } catch (const Error&) {
    }
  }
  std::unique_ptr<mesh::Group> make_group(std::vector<int> ranks) override {
    mesh::Group& host = host_.group(ranks);
    return std::make_unique<NcclGroup>(std::move(ranks), rank(), host, gpu_);
  }

  mesh::Transport& host_;
  Gpu& gpu_;
};

struct Transports {
  std::mutex mutex;
  std::map<std::pair<mesh::Transport*, Gpu*>, std::unique_ptr<NcclTransport>> opened;
};
/// Left at the end, before those of the hosts are, which were opened earlier.
Transports& transports() {
  return made_once([] {
    std::atexit([] {
      for (const auto& entry : transports().opened) entry.second->leave();
    });
    return Transports();
  });
}

}  // namespace

mesh::Transport& nccl_beside(mesh::Transport& host, Gpu& gpu) {
  auto& [mutex, opened] = transports();
  const NoForkLock lock(mutex);
  std::unique_ptr<NcclTransport>& transport = opened[{&host, &gpu}];
  if (!transport) transport = std::make_unique<NcclTransport>(host, gpu);
  return *transport;
}

}  // namespace ein::gpu
