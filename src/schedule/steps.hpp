// Steps of a schedule as they are chosen, for all ways to walk a nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "nest/nest.hpp"
#include "schedule/schedule.hpp"
#include "schedule/target.hpp"
#include "size/size_arithmetic.hpp"

namespace ein {

inline constexpr std::size_t no_axis = static_cast<std::size_t>(-1);

/// How a nest is walked: in rows along one axis, which follow each other on another. A unit has
/// `rows` of them, or `length` elements of each.
struct Walk {
  std::size_t along = no_axis;
  Size length = 1;
  std::size_t row = no_axis;
  Size rows = 1;
  Schedule::Over over = Schedule::Over::row;
  bool in_strips = false;
};

class Steps {
 public:
  using Operand = LoopNest::Operand;

  Steps(const LoopNest& nest, const Target& target);
  Schedule take() && { return std::move(schedule_); }

  /// Scratch for an operand of `rank` axes, which walks `axes` with their sizes, innermost first.
  Operand scratch(DType dtype, std::size_t rank,
                  const std::vector<std::pair<std::size_t, Size>>& axes);

  /// A nest left to the engine of its kind.
  void add_whole(const LoopNest& nest);

  /// A step of one part, whose units have a point of each axis but those of the walk. Where pieces
  /// of an axis are combined, each gives one result of `output`.
  void add(const LoopNest& nest, const Operand& output, const Walk& walk);

  /// A step that was made elsewhere.
  void add(Schedule::Step step) { schedule_.steps.push_back(std::move(step)); }

  /// A step that combines pieces of axis `cut`. Returns what combines them, if that is left to do.
  std::optional<LoopNest> add_partials(const LoopNest& nest, std::size_t cut, const Walk& walk);

  /// A map or a reduction in strips, however its operands lie.
  void add_strips(LoopNest nest);

 private:
  void add_map_in_strips(const LoopNest& nest);
  void add_reduction_in_strips(const LoopNest& nest, std::size_t cut);
  void add_one_by_one(const LoopNest& nest);
  void make_serial(Schedule::Step& step, Size elements) const;

  const Target& target_;
  Schedule schedule_;
};

/// The points of a nest.
Size points_of(const LoopNest& nest);

/// Elements that an operand walks.
Size elements_of(const LoopNest& nest, const LoopNest::Operand& operand);

/// Whether a reduction of pairs reads each element so often that memory matters little: as many
/// points as `target` says for each element of its operands. Sums of products, which have an engine
/// of their own, are none.
bool reuses(const LoopNest& nest, const Target& target);

/// The operand whose order the others are to have: the result, or of a reduction the first of the
/// largest inputs. A small one stands still along axes that the large ones lie along.
const LoopNest::Operand& guide_of(const LoopNest& nest);

/// Whether an expression reads an input.
bool reads(const ScalarExpr& expr, std::size_t input);

/// What combines `size` results of an earlier step, which combined parts of axis `cut`.
LoopNest joined(const LoopNest& nest, const LoopNest::Operand& results, std::size_t cut, Size size);

/// A reduction over so few points that it is a map of as many inputs as there are points.
std::optional<LoopNest> window_as_map(const LoopNest& nest, const Target& target);

}  // namespace ein
