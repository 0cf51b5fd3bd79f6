// What CUDA C++ means on a host: the text of a kernel that comes after this header runs, block by
// block, with a fibre for each thread. Shared memory is watched: two accesses of which one writes,
// by different threads with no barrier between, are a failure, and so is a read of what the block
// has not written.
//
// It is for the shared library that tests make of emitted text, and not for tests themselves.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

#include "host_tensor_map.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace device {

constexpr unsigned most_threads = 1024, warp_size = 32, most_shared_bytes = 232448;
constexpr std::size_t stack_bytes = 64 << 10;

// --- what happened ---

static char failure[256];
template <class... Args>
void fail(const char* format, Args... args) {
  if (!failure[0]) std::snprintf(failure, sizeof failure, format, args...);
}

// --- fibres ---

enum class State { done, ready, at_barrier, at_warp, polling };
struct Fibre {
  State state = State::done;
  std::uint64_t seen = 0;  // of the changes of barriers, when it looked last
  bool is_made = false;
#if defined(__SANITIZE_ADDRESS__)
  ucontext_t context;
  void* fake_stack = nullptr;
#else
  jmp_buf place;
#endif
  char* stack = nullptr;
  ~Fibre() { std::free(stack); }
};
static Fibre fibres[most_threads];
static unsigned current, count;
static std::uint64_t phase = 1;  // moves at each barrier of a block, and with each block
static std::uint64_t block_begin = 1;
static std::uint64_t warp_phase[most_threads / warp_size];
static void (*body)(const void*);
static const void* closure;
static bool has_fibres;
static std::uint64_t changes;     // of barriers in shared memory
static std::uint64_t blocks_run;  // of all kernels; decides how long what is asynchronous takes
// Set by the first operation of a kind that goes on while its thread does other things: kernels
// that have none need not compile what they take.
static bool (*land_a_tile)();      // lets the first tile under way arrive, if there is one
static void (*at_block_end[3])();  // of copies, products, tiles

inline void run_thread() {
  body(closure);
  fibres[current].state = State::done;
}

#if defined(__SANITIZE_ADDRESS__)
static ucontext_t scheduler;
static const void* scheduler_stack;
static std::size_t scheduler_size;
inline void leave() {
  Fibre& fibre = fibres[current];
  __sanitizer_start_switch_fiber(&fibre.fake_stack, scheduler_stack, scheduler_size);
  swapcontext(&fibre.context, &scheduler);
  __sanitizer_finish_switch_fiber(fibres[current].fake_stack, &scheduler_stack, &scheduler_size);
}
inline void live() {
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_size);
  for (;;) {
    run_thread();
    leave();
  }
}
inline void enter(Fibre& fibre) {
  if (!fibre.is_made) {
    fibre.is_made = true;
    fibre.stack = static_cast<char*>(std::malloc(stack_bytes));
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack;
    fibre.context.uc_stack.ss_size = stack_bytes;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, live, 0);
  }
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, fibre.stack, stack_bytes);
  swapcontext(&scheduler, &fibre.context);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}
#else
// A context only begins a fibre: its switches would cost two system calls each.
static jmp_buf scheduler;
inline void leave() {
  if (!_setjmp(fibres[current].place)) _longjmp(scheduler, 1);
}
inline void live() {
  for (;;) {
    run_thread();
    leave();
  }
}
inline void enter(Fibre& fibre) {
  if (_setjmp(scheduler)) return;
  if (fibre.is_made) _longjmp(fibre.place, 1);
  fibre.is_made = true;
  fibre.stack = static_cast<char*>(std::malloc(stack_bytes));
  static ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fibre.stack;
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  setcontext(&context);
}
#endif

inline void wait(State state) {
  if (!has_fibres) return fail("a barrier in a kernel that was run without fibres");
  const dim3 thread = threadIdx;
  const unsigned number = current;
  fibres[current].state = state;
  leave();
  current = number;
  threadIdx = thread;
}

inline void release(unsigned begin, unsigned end) {
  for (unsigned t = begin; t < end; ++t) {
    if (fibres[t].state != State::done) fibres[t].state = State::ready;
  }
}

/// Runs the threads of a block until all are done.
inline void run_block() {
  block_begin = ++phase;
  ++blocks_run;
  for (unsigned t = 0; t < count; ++t) fibres[t].state = State::ready;
  for (unsigned round = 0;; ++round) {
    bool moved = false;
    for (unsigned i = 0; i < count; ++i) {
      // Not always in the same order.
      const unsigned t = round % 2 ? count - 1 - i : i;
      if (fibres[t].state == State::polling && fibres[t].seen != changes)
        fibres[t].state = State::ready;
      if (fibres[t].state != State::ready) continue;
      moved = true;
      current = t;
      threadIdx = {t, 0, 0};
      enter(fibres[t]);
    }
    if (moved) continue;
    unsigned waiting = 0, in_warps = 0, polling = 0;
    for (unsigned t = 0; t < count; ++t) {
      waiting += fibres[t].state == State::at_barrier;
      in_warps += fibres[t].state == State::at_warp;
      polling += fibres[t].state == State::polling;
    }
    if (waiting + in_warps + polling == 0) {
      for (void (*end)() : at_block_end) {
        if (end) end();
      }
      return;
    }
    if (in_warps + polling == 0) {
      ++phase;
      release(0, count);
      continue;
    }
    bool released = false;
    for (unsigned first = 0; first < count; first += warp_size) {
      bool all = true;
      const unsigned end = first + warp_size < count ? first + warp_size : count;
      for (unsigned t = first; t < end; ++t) all &= fibres[t].state == State::at_warp;
      if (!all) continue;
      ++warp_phase[first / warp_size];
      release(first, end);
      released = true;
    }
    if (released || (land_a_tile && land_a_tile())) continue;
    fail("threads that wait for others which never come");
    std::fprintf(stderr, "device_on_host: %s\n", failure);
    std::abort();  // the fibres that are left cannot be ended
  }
}

// --- shared memory ---

/// The last write of an element and the last reads, with when they were.
struct Access {
  std::uint64_t phase = 0, warp_phase = 0;
  unsigned thread = 0;
};
inline Access this_access() { return {phase, warp_phase[current / warp_size], current}; }
inline bool is_unordered(const Access& before) {
  if (before.phase != phase || before.thread == current) return false;
  return before.thread / warp_size != current / warp_size ||
         before.warp_phase == warp_phase[current / warp_size];
}

/// Bytes of what a launch adds to shared memory that a kernel has used.
static std::size_t used_shared_bytes;
/// Where elements of this type begin there.
template <class T>
static T*& dynamic_begin() {
  static T* begin = nullptr;
  return begin;
}
template <class T>
static void note_use(const T* element, std::size_t bytes) {
  const T* const begin = dynamic_begin<T>();
  if (!begin || element < begin || element >= begin + most_shared_bytes / bytes) return;
  const std::size_t end = static_cast<std::size_t>(element - begin + 1) * bytes;
  if (end > used_shared_bytes) used_shared_bytes = end;
}

template <class T>
class Watched {
 public:
  operator T() const {
    note_use(this, sizeof(T));
    if (written_.phase < block_begin)
      fail("thread %u reads shared memory that nobody has written", current);
    if (is_unordered(written_)) {
      fail("shared memory is read by thread %u and written by thread %u, with no barrier between",
           current, written_.thread);
    }
    if (read_[0].phase == phase && read_[0].thread != current) read_[1] = read_[0];
    read_[0] = this_access();
    return value_;
  }
  Watched& operator=(T value) {
    note_use(this, sizeof(T));
    for (const Access& other : {written_, read_[0], read_[1]}) {
      if (is_unordered(other)) {
        fail("shared memory is written by thread %u and used by thread %u, with no barrier between",
             current, other.thread);
      }
    }
    written_ = this_access();
    value_ = value;
    return *this;
  }
  Watched& operator=(const Watched& other) { return *this = T(other); }

 private:
  T value_;
  Access written_;
  mutable Access read_[2];
};

// --- launching ---

template <class... Args>
struct Call {
  void (*kernel)(Args...);
  void* const* arguments;
  template <std::size_t... i>
  void run(std::index_sequence<i...>) const {
    kernel(*static_cast<std::remove_reference_t<Args>*>(arguments[i])...);
  }
};

/// Bytes of a kernel's parameters; 0 behind the last.
template <class... Args>
std::size_t size_of_argument(void (*)(Args...), std::size_t i) {
  constexpr std::size_t sizes[] = {sizeof(Args)..., 0};
  return sizes[i];
}

/// Runs a kernel; each argument is given by its address. Returns what went wrong, or "".
template <class... Args>
const char* launch(void (*kernel)(Args...), const unsigned* grid, const unsigned* block,
                   bool with_fibres, void* const* arguments) {
  failure[0] = 0;
  used_shared_bytes = 0;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  const Call<Args...> call{kernel, arguments};
  body = [](const void* c) {
    static_cast<const Call<Args...>*>(c)->run(std::index_sequence_for<Args...>{});
  };
  closure = &call;
  has_fibres = with_fibres;
  count = block[0];
  for (unsigned y = 0; y < grid[1]; ++y) {
    for (unsigned x = 0; x < grid[0]; ++x) {
      blockIdx = {x, y, 0};
      if (with_fibres) {
        run_block();
        continue;
      }
      ++phase;
      for (current = 0; current < count; ++current) {
        threadIdx = {current, 0, 0};
        body(closure);
      }
    }
  }
  return failure;
}

}  // namespace device

// --- the machine section of the vocabulary ---

template <class T>
using Shared = device::Watched<T>;

template <int bytes, class T>
T* aligned(T* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
    device::fail("thread %u of block %u uses memory that is not aligned to %d bytes",
                 device::current, blockIdx.x, bytes);
  }
  return address;
}

/// One block runs at a time.
template <class T>
T& shared_tiles() {
  static T memory;
  return memory;
}

inline void __syncthreads() { device::wait(device::State::at_barrier); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static T slots[device::most_threads];
  const unsigned thread = device::current;
  slots[thread] = value;
  device::wait(device::State::at_warp);
  const T other = slots[thread ^ static_cast<unsigned>(mask)];
  device::wait(device::State::at_warp);
  return other;
}

inline unsigned long long atomicCAS(unsigned long long* at, unsigned long long expected,
                                    unsigned long long value) {
  const unsigned long long before = *at;
  if (before == expected) *at = value;
  return before;
}

template <class To, class From>
To same_bits(From x) {
  To to;
  static_assert(sizeof to == sizeof x);
  std::memcpy(&to, &x, sizeof to);
  return to;
}
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline float __double2float_rz(double x) {
  const float near = static_cast<float>(x);
  if (!(std::fabs(static_cast<double>(near)) > std::fabs(x))) return near;
  return std::nextafter(near, 0.0f);
}
inline float reciprocal(float x) { return 1 / x; }
inline float power_of_two(float x) { return std::exp2(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double normcdf(double x) {
  return static_cast<double>(
      std::erfc(-static_cast<long double>(x) / 1.41421356237309504880168872421L) / 2);
}
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
inline double erfinv(double x) {  // Newton's method, from the side where it does not overshoot
  if (!(std::fabs(x) < 1)) return x == 1 ? INFINITY : x == -1 ? -INFINITY : NAN;
  long double v = 0;
  for (int i = 0; i < 100; ++i) {
    v -= (std::fabs(x) < 0.5
              ? std::erf(v) - x
              : (1 - std::fabs(static_cast<long double>(x)) - std::erfc(std::fabs(v))) *
                    (x < 0 ? -1 : 1)) *
         std::exp(v * v) / 1.12837916709551257389615890312154517L;
  }
  return static_cast<double>(v);
}
inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }

/// The nearest 16-bit float, by way of exact arithmetic on doubles: its last place is 2^(e - bits).
template <int exponent_bits, int mantissa_bits>
unsigned short nearest_16_bits(float x) {
  const unsigned sign = __float_as_uint(x) >> 31 << 15;
  constexpr unsigned infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  if (x != x) return static_cast<unsigned short>(infinity | 1u << (mantissa_bits - 1) | sign);
  const double size = std::fabs(static_cast<double>(x));
  if (size == 0) return static_cast<unsigned short>(sign);
  if (std::isinf(size)) return static_cast<unsigned short>(infinity | sign);
  int exponent = std::ilogb(size);
  if (exponent < 1 - bias) exponent = 1 - bias;
  const double places = std::nearbyint(std::ldexp(size, mantissa_bits - exponent));
  // One carry of the mantissa goes on into the exponent.
  const double bits = places + std::ldexp(static_cast<double>(exponent + bias - 1), mantissa_bits);
  return static_cast<unsigned short>((bits < infinity ? static_cast<unsigned>(bits) : infinity) |
                                     sign);
}
inline unsigned short f16_bits(float x) { return nearest_16_bits<5, 10>(x); }
inline unsigned short bf16_bits(float x) { return nearest_16_bits<8, 7>(x); }
inline float float_of_f16(unsigned short bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                                     : std::ldexp(exponent ? mantissa + 1024 : mantissa,
                                                  (exponent ? exponent : 1) - 25);
  return static_cast<float>(bits >> 15 ? -size : size);
}

// --- the tensor section of the vocabulary ---

namespace device {

/// Operations that go on while their thread does other things, in the groups that it waits for.
template <class Operation>
class Groups {
 public:
  void add(const Operation& operation) { open_.push_back(operation); }
  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  /// Does the operations of all groups but the last `n`.
  void wait(std::size_t n) {
    for (; groups_.size() > n; groups_.pop_front()) {
      for (const Operation& operation : groups_.front()) operation.finish(operation);
    }
  }
  /// Whether all have been waited for; none is left in any case.
  bool end() {
    bool all = open_.empty();
    for (const auto& group : groups_) all &= group.empty();
    open_.clear();
    groups_.clear();
    return all;
  }

 private:
  std::vector<Operation> open_;
  std::deque<std::vector<Operation>> groups_;
};

/// Until its thread waits for a copy, there is something else where it goes.
struct Copy {
  void* to;
  unsigned char bytes[16];
  void (*finish)(const Copy&);
};
static Groups<Copy>* copies_of_threads() {
  static Groups<Copy> copies[most_threads];
  return copies;
}
static Groups<Copy>& copies() {
  at_block_end[0] = [] {
    for (unsigned t = 0; t < count; ++t) copies_of_threads()[t].end();
  };
  return copies_of_threads()[current];
}

/// What each thread of a warp brings to an operation that they do together.
struct Brought {
  const void* row;
  unsigned a[4], b[2];
};
static Brought brought[most_threads];

template <class T>
void load_matrices(unsigned (&r)[4], const Watched<T>* row, bool turned) {
  brought[current].row = row;
  wait(State::at_warp);
  const unsigned lane = current % warp_size, first = current - lane;
  for (unsigned i = 0; i < 4; ++i) {
    const auto element = [&](unsigned y, unsigned x) -> unsigned {
      const auto* const from = static_cast<const Watched<T>*>(brought[first + 8 * i + y].row);
      if (sizeof(T) == 2) return T(from[x]).bits;
      return T(from[2 * x]).bits | unsigned{T(from[2 * x + 1]).bits} << 8;
    };
    const unsigned x = lane % 4 * 2, y = lane / 4;
    r[i] =
        turned ? element(x, y) | element(x + 1, y) << 16 : element(y, x) | element(y, x + 1) << 16;
  }
  wait(State::at_warp);
}

/// For elements of so many bytes, of which `value` makes floats.
template <unsigned bytes, class Value>
void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Value value) {
  Brought& mine = brought[current];
  std::memcpy(mine.a, a, sizeof a);
  std::memcpy(mine.b, b, sizeof b);
  wait(State::at_warp);
  const unsigned lane = current % warp_size;
  const Brought* const all = brought + (current - lane);
  constexpr unsigned together = 4 / bytes;  // elements of a register
  const auto part = [&](unsigned both, unsigned k) {
    return value(bytes == 4 ? both
                            : both >> (k % together * 8 * bytes) & ((1ull << 8 * bytes) - 1));
  };
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 8 * together; ++k) {
      const unsigned quarter = k / together % 4, half = k / together / 4;
      const float x = part(all[row % 8 * 4 + quarter].a[row / 8 + half * 2], k);
      const float y = part(all[column * 4 + quarter].b[half], k);
      c[e] += x * y;
    }
  }
  wait(State::at_warp);
}

inline float value_of_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
inline float value_of_f16(unsigned bits) { return float_of_f16(static_cast<unsigned short>(bits)); }
inline float value_of_f8e5m2(unsigned bits) { return value_of_f16(bits << 8); }
inline float value_of_f8e4m3(unsigned bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 127) == 127) return NAN;
  const float size = std::ldexp(static_cast<float>(exponent ? mantissa + 8 : mantissa),
                                (exponent ? exponent : 1) - 10);
  return bits >> 7 ? -size : size;
}

alignas(1024) static unsigned char dynamic[most_shared_bytes];

}  // namespace device

// Of this library alone: the phases of others are not its own.
template <class T>
static device::Watched<T>* shared_memory() {
  static device::Watched<T> memory[device::most_shared_bytes / sizeof(T)];
  device::dynamic_begin<device::Watched<T>>() = memory;
  return memory;
}
inline unsigned char* dynamic_memory() { return device::dynamic; }
inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(static_cast<const unsigned char*>(pointer) - device::dynamic);
}

template <int n, class T>
void copy_async(device::Watched<T>* to, const T* from, bool inside) {
  static_assert(n * sizeof(T) == 4 || n * sizeof(T) == 8 || n * sizeof(T) == 16);
  device::Copy copy{to, {}, [](const device::Copy& done) {
                      for (int j = 0; j < n; ++j) {
                        T element;
                        std::memcpy(&element, done.bytes + j * sizeof(T), sizeof(T));
                        static_cast<device::Watched<T>*>(done.to)[j] = element;
                      }
                    }};
  aligned<n * sizeof(T)>(from);
  if (inside) std::memcpy(copy.bytes, from, n * sizeof(T));
  T not_yet;
  std::memset(&not_yet, 0xFF, sizeof(T));  // NaN
  for (int j = 0; j < n; ++j) to[j] = not_yet;
  device::copies().add(copy);
}
static void commit_copies() { device::copies().commit(); }
template <int n>
void wait_for_copies() {
  device::copies().wait(n);
}

inline void __syncwarp() { device::wait(device::State::at_warp); }
inline void put(device::Watched<float>* to, float a, float b) {
  to[0] = a;
  to[1] = b;
}
template <int n>
void take(float (&to)[n], const device::Watched<float>* from) {
  for (int j = 0; j < n; ++j) to[j] = from[j];
}

template <class T>
void load_matrices(unsigned (&r)[4], const device::Watched<T>* row) {
  device::load_matrices(r, row, false);
}
template <class T>
void load_matrices_turned(unsigned (&r)[4], const device::Watched<T>* row) {
  device::load_matrices(r, row, true);
}

inline unsigned tf32_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  return (bits & 0x7F800000u) == 0x7F800000u ? bits : (bits + 0x1000u) & ~0x1FFFu;
}
inline void multiply_add_bf16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add<2>(c, a, b, device::value_of_bf16);
}
inline void multiply_add_f16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add<2>(c, a, b, device::value_of_f16);
}
inline void multiply_add_f8e4m3(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add<1>(c, a, b, device::value_of_f8e4m3);
}
inline void multiply_add_f8e5m2(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add<1>(c, a, b, device::value_of_f8e5m2);
}
inline void multiply_add_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add<4>(c, a, b, __uint_as_float);
}

// --- what Hopper adds ---

/// An mbarrier: its phase ends when all have arrived and no bytes are under way.
struct Barrier {
  unsigned count, arrivals;
  long bytes;
  unsigned phases;  // that have ended
  void look() {
    ++device::changes;
    if (arrivals > 0 || bytes != 0) return;
    ++phases;
    arrivals = count;
  }
};
inline void begin_barrier(Barrier* barrier, unsigned arrivals) {
  *barrier = {arrivals, arrivals, 0, 0};
}
inline void end_of_beginning() {}
inline void arrive(Barrier* barrier) {
  if (barrier->arrivals == 0) device::fail("more arrivals at a barrier than it counts");
  --barrier->arrivals;
  barrier->look();
}
inline void arrive_expecting(Barrier* barrier, unsigned bytes) {
  barrier->bytes += bytes;
  arrive(barrier);
}
inline void wait_for(Barrier* barrier, unsigned parity) {
  while (barrier->phases % 2 == parity) {
    device::fibres[device::current].seen = device::changes;
    device::wait(device::State::polling);
  }
}

using TensorMap = HostTensorMap;

namespace device {

/// Bytes of shared memory that are swizzled by 128 bytes: which of eight 16-byte units of a line is
/// which depends on the line.
inline unsigned char& swizzled(unsigned address) {
  // On a device they begin up to 1023 bytes later.
  if (address + 1024 > used_shared_bytes) used_shared_bytes = address + 1024;
  address ^= (address >> 7 & 7) << 4;
  if (address >= most_shared_bytes) fail("a tile beyond the end of shared memory");
  return dynamic[address % most_shared_bytes];
}

struct PendingTile {
  unsigned to;
  TensorMap map;
  Barrier* full;
  int begin[5];
};
static std::deque<PendingTile>& pending_tiles() {
  static std::deque<PendingTile> tiles;
  return tiles;
}

inline void for_each_of_box(const PendingTile& tile, void (*put)(unsigned to, const void* from)) {
  const TensorMap& map = tile.map;
  const unsigned size = map.element_bytes;
  unsigned elements = 1;
  for (unsigned d = 0; d < map.rank; ++d) elements *= map.box[d];
  for (unsigned e = 0; e < elements; ++e) {
    const auto* from = reinterpret_cast<const unsigned char*>(map.address);
    bool inside = true;
    unsigned rest = e;
    for (unsigned d = 0; d < map.rank; ++d) {
      const long at = tile.begin[d] + static_cast<long>(rest % map.box[d]);
      rest /= map.box[d];
      inside &= at >= 0 && at < static_cast<long>(map.sizes[d]);
      from += at * static_cast<long>(d == 0 ? size : map.strides[d - 1]);
    }
    for (unsigned b = 0; b < size; ++b) put(tile.to + e * size + b, inside ? from + b : nullptr);
  }
}
inline void land(const PendingTile& tile) {
  for_each_of_box(tile, [](unsigned to, const void* from) {
    swizzled(to) = from ? *static_cast<const unsigned char*>(from) : 0;
  });
  long bytes = tile.map.element_bytes;
  for (unsigned d = 0; d < tile.map.rank; ++d) bytes *= tile.map.box[d];
  tile.full->bytes -= bytes;
  tile.full->look();
}
static void add_tile(const PendingTile& tile) {
  pending_tiles().push_back(tile);
  land_a_tile = [] {
    if (pending_tiles().empty()) return false;
    const PendingTile first = pending_tiles().front();
    pending_tiles().pop_front();
    land(first);
    return true;
  };
  at_block_end[2] = [] {
    if (!pending_tiles().empty()) fail("the block ends with tiles under way");
    pending_tiles().clear();
  };
}

/// A product on its way: it reads its tiles now, or not until its thread waits for it.
struct Product {
  float* sum;
  unsigned sums, depth, bytes;  // of an element
  std::uint64_t a, b;
  bool turns_a, turns_b;
  float (*value)(unsigned bits);
  void (*finish)(const Product&);
};
static Groups<Product>* products_of_threads() {
  static Groups<Product> products[most_threads];
  return products;
}
static Groups<Product>& products() {
  at_block_end[1] = [] {
    for (unsigned t = 0; t < count; ++t) {
      if (!products_of_threads()[t].end()) fail("thread %u ends with products under way", t);
    }
  };
  return products_of_threads()[current];
}

/// Element (row, k) of a matrix by its descriptor: PTX ISA, "Asynchronous warpgroup level
/// multiply-and-accumulate", strides and canonical layouts of 128-byte swizzling.
inline unsigned element_of(std::uint64_t matrix, bool turned, unsigned bytes, unsigned row,
                           unsigned k) {
  if (matrix >> 62 != 1 || (matrix >> 49 & 7) != 0) fail("not a matrix swizzled by 128 bytes");
  const auto field = [&](unsigned bit) {
    return static_cast<unsigned>(matrix >> bit & 0x3FFF) << 4;
  };
  const unsigned begin = field(0), leading = field(16), stride = field(32);
  const unsigned at =
      turned ? begin + row / 64 * leading + k / 8 * stride + k % 8 * 128 + row % 64 * bytes
             : begin + row / 8 * stride + row % 8 * 128 + k * bytes;
  unsigned bits = 0;
  std::memcpy(&bits, &swizzled(at), bytes);
  return bits;
}
inline void finish_product(const Product& p) {
  const unsigned lane = current % warp_size, warp = current / warp_size % 4;
  float left[2][32], right[32];
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned k = 0; k < p.depth; ++k)
      left[half][k] =
          p.value(element_of(p.a, p.turns_a, p.bytes, 16 * warp + lane / 4 + 8 * half, k));
  }
  for (unsigned block = 0; block < p.sums / 4; ++block) {
    for (unsigned c = 0; c < 2; ++c) {
      for (unsigned k = 0; k < p.depth; ++k)
        right[k] = p.value(element_of(p.b, p.turns_b, p.bytes, 8 * block + lane % 4 * 2 + c, k));
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned k = 0; k < p.depth; ++k)
          p.sum[4 * block + 2 * half + c] += left[half][k] * right[k];
      }
    }
  }
}
static void start_product(Product product) {
  product.finish = finish_product;
  if (blocks_run % 4 < 2) return products().add(product);
  finish_product(product);
}

}  // namespace device

template <class... Index>
void load_tile(unsigned char* to, const TensorMap& map, Barrier* full, Index... index) {
  if (map.mark != TensorMap::right_mark || map.rank != sizeof...(Index))
    return device::fail("a tile of a tensor map that is none, or of another rank");
  if (shared_address(to) % 1024 != 0) device::fail("a tile that does not begin with the pattern");
  const device::PendingTile tile{shared_address(to), map, full, {index...}};
  if (device::blocks_run % 2) return device::land(tile);
  device::for_each_of_box(tile,
                          [](unsigned at, const void*) { device::swizzled(at) = 0xFF; });  // NaN
  device::add_tile(tile);
}
inline unsigned char* swizzled_memory() { return device::dynamic; }

template <int n>
void give_registers() {}
template <int n>
void take_registers() {}
template <int n>
void begin_products(float (&)[n]) {}
template <int n>
void end_products(float (&)[n]) {}
static void commit_products() { device::products().commit(); }
template <int n>
void wait_for_products() {
  device::products().wait(n);
}
template <int turns_a, int turns_b, int n>
void multiply_add_group_bf16(float (&sum)[n], std::uint64_t a, std::uint64_t b) {
  device::start_product(
      {sum, n, 16, 2, a, b, turns_a == 1, turns_b == 1, device::value_of_bf16, {}});
}
template <int turns_a, int turns_b, int n>
void multiply_add_group_f16(float (&sum)[n], std::uint64_t a, std::uint64_t b) {
  device::start_product(
      {sum, n, 16, 2, a, b, turns_a == 1, turns_b == 1, device::value_of_f16, {}});
}
template <int n>
void multiply_add_group_f8e4m3(float (&sum)[n], std::uint64_t a, std::uint64_t b) {
  device::start_product({sum, n, 32, 1, a, b, false, false, device::value_of_f8e4m3, {}});
}
template <int n>
void multiply_add_group_f8e5m2(float (&sum)[n], std::uint64_t a, std::uint64_t b) {
  device::start_product({sum, n, 32, 1, a, b, false, false, device::value_of_f8e5m2, {}});
}
inline void store_unchanged(float* to, const float (&from)[4]) {
  for (int j = 0; j < 4; ++j) to[j] = from[j];
}
inline unsigned packed_bf16(float low, float high) {
  return bf16_bits(low) | unsigned{bf16_bits(high)} << 16;
}
inline unsigned packed_f16(float low, float high) {
  return f16_bits(low) | unsigned{f16_bits(high)} << 16;
}
