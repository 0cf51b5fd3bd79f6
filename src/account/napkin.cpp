#include <ein/napkin.hpp>

#include <cmath>

#include <ein/call.hpp>
#include <ein/error.hpp>
#include "size/ask.hpp"

namespace ein::napkin {
namespace {

double positive(const char* what, double value) {
  if (std::isfinite(value) && value > 0) return value;
  throw Error(ErrorKind::value,
              std::string(what) + " is not a positive number: " + std::to_string(value));
}

}  // namespace

Count training_flops(Count parameters, Count tokens) { return Count(6) * parameters * tokens; }

double throughput(const Fleet& fleet) {
  if (positive("the MFU", fleet.mfu) > 1) {
    throw Error(ErrorKind::value, "the MFU exceeds 1: " + std::to_string(fleet.mfu));
  }
  return positive("the number of devices", fleet.devices) * positive("the peak", fleet.peak) *
         fleet.mfu;
}

double seconds_for(double flops, const Fleet& fleet) {
  return positive("the number of FLOPs", flops) / throughput(fleet);
}
double flops_in(double seconds, const Fleet& fleet) {
  return positive("the time", seconds) * throughput(fleet);
}

double short_rule_seconds(double parameters, double tokens, double devices, double peak) {
  return 12 * positive("the number of parameters", parameters) *
         positive("the number of tokens", tokens) /
         (positive("the number of devices", devices) * positive("the peak", peak));
}

double dollars(double seconds, double devices, double dollars_per_device_hour) {
  return positive("the time", seconds) / 3600 * positive("the number of devices", devices) *
         positive("the price", dollars_per_device_hour);
}

int state_count(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
    case Optimizer::adagrad:
    case Optimizer::rmsprop:
      return 1;
    case Optimizer::adamw:
      break;
  }
  return 2;
}

Recipe mixed_precision(Optimizer optimizer) {
  return {optimizer, DType::bf16, DType::bf16, DType::f32, true};
}

std::int64_t bytes_per_parameter(const Recipe& recipe) {
  const auto bytes = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  return bytes(recipe.parameters) + bytes(recipe.gradients) + (recipe.has_f32_master ? 4 : 0) +
         state_count(recipe.optimizer) * bytes(recipe.state);
}

double largest_model(double devices, double memory_bytes, double bytes_per_parameter) {
  return positive("the number of devices", devices) * positive("the memory", memory_bytes) /
         positive("the number of bytes per parameter", bytes_per_parameter);
}

namespace {

std::int64_t mlp_width(const Transformer& model) {
  std::int64_t width = model.mlp_width;
  if (width == 0 && __builtin_mul_overflow(model.width, 4, &width)) {
    throw Error(ErrorKind::overflow, "transformer: 4 times the width exceeds 2^63 - 1");
  }
  return width;
}

void check(const Transformer& model) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"layers", model.layers},
                                                        {"width", model.width},
                                                        {"heads", model.heads},
                                                        {"vocab", model.vocab},
                                                        {"context", model.context}};
  for (const auto& [name, size] : sizes) {
    if (size < 1)
      throw Error(ErrorKind::value, std::string("transformer: ") + name + " is " +
                                        std::to_string(size) + ", at least 1 is wanted");
  }
  if (model.mlp_width < 0) {
    throw Error(ErrorKind::value, "transformer: mlp_width is " + std::to_string(model.mlp_width) +
                                      ", at least 0 is wanted");
  }
  if (model.width % model.heads != 0) {
    throw Error(ErrorKind::value, "transformer: a width of " + std::to_string(model.width) +
                                      " is not divided by " + std::to_string(model.heads) +
                                      " heads");
  }
}

/// The products for `queries` tokens that attend to the whole context.
std::vector<Matmul> matmuls(const Transformer& model, std::int64_t batch, std::int64_t queries) {
  check(model);
  if (batch < 1)
    throw Error(ErrorKind::value,
                "transformer: batch is " + std::to_string(batch) + ", at least 1 is wanted");
  const std::int64_t b = batch, q = queries, k = model.context, d = model.width, h = model.heads,
                     e = d / h;
  const std::int64_t m = mlp_width(model);
  const char* const linear = "b t i, i o -> b t o";
  // Queries, keys and values are three products of one kind.
  std::vector<Matmul> products{
      {"queries, keys, values", linear, Part::attention, {{b, q, d}, {d, d}}, true, 3, {}},
      {"attention scores",
       "b h q e, b h k e -> b h q k",
       Part::attention,
       {{b, h, q, e}, {b, h, k, e}},
       false,
       1,
       {}},
      {"attention values",
       "b h q k, b h k e -> b h q e",
       Part::attention,
       {{b, h, q, k}, {b, h, k, e}},
       false,
       1,
       {}},
      {"attention output", linear, Part::attention, {{b, q, d}, {d, d}}, true, 1, {}},
      {"MLP up", linear, Part::mlp, {{b, q, d}, {d, m}}, true, 1, {}},
      {"MLP down", linear, Part::mlp, {{b, q, m}, {m, d}}, true, 1, {}},
      {"head", linear, Part::head, {{b, q, d}, {d, model.vocab}}, true, 1, {}},
  };
  for (Matmul& product : products) {
    if (product.part != Part::head &&
        __builtin_mul_overflow(product.times, model.layers, &product.times)) {
      throw Error(ErrorKind::overflow, "transformer: 3 times the layers exceed 2^63 - 1");
    }
    product.cost = cost(graph_of(Operation::einsum, runtime(product.pattern), product.operands));
  }
  return products;
}

Count sum(const std::vector<Matmul>& products) {
  Count total;
  for (const Matmul& product : products) total += product.flops();
  return total;
}

}  // namespace

Count Parameters::total() const {
  return token_embedding + position_embedding + attention + mlp + norms + biases + head;
}
Count Parameters::multiplying() const {
  const Count once = total() - position_embedding;
  return head == 0 ? once : once - token_embedding;
}

Parameters parameters(const Transformer& model) {
  Parameters p;
  for (const Matmul& product : matmuls(model, 1, 1)) {
    if (!product.has_weight) continue;
    const Shape& weight = product.operands[1];
    const Count weights = Count(weight[0]) * Count(weight[1]) * Count(product.times);
    const Count biases = Count(weight[1]) * Count(product.times);
    if (product.part == Part::head) {
      p.token_embedding = weights;
      if (!model.has_tied_head) p.head = weights;
      continue;  // it has no bias
    }
    (product.part == Part::mlp ? p.mlp : p.attention) += weights;
    if (model.has_biases) p.biases += biases;
  }
  p.position_embedding = Count(model.context) * Count(model.width);
  p.norms = (Count(2) * Count(model.layers) + Count(1)) * Count(model.width);
  if (model.has_biases) p.biases += p.norms;
  return p;
}

Count estimated_parameters(const Transformer& model) {
  check(model);
  return Count(12) * Count(model.width) * Count(model.width) * Count(model.layers);
}

std::vector<Matmul> forward_matmuls(const Transformer& model, std::int64_t batch) {
  return matmuls(model, batch, model.context);
}

Count forward_flops(const Transformer& model, std::int64_t batch) {
  return sum(forward_matmuls(model, batch));
}

TokenFlops training_flops_per_token(const Transformer& model) {
  TokenFlops flops;
  flops.derived = Count(3) * sum(matmuls(model, 1, 1));
  flops.six_n = Count(6) * parameters(model).multiplying();
  flops.causal_attention =
      Count(6) * Count(model.layers) * Count(model.width) * Count(model.context);
  flops.attention = Count(2) * flops.causal_attention;
  return flops;
}

Count TrainingMemory::total() const {
  return parameters + gradients + master + optimizer + activations + logits;
}

TrainingMemory training_memory(const Transformer& model, std::int64_t batch, const Recipe& recipe,
                               Kept kept) {
  const Count p = parameters(model).total();
  if (batch < 1)
    throw Error(ErrorKind::value,
                "transformer: batch is " + std::to_string(batch) + ", at least 1 is wanted");
  const auto bytes = [&](DType dtype) { return p * Count(std::uint64_t{size_of(dtype)}); };
  TrainingMemory memory;
  memory.parameters = bytes(recipe.parameters);
  memory.gradients = bytes(recipe.gradients);
  if (recipe.has_f32_master) memory.master = bytes(DType::f32);
  memory.optimizer = bytes(recipe.state) * Count(state_count(recipe.optimizer));

  const Count tokens = Count(batch) * Count(model.context);
  const Count width = model.width;
  // The paper's terms, in widths: attention 11, norms 4, the MLP's input 2 and dropout mask 1; the
  // inputs of its activation function and second layer are 2 each of its own width.
  Count per_token = Count(2) * width;
  if (kept != Kept::layer_inputs)
    per_token = Count(18) * width + Count(4) * Count(mlp_width(model));
  if (kept == Kept::everything) per_token += Count(5) * Count(model.heads) * Count(model.context);
  memory.activations = tokens * per_token * Count(model.layers);
  memory.logits = Count(4) * tokens * Count(model.vocab);
  return memory;
}

}  // namespace ein::napkin
