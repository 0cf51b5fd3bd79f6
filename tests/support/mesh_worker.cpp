// A process of a mesh, for mesh_transport_test.cpp: `ein_mesh_worker WHAT [ARGUMENT]`. It ends with
// 0 if all is as it should be; with 3 and the message if a call ends with an Error.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <ein/dtype.hpp>
#include <ein/ein.hpp>
#include <ein/error.hpp>
#include <ein/pipeline.hpp>

#include "mesh/mpi.hpp"
#include "mesh/shm.hpp"

namespace {

using namespace ein;
using ein::Collective;
using Bytes = std::vector<std::byte>;

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(4);
}

/// A collective as all processes know it: each can make the operand of every other.
struct Case {
  Collective collective;
  std::vector<int> ranks;
  std::int64_t count;
  DType dtype;
  Combine combine;
  std::uint64_t seed;
  std::size_t sender = 0, receiver = 1;  // of a send, their places
};

std::int64_t operand_length(const Case& c) {
  const bool has_blocks =
      c.collective == Collective::reduce_scatter || c.collective == Collective::all_to_all;
  return c.count * (has_blocks ? static_cast<std::int64_t>(c.ranks.size()) : 1);
}

/// Elements of a dtype at random: of floats finite ones, of which sums and products are not exact.
Bytes random_elements(DType dtype, std::int64_t count, std::uint64_t seed) {
  if (is_complex(dtype)) return random_elements(real_dtype(dtype), 2 * count, seed);
  Bytes bytes(static_cast<std::size_t>(count) * size_of(dtype));
  std::mt19937_64 random(seed);
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      T value{};
      const std::uint64_t bits = random();
      if constexpr (is_floating(dtype_of<T>))
        value =
            convert<T>((static_cast<double>(bits >> 11) * 0x1p-52 - 1) * (bits % 7 == 0 ? 0 : 1.5));
      else if constexpr (std::is_same_v<T, bool>)
        value = bits % 2 != 0;
      else
        value = static_cast<T>(bits);
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

Bytes operand_of(const Case& c, std::size_t place) {
  return random_elements(c.dtype, operand_length(c), c.seed * 1000 + place);
}

/// What two numbers become; a loop of these is what the transport is held against.
template <class C>
C two(Combine combine, C a, C b) {
  switch (combine) {
    case Combine::sum:
      if constexpr (std::is_same_v<C, bool>)
        return a || b;
      else if constexpr (std::is_integral_v<C>)
        return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case Combine::prod:
      if constexpr (std::is_same_v<C, bool>)
        return a && b;
      else if constexpr (std::is_integral_v<C>)
        return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case Combine::max:
      return a > b ? a : b;
    default:
      return a < b ? a : b;
  }
}

/// Elements [begin, begin + count) of the operands, combined in the order of ranks.
Bytes combined_of(const std::vector<Bytes>& operands, std::int64_t begin, std::int64_t count,
                  DType dtype, Combine combine) {
  Bytes bytes(static_cast<std::size_t>(count) * size_of(dtype));
  visit(dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<is_floating(dtype_of<T>) && sizeof(T) < 4, float, T>;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto element = [&](std::size_t r) {
        T x;
        std::memcpy(&x, operands[r].data() + static_cast<std::size_t>(begin + i) * sizeof(T),
                    sizeof x);
        return convert<C>(x);
      };
      C total = element(0);
      for (std::size_t r = 1; r < operands.size(); ++r) total = two<C>(combine, total, element(r));
      const T rounded = convert<T>(total);
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &rounded, sizeof(T));
    }
  });
  return bytes;
}

Bytes expected_of(const Case& c, std::size_t place) {
  std::vector<Bytes> operands;
  for (std::size_t r = 0; r < c.ranks.size(); ++r) operands.push_back(operand_of(c, r));
  const std::size_t block = static_cast<std::size_t>(c.count) * size_of(c.dtype);
  const std::int64_t parts = is_complex(c.dtype) ? 2 : 1;
  Bytes result;
  switch (c.collective) {
    case Collective::all_reduce:
      return combined_of(operands, 0, parts * c.count, real_dtype(c.dtype), c.combine);
    case Collective::reduce_scatter:
      return combined_of(operands, parts * c.count * static_cast<std::int64_t>(place),
                         parts * c.count, real_dtype(c.dtype), c.combine);
    case Collective::all_gather:
      for (const Bytes& operand : operands)
        result.insert(result.end(), operand.begin(), operand.end());
      return result;
    case Collective::all_to_all:
      for (const Bytes& operand : operands) {
        const auto begin = operand.begin() + static_cast<std::ptrdiff_t>(place * block);
        result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(block));
      }
      return result;
    case Collective::send:
      return place == c.receiver ? operands[c.sender] : Bytes();
    case Collective::barrier:
      break;
  }
  return result;
}

std::size_t result_bytes(const Case& c, std::size_t place) {
  if (c.collective == Collective::send && place != c.receiver) return 0;
  const bool is_one_block = c.collective == Collective::all_reduce ||
                            c.collective == Collective::reduce_scatter ||
                            c.collective == Collective::send;
  return static_cast<std::size_t>(c.count) * size_of(c.dtype) * (is_one_block ? 1 : c.ranks.size());
}

/// A started case.
struct Started {
  Case c;
  std::size_t place;
  Bytes operand, result;
  mesh::Ticket ticket;
};

void start(mesh::Group& group, Started& s, bool in_place) {
  s.operand = operand_of(s.c, s.place);
  s.result.assign(result_bytes(s.c, s.place), std::byte{0xA5});
  const void* from = s.operand.data();
  if (in_place) s.result = s.operand, from = s.result.data();
  void* const to = s.result.data();
  switch (s.c.collective) {
    case Collective::all_reduce:
      s.ticket = group.start_all_reduce(from, to, s.c.count, s.c.dtype, s.c.combine);
      break;
    case Collective::reduce_scatter:
      s.ticket = group.start_reduce_scatter(from, to, s.c.count, s.c.dtype, s.c.combine);
      break;
    case Collective::all_gather:
      s.ticket = group.start_all_gather(from, to, s.c.count, s.c.dtype);
      break;
    case Collective::all_to_all:
      s.ticket = group.start_all_to_all(from, to, s.c.count, s.c.dtype);
      break;
    case Collective::barrier:
      s.ticket = group.start_barrier();
      break;
    case Collective::send:
      if (s.place == s.c.sender)
        s.ticket = group.start_send(from, s.c.count, s.c.dtype, static_cast<int>(s.c.receiver));
      else if (s.place == s.c.receiver)
        s.ticket = group.start_receive(to, s.c.count, s.c.dtype, static_cast<int>(s.c.sender));
      break;
  }
}

std::string words_of(const Case& c) {
  return std::string(name(c.collective)) + " " + std::string(name(c.combine)) + " of " +
         std::to_string(c.count) + " " + std::string(name(c.dtype)) + " by " +
         mesh::list_processes(c.ranks) + ", seed " + std::to_string(c.seed);
}

Case random_case(std::mt19937_64& random, const std::vector<std::vector<int>>& groups,
                 std::int64_t largest) {
  Case c;
  c.seed = random() >> 20;
  c.collective = static_cast<Collective>(random() % collective_count);
  c.ranks = groups[random() % groups.size()];
  c.dtype = all_dtypes[random() % std::size(all_dtypes)];
  const std::int64_t sizes[] = {0, 1, 3, 17, 64, 1000, 4096, 70001, 262144, largest};
  c.count = sizes[random() % std::size(sizes)];
  if (c.count > 100000) c.count -= static_cast<std::int64_t>(random() % 3);
  c.count = std::min(c.count, std::max<std::int64_t>(
                                  1, largest * 4 / static_cast<std::int64_t>(size_of(c.dtype))));
  c.combine = static_cast<Combine>(random() % 4);
  if (is_complex(c.dtype)) c.combine = Combine::sum;
  if (c.collective == Collective::send) {
    c.sender = random() % c.ranks.size();
    c.receiver = (c.sender + 1 + random() % c.ranks.size()) % c.ranks.size();
    if (c.receiver == c.sender) c.collective = Collective::barrier;  // it has nobody else
  }
  if (c.collective == Collective::barrier) c.count = 0;
  return c;
}

/// Whether all bits are known: MPI chooses the order in which it combines.
bool is_exact(const mesh::Transport& transport, const Case& c) {
  const bool combines =
      c.collective == Collective::all_reduce || c.collective == Collective::reduce_scatter;
  const bool is_of_two =
      c.ranks.size() < 3 && (c.combine == Combine::sum || c.combine == Combine::prod);
  return transport.name() == "shm" || !combines || is_integral(c.dtype) || is_of_two;
}

/// Random collectives of several groups, some under way at a time, waited for in an order of this
/// process's own.
void random_collectives(mesh::Transport& transport, std::uint64_t seed, int rounds) {
  std::mt19937_64 random(seed);  // the same for all
  std::mt19937_64 own(seed * 100 + static_cast<std::uint64_t>(transport.rank()));
  // All, neighbours, every other one: as the axes of a mesh have them.
  std::vector<std::vector<int>> groups(1);
  for (int r = 0; r < transport.size(); ++r) groups[0].push_back(r);
  for (int r = 0; r + 1 < transport.size(); r += 2) groups.push_back({r, r + 1});
  for (int r = 0; r + 2 < transport.size(); ++r) groups.push_back({r, r + 2});
  groups.push_back({transport.size() - 1});
  std::map<std::vector<int>, mesh::Counters> expected;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Started> started;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      const Case c = random_case(random, groups, round % 4 == 0 ? 600000 : 9000);
      const bool in_place = random() % 3 == 0 && c.collective == Collective::all_reduce;
      const auto place = std::find(c.ranks.begin(), c.ranks.end(), transport.rank());
      if (place == c.ranks.end()) continue;
      Started& s = started.emplace_back();
      s.c = c;
      s.place = static_cast<std::size_t>(place - c.ranks.begin());
      start(transport.group(c.ranks), s, in_place);
      if (c.collective == Collective::send && s.place != c.sender) continue;  // it gives nothing
      auto& counted = expected[c.ranks].counts[static_cast<std::size_t>(c.collective)];
      ++counted.calls;
      counted.bytes += operand_length(c) * static_cast<std::int64_t>(size_of(c.dtype));
    }
    std::shuffle(started.begin(), started.end(), own);
    if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (Started& s : started) {
      s.ticket.wait();
      if (!s.ticket.is_done()) fail("waited for, and not done: " + words_of(s.c));
      const Bytes right = expected_of(s.c, s.place);
      if (s.c.collective == Collective::barrier || !is_exact(transport, s.c)) continue;
      if (s.result != right) {
        const auto at = std::mismatch(right.begin(), right.end(), s.result.begin()).first;
        fail(words_of(s.c) + " in process " + std::to_string(transport.rank()) +
             ": wrong from byte " + std::to_string(at - right.begin()) + " of " +
             std::to_string(right.size()));
      }
    }
  }
  for (const auto& [ranks, counters] : expected) {
    const mesh::Counters counted = transport.group(ranks).counters();
    for (std::size_t i = 0; i < collective_count; ++i) {
      if (counted.counts[i].calls != counters.counts[i].calls ||
          counted.counts[i].bytes != counters.counts[i].bytes)
        fail("counted wrongly: " + std::string(name(static_cast<Collective>(i))));
    }
  }
}

/// All dtypes, combines and collectives, once.
void every_kind(mesh::Transport& transport) {
  std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::uint64_t seed = 0;
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                      Collective::all_gather, Collective::all_to_all}) {
    for (const DType dtype : all_dtypes) {
      for (const Combine combine : {Combine::sum, Combine::prod, Combine::max, Combine::min}) {
        if (is_complex(dtype) && combine != Combine::sum) continue;
        for (const std::int64_t count : {5, 20011}) {
          Started s;
          s.c = {collective, ranks, count, dtype, combine, ++seed};
          s.place = static_cast<std::size_t>(transport.rank());
          start(transport.all(), s, false);
          s.ticket.wait();
          if (is_exact(transport, s.c) && s.result != expected_of(s.c, s.place))
            fail("wrong: " + words_of(s.c));
        }
      }
    }
  }
}

/// Adds in all groups until it is stopped.
void add_for_ever(mesh::Transport& transport) {
  std::vector<float> x(300000, 1.0f);
  const int partner = transport.rank() ^ 1;
  for (;;) {
    transport.all().all_reduce(x.data(), x.data(), static_cast<std::int64_t>(x.size()), DType::f32,
                               Combine::max);
    if (partner < transport.size()) {
      std::vector<int> pair{std::min(partner, transport.rank()),
                            std::max(partner, transport.rank())};
      mesh::Ticket ticket = transport.group(pair).start_all_reduce(x.data(), x.data(), 1000,
                                                                   DType::f32, Combine::max);
      ticket.wait();
    }
  }
}

/// Every process sends to every other one before any receives: more than there is room for.
void everybody_sends(mesh::Transport& transport) {
  mesh::Group& all = transport.all();
  std::uint64_t seed = 0;
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t count : {0, 5, dtype == DType::f32 ? 1000001 : 3000}) {
      ++seed;
      const auto sent = [&](int from, int to) {
        return random_elements(dtype, count,
                               seed * 10000 + static_cast<std::uint64_t>(100 * from + to));
      };
      std::vector<Bytes> operands, results;
      std::vector<mesh::Ticket> tickets;
      for (int other = 0; other < all.size(); ++other) {
        if (other == all.rank()) continue;
        operands.push_back(sent(all.rank(), other));
        tickets.push_back(all.start_send(operands.back().data(), count, dtype, other));
      }
      for (int other = 0; other < all.size(); ++other) {
        if (other == all.rank()) continue;
        Bytes result(static_cast<std::size_t>(count) * size_of(dtype));
        all.receive(result.data(), count, dtype, other);
        if (result != sent(other, all.rank()))
          fail("received wrongly: " + std::to_string(count) + " " + std::string(name(dtype)));
      }
      for (mesh::Ticket& ticket : tickets) ticket.wait();
    }
  }
}

/// Neighbours send to each other until they are stopped.
void pass_for_ever(mesh::Transport& transport) {
  mesh::Group& all = transport.all();
  const int n = all.size(), next = (all.rank() + 1) % n, before = (all.rank() + n - 1) % n;
  const std::vector<float> x(700000, 1.0f);
  std::vector<float> up(x.size()), down(x.size());
  for (const auto count = static_cast<std::int64_t>(x.size());;) {
    mesh::Ticket tickets[] = {all.start_send(x.data(), count, DType::f32, next),
                              all.start_send(x.data(), count, DType::f32, before)};
    all.receive(up.data(), count, DType::f32, before);
    all.receive(down.data(), count, DType::f32, next);
    for (mesh::Ticket& ticket : tickets) ticket.wait();
  }
}

/// Steps of a pipeline of all processes until they are stopped.
void pipe_for_ever() {
  const Mesh mesh({{"pipe", std::stoi(std::getenv("EIN_SIZE"))}});
  const Pipeline pipeline(mesh, "pipe");
  const Tensor x = ones({300000}), weight = ones({300000}).requires_grad(true);
  for (;;)
    pipeline.step(
        std::vector<Tensor>(8, x), x, [&](const Tensor& y, int, int) { return y * weight; },
        [](const Tensor& y, int) { return reduce(y, "a ->", "mean"); });
}

void expect_kind(ErrorKind kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.kind() != kind) fail(std::string("another kind of error: ") + error.what());
    return;
  }
  fail("no error of kind " + std::to_string(static_cast<int>(kind)));
}

void wrong_arguments(mesh::Transport& transport) {
  mesh::Group& all = transport.all();
  float x[64] = {}, y[64] = {};
  expect_kind(ErrorKind::value, [&] { all.all_reduce(x, y, -1, DType::f32); });
  expect_kind(ErrorKind::value, [&] { all.all_reduce(nullptr, y, 1, DType::f32); });
  expect_kind(ErrorKind::value, [&] { all.all_reduce(x, nullptr, 1, DType::f32); });
  expect_kind(ErrorKind::value, [&] { all.all_reduce(x, x + 1, 8, DType::f32); });
  expect_kind(ErrorKind::value, [&] { all.all_gather(x + 2, x, 2, DType::f32); });
  expect_kind(ErrorKind::overflow,
              [&] { all.all_reduce(x, y, std::int64_t{1} << 62, DType::f32); });
  expect_kind(ErrorKind::reduction, [&] { all.all_reduce(x, y, 1, DType::f32, Combine::any); });
  expect_kind(ErrorKind::dtype, [&] { all.all_reduce(x, y, 1, DType::c64, Combine::max); });
  const int other = 1 - transport.rank();
  expect_kind(ErrorKind::value, [&] { all.send(nullptr, 1, DType::f32, other); });
  expect_kind(ErrorKind::value, [&] { all.receive(nullptr, 1, DType::f32, other); });
  expect_kind(ErrorKind::value, [&] { all.send(x, 1, DType::f32, transport.rank()); });
  expect_kind(ErrorKind::value, [&] { all.receive(x, 1, DType::f32, 2); });
  expect_kind(ErrorKind::value, [&] { all.send(x, 1, DType::f32, -1); });
  expect_kind(ErrorKind::value, [&] { transport.group(std::vector<int>{}); });
  expect_kind(ErrorKind::value, [&] { transport.group(std::vector<int>{1, 0}); });
  expect_kind(ErrorKind::value, [&] { transport.group(std::vector<int>{0, transport.size()}); });
  expect_kind(ErrorKind::value,
              [&] { transport.group(std::vector<int>{(transport.rank() + 1) % 2}); });
  if (transport.name() == "shm") expect_kind(ErrorKind::value, [] { mesh::open_shm(); });
  all.all_reduce(nullptr, nullptr, 0, DType::f32);
  all.require_same(17, "the program");
}

/// Made before the library is used, so destroyed after this process has left the others.
struct AtExit {
  std::function<void()> call;
  ~AtExit() {
    if (call) call();
  }
} at_exit;

void sum_at_exit() {
  const Mesh mesh({{"data", std::stoi(std::getenv("EIN_SIZE"))}});
  const Tensor x = place(ones({4, 3}), mesh, "b@data h");
  reduce(x, "b h -> h", "sum");
  at_exit.call = [x, mesh] {
    if (place(ones({4, 3}), mesh, "b@data h").shape() != x.shape()) fail("placed otherwise");
    try {
      reduce(x, "b h -> h", "sum");
    } catch (const Error& error) {
      std::fprintf(stderr, "kind %d: %s\n", static_cast<int>(error.kind()), error.what());
      ::_exit(3);
    }
    ::_exit(4);
  };
}

void run(const std::string& what, const std::string& argument) {
  if (what == "late" && std::string(std::getenv("EIN_RANK")) == "1") {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return;
  }
  if (what == "pipeline") pipe_for_ever();
  if (what == "exit") return sum_at_exit();
  const auto transport = std::getenv("EIN_SHM") ? mesh::open_shm() : mesh::open_mpi();
  const int rank = transport->rank();
  float x[4] = {1, 2, 3, 4}, y[64];
  if (what == "random") {
    const std::size_t comma = argument.find(',');
    random_collectives(*transport, std::stoull(argument), std::stoi(argument.substr(comma + 1)));
  } else if (what == "every_kind") {
    every_kind(*transport);
  } else if (what == "add") {
    add_for_ever(*transport);
  } else if (what == "arguments") {
    wrong_arguments(*transport);
  } else if (what == "hash") {
    transport->all().require_same(rank == std::stoi(argument) ? 8 : 7, "the program");
  } else if (what == "collective") {  // one process starts another one
    if (rank == 1)
      transport->all().all_gather(x, y, 3, DType::f32);
    else
      transport->all().all_reduce(x, y, 4, DType::f32);
  } else if (what == "chatter") {  // prints as it goes
    for (int i = 0; i < 200; ++i) {
      std::printf("the sum is %d\n", i);
      std::fprintf(stderr, "of %d\n", i);
      std::fflush(stdout);
      transport->all().all_reduce(x, y, 4, DType::f32);
      if (y[3] != 4.F * static_cast<float>(transport->size())) fail("summed wrongly");
    }
  } else if (what == "sends") {
    everybody_sends(*transport);
  } else if (what == "pass") {
    pass_for_ever(*transport);
  } else if (what == "message") {  // another one than is received
    if (rank == 0)
      transport->all().send(x, 3, DType::f32, 1);
    else
      transport->all().receive(y, 4, DType::f32, 0);
  } else if (what == "leave_first") {  // what was sent before that still comes
    if (rank == 0) return transport->all().send(x, 4, DType::f32, 1);
    transport->all().receive(y, 4, DType::f32, 0);
    if (y[3] != 4) fail("received wrongly");
    transport->all().receive(y, 4, DType::f32, 0);
  } else if (what == "leave") {
    if (rank == 0) return;
    transport->all().all_reduce(x, y, 4, DType::f32);
  } else if (what == "elsewhere") {  // lives, and takes no part for so many seconds
    if (rank == 1) std::this_thread::sleep_for(std::chrono::seconds(std::stoi(argument)));
    for (int i = 0; i < 3; ++i) transport->all().all_reduce(x, y, 4, DType::f32);
  } else if (what == "crossed") {  // groups of which every process starts those in another order
    const int n = transport->size();
    mesh::Ticket tickets[2];
    float sums[2];
    for (const int step : {0, 1}) {  // the pair (r, r+1), then (r-1, r), around the circle
      const int other = (rank + (step == 0 ? 1 : n - 1)) % n;
      std::vector<int> pair{std::min(rank, other), std::max(rank, other)};
      tickets[step] = transport->group(pair).start_all_reduce(x, sums + step, 1, DType::f32);
    }
    for (mesh::Ticket& ticket : tickets) ticket.wait();
    if (sums[0] != 2 || sums[1] != 2) fail("crossed: wrong");
  } else if (what == "fork") {
    mesh::Ticket ticket = transport->all().start_barrier();
    ticket.wait();
    if (const pid_t child = ::fork(); child == 0) {
      expect_kind(ErrorKind::value, [&] { transport->all().barrier(); });
      expect_kind(ErrorKind::value, [&] { transport->all().send(x, 1, DType::f32, 1 - rank); });
      ::_exit(0);
    }
    transport->all().barrier();
  } else {
    fail("unknown: " + what);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) fail("ein_mesh_worker WHAT [ARGUMENT]");
  try {
    run(argv[1], argc > 2 ? argv[2] : "");
  } catch (const ein::Error& error) {
    std::fprintf(stderr, "kind %d: %s\n", static_cast<int>(error.kind()), error.what());
    return 3;
  }
  return 0;
}
