#include "mesh/transport.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "io/xxh64.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

/// Elements of the operand and of the result, of a group of `size` processes.
struct Lengths {
  std::int64_t from, to;
};
Lengths lengths_of(const Request& request, std::int64_t size) {
  const std::int64_t once = request.count, each = request.count * size;
  switch (request.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      return {once, once};
    case Collective::reduce_scatter:
      return {each, once};
    case Collective::all_gather:
      return {once, each};
    case Collective::all_to_all:
      return {each, each};
    case Collective::send:
      return request.receives ? Lengths{0, once} : Lengths{once, 0};
  }
  return {0, 0};
}

bool overlap(const std::byte* a, std::int64_t a_bytes, const std::byte* b, std::int64_t b_bytes) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && begin_a < begin_b + static_cast<std::uintptr_t>(b_bytes) &&
         begin_b < begin_a + static_cast<std::uintptr_t>(a_bytes);
}

/// Throws if the arguments are none that a collective can have.
void check(const Request& request, std::int64_t size) {
  const std::string prefix = name_of(request) + ": ";
  if (request.count < 0)
    throw Error(ErrorKind::value, prefix + "the count of elements is " +
                                      std::to_string(request.count) + ", at least 0 is wanted");
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(request.count, size, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<std::int64_t>(size_of(request.dtype)), &bytes))
    throw Error(ErrorKind::overflow, prefix + std::to_string(request.count) +
                                         " elements of each of " + std::to_string(size) +
                                         " processes need more than 2^63 - 1 bytes");
  const auto element = static_cast<std::int64_t>(size_of(request.dtype));
  const Lengths lengths = lengths_of(request, size);
  if ((lengths.from > 0 && !request.from) || (lengths.to > 0 && !request.to))
    throw Error(ErrorKind::value, prefix + "no address of " +
                                      (request.from ? "the result" : "the operand") + " is given");
  if (combines(request.collective)) {
    if (info(request.combine).asks)
      throw Error(ErrorKind::reduction,
                  prefix + std::string(name(request.combine)) +
                      " is not defined\n  help: max of bool is any, min is all");
    if (is_complex(request.dtype) && request.combine != Combine::sum)
      throw Error(ErrorKind::dtype, prefix + std::string(name(request.combine)) +
                                        " is not defined for " + std::string(name(request.dtype)));
  }
  const bool in_place = request.collective == Collective::all_reduce && request.from == request.to;
  if (!in_place && overlap(request.from, lengths.from * element, request.to, lengths.to * element))
    throw Error(ErrorKind::value, prefix + "operand and result overlap");
}

}  // namespace

std::string name_of(const Request& request) {
  return request.receives ? "receive" : std::string(name(request.collective));
}

std::string to_string(const Request& request) {
  std::string text = name_of(request);
  if (request.collective == Collective::barrier) return text;
  if (combines(request.collective)) text += " " + std::string(name(request.combine));
  return text + " of " + std::to_string(request.count) + " " + std::string(name(request.dtype));
}

std::string different_message(int sender, const Request& sent, const Request& received) {
  return "process " + std::to_string(sender) + " sent something else\n  it: " + to_string(sent) +
         "\n  this process: " + to_string(received) +
         "\n  help: both name the same count and dtype; what is sent first is received first";
}

std::string list_processes(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

// --- tickets ---

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  finish();
  running_ = std::move(other.running_);
  return *this;
}

void Ticket::finish() {
  if (!running_) return;
  try {
    running_->wait();
  } catch (const std::exception&) {
    // Whoever wants to know waits.
  }
  running_.reset();
}

// --- groups ---

Group::Group(std::vector<int> ranks, int rank_in_transport) : ranks_(std::move(ranks)) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank_in_transport);
  rank_ = static_cast<int>(place - ranks_.begin());
}

Ticket Group::start(Request request, bool is_awaited) {
  check(request, size());
  if (size() > 1 && *has_left_)
    throw Error(ErrorKind::peer, name_of(request) +
                                     ": this process has left the others\n"
                                     "  help: destructors of static objects and functions of "
                                     "atexit() run after that; end such work in main()");
  if (combines(request.collective) && is_complex(request.dtype)) {
    request.dtype = real_dtype(request.dtype);
    request.count *= 2;
  }
  const Lengths lengths = lengths_of(request, size());
  const std::int64_t bytes = lengths.from * static_cast<std::int64_t>(size_of(request.dtype));
  if (!request.receives) {  // it gives nothing
    AtomicCount& count = counts_[static_cast<std::size_t>(request.collective)];
    count.calls.fetch_add(1, std::memory_order_relaxed);
    count.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  if (size() > 1) return Ticket(begin(request, is_awaited));
  if (bytes > 0 && request.from != request.to)
    copy(request.to, request.from, static_cast<std::size_t>(bytes));
  return {};
}

void Group::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

Ticket Group::start_between(Request request, int peer, bool is_awaited) {
  request.collective = Collective::send;
  request.peer = peer;
  if (peer < 0 || peer >= size() || peer == rank())
    throw Error(ErrorKind::value, name_of(request) + ": the process at place " +
                                      std::to_string(peer) + " is none of the " +
                                      std::to_string(size() - 1) + " others of the group");
  return start(request, is_awaited);
}

namespace {
Request request_of(Collective collective, const void* from, void* to, std::int64_t count,
                   DType dtype, Combine combine = Combine::sum) {
  return {
      collective, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count, dtype,
      combine};
}
Request receipt(void* to, std::int64_t count, DType dtype) {
  Request request = request_of(Collective::send, nullptr, to, count, dtype);
  request.receives = true;
  return request;
}
}  // namespace

Ticket Group::start_all_reduce(const void* from, void* to, std::int64_t count, DType dtype,
                               Combine combine) {
  return start(request_of(Collective::all_reduce, from, to, count, dtype, combine), false);
}
Ticket Group::start_reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype,
                                   Combine combine) {
  return start(request_of(Collective::reduce_scatter, from, to, count, dtype, combine), false);
}
Ticket Group::start_all_gather(const void* from, void* to, std::int64_t count, DType dtype) {
  return start(request_of(Collective::all_gather, from, to, count, dtype), false);
}
Ticket Group::start_all_to_all(const void* from, void* to, std::int64_t count, DType dtype) {
  return start(request_of(Collective::all_to_all, from, to, count, dtype), false);
}
Ticket Group::start(Collective collective, const void* from, void* to, std::int64_t count,
                    DType dtype, Combine combine) {
  return start(request_of(collective, from, to, count, dtype, combine), false);
}
Ticket Group::start_barrier() { return start(Request(), false); }
Ticket Group::start_send(const void* from, std::int64_t count, DType dtype, int to) {
  return start_between(request_of(Collective::send, from, nullptr, count, dtype), to, false);
}
Ticket Group::start_receive(void* to, std::int64_t count, DType dtype, int from) {
  return start_between(receipt(to, count, dtype), from, false);
}

void Group::all_reduce(const void* from, void* to, std::int64_t count, DType dtype,
                       Combine combine) {
  start(request_of(Collective::all_reduce, from, to, count, dtype, combine), true).wait();
}
void Group::reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype,
                           Combine combine) {
  start(request_of(Collective::reduce_scatter, from, to, count, dtype, combine), true).wait();
}
void Group::all_gather(const void* from, void* to, std::int64_t count, DType dtype) {
  start(request_of(Collective::all_gather, from, to, count, dtype), true).wait();
}
void Group::all_to_all(const void* from, void* to, std::int64_t count, DType dtype) {
  start(request_of(Collective::all_to_all, from, to, count, dtype), true).wait();
}
void Group::barrier() { start(Request(), true).wait(); }
void Group::send(const void* from, std::int64_t count, DType dtype, int to) {
  start_between(request_of(Collective::send, from, nullptr, count, dtype), to, true).wait();
}
void Group::receive(void* to, std::int64_t count, DType dtype, int from) {
  start_between(receipt(to, count, dtype), from, true).wait();
}

void Group::tell(const void* from, void* to, std::int64_t bytes) {
  const Request request = request_of(Collective::all_gather, from, to, bytes, DType::u8);
  if (size() == 1) return copy(request.to, request.from, static_cast<std::size_t>(bytes));
  Ticket(begin(request, true)).wait();
}

void Group::require_same(std::uint64_t hash, std::string_view what) {
  std::vector<std::uint64_t> hashes(ranks_.size());
  tell(&hash, hashes.data(), sizeof hash);
  // The most common one is what the others differ from; of several, that of the lowest rank.
  std::map<std::uint64_t, std::vector<int>> owners;
  for (std::size_t i = 0; i < hashes.size(); ++i) owners[hashes[i]].push_back(ranks_[i]);
  if (owners.size() == 1) return;
  std::vector<std::pair<std::uint64_t, std::vector<int>>> parties(owners.begin(), owners.end());
  std::sort(parties.begin(), parties.end(), [](const auto& a, const auto& b) {
    return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                              : a.second.front() < b.second.front();
  });
  std::vector<int> different;
  std::string list;
  for (const auto& [value, ranks] : parties) {
    list += "\n  " + io::hex(value) + ": " + list_processes(ranks);
    if (&ranks != &parties.front().second)
      different.insert(different.end(), ranks.begin(), ranks.end());
  }
  std::sort(different.begin(), different.end());
  throw Error(ErrorKind::value,
              std::string(what) + " of " + list_processes(different) + " differs from that of " +
                  list_processes(parties.front().second) + list +
                  "\n  help: all processes must run the same program on the same arguments");
}

Counters Group::counters() const {
  Counters counters;
  for (std::size_t i = 0; i < collective_count; ++i)
    counters.counts[i] = {counts_[i].calls.load(std::memory_order_relaxed),
                          counts_[i].bytes.load(std::memory_order_relaxed)};
  return counters;
}

Combine for_collective(Combine combine) { return info(combine).of_taken; }

// --- transports ---

Group& Transport::group(std::span<const int> ranks) {
  const bool is_ascending =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (ranks.empty() || !is_ascending || ranks.front() < 0 || ranks.back() >= size_) {
    std::string list;
    for (const int rank : ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
    throw Error(ErrorKind::value, "group: (" + list +
                                      ") is no list of processes\n  help: give ranks of 0.." +
                                      std::to_string(size_ - 1) + " in ascending order, each once");
  }
  if (!std::binary_search(ranks.begin(), ranks.end(), rank_))
    throw Error(ErrorKind::value, "group: process " + std::to_string(rank_) +
                                      ", which asks for it, is none of " +
                                      list_processes({ranks.begin(), ranks.end()}));
  const std::lock_guard lock(mutex_);
  std::vector<int> key(ranks.begin(), ranks.end());
  std::unique_ptr<Group>& group = groups_[key];
  if (!group) {
    if (has_left_) throw Error(ErrorKind::peer, "group: this process has left the others");
    group = make_group(std::move(key));
    group->has_left_ = &has_left_;
  }
  return *group;
}

void Transport::leave() {
  if (!has_left_.exchange(true)) tell_others_of_leaving();
}

Group& Transport::all() {
  std::vector<int> ranks(static_cast<std::size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group(ranks);
}

}  // namespace ein::mesh
