// Dependences: which nests must stay in order, since they touch the same memory.
#pragma once

#include <set>
#include <span>

#include "nest/nest.hpp"

namespace ein {

/// What some nests read and write, as numbers of memory.
struct Touched {
  std::set<int> read, written;

  void add(const Touched& other);
  /// Whether one has to stay behind the other, if it is there now.
  bool conflicts(const Touched& other) const;
};

class Dependences {
 public:
  /// `memory` says which input buffers share memory: equal numbers do; empty for none.
  explicit Dependences(std::span<const int> memory) : memory_(memory) {}

  int memory_of(int buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return b < memory_.size() ? memory_[b] : buffer;
  }
  /// `attention`: what the nests are together, if they are any.
  Touched touched_by(std::span<const LoopNest> nests, const Attention* attention = nullptr) const;
  Touched touched_by(const LoopNest& nest) const { return touched_by({&nest, 1}); }

 private:
  std::span<const int> memory_;
};

}  // namespace ein
