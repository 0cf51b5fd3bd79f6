// Compiled functions: one program for each signature, the latest kept.
#include <ein/compile.hpp>

#include <algorithm>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "graph/dot.hpp"
#include "runtime/compile.hpp"
#include "runtime/compiled_program.hpp"
#include "tensor/fork.hpp"

namespace ein {

namespace detail {

/// Programs beyond these many are dropped, that first which was used least recently.
constexpr std::size_t most_programs = 64;

struct CompiledFunction::State final : engine::Releasable {
  struct Entry {
    std::vector<std::int64_t> signature;
    std::shared_ptr<Program> program;
  };

  ~State() override { unregister(); }

  void release() override {
    scratch.release();
    const NoForkLock lock(mutex);
    for (const Entry& entry : entries) entry.program->forget_results();
  }

  /// The program of that signature, which becomes the latest; null if there is none.
  std::shared_ptr<Program> find(std::span<const std::int64_t> signature) {
    const NoForkLock lock(mutex);
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
      return std::equal(entry.signature.begin(), entry.signature.end(), signature.begin(),
                        signature.end());
    });
    if (found == entries.end()) return nullptr;
    std::rotate(entries.begin(), found, found + 1);
    return make_latest();
  }

  std::shared_ptr<Program> keep(Entry entry) {
    const NoForkLock lock(mutex);
    if (entries.size() >= most_programs) entries.pop_back();
    entries.insert(entries.begin(), std::move(entry));
    return make_latest();
  }

  engine::Scratch scratch;
  std::mutex mutex;
  CallerMutex tracing;
  std::vector<Entry> entries;  // the latest first
  std::shared_ptr<Program> latest;

 private:
  /// Only the latest program keeps the memory of its results.
  std::shared_ptr<Program> make_latest() {
    const std::shared_ptr<Program>& first = entries.front().program;
    if (latest && latest != first) latest->forget_results();
    return latest = first;
  }
};

CompiledFunction::CompiledFunction() : state_(std::make_unique<State>()) {}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

std::vector<Tensor> CompiledFunction::run(Arguments arguments, Function function,
                                          const void* context) {
  // Inside another trace its calls become part of that.
  if (engine::Trace::active()) return function(context, arguments);
  return find(arguments, function, context)->run(arguments, state_->scratch);
}

void CompiledFunction::prepare(Arguments arguments, Function function, const void* context) {
  if (!engine::Trace::active()) find(arguments, function, context);
}

std::shared_ptr<CompiledFunction::Program> CompiledFunction::find(Arguments arguments,
                                                                  Function function,
                                                                  const void* context) {
  for (const Tensor& argument : arguments) {
    if (!argument.requires_grad() || !grad_is_enabled()) continue;
    throw Error(ErrorKind::value,
                "compile: an argument of shape " + argument.shape().to_string() +
                    " requires a gradient, which does not flow into a compiled function\n"
                    "  help: take gradients inside the function, or pass a detach()");
  }
  engine::PlanKey key;
  key.add(grad_is_enabled());
  key.add(static_cast<std::int64_t>(autocast_dtype().value_or(DType::f32)));
  for (const Tensor& argument : arguments) key.add(argument);
  if (auto program = state_->find(key.words())) return program;
  // The thread's key is used again while the function is traced.
  std::vector<std::int64_t> signature(key.words().begin(), key.words().end());
  // One trace at a time: what the function captured may change while it is traced.
  const std::lock_guard lock(state_->tracing);
  if (auto program = state_->find(signature)) return program;
  auto made = std::make_shared<Program>(arguments, function, context);
  made->load();
  return state_->keep({std::move(signature), std::move(made)});
}

const CompiledFunction::Program& CompiledFunction::latest() const {
  if (!state_->latest)
    throw Error(ErrorKind::value,
                "compile: the function has not been called yet, so it has no program");
  return *state_->latest;
}

const Graph& CompiledFunction::graph() const { return latest().graph(); }
const Cost& CompiledFunction::cost() const { return latest().cost(); }
const MemoryPlan& CompiledFunction::memory() const { return latest().memory(); }
const StepBill& CompiledFunction::bill() const { return latest().bill(); }
std::string CompiledFunction::print() const { return latest().print(); }
std::string CompiledFunction::dot() const { return to_dot(latest().graph()); }
std::string CompiledFunction::svg() const { return latest().svg(); }

}  // namespace detail

Program engine::lowered(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
                        std::span<const Tensor> arguments, Device device) {
  const auto call = [](const void* context, std::span<const Tensor> x) {
    return (*static_cast<const std::function<std::vector<Tensor>(std::span<const Tensor>)>*>(
        context))(x);
  };
  return detail::CompiledFunction::Program(arguments, call, &function, device).nests();
}

}  // namespace ein
