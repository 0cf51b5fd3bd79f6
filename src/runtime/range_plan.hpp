// RangePlan: what calls mean that differ in sizes alone, for all sizes that its guards allow.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/plan.hpp"

namespace ein::engine {

/// What is open in the operands of a call: each number from 3 on among their sizes has a name. So
/// sizes that are equal have one name. Of 0 to 2 passes ask whether a size or stride is that number
/// in all calls; these stay numbers.
class OpenSizes {
 public:
  /// Adds to the key what is not open. False where an operand has no elements or gaps between them.
  bool add(PlanKey& kind, Operands operands);
  /// Operands like these, whose sizes and strides are formulas.
  std::vector<Tensor> named(Operands operands) const;
  /// The names and their values.
  const SizeValues& values() const { return values_; }

 private:
  bool add(PlanKey& kind, const Tensor& x);
  /// The name of a number, or itself.
  Size name_of(Size size);

  SizeValues values_;
  std::vector<std::vector<std::size_t>> orders_;  // of dimensions, the slowest first
};

class RangePlan {
 public:
  /// Decides for these sizes whatever passes ask.
  RangePlan(const OpenSizes& open, Operands like, const MakePlan& make);

  /// Whether its plans give the bits of plans of numbers.
  bool is_sound() const { return kernels_ != nullptr; }
  bool holds(const SizeValues& values) const { return guards_.hold(values); }
  /// The plan of these sizes; null where a program of numbers has simpler nests.
  std::shared_ptr<const Plan> at(const SizeValues& values) const;

 private:
  std::shared_ptr<const Plan> plan_;  // its graph has formulas
  Program program_;
  SizeGuards guards_;
  std::unique_ptr<const KernelsPlan> kernels_;
  KeptBytes kept_;
};

/// Those of one kind of call. Thread-safe.
class RangePlans {
 public:
  /// The plan of these sizes: of a range that there is, or of one that is made, which begins with
  /// the second shape of the kind. Null where the shape has its own.
  std::shared_ptr<const Plan> plan(const OpenSizes& open, Operands operands, const MakePlan& make);

  LastUse last_use;

 private:
  std::shared_ptr<const RangePlan> find(const SizeValues& values);
  bool may_make();
  /// None, or one that is not sound: there will be no others.
  void keep(std::shared_ptr<const RangePlan> made);

  /// Guards that are met too seldom pay for no more.
  static constexpr int most_attempts = 8;
  std::mutex mutex_;
  bool is_first_ = true;
  int attempts_ = 0;
  std::vector<std::shared_ptr<const RangePlan>> plans_;
  KeptBytes kept_{sizeof *this};
};

}  // namespace ein::engine
