// Graphs whose emitted kernels run on the host, or on the GPU whose number EIN_TEST_DEVICE is,
// against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <set>

#include "codegen/emit.hpp"
#include "support/emitted_nests.hpp"
#include "support/kernels_on_device.hpp"
#include "support/kernels_on_host.hpp"
#include "support/one_op.hpp"
#include "support/open_sizes.hpp"
#include "support/seeds.hpp"

namespace ein::test {
using Random = std::mt19937_64;
using codegen::KernelSource;

/// What all cases are made from; $EIN_FIRST_SEED moves it.
inline std::uint64_t suite_seed() { return 20250117 + first_seed(); }

inline std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

/// How far a result may be off, beside the rounding to its dtype; 0 and 0: not at all.
struct Tolerance {
  double relative = 0, absolute = 0;
};

/// A graph, what goes in, and the kernels that ought to do what it says.
struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
  Tolerance tolerance;
  RandomOrigin origin{};
  std::string fault{};  // what a position outside is said to be; none if empty
  Program program{};
  std::vector<std::vector<KernelSource>> kernels{};  // of each nest
};

/// Memory that is filled with what shows if it stays, and with bytes behind its end that must stay.
class Fresh {
 public:
  explicit Fresh(std::size_t bytes) : bytes_(bytes), storage_(Storage::allocate(bytes + guard)) {
    std::fill_n(storage_->data(), bytes + guard, filling);
  }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  bool is_overrun() const {
    const std::byte* end = storage_->data() + bytes_;
    return std::any_of(end, end + guard, [](std::byte b) { return b != filling; });
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t guard = 0;  // the sanitizer sees reads as well
#else
  static constexpr std::size_t guard = 64;
#endif
  static constexpr std::byte filling{0x5A};
  std::size_t bytes_;
  std::shared_ptr<Storage> storage_;
};

/// Tensors of a run: inputs lie where they are.
struct Memory {
  std::vector<std::shared_ptr<Storage>> storages;
  std::vector<std::byte*> buffers;
  std::vector<Fresh> fresh;  // of the other buffers

  explicit Memory(const Case& c) {
    for (const Tensor& x : c.inputs) keep(x.storage());
    for (std::size_t b = c.inputs.size(); b < c.program.buffers.size(); ++b) {
      const Program::Buffer& buffer = c.program.buffers[b];
      fresh.emplace_back(static_cast<std::size_t>(buffer.elements) * size_of(buffer.dtype));
      keep(fresh.back().storage());
    }
  }
  void keep(std::shared_ptr<Storage> storage) {
    buffers.push_back(storage->data());
    storages.push_back(std::move(storage));
  }
  bool is_overrun() const {
    return std::any_of(fresh.begin(), fresh.end(), [](const Fresh& f) { return f.is_overrun(); });
  }
};

class EmitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::cout << "seed " << suite_seed() << "\n";
    if (KernelsOnDevice::are_wanted()) device_ = std::make_unique<KernelsOnDevice>();
  }

  /// How the kernels of a nest are made; their names end with the suffix.
  using Emission = std::function<std::vector<KernelSource>(const LoopNest&, const std::string&)>;
  static std::vector<KernelSource> emit_plainly(const LoopNest& nest, const std::string& suffix) {
    return codegen::emit(nest, {}, suffix);
  }

  /// The sizes of every second case are arguments of its kernels.
  bool is_open() const { return cases_.size() % 2 == 1; }

  Case& add(Graph graph, std::vector<Tensor> inputs, Tolerance tolerance = {},
            const Emission& emission = emit_plainly) {
    Case c{std::move(graph), std::move(inputs), tolerance};
    std::vector<InputLayout> layouts;
    for (const Tensor& x : c.inputs) layouts.push_back({x.strides(), x.offset()});
    c.program = lower(c.graph, layouts);
    for (const LoopNest& nest : c.program.nests) {
      const auto emit = [&](const LoopNest& of) {
        return emission(
            of, "_" + std::to_string(cases_.size()) + "_" + std::to_string(c.kernels.size()));
      };
      c.kernels.push_back(is_open() ? emitted_open(nest, emit) : emit(nest));
      for (const KernelSource& kernel : c.kernels.back()) {
        host_.add(kernel);
        if (device_) device_->add(kernel);
        forms_.insert(kernel.name.substr(0, kernel.name.find_first_of("0123456789")));
        ++kernel_count_;
      }
    }
    cases_.push_back(std::move(c));
    return cases_.back();
  }

  /// Compiles all and runs all.
  void check_all() {
    const std::string said = device_ ? device_->build() : host_.build();
    ASSERT_EQ(said, "");
    int failures = 0;
    for (std::size_t i = 0; i < cases_.size() && failures < 3; ++i) {
      const std::string wrong = check(cases_[i]);
      if (wrong.empty()) continue;
      ++failures;
      ADD_FAILURE() << "case " << i << ": " << wrong << "\n"
                    << to_string(cases_[i].graph) << to_string(cases_[i].program)
                    << text_of(cases_[i]);
    }
    std::cout << cases_.size() << " cases, " << kernel_count_ << " kernels\n";
  }

  static std::string text_of(const Case& c) {
    std::string text;
    for (const auto& nest : c.kernels) {
      for (const KernelSource& kernel : nest) text += kernel.text.substr(kernel.kernel_begin);
    }
    return text.substr(0, 6000);
  }

  std::string check(const Case& c) const {
    const Memory memory(c);
    KernelSource::Fault fault;
    for (const auto& nest : c.kernels) {
      std::size_t workspace_bytes = 0;
      for (const KernelSource& kernel : nest)
        workspace_bytes = std::max<std::size_t>(workspace_bytes, kernel.workspace_bytes);
      const Fresh workspace(workspace_bytes);
      for (const KernelSource& kernel : nest) {
        const std::string wrong =
            device_
                ? device_->run(kernel, memory.storages, workspace.storage(), c.origin, &fault)
                : host_.run(kernel, memory.buffers, workspace.storage()->data(), c.origin, &fault);
        if (!wrong.empty()) return kernel.name + ": " + wrong;
        if (workspace.is_overrun()) return kernel.name + " writes behind the end of its workspace";
      }
    }
    if (memory.is_overrun()) return "something was written behind the end of a buffer";
    const std::string found =
        fault.happened ? std::to_string(fault.position) + " of " + std::to_string(fault.size) : "";
    if (found != c.fault)
      return "a position outside: '" + found + "', ought to be '" + c.fault + "'";
    if (!c.fault.empty()) return "";
    std::vector<Values> values;
    for (const Tensor& x : c.inputs) values.push_back(get_values(x));
    const std::vector<Values> want = Interpreter<>::run(c.graph, values, c.origin);
    for (std::size_t r = 0; r < want.size(); ++r) {
      const Program::Result& result = c.program.results[r];
      const Tensor got(memory.storages[static_cast<std::size_t>(result.buffer)], result.dtype,
                       result.shape, result.strides, result.offset);
      const std::string wrong = compare(get_values(got), want[r], result.dtype, c.tolerance);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  static std::string compare(const Values& got, const Values& exact, DType dtype,
                             const Tolerance& tolerance) {
    const double eps = is_floating(dtype) ? finfo(dtype).eps : 0;
    const double tiny = is_floating(dtype) ? finfo(dtype).smallest_subnormal : 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = stored(exact[i], dtype);
      if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) continue;
      const double allowed =
          (tolerance.relative + eps) * std::abs(want) + tolerance.absolute + tiny;
      if (tolerance.relative + tolerance.absolute > 0 && std::isfinite(want) &&
          std::abs(got[i] - want) <= allowed)
        continue;
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", ought to be " +
             std::to_string(want);
    }
    return "";
  }

  // --- making cases ---

  static DType random_dtype(Random& random) {
    return real_dtypes[below(random, std::size(real_dtypes))];
  }

  /// Halves up to 2, or small whole numbers: their products and sums are exact.
  static double random_value(DType dtype, Random& random) {
    if (dtype == DType::boolean) return static_cast<double>(below(random, 2));
    if (is_unsigned(dtype))
      return static_cast<double>(below(random, below(random, 8) == 0 ? 200 : 4));
    return is_integral(dtype) ? static_cast<double>(below(random, 5) - 2)
                              : static_cast<double>(below(random, 9) - 4) / 2;
  }
  static Tensor random_tensor(const Shape& shape, DType dtype, Random& random) {
    Values values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values) value = random_value(dtype, random);
    return scattered(values, shape, dtype, random);
  }
  static Tensor positions(const Shape& shape, DType dtype, std::int64_t size, Random& random) {
    Values values(static_cast<std::size_t>(numel(shape)));
    for (double& value : values) value = static_cast<double>(below(random, size));
    return scattered(values, shape, dtype, random);
  }

  KernelsOnHost host_;
  std::unique_ptr<KernelsOnDevice> device_;  // where cases run, if there is one
  std::vector<Case> cases_;
  std::set<std::string> forms_;
  std::size_t kernel_count_ = 0;
};

}  // namespace ein::test
