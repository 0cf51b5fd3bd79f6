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

/// What is done to the scores before the softmax.
enum class ScoreForm : std::uint8_t {
  plain,
  capped,     ///< cap · tanh(score / cap)
  linear,     ///< a bias by head and distance (ALiBi)
  padded,     ///< keys that a mask of each sequence hides
  documents,  ///< keys of another document, by a number at each position, are hidden
  sigmoid,    ///< softmax of log sigmoid: weights that are sigmoids, normalized
};
inline constexpr ScoreForm score_forms[] = {ScoreForm::plain,     ScoreForm::capped,
                                            ScoreForm::linear,    ScoreForm::padded,
                                            ScoreForm::documents, ScoreForm::sigmoid};

struct AttentionCase {
  std::string name;
  AttentionLayout layout = heads_outside;
  AttentionSizes sizes{};
  DType dtype = DType::f32;
  std::optional<std::int64_t> reach{};
  bool backward = true;
  std::optional<std::int64_t> back{};
  ScoreForm form = ScoreForm::plain;
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

/// Scores after what their form does with them; `beside` is the tensor that it reads.
inline Tensor scored(ScoreForm form, const Tensor& scores, const Tensor* beside) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const std::size_t rank = scores.rank();
  const Size queries = scores.shape()[rank - 2], keys = scores.shape()[rank - 1];
  // The tensor's first axis is axis `first` of the scores, the last theirs.
  const auto lying = [&](const Tensor& x, std::size_t first) {
    Shape shape;
    for (std::size_t a = 0; a < rank; ++a)
      shape.push_back(a == first ? x.shape()[0] : a + x.rank() > rank ? x.shape()[1] : Size(1));
    return x.view(shape);
  };
  switch (form) {
    case ScoreForm::plain:
      return scores;
    case ScoreForm::capped:
      return tanh(scores / 2.0) * 2.0;
    case ScoreForm::linear: {
      const Tensor key = arange(keys).to(DType::f32),
                   query = arange(queries).to(DType::f32).view({queries, 1});
      return scores - (lying(*beside, rank - 3) * abs(query - key)).to(scores.dtype());
    }
    case ScoreForm::padded:
      return where(lying(*beside, 0), scores, hidden);
    case ScoreForm::documents: {
      const auto first = [&](const Size& count) {
        return lying(beside->at({Index(slice(0, beside->shape()[0])), Index(slice(0, count))}), 0);
      };
      const Tensor query = rearrange(first(queries), "... 1 q -> ... q 1");
      return where(query == first(keys), scores, hidden);
    }
    case ScoreForm::sigmoid:
      return -log(1.0 + exp(-scores));
  }
  throw std::logic_error("no such form of scores");
}

inline Tensor attend(const AttentionCase& c, const Tensor& q, const Tensor& k, const Tensor& v,
                     const Tensor* beside) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  const std::string scores_axes = c.layout.scores,
                    first = std::string(c.layout.q) + ", " + c.layout.k + " -> " + scores_axes,
                    second = scores_axes + ", " + c.layout.k + " -> " + c.layout.out,
                    rows = scores_axes.substr(0, scores_axes.size() - 1) + "[k]";
  Tensor scores =
      einsum(q, k, ein::runtime(first)) * (1 / std::sqrt(static_cast<double>(c.sizes.d)));
  scores = scored(c.form, scores, beside);
  if (c.reach) scores = tril(scores, "... [i j]", *c.reach, hidden);
  if (c.back) scores = triu(scores, "... [i j]", -*c.back, hidden);
  return einsum(softmax(scores, ein::runtime(rows)), v, ein::runtime(second));
}

inline Tensor attend(const AttentionLayout& layout, std::optional<std::int64_t> reach,
                     const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t depth) {
  AttentionCase c{.name = "", .layout = layout, .reach = reach};
  c.sizes.d = depth;
  return attend(c, q, k, v, nullptr);
}

inline Function step_of(const AttentionCase& c) {
  return [c](std::span<const Tensor> x) -> std::vector<Tensor> {
    const Tensor* const beside = c.form == ScoreForm::plain ? nullptr : &x.back();
    if (!c.backward) return {attend(c, x[0], x[1], x[2], beside)};
    std::vector<Tensor> leaves;
    for (int i = 0; i < 3; ++i) {
      leaves.push_back(x[static_cast<std::size_t>(i)].detach());
      leaves.back().requires_grad(true);
    }
    const Tensor out = attend(c, leaves[0], leaves[1], leaves[2], beside);
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

/// What the form of the scores reads.
inline std::optional<Tensor> tensor_beside(const AttentionCase& c, std::mt19937_64& random) {
  const std::int64_t positions = std::max(c.sizes.q, c.sizes.k);
  switch (c.form) {
    case ScoreForm::linear:
      return abs(random_tensor({c.sizes.h}, DType::f32, random));
    case ScoreForm::padded: {
      // Each query sees the first key.
      std::vector<double> seen;
      for (std::int64_t i = 0; i < c.sizes.b * c.sizes.k; ++i)
        seen.push_back(i % c.sizes.k == 0 || random() % 3 != 0);
      return make_tensor(seen, {c.sizes.b, c.sizes.k}, DType::boolean);
    }
    case ScoreForm::documents: {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < c.sizes.b * positions; ++i)
        numbers.push_back(static_cast<double>(i % positions / 5));
      return make_tensor(numbers, {c.sizes.b, positions}, DType::f32);
    }
    default:
      return std::nullopt;
  }
}

inline std::vector<Tensor> tensors_of(const AttentionCase& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> all;
  for (const char* axes : {c.layout.q, c.layout.k, c.layout.k, c.layout.out})
    all.push_back(random_tensor(shape_of(axes, c.sizes), c.dtype, random));
  if (!c.backward) all.pop_back();
  if (const std::optional<Tensor> beside = tensor_beside(c, random)) all.push_back(*beside);
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
    if (group.attention()) found.push_back(group.attention());
  }
  return found;
}

}  // namespace ein::test
