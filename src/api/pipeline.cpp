// Pipelines: stages of a model along a mesh axis, one forward, one backward.
#include <ein/pipeline.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include "cost/exchange.hpp"
#include "io/xxh64.hpp"
#include "runtime/mesh.hpp"
#include "runtime/random_state.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

/// The processes that are here of one stage, and their neighbours along the axis.
class Ends {
 public:
  Ends(const detail::MeshData& mesh, std::size_t axis, int stage) : axis_(axis), stage_(stage) {
    for (const auto& here : mesh.here) {
      if (here.process.coordinate(axis) == stage) processes_.push_back(&here.process);
    }
  }

  /// A value of the stage's mesh under way; it stays where it is until it has been sent.
  class Sending {
   public:
    void add(Tensor part, mesh::Ticket ticket) {
      parts_.push_back({std::move(part), std::move(ticket)});
    }
    void wait() {
      for (auto& [part, ticket] : parts_) ticket.wait();
      parts_.clear();
    }

   private:
    std::vector<std::pair<Tensor, mesh::Ticket>> parts_;
  };

  Sending send(const Tensor& x, int to) const {
    Sending sending;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Tensor part = engine::part_of(x, i).detach().to(cpu).contiguous();
      mesh::Ticket ticket = group(i).start_send(part.raw_data(), part.numel(), part.dtype(), to);
      sending.add(std::move(part), std::move(ticket));
    }
    return sending;
  }

  /// A value that lies as `like` does.
  Tensor receive(const Tensor& like, int from) const {
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const Tensor& part = engine::part_of(like, i);
      const Tensor received = empty(part.shape(), part.dtype(), cpu);
      group(i).receive(received.raw_data(), received.numel(), received.dtype(), from);
      parts.push_back(received.to(part.device()));
    }
    if (!like.is_placed()) return std::move(parts.front());
    const detail::PlacedData& placed = *like.impl().placed;
    return engine::joined(placed.mesh, placed.placement, like.shape(), std::move(parts));
  }

  int stage() const { return stage_; }

 private:
  mesh::Group& group(std::size_t i) const { return processes_[i]->group(1u << axis_); }

  std::size_t axis_;
  int stage_;
  std::vector<const mesh::Process*> processes_;
};

/// "(4, 8) f32, i0@data i1".
std::string type_of(const Tensor& x) {
  return x.shape().to_string() + " " + std::string(name(x.dtype())) +
         (x.is_placed() ? ", \"" + placement(x) + "\"" : "");
}

/// A step, as all of its stages know it.
struct Job {
  std::span<const Tensor> microbatches;
  const Tensor& between;
  const Pipeline::Stage& stage;
  const Pipeline::Loss& loss;
  int stages;
  std::uint64_t draws;  // a number of the call, for random numbers
  int count() const { return static_cast<int>(microbatches.size()); }
};

/// A stage's part of a step.
class StageOfStep {
 public:
  StageOfStep(const Job& job, Ends ends) : job_(job), ends_(std::move(ends)) {}

  bool is_done() const { return backwards_ == job_.count(); }
  /// min(S - 1 - s, M) forward passes come first; then each is followed by a backward pass.
  bool is_forward_next() const {
    return forwards_ < std::min(job_.count(), backwards_ + job_.stages - stage());
  }
  /// Whether the neighbours, null where there are none, have sent what the next pass needs.
  bool is_ready(const StageOfStep* before, const StageOfStep* after) const {
    return is_forward_next() ? !before || before->forwards_ > forwards_
                             : !after || after->backwards_ > backwards_;
  }
  void advance() { is_forward_next() ? forward() : backward(); }
  /// The sum of the losses, 0 but on the last stage.
  double finish() {
    gradient_under_way_.wait();
    return loss_;
  }

 private:
  struct InFlight {
    Tensor x, y;
    Ends::Sending output_under_way{};
  };

  int stage() const { return ends_.stage(); }
  bool is_first() const { return stage() == 0; }
  bool is_last() const { return stage() + 1 == job_.stages; }

  void forward() {
    const int microbatch = forwards_;
    // Random numbers of their own, whatever else has been computed here.
    const std::uint64_t place[] = {job_.draws, static_cast<std::uint64_t>(stage()),
                                   static_cast<std::uint64_t>(microbatch)};
    const std::string_view bytes(reinterpret_cast<const char*>(place), sizeof place);
    const engine::RandomReplay replay(engine::RandomPlace{{io::xxh64(bytes), 0}});

    InFlight& passing = in_flight_.emplace_back();
    passing.x = is_first() ? job_.microbatches[static_cast<std::size_t>(microbatch)]
                           : ends_.receive(job_.between, stage() - 1);
    if (!is_first()) passing.x.requires_grad(true);
    passing.y = job_.stage(passing.x, stage(), microbatch);
    if (is_last()) {
      const Tensor loss = job_.loss(passing.y, microbatch);
      if (loss.rank() != 0 || loss.is_placed())
        throw Error(ErrorKind::shape, "Pipeline: the loss of microbatch " +
                                          std::to_string(microbatch) + " is of shape " +
                                          loss.shape().to_string() +
                                          "\n  help: it is a scalar; take the mean of it");
      loss_ += loss.detach().item();
      passing.y = loss / job_.count();
    } else {
      require_as_between(passing.y, microbatch);
      passing.output_under_way = ends_.send(passing.y, stage() + 1);
    }
    ++forwards_;
  }

  void backward() {
    InFlight passing = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (is_last()) {
      if (passing.y.requires_grad()) passing.y.backward();
    } else {
      const Tensor gradient = ends_.receive(job_.between, stage() + 1);
      passing.output_under_way.wait();
      if (passing.y.requires_grad()) passing.y.backward(gradient);
    }
    if (!is_first()) {
      gradient_under_way_.wait();
      const Tensor& x = passing.x;
      gradient_under_way_ =
          ends_.send(x.has_grad() ? x.grad() : full_like(x.detach(), 0, x.dtype()), stage() - 1);
    }
    ++backwards_;
  }

  void require_as_between(const Tensor& y, int microbatch) const {
    const Tensor& wanted = job_.between;
    const bool is_same_shape = y.shape() == wanted.shape(),
               is_same_dtype = y.dtype() == wanted.dtype();
    const bool lies_alike =
        engine::placement_of(y) == engine::placement_of(wanted) &&
        (!y.is_placed() || engine::are_same(*y.impl().placed->mesh, *wanted.impl().placed->mesh));
    if (is_same_shape && is_same_dtype && lies_alike) return;
    throw Error(!is_same_shape   ? ErrorKind::shape
                : !is_same_dtype ? ErrorKind::dtype
                                 : ErrorKind::placement,
                "Pipeline: stage " + std::to_string(stage()) + " gives " + type_of(y) +
                    " for microbatch " + std::to_string(microbatch) + ", and stage " +
                    std::to_string(stage() + 1) + " takes " + type_of(wanted) +
                    "\n  help: all stages but the last give a tensor like `between`");
  }

  const Job& job_;
  Ends ends_;
  int forwards_ = 0, backwards_ = 0;
  std::deque<InFlight> in_flight_;
  Ends::Sending gradient_under_way_;
  double loss_ = 0;
};

void require_stage(int stage, int stages) {
  if (stage < 0 || stage >= stages)
    throw Error(ErrorKind::value, "Pipeline: there is no stage " + std::to_string(stage) +
                                      "\n  help: they are 0 to " + std::to_string(stages - 1));
}

std::size_t number_of(const Mesh& mesh, std::string_view axis) {
  const auto found = std::find_if(mesh.axes().begin(), mesh.axes().end(),
                                  [&](const MeshAxis& known) { return known.name == axis; });
  return static_cast<std::size_t>(found - mesh.axes().begin());
}

}  // namespace

Pipeline::Pipeline(const Mesh& mesh, std::string_view axis)
    : mesh_(mesh), axis_(axis), stage_mesh_(mesh.without(axis)) {
  if (mesh.impl()->loop) {
    stages_.resize(static_cast<std::size_t>(size()));
    std::iota(stages_.begin(), stages_.end(), 0);
  } else {
    stages_ = {mesh.coordinate(axis)};
  }
}

double Pipeline::step(std::span<const Tensor> microbatches, const Tensor& between,
                      const Stage& stage, const Loss& loss) const {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorKind::value, "Pipeline: " + why);
  };
  if (engine::Trace::active())
    refuse(
        "a step is taken in a function that ein::compile traces, which runs on all processes of a "
        "mesh\n"
        "  help: call it outside");
  if (microbatches.empty()) refuse("there are no microbatches\n  help: give one or more");
  if (size() > 1 && !is_floating(between.dtype()))
    refuse("no gradient flows through " + std::string(name(between.dtype())) +
           ", which stages are to give to each other\n  help: cut the model where values are "
           "floats");
  if (between.is_placed() && !engine::are_same(*between.impl().placed->mesh, *stage_mesh_.impl()))
    throw Error(ErrorKind::placement,
                "Pipeline: `between` lies on another mesh\n  help: ein::place(x, "
                "pipeline.mesh(), \"...\")");

  const EnableGrad enabled;
  const RandomOrigin draws = engine::take_streams(1);
  const std::uint64_t call[] = {draws.seed, draws.stream};
  const Job job{microbatches, between,
                stage,        loss,
                size(),       io::xxh64({reinterpret_cast<const char*>(call), sizeof call})};
  const std::size_t axis = number_of(mesh_, axis_);
  const detail::MeshData& mesh = *mesh_.impl();
  struct Forget {  // after an error, what was sent and not received
    ~Forget() {
      if (loop) loop->forget_messages();
    }
    mesh::Loop* loop;
  } const forget{mesh.loop.get()};
  std::deque<StageOfStep> stages;
  for (const int s : stages_) stages.emplace_back(job, Ends(mesh, axis, s));
  // Stages that are all here take turns, each as soon as its neighbours let it.
  while (!std::all_of(stages.begin(), stages.end(), [](const auto& s) { return s.is_done(); })) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageOfStep* const before = s > 0 ? &stages[s - 1] : nullptr;
      const StageOfStep* const after = s + 1 < stages.size() ? &stages[s + 1] : nullptr;
      if (!stages[s].is_done() && stages[s].is_ready(before, after)) stages[s].advance();
    }
  }
  double losses = 0;
  for (StageOfStep& s : stages) losses += s.finish();
  return sum([&](int s) { return s + 1 == size() ? losses : 0; }) / job.count();
}

double Pipeline::sum(const std::function<double(int stage)>& of_stage) const {
  std::vector<double> known(static_cast<std::size_t>(size()));
  for (const int s : stages_) known[static_cast<std::size_t>(s)] = of_stage(s);
  const std::size_t axis = number_of(mesh_, axis_);
  const detail::MeshData& mesh = *mesh_.impl();
  double total = 0;
  engine::for_each_here(mesh, [&](std::size_t here) {
    const mesh::Process& process = mesh.here[here].process;
    double of_all = 0;
    process.group(1u << axis)
        .all_reduce(&known[static_cast<std::size_t>(process.coordinate(axis))], &of_all, 1,
                    DType::f64);
    if (here == 0) total = of_all;
  });
  return total;
}

std::vector<Exchange> Pipeline::exchanges(int stage, int microbatches,
                                          const Tensor& between) const {
  require_stage(stage, size());
  const auto over = [&](Collective collective) {
    return exchange_over(collective, 1u << number_of(mesh_, axis_), mesh_.axes());
  };
  Exchange loss = over(Collective::all_reduce), sent = over(Collective::send);
  loss.calls = 1;
  loss.bytes = sizeof(double);
  sent.calls = microbatches * ((stage > 0) + (stage + 1 < size()));
  sent.bytes = sent.calls * static_cast<std::int64_t>(engine::local_bytes(between));
  if (sent.calls == 0) return {loss};
  return {loss, sent};
}

int Pipeline::in_flight(int stage, int microbatches) const {
  require_stage(stage, size());
  return std::min(size() - stage, microbatches);
}

}  // namespace ein
