// NCCL without GPUs: its functions on the memory of fake_cuda.cpp, for tests of what calls them.
// The processes of a communicator meet in a directory of the environment's FAKE_CUDA_DIRECTORY: for
// each collective each of them puts a file there with what it was called with and its operand, and
// reads those of the others. What NCCL would not do is an error here: other arguments than those of
// the others, memory or streams of no device, a device that another process has. It fails where the
// environment's FAKE_NCCL says, "ncclAllReduce=3 ncclCommGetAsyncError=6", and counts the bytes of
// operands.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <ein/dtype.hpp>

namespace {

using Bytes = std::vector<char>;
constexpr int success = 0, system_error = 2, invalid_argument = 4, invalid_usage = 5,
              remote_error = 6;
std::string last_error;

int fail(int result, const std::string& why) {
  last_error = why;
  return result;
}

/// What FAKE_NCCL says of a function.
int setting(const char* name) {
  const char* const words = std::getenv("FAKE_NCCL");
  if (!words) return 0;
  const std::string text = " " + std::string(words), key = " " + std::string(name) + "=";
  const std::size_t at = text.find(key);
  return at == text.npos ? 0 : std::atoi(text.c_str() + at + key.size());
}

/// A function of the stand-in for the driver, which is open.
template <class Function>
Function* of_driver(const char* name) {
  void* const library = ::dlopen(std::getenv("EIN_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(::dlsym(library, name)) : nullptr;
}
int current_device() { return of_driver<int()>("fake_cuda_current")(); }
int device_of(void* stream) { return of_driver<int(void*)>("fake_cuda_device_of")(stream); }
bool is_of_device(const void* begin, std::size_t bytes) {
  return bytes == 0 || of_driver<int(const void*, std::size_t)>("fake_cuda_owns")(begin, bytes);
}

struct Communicator {
  std::string directory;
  int size = 0, rank = 0, device = 0;
  long next = 0;            // collective
  std::string processes{};  // " 0 2", by the ranks with which they were launched
};
std::set<Communicator*> communicators;

struct Count {
  long long calls = 0, bytes = 0;
};
std::map<std::string, Count> counts;  // by "all_reduce 0 2"

Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Puts this process's text and values where the others find them, and theirs into `all`. What they
/// were called with must be the same.
int meet(Communicator& c, const std::string& called, const Bytes& own, std::vector<Bytes>& all) {
  const auto path = [&](long number, int rank) {
    return c.directory + "/" + std::to_string(number) + "." + std::to_string(rank);
  };
  const std::string mine = path(c.next, c.rank), hidden = mine + ".new";
  {
    std::ofstream file(hidden, std::ios::binary);
    file << called << '\n';
    file.write(own.data(), static_cast<std::streamsize>(own.size()));
    if (!file.good()) return fail(system_error, "cannot write " + hidden);
  }
  std::filesystem::rename(hidden, mine);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  all.clear();
  for (int rank = 0; rank < c.size; ++rank) {
    while (!std::filesystem::exists(path(c.next, rank))) {
      if (std::chrono::steady_clock::now() > end)
        return fail(remote_error, "rank " + std::to_string(rank) + " does not come");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    Bytes content = content_of(path(c.next, rank));
    const auto line = std::find(content.begin(), content.end(), '\n');
    const std::string theirs(content.begin(), line);
    if (theirs != called)
      return fail(invalid_usage,
                  "'" + called + "' here and '" + theirs + "' by rank " + std::to_string(rank));
    all.emplace_back(line + 1, content.end());
  }
  // All are here, and so have read what was there before.
  if (c.next > 0) std::filesystem::remove(path(c.next - 1, c.rank));
  ++c.next;
  return success;
}

/// Calls f with the type behind a number of ncclDataType_t; false where there is none.
template <class F>
bool with_type(int number, const F& f) {
  const auto call = [&]<class... T>(std::type_identity<T>... types) {
    int next = 0;
    return ((number == next++ && (f(types), true)) || ...);
  };
  return call(std::type_identity<std::int8_t>(), std::type_identity<std::uint8_t>(),
              std::type_identity<std::int32_t>(), std::type_identity<std::uint32_t>(),
              std::type_identity<std::int64_t>(), std::type_identity<std::uint64_t>(),
              std::type_identity<ein::f16>(), std::type_identity<float>(),
              std::type_identity<double>(), std::type_identity<ein::bf16>(),
              std::type_identity<ein::f8e4m3>(), std::type_identity<ein::f8e5m2>());
}
/// Bytes of an element; 0 of what is no type.
std::size_t size_of(int type) {
  std::size_t size = 0;
  with_type(type, [&]<class T>(std::type_identity<T>) { size = sizeof(T); });
  return size;
}

/// Elements [first, first + count) of all ranks, combined from the last rank on: NCCL has an order
/// of its own. Narrow floats are rounded after each step.
Bytes combined(const std::vector<Bytes>& all, std::size_t first, std::size_t count, int type,
               int by) {
  Bytes result(count * size_of(type));
  with_type(type, [&]<class T>(std::type_identity<T>) {
    const auto at = [&](std::size_t rank, std::size_t i) {
      T value;
      std::memcpy(&value, all[rank].data() + (first + i) * sizeof(T), sizeof(T));
      return value;
    };
    const auto two = [&](T a, T b) {
      using Wide = std::conditional_t<ein::is_floating(ein::dtype_of<T>), double, std::uint64_t>;
      const Wide x = ein::convert<Wide>(a), y = ein::convert<Wide>(b);
      if (by == 2) return ein::convert<double>(a) < ein::convert<double>(b) ? b : a;
      if (by == 3) return ein::convert<double>(b) < ein::convert<double>(a) ? b : a;
      return ein::convert<T>(by == 0 ? x + y : x * y);
    };
    for (std::size_t i = 0; i < count; ++i) {
      T value = at(all.size() - 1, i);
      for (std::size_t rank = all.size() - 1; rank-- > 0;) value = two(value, at(rank, i));
      std::memcpy(result.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return result;
}

int check(Communicator* c, void* stream) {
  if (!communicators.contains(c)) return fail(invalid_argument, "no communicator");
  if (device_of(stream) != c->device || current_device() != c->device)
    return fail(invalid_usage, "a stream or a context of another device");
  return success;
}

void count(const Communicator& c, const char* what, std::size_t bytes) {
  Count& of = counts[what + c.processes];
  ++of.calls;
  of.bytes += static_cast<long long>(bytes);
}

/// A collective of `reads` blocks of the operand and `writes` of the result.
int run(const char* function, const char* counted, const void* from, void* to, std::size_t elements,
        int type, int by, Communicator* c, void* stream, bool reads_all, bool writes_all,
        const std::function<Bytes(const std::vector<Bytes>&)>& result_of) {
  if (const int result = setting(function)) return fail(result, "as the test wants");
  if (const int result = check(c, stream)) return result;
  if (size_of(type) == 0 || by < 0 || by > 3) return fail(invalid_argument, "no such type");
  const std::size_t block = elements * size_of(type), n = static_cast<std::size_t>(c->size);
  const std::size_t read = block * (reads_all ? n : 1), written = block * (writes_all ? n : 1);
  if (!is_of_device(from, read) || !is_of_device(to, written))
    return fail(invalid_argument, "no memory of a device");
  const char* const begin = static_cast<const char*>(from);
  std::vector<Bytes> all;
  const std::string called = std::string(function) + " of " + std::to_string(elements) + " type " +
                             std::to_string(type) + " by " + std::to_string(by);
  if (const int result = meet(*c, called, Bytes(begin, begin + read), all)) return result;
  count(*c, counted, read);
  const Bytes result = result_of(all);
  std::memcpy(to, result.data(), written);
  return success;
}

/// What a group of sends and receives has so far.
struct Message {
  Communicator* communicator;
  bool is_sent;
  const char* from;
  char* to;
  std::size_t bytes;
  int peer;
};
thread_local int groups = 0;
thread_local std::vector<Message> messages;

int add(const char* function, bool is_sent, const void* from, void* to, std::size_t elements,
        int type, int peer, Communicator* c, void* stream) {
  if (const int result = setting(function)) return fail(result, "as the test wants");
  if (const int result = check(c, stream)) return result;
  const std::size_t bytes = elements * size_of(type);
  if (groups == 0) return fail(invalid_usage, "alone it would wait for ever");
  if (peer < 0 || peer >= c->size || !is_of_device(is_sent ? from : to, bytes))
    return fail(invalid_argument, "no such peer, or no memory of a device");
  messages.push_back(
      {c, is_sent, static_cast<const char*>(from), static_cast<char*>(to), bytes, peer});
  return success;
}

/// One message to each process and one from each, of the same size.
int exchange(Communicator& c) {
  const auto n = static_cast<std::size_t>(c.size);
  std::vector<Bytes> sent(n), all;
  std::vector<char*> to(n, nullptr);
  const std::size_t bytes = messages.front().bytes;
  for (const Message& m : messages) {
    const auto peer = static_cast<std::size_t>(m.peer);
    if (m.communicator != &c || m.bytes != bytes || (m.is_sent ? !sent[peer].empty() : !!to[peer]))
      return fail(invalid_usage, "messages that are no all_to_all");
    if (m.is_sent)
      sent[peer].assign(m.from, m.from + bytes);
    else
      to[peer] = m.to;
  }
  if (messages.size() != 2 * n) return fail(invalid_usage, "messages that are no all_to_all");
  Bytes own;
  for (const Bytes& message : sent) own.insert(own.end(), message.begin(), message.end());
  if (const int result = meet(c, "messages of " + std::to_string(bytes), own, all)) return result;
  count(c, "all_to_all", own.size());
  for (std::size_t peer = 0; peer < n; ++peer)
    std::memcpy(to[peer], all[peer].data() + static_cast<std::size_t>(c.rank) * bytes, bytes);
  return success;
}

}  // namespace

extern "C" {

struct Id {
  char bytes[128];
};

/// A line for each kind and set of processes: "all_reduce 0 2:calls,bytes".
const char* fake_nccl_counts() {
  static std::string text;
  text.clear();
  for (const auto& [key, of] : counts)
    text += key + ":" + std::to_string(of.calls) + "," + std::to_string(of.bytes) + "\n";
  return text.c_str();
}

const char* ncclGetErrorString(int result) {
  return result == invalid_usage  ? "invalid usage"
         : result == remote_error ? "remote process exited or there was a network error"
                                  : "error of the stand-in";
}
const char* ncclGetLastError(Communicator*) { return last_error.c_str(); }

int ncclGetUniqueId(Id* id) {
  if (const int result = setting("ncclGetUniqueId")) return fail(result, "as the test wants");
  std::string directory = std::string(std::getenv("FAKE_CUDA_DIRECTORY")) + "/ncclXXXXXX";
  if (!::mkdtemp(directory.data())) return system_error;
  if (directory.size() >= sizeof id->bytes) return system_error;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->bytes, directory.data(), directory.size());
  return success;
}

int ncclCommInitRank(Communicator** made, int size, Id id, int rank) {
  if (const int result = setting("ncclCommInitRank")) return fail(result, "as the test wants");
  if (rank < 0 || rank >= size || current_device() < 0) return invalid_argument;
  auto c = std::make_unique<Communicator>(Communicator{id.bytes, size, rank, current_device()});
  const char* launched_as = std::getenv("EIN_RANK");
  if (!launched_as) launched_as = std::getenv("OMPI_COMM_WORLD_RANK");
  const std::string own =
      std::to_string(c->device) + " " + (launched_as ? launched_as : std::to_string(rank));
  std::vector<Bytes> all;
  if (const int result =
          meet(*c, "communicator of " + std::to_string(size), Bytes(own.begin(), own.end()), all))
    return result;
  std::set<std::string> devices;
  for (const Bytes& theirs : all) {
    const std::string text(theirs.begin(), theirs.end());
    const std::size_t space = text.find(' ');
    c->processes += text.substr(space);
    if (!devices.insert(text.substr(0, space)).second)
      return fail(invalid_usage, "Duplicate GPU detected");
  }
  communicators.insert(*made = c.release());
  return success;
}

int ncclCommGetAsyncError(Communicator* c, int* result) {
  *result = setting("ncclCommGetAsyncError");
  return communicators.contains(c) ? success : invalid_argument;
}

int ncclAllReduce(const void* from, void* to, std::size_t elements, int type, int by,
                  Communicator* c, void* stream) {
  return run("ncclAllReduce", "all_reduce", from, to, elements, type, by, c, stream, false, false,
             [&](const std::vector<Bytes>& all) { return combined(all, 0, elements, type, by); });
}

int ncclReduceScatter(const void* from, void* to, std::size_t elements, int type, int by,
                      Communicator* c, void* stream) {
  return run("ncclReduceScatter", "reduce_scatter", from, to, elements, type, by, c, stream, true,
             false, [&](const std::vector<Bytes>& all) {
               const std::size_t first = elements * static_cast<std::size_t>(c->rank);
               return combined(all, first, elements, type, by);
             });
}

int ncclAllGather(const void* from, void* to, std::size_t elements, int type, Communicator* c,
                  void* stream) {
  return run("ncclAllGather", "all_gather", from, to, elements, type, 0, c, stream, false, true,
             [](const std::vector<Bytes>& all) {
               Bytes whole;
               for (const Bytes& part : all) whole.insert(whole.end(), part.begin(), part.end());
               return whole;
             });
}

int ncclSend(const void* from, std::size_t elements, int type, int peer, Communicator* c,
             void* stream) {
  return add("ncclSend", true, from, nullptr, elements, type, peer, c, stream);
}
int ncclRecv(void* to, std::size_t elements, int type, int peer, Communicator* c, void* stream) {
  return add("ncclRecv", false, nullptr, to, elements, type, peer, c, stream);
}
int ncclGroupStart() {
  ++groups;
  return success;
}
int ncclGroupEnd() {
  if (groups == 0) return fail(invalid_usage, "no group");
  if (--groups > 0 || messages.empty()) return success;
  const int result = exchange(*messages.front().communicator);
  messages.clear();
  return result;
}

}  // extern "C"
