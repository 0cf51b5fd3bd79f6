// An order of a program's nests that passes change.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "nest/dependences.hpp"

namespace ein {

/// Nests in an order that does what their own does, some of them together. `memory` says which
/// input buffers share memory: equal numbers do.
class NestOrder {
 public:
  using Item = std::vector<std::size_t>;  // nests that are together

  NestOrder(const Program& program, std::span<const int> memory);

  const std::vector<Item>& items() const { return items_; }
  void restore(std::vector<Item> items) { items_ = std::move(items); }

  /// Puts nests together, what they need before them and what needs them behind, and returns the
  /// first of them; none if that cannot be, and nothing changes.
  std::optional<std::size_t> gather(const std::vector<std::size_t>& nests);

  /// Beyond what its nests touch, an item that is attention touches what that says.
  void note(std::size_t item, const Attention& attention);

  /// Whether nothing between two items, named by their first nests, writes what these operands
  /// read.
  bool keeps(std::size_t from, std::size_t to,
             const std::vector<const LoopNest::Operand*>& operands) const;

  int memory_of(int buffer) const { return dependences_.memory_of(buffer); }

 private:
  Touched touched_by(const Item& item) const;

  const Program& program_;
  Dependences dependences_;
  std::vector<Item> items_;
  std::map<std::size_t, Touched> of_attentions_;  // by the first nest of their items
};

}  // namespace ein
