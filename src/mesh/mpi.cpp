#include "mesh/mpi.hpp"

#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "machine/environment.hpp"
#include "machine/owning_process.hpp"
#include "machine/shared_library.hpp"
#include "mesh/mpi/plugin.hpp"
#include "size/ask.hpp"

namespace ein::mesh {
namespace {

/// Where MPI is missing, or is started by nobody.
[[noreturn]] void refuse(const std::string& why) {
  throw Error(
      ErrorKind::peer,
      "mpi: " + why +
          "\n  help: install MPI (Debian: apt-get install libopenmpi-dev openmpi-bin), build "
          "ein with it, which makes libein_mpi.so, and name that in EIN_MPI if it is not "
          "beside ein's library or command, nor where the loader looks");
}

const EinMpiFunctions& plugin() {
  const std::string given = environment(Variable::mpi);
  const SharedLibrary library(given.empty() ? beside_us("libein_mpi.so") : std::vector{given});
  if (!library.is_open()) refuse(library.why_not());
  decltype(&ein_mpi_functions) functions = nullptr;
  library.find("ein_mpi_functions", functions);
  if (!functions) refuse(library.name() + " is no plug-in of ein");
  if (functions()->version != ein_mpi_version)
    refuse(library.name() + " is of another version of ein");
  return *functions();
}

/// MPI, one thread at a time. A child of fork() has no part in it: it calls nothing of MPI.
class Mpi {
 public:
  Mpi() : functions_(plugin()) { call("MPI_Init", functions_.start, &rank, &size); }
  ~Mpi() { stop(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  void* make_group(const std::vector<int>& ranks) {
    const std::vector<std::int32_t> members(ranks.begin(), ranks.end());
    void* group = nullptr;
    call("MPI_Comm_create_group", functions_.make_group, members.data(),
         static_cast<std::int32_t>(members.size()), &group);
    return group;
  }
  void end_group(void* group) {
    const std::lock_guard lock(mutex_);
    if (owner_.is_this() && !has_stopped_) functions_.end_group(group);
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    if (owner_.is_this() && !std::exchange(has_stopped_, true)) functions_.stop();
  }
  void* begin(void* group, const Request& r) {
    void* request = nullptr;
    if (r.receives) {
      call("receive", functions_.receive, group, static_cast<void*>(r.to),
           static_cast<std::int32_t>(r.count), static_cast<std::int32_t>(r.dtype),
           static_cast<std::int32_t>(r.peer), &request);
      return request;
    }
    if (r.collective == Collective::send) {
      call("send", functions_.send, group, static_cast<const void*>(r.from),
           static_cast<std::int32_t>(r.count), static_cast<std::int32_t>(r.dtype),
           static_cast<std::int32_t>(r.peer), &request);
      return request;
    }
    call(name(r.collective), functions_.begin, group, static_cast<std::int32_t>(r.collective),
         static_cast<const void*>(r.from), static_cast<void*>(r.to),
         static_cast<std::int32_t>(r.count), static_cast<std::int32_t>(r.dtype),
         static_cast<std::int32_t>(r.combine), &request);
    return request;
  }
  bool test(const std::string& what, void* request) {
    std::int32_t is_done = 0;
    call(what, functions_.test, request, &is_done);
    return is_done != 0;
  }

  std::int32_t rank = 0, size = 1;

 private:
  template <class... Parameters, class... Arguments>
  void call(std::string_view what, int (*function)(Parameters...), Arguments... arguments) {
    if (!owner_.is_this())
      throw Error(ErrorKind::value,
                  std::string(what) + ": a child of fork() is no process of the mesh");
    const std::lock_guard lock(mutex_);
    const int code = function(arguments...);
    if (code == 0) return;
    char text[512] = "";
    functions_.explain(code, text);
    throw Error(ErrorKind::peer, "mpi: " + std::string(what) + ": " + text);
  }

  const EinMpiFunctions& functions_;
  const OwningProcess owner_;
  std::mutex mutex_;
  bool has_stopped_ = false;
};

class MpiOperation final : public Running {
 public:
  MpiOperation(std::shared_ptr<Mpi> mpi, std::string what, void* request)
      : mpi_(std::move(mpi)), what_(std::move(what)), request_(request) {}

  bool is_done() override {
    const std::lock_guard lock(mutex_);
    return advance();
  }
  // MPI moves collectives on only while it is called.
  void wait() override {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (advance()) {
          if (error_) throw *error_;
          return;
        }
      }
      std::this_thread::yield();
    }
  }

 private:
  bool advance() {
    if (!request_) return true;
    try {
      if (!mpi_->test(what_, request_)) return false;
    } catch (const Error& error) {
      error_ = error;
    }
    request_ = nullptr;
    return true;
  }

  std::shared_ptr<Mpi> mpi_;
  const std::string what_;
  std::mutex mutex_;
  void* request_;
  std::optional<Error> error_;
};

class MpiGroup final : public Group {
 public:
  MpiGroup(std::vector<int> ranks, std::shared_ptr<Mpi> mpi)
      : Group(std::move(ranks), mpi->rank),
        mpi_(std::move(mpi)),
        group_(mpi_->make_group(Group::ranks())) {}
  ~MpiGroup() override { mpi_->end_group(group_); }

 private:
  std::shared_ptr<Running> begin(const Request& request, bool) override {
    if (request.count > std::numeric_limits<std::int32_t>::max())
      throw Error(ErrorKind::overflow,
                  name_of(request) + ": MPI takes at most 2^31 - 1 elements, not " +
                      std::to_string(request.count) + "\n  help: split it into several");
    return std::make_shared<MpiOperation>(mpi_, name_of(request), mpi_->begin(group_, request));
  }

  std::shared_ptr<Mpi> mpi_;
  void* group_;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport() : mpi_(std::make_shared<Mpi>()) { set_place(mpi_->rank, mpi_->size); }
  ~MpiTransport() override { end_groups(); }  // before MPI

  std::string_view name() const override { return "mpi"; }

 private:
  std::unique_ptr<Group> make_group(std::vector<int> ranks) override {
    return std::make_unique<MpiGroup>(std::move(ranks), mpi_);
  }
  void tell_others_of_leaving() override { mpi_->stop(); }

  std::shared_ptr<Mpi> mpi_;
};

}  // namespace

std::unique_ptr<Transport> open_mpi() { return std::make_unique<MpiTransport>(); }

}  // namespace ein::mesh
