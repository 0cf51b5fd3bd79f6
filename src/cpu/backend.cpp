// The CPU as a backend: kernels run at once, on the thread pool.
#include "backend/backend.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <ein/error.hpp>
#include <ein/hardware.hpp>
#include <ein/tensor.hpp>
#include "cpu/kernel.hpp"
#include "cpu/measure.hpp"
#include "cpu/row_code.hpp"
#include "graph/after_pass.hpp"
#include "graph/fields.hpp"
#include "graph/rewrite.hpp"
#include "machine/fork.hpp"
#include "passes/find_attention.hpp"
#include "schedule/cpu_choose.hpp"
#include "schedule/cpu_group_nests.hpp"
#include "size/ask.hpp"
#include "tensor/heap_bytes.hpp"
#include "tensor/memory_count.hpp"
#include "tensor/small_array.hpp"

namespace ein::host {
namespace {

/// A group of a program by itself: its buffers are numbered as it names them.
struct Alone {
  Program program;                // of one group
  std::vector<int> buffers;       // their numbers in the whole program
  std::vector<std::int64_t> key;  // all that a kernel of the group depends on

  Alone(const Program& whole, const Program::Group& group) {
    const auto first = whole.nests.begin() + static_cast<std::ptrdiff_t>(group.first);
    program.nests.assign(first, first + static_cast<std::ptrdiff_t>(group.count));
    program.groups = {group};
    program.groups[0].first = 0;
    for (LoopNest& nest : program.nests) {
      for (std::size_t o = 0; o <= nest.inputs.size(); ++o)
        nest.operand(o).buffer = own(whole, nest.operand(o).buffer);
    }
    program.input_count = program.buffers.size();
    const AppendTo add(key);
    for_each_word(program.groups, add);
    for_each_word(program.buffers, add);
    for (const LoopNest& nest : program.nests) {
      for_each_word<Phase, OpKind>(nest, add);
      if (!nest.is_matrix()) continue;
      for (const LoopNest::NestAxis& axis : nest.axes) {  // which errors name
        add(static_cast<std::int64_t>(axis.name.size()));
        for (const char c : axis.name) add(c);
      }
    }
  }

 private:
  int own(const Program& whole, int buffer) {
    const auto found = std::find(buffers.begin(), buffers.end(), buffer);
    const auto number = static_cast<int>(found - buffers.begin());
    if (found == buffers.end()) {
      Program::Buffer of = whole.buffers[static_cast<std::size_t>(buffer)];
      // Those that share memory have the number of the first of them here.
      const int memory = of.memory < 0 ? buffer : of.memory;
      const auto is_shared = [&](int other) {
        const int theirs = whole.buffers[static_cast<std::size_t>(other)].memory;
        return (theirs < 0 ? other : theirs) == memory;
      };
      const auto same = std::find_if(buffers.begin(), buffers.end(), is_shared);
      of.memory = same == buffers.end() ? -1 : static_cast<int>(same - buffers.begin());
      buffers.push_back(buffer);
      program.buffers.push_back(of);
    }
    return number;
  }
};

/// Groups of more buffers share nothing: their addresses are passed on by each run.
constexpr std::size_t most_shared_buffers = 64;

/// A kernel and the buffers of the program that it is for; none where they are the first ones.
struct KernelOf {
  std::shared_ptr<const Kernel> kernel;
  std::span<const int> buffers;
  std::span<const int> touched{};  // buffers that it reads or writes; none: it may be any
};

/// What was started of a run and goes on while its kernels run.
class AllUnderway {
 public:
  explicit AllUnderway(const Run& run, std::span<const std::size_t> bytes)
      : run_(run), bytes_(bytes) {}

  void add(std::unique_ptr<Underway> one) { all_.push_back(std::move(one)); }
  /// Before a kernel runs that touches these buffers: waits for what uses their memory.
  void wait_for(std::span<const int> touched) {
    std::erase_if(all_, [&](const std::unique_ptr<Underway>& one) {
      const bool meets = touched.empty() || std::any_of(touched.begin(), touched.end(), [&](int b) {
                           const std::byte* const begin = run_.buffers[static_cast<std::size_t>(b)];
                           return one->uses({begin, begin + bytes_[static_cast<std::size_t>(b)]});
                         });
      if (meets) one->wait();
      return meets;
    });
  }

 private:
  const Run& run_;
  std::span<const std::size_t> bytes_;
  std::vector<std::unique_ptr<Underway>> all_;
};

class CpuKernels final : public engine::Kernels {
 public:
  /// `bytes` of the program's buffers, where it has collectives.
  CpuKernels(std::vector<KernelOf> kernels, std::vector<std::size_t> bytes,
             std::shared_ptr<const void> owner)
      : kernels_(std::move(kernels)),
        bytes_(std::move(bytes)),
        owner_(std::move(owner)),
        kept_(sizeof *this + block_bytes(kernels_.capacity() * sizeof(KernelOf)) +
              heap_bytes(bytes_)) {}
  std::size_t workspace_bytes(int threads) const override {
    std::size_t most = 0;
    for (const KernelOf& of : kernels_) most = std::max(most, of.kernel->workspace_bytes(threads));
    return most;
  }
  void run(const Run& run) const override {
    std::optional<AllUnderway> underway;  // of a program that has collectives
    if (!bytes_.empty()) underway.emplace(run, bytes_);
    for (const KernelOf& of : kernels_) {
      if (underway) underway->wait_for(of.touched);
      if (of.buffers.empty()) {
        this->run(of, run, underway);
        continue;
      }
      SmallArray<std::byte*, most_shared_buffers> addresses(of.buffers.size());
      for (std::size_t b = 0; b < of.buffers.size(); ++b)
        addresses[b] = run.buffers[static_cast<std::size_t>(of.buffers[b])];
      this->run(of,
                {{addresses.data(), addresses.size()},
                 run.workspace,
                 run.random,
                 run.threads,
                 run.process},
                underway);
    }
    if (underway) underway->wait_for({});
  }

 private:
  static void run(const KernelOf& of, const Run& run, std::optional<AllUnderway>& underway) {
    if (underway) {
      if (auto started = of.kernel->start(run)) return underway->add(std::move(started));
    }
    of.kernel->run(run);
  }

  std::vector<KernelOf> kernels_;
  std::vector<std::size_t> bytes_;
  std::shared_ptr<const void> owner_;  // of the lists of buffers
  KeptBytes kept_;
};

/// Groups that do the same on other buffers share a plan, and their kernels.
class CpuKernelsPlan final : public engine::KernelsPlan {
 public:
  explicit CpuKernelsPlan(const Program& program) : shared_(std::make_shared<Shared>()) {
    const SizeScope* const scope = SizeScope::active();
    const SizeValues values = scope ? scope->values() : SizeValues();
    std::map<std::vector<std::int64_t>, std::size_t> numbers;
    const bool has_collectives =
        std::any_of(program.nests.begin(), program.nests.end(),
                    [](const LoopNest& nest) { return nest.is_collective(); });
    if (has_collectives) {
      for (const Program::Buffer& buffer : program.buffers) bytes_.push_back(buffer.bytes());
    }
    for (const Program::Group& group : program.groups) {
      if (has_collectives) shared_->touched.push_back(touched_by(program, group));
      // Attention reads buffers that its nests do not name.
      std::optional<Alone> alone;
      if (!group.attention() && program.groups.size() > 1) alone.emplace(program, group);
      if (!alone || alone->buffers.size() > most_shared_buffers) {
        shared_->groups.push_back({add(plan_kernel(program, group), values), {}});
        continue;
      }
      const auto [known, is_new] = numbers.try_emplace(std::move(alone->key), plans_.size());
      if (is_new) add(plan_kernel(alone->program, alone->program.groups[0]), values);
      if (are_first(alone->buffers)) alone->buffers.clear();
      shared_->groups.push_back({known->second, std::move(alone->buffers)});
    }
    shared_->kept.add(sizeof *this + sizeof(Shared) +
                      heap_bytes_of_all(shared_->groups, shared_->touched));
  }
  std::unique_ptr<engine::Kernels> at(SizesAt& sizes) const override {
    std::vector<std::shared_ptr<const Kernel>> kernels;
    kernels.reserve(plans_.size());
    for (const Planned& planned : plans_)
      kernels.push_back(planned.kernel ? planned.kernel : planned.plan->at(sizes));
    std::vector<KernelOf> of_groups;
    of_groups.reserve(shared_->groups.size());
    for (const auto& [number, buffers] : shared_->groups)
      of_groups.push_back({kernels[number], buffers});
    for (std::size_t g = 0; g < shared_->touched.size(); ++g)
      of_groups[g].touched = shared_->touched[g];
    std::vector<std::size_t> bytes;
    for (const Size size : bytes_) bytes.push_back(static_cast<std::size_t>(sizes(size)));
    return std::make_unique<CpuKernels>(std::move(of_groups), std::move(bytes), shared_);
  }

 private:
  /// A kernel that suits all lengths, or the plan of one that does not.
  struct Planned {
    std::unique_ptr<const KernelPlan> plan;
    std::shared_ptr<const Kernel> kernel;
  };
  /// For each group the number of its plan and its buffers.
  struct Shared {
    std::vector<std::pair<std::size_t, std::vector<int>>> groups;
    std::vector<std::vector<int>> touched;  // of each group, where there are collectives
    KeptBytes kept{};
  };

  /// The buffers with memory that a group reads or writes; none where it may be any.
  static std::vector<int> touched_by(const Program& program, const Program::Group& group) {
    if (group.attention()) return {};  // reads buffers that its nests do not name
    std::set<int> touched;
    for (std::size_t n = group.first; n < group.first + group.count; ++n) {
      const LoopNest& nest = program.nests[n];
      for (std::size_t o = 0; o <= nest.inputs.size(); ++o) {
        const int b = nest.operand(o).buffer;
        if (!program.buffers[static_cast<std::size_t>(b)].is_local) touched.insert(b);
      }
    }
    return {touched.begin(), touched.end()};
  }

  static bool are_first(const std::vector<int>& buffers) {
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b] != static_cast<int>(b)) return false;
    }
    return true;
  }

  std::size_t add(std::unique_ptr<const KernelPlan> plan, const SizeValues& values) {
    SizesAt sizes(values);
    std::shared_ptr<const Kernel> kernel = plan->at(sizes);
    plans_.push_back(sizes.has_met_formula() ? Planned{std::move(plan), nullptr}
                                             : Planned{nullptr, std::move(kernel)});
    return plans_.size() - 1;
  }

  std::vector<Planned> plans_;
  std::vector<Size> bytes_;  // of the program's buffers, where it has collectives
  std::shared_ptr<Shared> shared_;
};

class CpuBackend final : public engine::Backend {
 public:
  void group(Program& program, std::span<const int> memory) const override {
    const Target& target = RowCode::target();
    const std::vector<int> kept = result_buffers(program);
    find_attention(program, kept, memory,
                   [&](const Attention& attention) { return is_for_tiles(attention, target); });
    after_pass("find_attention", program);
    group_nests(program, target, kept, memory);
    after_pass("group_nests", program);
  }
  std::unique_ptr<const engine::KernelsPlan> plan(const Program& program) const override {
    return std::make_unique<CpuKernelsPlan>(program);
  }
  std::string describe(const Program& program) const override {
    return to_string_of_schedules(program);
  }
  void synchronize() const override {}

  std::shared_ptr<Storage> allocate(std::size_t bytes) const override {
    return Storage::allocate(bytes);
  }
  void copy_in(std::byte* to, const std::byte* from_host, std::size_t bytes) const override {
    std::memcpy(to, from_host, bytes);
  }
  void copy_out(std::byte* to_host, const std::byte* from, std::size_t bytes) const override {
    std::memcpy(to_host, from, bytes);
  }
  MemoryCount& memory_count() const override { return host_memory().count; }
  std::size_t memory_reserved() const override { return host_memory().reserved.live(); }
  void release_memory() const override { release_host_memory(); }

  std::optional<Hardware> hardware() const override { return ein::measured_cpu(); }
};

}  // namespace
}  // namespace ein::host

ein::Hardware ein::measured_cpu() { return host::measured_cpu(); }

const ein::detail::DeviceKind ein::detail::cpu_kind{
    .name = "cpu",
    .backend = [](int index) -> const engine::Backend& {
      if (index != 0)
        throw Error(ErrorKind::value, to_string(cpu(index)) + ": there is one CPU, ein::cpu");
      return made_once([] { return host::CpuBackend(); });
    },
    .count = [] { return 1; },
    .is_single = true};
