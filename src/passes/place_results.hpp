// Where results of a compiled function lie, and how values reach the inputs that they are assigned
// to.
#pragma once

#include <optional>
#include <span>

#include "nest/nest.hpp"
#include "passes/lower.hpp"

namespace ein {

/// Where eager execution has a result.
struct ResultPlace {
  ValueId owner = 0;  // the value whose storage it has: results of one owner share it
  std::optional<std::size_t> input;  // the number of the input that is the owner, if one is
  InputLayout layout;                // in the owner's storage
};

/// An input that receives a result of the program, as it lies in its buffer.
struct AssignedInput {
  int input = 0;
  InputLayout layout;
};

/// A result is a view of an input where eager execution returns one, and shares its storage with
/// another result only where both do eagerly. What has storage of its own holds what an input held
/// before anything was assigned. Results beyond `places` stay as they are.
void place_results(Program& program, std::span<const ResultPlace> places);

/// The results beyond `places` are values for `assigned`, one for each, and are none any more
/// afterwards. The nest that computes one writes it where it belongs, if nobody reads what was
/// there after that; else it is copied in the end. `memory` says which inputs share memory: equal
/// numbers do.
void assign_inputs(Program& program, std::span<const AssignedInput> assigned,
                   std::span<const ResultPlace> places, std::span<const int> memory);

}  // namespace ein
