#include "mesh/loop.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ein/error.hpp>
#include "mesh/combine.hpp"
#include "size/ask.hpp"

namespace ein::mesh {

/// Where the processes of a group meet: the last one to come does what all have asked for.
struct Loop::Meetings {
  struct Meeting {
    std::vector<Request> requests;  // by rank in the group
    std::size_t arrived = 0;
    std::uint64_t round = 0;
    std::string mistake{};  // of the last round
  };

  void meet(const std::vector<int>& ranks, int rank, const Request& request) {
    std::unique_lock lock(mutex);
    if (failed) leave();
    Meeting& meeting = of_ranks[ranks];
    meeting.requests.resize(ranks.size());
    meeting.requests[static_cast<std::size_t>(rank)] = request;
    if (++meeting.arrived == ranks.size()) {
      meeting.mistake = mistake_of(meeting.requests, ranks);
      if (meeting.mistake.empty()) exchange(meeting.requests);
      meeting.arrived = 0;
      ++meeting.round;
      changed.notify_all();
    } else {
      const std::uint64_t round = meeting.round;
      changed.wait(lock, [&] { return meeting.round != round || failed; });
      if (meeting.round == round) leave();
    }
    if (!meeting.mistake.empty()) throw Error(ErrorKind::value, meeting.mistake);
  }

  /// Of one process to another, by their ranks.
  using Way = std::pair<int, int>;
  struct Message {
    Request request;
    std::vector<std::byte> content;
  };

  void send(Way way, const Request& request) {
    const std::size_t bytes = static_cast<std::size_t>(request.count) * size_of(request.dtype);
    Message message{request, std::vector<std::byte>(request.from, request.from + bytes)};
    const std::lock_guard lock(mutex);
    messages[way].push_back(std::move(message));
    changed.notify_all();
  }
  void receive(Way way, const Request& request) {
    std::unique_lock lock(mutex);
    std::deque<Message>& waiting = messages[way];
    changed.wait(lock, [&] { return !waiting.empty() || failed; });
    if (waiting.empty()) leave();
    const Message message = std::move(waiting.front());
    waiting.pop_front();
    if (request.count != message.request.count || request.dtype != message.request.dtype)
      throw Error(ErrorKind::value,
                  "receive: " + different_message(way.first, message.request, request));
    if (!message.content.empty())
      std::memcpy(request.to, message.content.data(), message.content.size());
  }

  /// Another process has met an error, which is the one that counts.
  struct Left {};
  [[noreturn]] static void leave() { throw Left(); }

  static std::string mistake_of(const std::vector<Request>& requests,
                                const std::vector<int>& ranks) {
    const std::string first = to_string(requests.front());
    for (std::size_t i = 1; i < requests.size(); ++i) {
      if (to_string(requests[i]) == first) continue;
      return "processes started different collectives: process " + std::to_string(ranks.front()) +
             " " + first + ", process " + std::to_string(ranks[i]) + " " + to_string(requests[i]);
    }
    return {};
  }

  static void exchange(const std::vector<Request>& requests) {
    const Request& like = requests.front();
    const std::size_t bytes =
        static_cast<std::size_t>(like.count) * size_of(like.dtype);  // of a block
    if (bytes == 0) return;
    std::vector<std::byte> combined(bytes);
    std::vector<const std::byte*> from(requests.size());
    const auto combine_block = [&](std::size_t block) {
      for (std::size_t i = 0; i < requests.size(); ++i) from[i] = requests[i].from + block * bytes;
      combine_elements(from, combined.data(), like.count, like.dtype, like.combine);
    };
    if (like.collective == Collective::all_reduce) {
      combine_block(0);
      for (const Request& r : requests) std::memcpy(r.to, combined.data(), bytes);
      return;
    }
    for (std::size_t r = 0; r < requests.size(); ++r) {
      std::byte* const to = requests[r].to;
      if (like.collective == Collective::reduce_scatter) {
        combine_block(r);
        std::memcpy(to, combined.data(), bytes);
        continue;
      }
      const bool is_block = like.collective == Collective::all_to_all;
      for (std::size_t s = 0; s < requests.size(); ++s)
        std::memcpy(to + s * bytes, requests[s].from + (is_block ? r * bytes : 0), bytes);
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::vector<int>, Meeting> of_ranks;
  std::map<Way, std::deque<Message>> messages;
  bool failed = false;
};

class Loop::EndOfGroup final : public Group {
 public:
  EndOfGroup(std::vector<int> ranks, int rank, std::shared_ptr<Meetings> meetings)
      : Group(std::move(ranks), rank), meetings_(std::move(meetings)) {}

 private:
  std::shared_ptr<Running> begin(const Request& request, bool /*is_awaited*/) override {
    const int own = rank_of(rank()), other = rank_of(request.peer);
    if (request.collective != Collective::send)
      meetings_->meet(ranks(), rank(), request);
    else if (request.receives)
      meetings_->receive({other, own}, request);
    else
      meetings_->send({own, other}, request);
    return nullptr;
  }
  int rank_of(int place) const { return ranks()[static_cast<std::size_t>(place)]; }

  std::shared_ptr<Meetings> meetings_;
};

class Loop::End final : public Transport {
 public:
  End(int rank, int size, std::shared_ptr<Meetings> meetings) : meetings_(std::move(meetings)) {
    set_place(rank, size);
  }
  std::string_view name() const override { return "loop"; }

 private:
  std::unique_ptr<Group> make_group(std::vector<int> ranks) override {
    return std::make_unique<EndOfGroup>(std::move(ranks), rank(), meetings_);
  }
  std::shared_ptr<Meetings> meetings_;
};

Loop::Loop(int processes) : meetings_(std::make_shared<Meetings>()) {
  for (int rank = 0; rank < processes; ++rank)
    ends_.push_back(std::make_unique<End>(rank, processes, meetings_));
}
Loop::~Loop() = default;

void Loop::forget_messages() {
  const std::lock_guard lock(meetings_->mutex);
  meetings_->messages.clear();
}

void Loop::run(const std::function<void(int)>& f) {
  const std::lock_guard lock(running_);
  if (size() == 1) return f(0);
  std::exception_ptr failure;
  const auto end_with = [&](std::exception_ptr with) {
    const std::lock_guard lock(meetings_->mutex);
    if (!meetings_->failed) failure = std::move(with);
    meetings_->failed = true;
    meetings_->changed.notify_all();
  };
  const auto run_one = [&](int rank) {
    try {
      f(rank);
    } catch (const Meetings::Left&) {
    } catch (...) {
      end_with(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size()) - 1);
  try {
    for (int rank = 1; rank < size(); ++rank) threads.emplace_back(run_one, rank);
    run_one(0);
  } catch (const std::system_error& error) {
    end_with(std::make_exception_ptr(Error(
        ErrorKind::memory, "mesh: one process that stands for " + std::to_string(size()) +
                               " needs as many threads, of which the system starts no more than " +
                               std::to_string(threads.size() + 1) + " (" + error.what() + ")")));
  } catch (...) {
    end_with(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  if (!meetings_->failed) return;
  meetings_->failed = false;
  meetings_->of_ranks.clear();
  meetings_->messages.clear();
  std::rethrow_exception(failure);
}

}  // namespace ein::mesh
