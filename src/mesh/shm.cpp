#include "mesh/shm.hpp"

#include <optional>

#include "io/number.hpp"
#include "machine/environment.hpp"
#include "mesh/worker.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

class ShmGroup final : public Group {
 public:
  ShmGroup(std::vector<int> ranks, std::shared_ptr<Worker> worker)
      : Group(std::move(ranks), worker->rank()), worker_(std::move(worker)) {
    queue_ = worker_->make_queue(Group::ranks());
  }

 private:
  std::shared_ptr<Running> begin(const Request& request, bool is_awaited) override {
    if (request.collective != Collective::send) return worker_->start(*queue_, request, is_awaited);
    const int other = ranks()[static_cast<std::size_t>(request.peer)];
    return worker_->start(*worker_->queue_between(other, request), request, is_awaited);
  }

  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Queue> queue_;
};

class ShmTransport final : public Transport {
 public:
  ShmTransport(SharedMemory memory, int rank, ShmPatience patience)
      : membership_(std::make_shared<Worker>(std::move(memory), rank, patience)) {
    set_place(rank, membership_.worker->memory().size());
    membership_.worker->wait_for_all();
  }

  std::string_view name() const override { return "shm"; }

 private:
  std::unique_ptr<Group> make_group(std::vector<int> ranks) override {
    return std::make_unique<ShmGroup>(std::move(ranks), membership_.worker);
  }

  void tell_others_of_leaving() override { membership_.worker->leave(); }

  /// From joining the others to leaving them.
  struct Membership {
    explicit Membership(std::shared_ptr<Worker> joining) : worker(std::move(joining)) {
      worker->join();
    }
    ~Membership() { worker->leave(); }
    std::shared_ptr<Worker> worker;
  };
  Membership membership_;
};

/// The number of that variable, between `least` and `most`.
int number_of(Variable variable, int least, int most, const char* help = "ein launch sets it") {
  const std::string text = environment(variable);
  const std::optional<int> number = io::number_of<int>(text);
  if (number && *number >= least && *number <= most) return *number;
  throw Error(ErrorKind::value, "shm: " + std::string(name(variable)) + "=" + text +
                                    " is no number between " + std::to_string(least) + " and " +
                                    std::to_string(most) + "\n  help: " + help);
}

ShmPatience patience() {
  constexpr int most = 1 << 20;
  ShmPatience patience;
  if (!environment(Variable::shm_wait).empty())
    patience.to_come = number_of(Variable::shm_wait, 1, most,
                                 "give the seconds to wait for the other processes, as "
                                 "EIN_SHM_WAIT=600, or leave it out for 60");
  if (!environment(Variable::shm_timeout).empty())
    patience.to_take_part = number_of(Variable::shm_timeout, 1, most,
                                      "give the seconds to wait in a collective, as "
                                      "EIN_SHM_TIMEOUT=7200, or leave it out for 1800");
  return patience;
}

}  // namespace

std::unique_ptr<Transport> open_shm(int descriptor, int rank, int size, ShmPatience patience) {
  SharedMemory memory = SharedMemory::open(descriptor);
  if (size != memory.size() || rank < 0 || rank >= size)
    throw Error(ErrorKind::value, "shm: process " + std::to_string(rank) + " of " +
                                      std::to_string(size) + " is none of the " +
                                      std::to_string(memory.size()) + " that were launched");
  return std::make_unique<ShmTransport>(std::move(memory), rank, patience);
}

std::unique_ptr<Transport> open_shm() {
  for (const Variable variable : {Variable::rank, Variable::size, Variable::shm}) {
    if (!environment(variable).empty()) continue;
    throw Error(ErrorKind::peer,
                "shm: this process was not started by ein launch, so there are no others\n"
                "  help: ein launch -n 2 -- program arguments");
  }
  const int processes = number_of(Variable::size, 1, most_shm_processes);
  return open_shm(number_of(Variable::shm, 0, 1 << 30), number_of(Variable::rank, 0, processes - 1),
                  processes, patience());
}

}  // namespace ein::mesh
