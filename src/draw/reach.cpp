#include "draw/reach.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "size/ask.hpp"

namespace ein::draw {
namespace {

using Point = std::vector<std::int64_t>;

std::size_t elements_of(const Shape& shape) {
  std::int64_t elements = 1;
  for (const Size size : shape) elements *= std::int64_t{size};
  return static_cast<std::size_t>(elements);
}

/// Calls f(point) for each index tuple of the axes, the last one the fastest.
template <class F>
void for_each_point(const std::vector<Axis>& axes, F&& f) {
  for (const Axis& axis : axes) {
    if (ask_equal(axis.size, 0)) return;
  }
  Point at(axes.size(), 0);
  for (;;) {
    f(at);
    std::size_t a = axes.size();
    for (; a > 0; --a) {
      if (++at[a - 1] < std::int64_t{axes[a - 1].size}) break;
      at[a - 1] = 0;
    }
    if (a == 0) return;
  }
}

/// Which element an access meets; none beside the value.
std::optional<std::size_t> place(const Access& access, const Shape& shape, const Point& at) {
  std::int64_t element = 0;
  for (std::size_t d = 0; d < access.size(); ++d) {
    std::int64_t position = access[d].offset;
    for (const DimIndex::Term& term : access[d].terms)
      position += std::int64_t{term.coefficient} * at[static_cast<std::size_t>(term.axis)];
    const std::int64_t size = shape[d];
    if (position < 0 || position >= size) return std::nullopt;
    element = element * size + position;
  }
  return static_cast<std::size_t>(element);
}

class Reacher {
 public:
  explicit Reacher(const Graph& graph) : graph_(graph) {}

  std::vector<Sources> outputs() {
    for (const Op& op : graph_.ops) {
      Sources sources = of(op);
      for (std::vector<std::uint32_t>& list : sources) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
      values_.push_back(std::move(sources));
    }
    std::vector<Sources> outputs;
    for (const ValueId output : graph_.outputs) outputs.push_back(value(output));
    return outputs;
  }

 private:
  const Sources& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  Sources of(const Op& op) {
    switch (op.kind) {
      case OpKind::input: {
        Sources sources(elements_of(op.shape));
        for (std::vector<std::uint32_t>& list : sources) list.push_back(next_++);
        return sources;
      }
      case OpKind::concat:
        return joined(op);
      case OpKind::map:
      case OpKind::contract:
      case OpKind::reduce:
      case OpKind::reindex:
        return moved(op, {});
      case OpKind::place:
        if (op.inputs.size() == 1) return moved(op, {});
        if (op.inputs.size() == 2) return moved(op, value(op.inputs[1]));
        break;
      default:
        break;
    }
    throw std::logic_error("draw: what a " + std::string(name(op.kind)) +
                           " reads is not known before it runs");
  }

  /// What each point reads, where it writes.
  Sources moved(const Op& op, Sources sources) const {
    sources.resize(elements_of(op.shape));
    for_each_point(op.axes, [&](const Point& at) {
      const std::optional<std::size_t> to = place(op.write, op.shape, at);
      std::vector<std::uint32_t> read;
      for (std::size_t i = 0; to && i < op.reads.size(); ++i) {
        const auto from = place(op.reads[i], graph_.op(op.inputs[i]).shape, at);
        if (!from) return;
        const std::vector<std::uint32_t>& more = value(op.inputs[i])[*from];
        read.insert(read.end(), more.begin(), more.end());
      }
      if (!to) return;
      std::vector<std::uint32_t>& list = sources[*to];
      if (op.kind == OpKind::place) list.clear();
      list.insert(list.end(), read.begin(), read.end());
    });
    return sources;
  }

  Sources joined(const Op& op) const {
    std::size_t outer = 1;
    for (std::size_t d = 0; d < static_cast<std::size_t>(op.dim); ++d)
      outer *= static_cast<std::size_t>(std::int64_t{op.shape[d]});
    Sources sources;
    for (std::size_t o = 0; o < outer; ++o) {
      for (const ValueId input : op.inputs) {
        const Sources& part = value(input);
        const std::size_t run = part.size() / outer;
        for (std::size_t i = o * run; i < (o + 1) * run; ++i) sources.push_back(part[i]);
      }
    }
    return sources;
  }

  const Graph& graph_;
  std::vector<Sources> values_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::vector<Sources> reach(const Graph& graph) { return Reacher(graph).outputs(); }

}  // namespace ein::draw
