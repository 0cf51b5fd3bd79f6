#include "passes/nest_order.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein {

NestOrder::NestOrder(const Program& program, std::span<const int> memory)
    : program_(program), dependences_(memory) {
  for (std::size_t n = 0; n < program.nests.size(); ++n) items_.push_back({n});
}

std::optional<std::size_t> NestOrder::gather(const std::vector<std::size_t>& nests) {
  const std::set<std::size_t> members(nests.begin(), nests.end());
  const auto is_member = [&](const Item& item) { return members.contains(item.front()); };
  const auto first = std::find_if(items_.begin(), items_.end(), is_member);
  const auto end = std::find_if(items_.rbegin(), items_.rend(), is_member).base();
  std::vector<Item> before(items_.begin(), first), behind;
  Item together;
  Touched of_group, of_behind;
  for (auto at = first; at != end; ++at) {
    const bool member = is_member(*at);
    const Touched touched = touched_by(*at);
    if (touched.conflicts(of_behind)) {
      if (member) return std::nullopt;
      of_behind.add(touched);
      behind.push_back(*at);
    } else if (member) {
      of_group.add(touched);
      together.insert(together.end(), at->begin(), at->end());
    } else if (touched.conflicts(of_group)) {
      of_behind.add(touched);
      behind.push_back(*at);
    } else {
      before.push_back(*at);
    }
  }
  const std::size_t front = together.front();
  before.push_back(std::move(together));
  before.insert(before.end(), behind.begin(), behind.end());
  before.insert(before.end(), end, items_.end());
  items_ = std::move(before);
  return front;
}

bool NestOrder::keeps(std::size_t from, std::size_t to,
                      const std::vector<const LoopNest::Operand*>& operands) const {
  bool is_between = false;
  for (const Item& item : items_) {
    if (item.front() == to) return true;
    if (is_between) {
      const Touched touched = touched_by(item);
      for (const LoopNest::Operand* operand : operands) {
        if (touched.written.contains(memory_of(operand->buffer))) return false;
      }
    }
    is_between |= item.front() == from;
  }
  return false;
}

void NestOrder::note(std::size_t item, const Attention& attention) {
  of_attentions_[item] = dependences_.touched_by({}, &attention);
}

Touched NestOrder::touched_by(const Item& item) const {
  Touched touched;
  for (std::size_t n : item) touched.add(dependences_.touched_by(program_.nests[n]));
  const auto attention = of_attentions_.find(item.front());
  if (attention != of_attentions_.end()) touched.add(attention->second);
  return touched;
}

}  // namespace ein
