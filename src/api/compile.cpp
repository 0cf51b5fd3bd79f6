// Compiled functions: one program for each signature, the latest kept.
#include <ein/compile.hpp>

#include <algorithm>
#include <optional>

#include <ein/autocast.hpp>
#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include "api/compile.hpp"
#include "draw/dot.hpp"
#include "machine/fork.hpp"
#include "runtime/compiled_program.hpp"
#include "runtime/trace.hpp"
#include "tensor/kept.hpp"

namespace ein {

namespace detail {

struct CompiledFunction::State final : Releasable {
  /// What a call is for: a signature, and lengths that it leaves open.
  struct Call {
    std::span<const std::int64_t> signature;
    SizeValues lengths;
  };
  struct Planned {
    std::vector<std::int64_t> signature;
    std::shared_ptr<const engine::Recording> recording;
    std::shared_ptr<const engine::Compiled> compiled;
  };
  struct Entry {
    std::vector<std::int64_t> signature;
    SizeValues lengths;
    std::shared_ptr<Program> program;
    bool is_of(const Call& call) const {
      const auto same = [](const auto& a, const auto& b) {
        return a.first.word() == b.first.word() && a.second == b.second;
      };
      return std::equal(signature.begin(), signature.end(), call.signature.begin(),
                        call.signature.end()) &&
             std::equal(lengths.begin(), lengths.end(), call.lengths.begin(), call.lengths.end(),
                        same) &&
             program->recording().reads.hold();
    }
  };

  State() { register_self(); }
  ~State() override { unregister(); }

  void release() override {
    scratch.release();
    const NoForkLock lock(mutex);
    for (const Entry& entry : entries) entry.program->forget_results();
  }

  std::uint64_t oldest_use() override {
    const NoForkLock lock(mutex);
    return std::min(oldest_use_of(entries, program_of), oldest_use_of(plans, compiled_of));
  }
  void drop(std::uint64_t until, Dropped& dropped) override {
    const NoForkLock lock(mutex);
    drop_from(entries, until, dropped, program_of);
    drop_from(plans, until, dropped, compiled_of);
  }
  static constexpr auto program_of = [](auto& entry) -> auto& { return entry.program; };
  static constexpr auto compiled_of = [](auto& planned) -> auto& { return planned.compiled; };

  /// The program for that call, which becomes the latest; null if there is none.
  std::shared_ptr<Program> find(const Call& call) {
    const NoForkLock lock(mutex);
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& entry) { return entry.is_of(call); });
    if (found == entries.end()) return nullptr;
    std::rotate(entries.begin(), found, found + 1);
    return make_latest();
  }

  std::shared_ptr<Program> keep(Entry entry) {
    const NoForkLock lock(mutex);
    LastUse::next();
    while (entries.size() >= most_kept) entries.pop_back();
    entries.insert(entries.begin(), std::move(entry));
    return make_latest();
  }

  /// What was compiled that holds for that call; none if there is none.
  std::optional<Planned> find_plan(const Call& call) {
    const NoForkLock lock(mutex);
    const auto found = std::find_if(plans.begin(), plans.end(), [&](const Planned& known) {
      return is_of(known, call) && known.compiled->guards().hold(call.lengths);
    });
    if (found == plans.end()) return std::nullopt;
    std::rotate(plans.begin(), found, found + 1);
    plans.front().compiled->last_use.note();
    return plans.front();
  }
  /// The recording that holds for that call; null if there is none.
  std::shared_ptr<const engine::Recording> find_recording(const Call& call) {
    const NoForkLock lock(mutex);
    const auto found = std::find_if(plans.begin(), plans.end(), [&](const Planned& known) {
      return is_of(known, call) && known.recording->guards.hold(call.lengths);
    });
    return found == plans.end() ? nullptr : found->recording;
  }

  void keep(Planned planned) {
    const NoForkLock lock(mutex);
    while (plans.size() >= most_kept) plans.pop_back();
    plans.insert(plans.begin(), std::move(planned));
  }

  /// The types of a call's arguments; null where none has one.
  const engine::ArgumentTypes* types_of(Types texts) {
    if (std::none_of(texts.begin(), texts.end(), [](const auto& text) { return text.has_value(); }))
      return nullptr;
    const NoForkLock lock(mutex);
    for (const auto& known : types) {
      if (known->are_of(texts)) return known.get();
    }
    types.push_back(std::make_unique<engine::ArgumentTypes>(texts));
    return types.back().get();
  }

  engine::Scratch scratch;
  std::mutex mutex;
  std::size_t most_kept = 16;  // programs, and plans
  CallerMutex tracing;
  std::vector<Entry> entries;  // the latest first
  std::vector<Planned> plans;  // the latest first
  std::vector<std::unique_ptr<const engine::ArgumentTypes>> types;
  std::shared_ptr<Program> latest;

 private:
  static bool is_of(const Planned& known, const Call& call) {
    return std::equal(known.signature.begin(), known.signature.end(), call.signature.begin(),
                      call.signature.end()) &&
           known.recording->reads.hold();
  }

  /// Only the latest program keeps the memory of its results.
  std::shared_ptr<Program> make_latest() {
    const std::shared_ptr<Program>& first = entries.front().program;
    first->last_use.note();
    if (latest && latest != first) latest->forget_results();
    return latest = first;
  }
};

CompiledFunction::CompiledFunction() : state_(std::make_unique<State>()) {}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

void CompiledFunction::keep_at_most(std::size_t programs) {
  if (programs == 0) throw Error(ErrorKind::value, "compile: at least 1 program has to be kept");
  const NoForkLock lock(state_->mutex);
  state_->most_kept = programs;
  if (state_->entries.size() > programs) state_->entries.resize(programs);
  if (state_->plans.size() > programs) state_->plans.resize(programs);
}

std::vector<Tensor> CompiledFunction::run(Arguments arguments, Types types, Function function,
                                          const void* context) {
  // Inside another trace its calls become part of that.
  if (engine::Trace::active()) return function(context, arguments);
  return find(arguments, types, function, context)->run(arguments, state_->scratch);
}

void CompiledFunction::prepare(Arguments arguments, Types types, Function function,
                               const void* context) {
  if (!engine::Trace::active()) find(arguments, types, function, context);
}

std::shared_ptr<CompiledFunction::Program> CompiledFunction::find(Arguments arguments, Types texts,
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
  const engine::ArgumentTypes* const types = state_->types_of(texts);
  State::Call call;
  if (types) {
    call.lengths = types->open_sizes(arguments);
    types->add_to(key, arguments);
  } else {
    for (const Tensor& argument : arguments) key.add(argument);
  }
  call.signature = key.words();
  if (auto program = state_->find(call)) return program;
  // The thread's key is used again while the function is traced.
  std::vector<std::int64_t> signature(key.words().begin(), key.words().end());
  call.signature = signature;
  // One trace at a time: what the function captured may change while it is traced.
  const std::lock_guard lock(state_->tracing);
  if (auto program = state_->find(call)) return program;
  std::optional<State::Planned> plan;
  if (types) plan = state_->find_plan(call);
  if (!plan) {
    auto recording = types ? state_->find_recording(call) : nullptr;
    if (!recording)
      recording = std::make_shared<const engine::Recording>(arguments, types, function, context);
    const auto compiled = std::make_shared<engine::Compiled>(recording->graph, recording->job(),
                                                             call.lengths, recording->guards);
    compiled->load();
    plan = {signature, recording, compiled};
    if (types) state_->keep(*plan);
  }
  auto made = std::make_shared<Program>(plan->recording, plan->compiled, arguments, call.lengths);
  auto program = state_->keep({std::move(signature), std::move(call.lengths), std::move(made)});
  bound_plans();
  return program;
}

std::shared_ptr<const CompiledFunction::Program> CompiledFunction::latest() const {
  const NoForkLock lock(state_->mutex);
  if (!state_->latest)
    throw Error(ErrorKind::value,
                "compile: the function has not been called yet, so it has no program");
  return state_->latest;
}

Graph CompiledFunction::graph() const { return latest()->graph(); }
Cost CompiledFunction::cost() const { return latest()->cost(); }
MemoryPlan CompiledFunction::memory() const { return latest()->memory(); }
CostOfLengths CompiledFunction::cost_formula() const { return latest()->cost_formula(); }
MemoryFormula CompiledFunction::memory_formula() const { return latest()->memory_formula(); }
MemoryTimeline CompiledFunction::timeline() const { return latest()->timeline(); }
StepBill CompiledFunction::bill() const { return latest()->bill(); }
std::vector<Exchange> CompiledFunction::exchanges() const { return latest()->exchanges(); }
std::string CompiledFunction::text() const { return latest()->text(); }
std::string CompiledFunction::dot() const { return to_dot(latest()->graph()); }
std::string CompiledFunction::svg() const { return latest()->svg(); }

}  // namespace detail

std::int64_t value_at(Size formula, std::initializer_list<AxisSize> sizes) {
  SizeValues values;
  for (const AxisSize& axis : sizes) values.emplace_back(Size::named(axis.name), axis.size);
  return evaluate(formula, values);
}

Size size_of(const Tensor& x, std::string_view axis) {
  const engine::Trace* const trace = engine::Trace::active();
  if (const std::optional<Size> size = trace ? trace->size_named(axis) : std::nullopt) {
    for (const Size of_x : x.shape()) {
      if (always_equal(of_x, *size)) return of_x;
    }
  }
  const std::string name(axis);
  throw Error(ErrorKind::axis_argument,
              "size_of: the tensor of shape " + x.shape().to_string() + " has no axis '" + name +
                  (trace ? "' of the types of the compiled function's arguments"
                         : "': names are those of the types of a compiled function's arguments") +
                  "\n  help: parse_shape(x, \"... " + name + "\")[\"" + name +
                  "\"] names the axes of x by a pattern");
}

Program engine::lowered(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
                        std::span<const Tensor> arguments, Device device) {
  const auto call = [](const void* context, std::span<const Tensor> x) {
    return (*static_cast<const std::function<std::vector<Tensor>(std::span<const Tensor>)>*>(
        context))(x);
  };
  const Recording recording(arguments, nullptr, call, &function);
  return Compiled(recording.graph, recording.job(device), {}, recording.guards).program();
}

}  // namespace ein
