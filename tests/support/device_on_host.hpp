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
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace device {

constexpr unsigned most_threads = 1024, warp_size = 32;
constexpr std::size_t stack_bytes = 64 << 10;

// --- what happened ---

static char failure[256];
template <class... Args>
void fail(const char* format, Args... args) {
  if (!failure[0]) std::snprintf(failure, sizeof failure, format, args...);
}

// --- fibres ---

enum class State { done, ready, at_barrier, at_warp };
struct Fibre {
  State state = State::done;
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
  for (unsigned t = 0; t < count; ++t) fibres[t].state = State::ready;
  for (unsigned round = 0;; ++round) {
    bool moved = false;
    for (unsigned i = 0; i < count; ++i) {
      // Not always in the same order.
      const unsigned t = round % 2 ? count - 1 - i : i;
      if (fibres[t].state != State::ready) continue;
      moved = true;
      current = t;
      threadIdx = {t, 0, 0};
      enter(fibres[t]);
    }
    if (moved) continue;
    unsigned waiting = 0, in_warps = 0;
    for (unsigned t = 0; t < count; ++t) {
      waiting += fibres[t].state == State::at_barrier;
      in_warps += fibres[t].state == State::at_warp;
    }
    if (waiting + in_warps == 0) return;
    if (in_warps == 0) {
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
    if (released) continue;
    fail("threads of a warp that wait for others which never come");
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

template <class T>
class Watched {
 public:
  operator T() const {
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
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }

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

/// A copy on its way: until its thread waits for it, there is something else where it goes.
struct Copy {
  void* to;
  unsigned short bits[8];
  void (*finish)(const Copy&);
};
static std::vector<Copy> copies[most_threads];

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
      return T(static_cast<const Watched<T>*>(brought[first + 8 * i + y].row)[x]).bits;
    };
    const unsigned x = lane % 4 * 2, y = lane / 4;
    r[i] =
        turned ? element(x, y) | element(x + 1, y) << 16 : element(y, x) | element(y, x + 1) << 16;
  }
  wait(State::at_warp);
}

template <class Value>
void multiply_add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Value value) {
  Brought& mine = brought[current];
  std::memcpy(mine.a, a, sizeof a);
  std::memcpy(mine.b, b, sizeof b);
  wait(State::at_warp);
  const unsigned lane = current % warp_size;
  const Brought* const all = brought + (current - lane);
  const auto half = [&](unsigned both, unsigned k) {
    return value(static_cast<unsigned short>(k % 2 ? both >> 16 : both));
  };
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const float x = half(all[row % 8 * 4 + k % 8 / 2].a[row / 8 + k / 8 * 2], k);
      const float y = half(all[column * 4 + k % 8 / 2].b[k / 8], k);
      c[e] += x * y;
    }
  }
  wait(State::at_warp);
}

}  // namespace device

template <class T>
void copy_async(device::Watched<T>* to, const T* from, bool inside) {
  device::Copy copy{to, {}, [](const device::Copy& done) {
                      for (int j = 0; j < 8; ++j)
                        static_cast<device::Watched<T>*>(done.to)[j] = T{done.bits[j]};
                    }};
  aligned<16>(from);
  for (int j = 0; j < 8; ++j) {
    copy.bits[j] = inside ? from[j].bits : 0;
    to[j] = T{0x7FFF};  // NaN
  }
  device::copies[device::current].push_back(copy);
}
inline void wait_for_copies() {
  for (const device::Copy& copy : device::copies[device::current]) copy.finish(copy);
  device::copies[device::current].clear();
}

template <class T>
void load_matrices(unsigned (&r)[4], const device::Watched<T>* row) {
  device::load_matrices(r, row, false);
}
template <class T>
void load_matrices_turned(unsigned (&r)[4], const device::Watched<T>* row) {
  device::load_matrices(r, row, true);
}

inline void multiply_add_bf16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add(c, a, b,
                       [](unsigned short bits) { return __uint_as_float(unsigned{bits} << 16); });
}
inline void multiply_add_f16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  device::multiply_add(c, a, b, [](unsigned short bits) { return float_of_f16(bits); });
}
