// Attention and its gradients as programs, written in the public API.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/ein.hpp>
#include <ein/graph.hpp>
#include "nest/attention.hpp"
#include "nest/nest.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"
#include "passes/short_forms.hpp"
#include "passes/simplify.hpp"
#include "passes/windows.hpp"
#include "runtime/trace.hpp"
#include "support/tensor_values.hpp"

namespace ein::test {

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

/// Tensors of a step: q, k, v and the gradient of the result.
struct AttentionLayout {
  const char *q, *k, *scores, *out;  // patterns of axes; v lies like k
};
inline constexpr AttentionLayout heads_outside{"b h q d", "b h k d", "b h q k", "b h q d"};
inline constexpr AttentionLayout heads_inside{"b q h d", "b k h d", "b h q k", "b q h d"};
inline constexpr AttentionLayout grouped{"b g h q d", "b g k d", "b g h q k", "b g h q d"};
inline constexpr AttentionLayout turned{"b h d q", "b h d k", "b h q k", "b h d q"};

struct AttentionSizes {
  std::int64_t b = 2, h = 2, q = 37, k = 37, d = 16, g = 2;
};

struct AttentionCase {
  std::string name;
  AttentionLayout layout = heads_outside;
  AttentionSizes sizes{};
  DType dtype = DType::f32;
  std::optional<std::int64_t> reach{};
  bool backward = true;
};

inline void PrintTo(const AttentionCase& c, std::ostream* to) { *to << c.name; }
inline std::string name_of(const testing::TestParamInfo<AttentionCase>& info) {
  return info.param.name;
}

inline Shape shape_of(const std::string& axes, const AttentionSizes& sizes) {
  Shape shape;
  for (char c : axes) {
    switch (c) {
      case 'b':
        shape.push_back(sizes.b);
        break;
      case 'g':
        shape.push_back(sizes.g);
        break;
      case 'h':
        shape.push_back(sizes.h);
        break;
      case 'q':
        shape.push_back(sizes.q);
        break;
      case 'k':
        shape.push_back(sizes.k);
        break;
      case 'd':
        shape.push_back(sizes.d);
        break;
      default:
        break;
    }
  }
  return shape;
}

inline Tensor attend(const AttentionLayout& layout, std::optional<std::int64_t> reach,
                     const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t depth) {
  const std::string first = std::string(layout.q) + ", " + layout.k + " -> " + layout.scores,
                    second = std::string(layout.scores) + ", " + layout.k + " -> " + layout.out,
                    rows = std::string(layout.scores)
                               .substr(0, std::string(layout.scores).size() - 1) +
                           "[k]";
  Tensor scores = einsum(q, k, ein::runtime(first)) * (1 / std::sqrt(static_cast<double>(depth)));
  if (reach) scores = tril(scores, "... [i j]", *reach, -std::numeric_limits<double>::infinity());
  return einsum(softmax(scores, ein::runtime(rows)), v, ein::runtime(second));
}

inline Function step_of(const AttentionCase& c) {
  return [c](std::span<const Tensor> x) -> std::vector<Tensor> {
    if (!c.backward) return {attend(c.layout, c.reach, x[0], x[1], x[2], c.sizes.d)};
    std::vector<Tensor> leaves;
    for (int i = 0; i < 3; ++i) {
      leaves.push_back(x[static_cast<std::size_t>(i)].detach());
      leaves.back().requires_grad(true);
    }
    const Tensor out = attend(c.layout, c.reach, leaves[0], leaves[1], leaves[2], c.sizes.d);
    std::vector<Tensor> results = gradients(out, x[3], leaves);
    results.insert(results.begin(), out);
    return results;
  };
}

inline Tensor random_tensor(const Shape& shape, DType dtype, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  for (double& value : values) value = normal(random);
  return make_tensor(values, shape, dtype);
}

inline std::vector<Tensor> tensors_of(const AttentionCase& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> all;
  for (const char* axes : {c.layout.q, c.layout.k, c.layout.k, c.layout.out})
    all.push_back(random_tensor(shape_of(axes, c.sizes), c.dtype, random));
  if (!c.backward) all.pop_back();
  return all;
}

struct CompiledProgram {
  Graph graph;
  std::vector<Tensor> inputs;
  Program program;
};

/// Lowered, and grouped by `group(program, kept)`.
template <class Group>
CompiledProgram compiled(const std::vector<Tensor>& arguments, const Function& function,
                         const Group& group) {
  CompiledProgram c;
  engine::Trace trace;
  std::vector<Tensor> traced;
  for (const Tensor& x : arguments) traced.push_back(trace.argument(x, x.shape(), x.strides()));
  const std::vector<Tensor> results = function(traced);
  c.graph = trace.finish(results);
  c.inputs = arguments;
  for (const Tensor& x : trace.captured()) c.inputs.push_back(x);
  std::vector<InputLayout> layouts;
  for (const Tensor& x : c.inputs) layouts.push_back({x.strides(), x.offset()});
  const Graph graph = without_windows(c.graph);
  c.program = lower(order_contractions(simplify(with_short_forms(graph))), layouts);
  std::vector<int> kept;
  for (const Program::Result& result : c.program.results) kept.push_back(result.buffer);
  group(c.program, kept);
  return c;
}

inline std::vector<const Attention*> attentions(const Program& program) {
  std::vector<const Attention*> found;
  for (const Program::Group& group : program.groups) {
    if (group.attention) found.push_back(&*group.attention);
  }
  return found;
}

}  // namespace ein::test
