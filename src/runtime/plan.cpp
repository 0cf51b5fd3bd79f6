#include "runtime/plan.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <ein/autograd.hpp>
#include <ein/error.hpp>
#include <ein/parallel.hpp>
#include "cost/scope.hpp"
#include "graph/verified.hpp"
#include "passes/simplify.hpp"
#include "runtime/device.hpp"
#include "runtime/tape.hpp"
#include "runtime/trace.hpp"
#include "tensor/fork.hpp"
#include "tensor/small_array.hpp"

namespace ein::engine {

namespace {
Program grouped(Program program, Device device) {
  backend_of(device).group(program);
  return program;
}

}  // namespace

Device common_device(const std::string& call, Operands operands) {
  if (operands.empty()) return cpu;
  const Device device = operands.front()->device();
  if (std::all_of(operands.begin(), operands.end(),
                  [&](const Tensor* x) { return x->device() == device; }))
    return device;
  std::string places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    places += (i == 0 ? "" : ", ") + ("operand " + std::to_string(i + 1)) + " of shape " +
              operands[i]->shape().to_string() + " on " + to_string(operands[i]->device());
  }
  throw Error(ErrorKind::device,
              call + ": operands lie on several devices: " + places +
                  "\n  help: move them to one with .to(device), such as ein::cuda or ein::cpu");
}

Executable::Executable(Program lowered, Device device)
    : program(grouped(std::move(lowered), device)),
      cost(ein::cost(program)),
      kernels(backend_of(device).compile(program)) {
  for (std::size_t b = program.input_count; b < program.buffers.size(); ++b) {
    if (!program.buffers[b].is_local) buffer_bytes += program.buffers[b].bytes();
  }
}

Plan::Plan(std::string call, Graph graph, Operands operands, const OrderOptions& options)
    : call_(std::move(call)),
      graph_(std::move(graph)),
      device_(common_device(call_, operands)),
      options_(options) {
  // The rest of the offsets is added to the buffers' addresses, so that equal views share a plan.
  for (const Tensor* operand : operands)
    layouts_.push_back({operand->strides(), elements_before(*operand)});
}

Plan::Plan(std::string call, Graph graph, Device device)
    : call_(std::move(call)), graph_(std::move(graph)), device_(device) {}

Plan::Plan(std::string call, Program program, Device device)
    : call_(std::move(call)),
      device_(device),
      executable_(std::make_unique<Executable>(std::move(program), device)),
      made_(executable_.get()) {}

const Executable& Plan::executable() const {
  if (const Executable* made = made_.load(std::memory_order_acquire)) return *made;
  const NoForkLock lock(mutex_);
  if (!executable_) {
    const Graph ordered = verified(order_contractions(graph_, options_));
    executable_ = std::make_unique<Executable>(lower(ordered, layouts_), device_);
    made_.store(executable_.get(), std::memory_order_release);
  }
  return *executable_;
}

const Backward& Plan::backward(const std::vector<bool>& wanted) const {
  static std::atomic<std::int64_t> count{0};
  const NoForkLock lock(mutex_);
  for (const auto& known : backward_) {
    if (known->wanted == wanted) return *known;
  }
  const std::vector<bool> given(graph_.outputs.size(), true);
  autograd::Vjp vjp = autograd::vjp(graph_, wanted, given);
  vjp.graph = verified(simplify(vjp.graph));
  backward_.push_back(std::make_unique<const Backward>(Backward{wanted, std::move(vjp), count++}));
  return *backward_.back();
}

namespace {

std::vector<Tensor> execute(const Plan& plan, Operands operands) {
  const Executable& executable = plan.executable();
  const Backend& backend = backend_of(plan.device());
  const Program& program = executable.program;
  const std::size_t count = program.buffers.size();
  SmallArray<std::byte*, 8> addresses(count);
  SmallArray<std::shared_ptr<Storage>, 4> allocated(count - operands.size());
  for (std::size_t b = 0; b < operands.size(); ++b) addresses[b] = address_of(*operands[b]);
  for (std::size_t b = operands.size(); b < count; ++b) {
    const Program::Buffer& buffer = program.buffers[b];
    std::shared_ptr<Storage>& storage = allocated[b - operands.size()];
    if (!buffer.is_local) storage = backend.allocate(buffer.bytes());
    addresses[b] = storage ? storage->data() : nullptr;
  }
  const int threads = num_threads();
  const std::size_t workspace_bytes = executable.kernels->workspace_bytes(threads);
  if (CostRecorder::is_active())
    CostRecorder::record(plan.call(), executable.cost, executable.buffer_bytes + workspace_bytes);
  std::shared_ptr<Storage> workspace;
  if (workspace_bytes > 0) workspace = backend.allocate(workspace_bytes);
  executable.kernels->run(
      {{addresses.data(), count}, workspace ? workspace->data() : nullptr, {}, threads});
  executable.kernels->require_success(plan.call());
  std::vector<Tensor> results;
  results.reserve(program.results.size());
  for (const Program::Result& result : program.results) {
    const auto b = static_cast<std::size_t>(result.buffer);
    if (b < operands.size()) {
      results.emplace_back(
          detail::view_of(operands[b]->storage(), result.dtype, result.shape, result.strides,
                          operands[b]->offset() - elements_before(*operands[b]) + result.offset));
    } else {
      results.emplace_back(detail::view_of(allocated[b - operands.size()], result.dtype,
                                           result.shape, result.strides, result.offset));
    }
  }
  return results;
}

}  // namespace

std::vector<Tensor> run(const Plan& plan, Operands operands) {
  Trace* const trace = Trace::active();
  std::vector<Tensor> results =
      trace ? trace->splice(plan.graph(), operands, plan.device()) : execute(plan, operands);
  const bool flows = std::any_of(operands.begin(), operands.end(),
                                 [](const Tensor* x) { return x->requires_grad(); });
  if (flows && grad_is_enabled()) remember_call(plan, operands, results);
  return results;
}

// --- keys ---

namespace {
std::vector<std::int64_t>& thread_words() {
  thread_local std::vector<std::int64_t> words;
  return words;
}
}  // namespace

PlanKey::PlanKey() : words_(thread_words()) { words_.clear(); }

void PlanKey::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  const std::size_t at = words_.size();
  words_.resize(at + (text.size() + 7) / 8, 0);
  std::memcpy(words_.data() + at, text.data(), text.size());
}

void PlanKey::add_kind(const Tensor& operand) {
  const Device device = operand.device();
  add(static_cast<std::int64_t>(device.kind()) << 56 |
      static_cast<std::int64_t>(device.index() & 0xFFFF) << 40 |
      static_cast<std::int64_t>(operand.dtype()) << 32 |
      static_cast<std::int64_t>(backend_of(device).settings()) << 24 |
      elements_before(operand) << 16 | static_cast<std::int64_t>(operand.rank() & 0xFFFF));
}

void PlanKey::add(const Tensor& operand) {
  add_kind(operand);
  for (Size size : operand.shape()) add(size.word());
  for (Size stride : operand.strides()) add(stride.word());
}

void PlanKey::add(const Shape& shape) {
  add(static_cast<std::int64_t>(shape.rank()));
  for (Size size : shape) add(size.word());
}

void PlanKey::add(const detail::PatternArgument& pattern, std::span<const AxisSize> sizes) {
  add(pattern.text());
  add(static_cast<std::int64_t>(sizes.size()));
  for (const AxisSize& size : sizes) {
    add(size.name);
    add(size.size.word());
  }
}

// --- cache ---

namespace {

std::uint64_t hash_of(std::span<const std::int64_t> words) {
  // Two at a time: the multiplications of the one do not wait for those of the other.
  const auto mixed = [](std::uint64_t hash, std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xFF51AFD7ED558CCDu;
    return hash ^ hash >> 32;
  };
  std::uint64_t even = 0x9E3779B97F4A7C15u, odd = 0xC2B2AE3D27D4EB4Fu;
  std::size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    even = mixed(even, words[i]);
    odd = mixed(odd, words[i + 1]);
  }
  if (i < words.size()) even = mixed(even, words[i]);
  return even ^ (odd << 1 | odd >> 63);
}

struct Entry {
  std::vector<std::int64_t> words;
  std::shared_ptr<const Plan> plan;
  bool holds(std::span<const std::int64_t> key) const {
    return std::equal(words.begin(), words.end(), key.begin(), key.end());
  }
};

/// All plans of the process, by hash.
class PlanCache {
 public:
  std::shared_ptr<const Plan> find(std::uint64_t hash, std::span<const std::int64_t> words) {
    const std::lock_guard lock(mutex);
    const auto [begin, end] = entries_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (it->second.holds(words)) return it->second.plan;
    }
    return nullptr;
  }
  void keep(std::uint64_t hash, Entry entry) {
    Entries old;  // let go of without the lock
    const std::lock_guard lock(mutex);
    if (entries_.size() >= most_plans) old.swap(entries_);
    entries_.emplace(hash, std::move(entry));
  }

  std::mutex mutex;  // no shared_mutex: its owner's thread has another number in a child of fork()

 private:
  using Entries = std::unordered_multimap<std::uint64_t, Entry>;
  static constexpr std::size_t most_plans = 4096;
  Entries entries_;
};

PlanCache& plan_cache() { return made_once_with_lock<PlanCache, StaticLock::plan_cache>(); }

/// The plans that this thread used last, found without a lock.
Entry& recent_entry(std::uint64_t hash) {
  thread_local Entry recent[64];
  return recent[hash % std::size(recent)];
}

}  // namespace

std::shared_ptr<const Plan> find_plan(const PlanKey& key) {
  const std::uint64_t hash = hash_of(key.words());
  Entry& recent = recent_entry(hash);
  if (recent.plan && recent.holds(key.words())) return recent.plan;
  auto plan = plan_cache().find(hash, key.words());
  if (plan) recent = {{key.words().begin(), key.words().end()}, plan};
  return plan;
}

void keep_plan(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  const std::uint64_t hash = hash_of(key.words());
  plan_cache().keep(hash, {{key.words().begin(), key.words().end()}, std::move(plan)});
}

}  // namespace ein::engine
