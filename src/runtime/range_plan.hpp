// Ranges: what calls mean that differ in sizes alone, for all sizes that its guards allow.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
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

/// A call whose sizes are formulas: its graph, and what was compiled of it.
struct Range {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Compiled> compiled;
};

/// Those of one kind of call. Thread-safe.
class RangePlans {
 public:
  /// The plan of these sizes: of a range that there is, or of one that is made, which begins with
  /// the second shape of the kind. Null where the shape has its own.
  std::shared_ptr<const Plan> plan(const OpenSizes& open, Operands operands, const MakePlan& make);

  LastUse last_use;

 private:
  std::optional<Range> find(const SizeValues& values);
  bool may_make();
  /// None: there will be no others.
  void keep(const std::optional<Range>& made);

  /// Guards that are met too seldom pay for no more.
  static constexpr int most_attempts = 8;
  std::mutex mutex_;
  bool is_first_ = true;
  int attempts_ = 0;
  std::vector<Range> ranges_;
  KeptBytes kept_{sizeof *this};
};

}  // namespace ein::engine
