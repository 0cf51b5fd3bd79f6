#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include <ein/named.hpp>
#include <ein/nn/transformer.hpp>
#include <ein/optim.hpp>
#include <ein/safetensors.hpp>
#include "../training_step.hpp"
#include "subject.hpp"

namespace peers {
namespace {

using ein::Tensor;

const std::map<std::string, ein::Operation> operations{{"einsum", ein::Operation::einsum},
                                                       {"rearrange", ein::Operation::rearrange},
                                                       {"repeat", ein::Operation::repeat},
                                                       {"reduce", ein::Operation::reduce}};

}  // namespace

Subject pattern_subject(const Json& c, const Tensors& inputs) {
  struct State {
    ein::Operation op;
    std::string pattern;
    ein::Reduction reduction;
    std::vector<std::string> names;
    std::vector<ein::AxisSize> sizes;
    Tensors inputs;
    std::vector<const Tensor*> operands;
  };
  const auto state = std::make_shared<State>();
  state->op = operations.at(c.value("call", c.at("op").get<std::string>()));
  state->pattern = c.at("pattern");
  state->reduction = ein::reduction_named(c.value("reduction", "sum"));
  const Json sizes = c.value("sizes", Json::object());
  for (const auto& [name, size] : sizes.items()) state->names.push_back(name);
  for (const std::string& name : state->names)
    state->sizes.push_back({name, sizes.at(name).get<std::int64_t>()});
  state->inputs = inputs;
  const bool backward = c.value("backward", false);
  if (backward) state->inputs.pop_back();
  for (const Tensor& x : state->inputs) state->operands.push_back(&x);
  if (backward) {
    return subject([state, cotangent = inputs.back()] {
      for (Tensor& x : state->inputs) x = ein::detail::differentiable(x);
      const ein::detail::PatternArgument pattern{std::string_view(state->pattern)};
      const Tensor result = ein::detail::run_one(
          {state->op, pattern, state->operands, state->sizes, state->reduction});
      Tensors all = gradients(result, cotangent, state->inputs);
      all.insert(all.begin(), result.detach());
      return all;
    });
  }
  // The mean of integers is that of f32: whoever wants it says so.
  const bool casts = state->reduction == ein::Reduction::mean && is_integral(inputs[0].dtype());
  return subject([state, casts] {
    const ein::detail::PatternArgument pattern{std::string_view(state->pattern)};
    Tensor cast;
    if (casts) {
      cast = state->inputs[0].to(ein::DType::f32);
      const Tensor* const operands[] = {&cast};
      return ein::detail::run_one({state->op, pattern, operands, state->sizes, state->reduction});
    }
    // A view moves nothing; what is compared is the elements in their new order.
    return ein::detail::run_one(
               {state->op, pattern, state->operands, state->sizes, state->reduction})
        .contiguous();
  });
}

/// An operation on elements, or along rows.
Subject element_subject(const Json& c, const Tensors& x) {
  const std::string name = c.at("name");
  if (name == "to")
    return subject(
        [=, to = *ein::parse_dtype(c.at("to").get<std::string>())] { return x[0].to(to); });
  if (name == "where") return subject([=] { return ein::where(x[2], x[0], x[1]); });
  if (name == "argmax") return subject([=] { return ein::argmax(x[0], "a [b]"); });
  if (name == "cumsum") return subject([=] { return ein::cumsum(x[0], "a [b]"); });
  static const std::map<std::string, Tensor (*)(ein::Operand, ein::Operand)> binary{
      {"add", ein::add},
      {"mul", ein::mul},
      {"maximum", ein::maximum},
      {"less", ein::less},
      {"logical_and", ein::logical_and}};
  return subject([=, f = binary.at(name)] { return f(x[0], x[1]); });
}

Subject small_subject(const Json& c, const Tensors& inputs) {
  const std::string name = c.at("name");
  const Tensor a = inputs.at(0), b = inputs.size() > 1 ? inputs[1] : Tensor();
  if (name == "einsum, literal")
    return subject([=] { return ein::einsum(a, b, "i k, k j -> i j"); });
  if (name == "einsum, run-time pattern") {
    return subject([=, pattern = c.at("pattern").get<std::string>()] {
      return ein::einsum(a, b, ein::runtime(pattern));
    });
  }
  if (name == "rearrange (a view)")
    return subject([=] { return ein::rearrange(a, "a b c -> c b a"); });
  if (name == "reduce") return subject([=] { return ein::reduce(a, "a b c -> b", "sum"); });
  if (name == "add") return subject([=] { return a + b; });
  throw std::runtime_error("unknown small call: " + name);
}

namespace {

const auto squared = [](const Tensor& a, const Tensor& b) { return (a - b) * (a - b); };

/// The results of a chain of operations on its first inputs. The cotangents of all results come
/// last.
struct Chain {
  std::size_t operands;
  Tensors (*run)(const std::string& pattern, const Tensors& x);
};
const std::map<std::string, Chain> chains{
    {"softmax",
     {1, [](const std::string& p,
            const Tensors& x) { return Tensors{softmax(x[0], ein::runtime(p))}; }}},
    {"log_softmax",
     {1, [](const std::string& p,
            const Tensors& x) { return Tensors{log_softmax(x[0], ein::runtime(p))}; }}},
    {"layer_norm",
     {3, [](const std::string& p,
            const Tensors& x) { return Tensors{layer_norm(x[0], x[1], x[2], ein::runtime(p))}; }}},
    {"rms_norm",
     {2, [](const std::string& p,
            const Tensors& x) { return Tensors{rms_norm(x[0], x[1], ein::runtime(p))}; }}},
    {"gelu", {1, [](const std::string&, const Tensors& x) { return Tensors{gelu(x[0])}; }}},
    {"bias_gelu",
     {2, [](const std::string&, const Tensors& x) { return Tensors{gelu(x[0] + x[1])}; }}},
    {"residual_norm",
     {4,
      [](const std::string& p, const Tensors& x) {
        const Tensor sum = x[0] + x[1];
        return Tensors{sum, layer_norm(sum, x[2], x[3], ein::runtime(p))};
      }}},
    {"attention",
     {3,
      [](const std::string&, const Tensors& x) {
        const double depth = static_cast<double>(x[0].shape()[3]);
        const Tensor scores =
            ein::einsum(x[0], x[1], "b h q d, b h k d -> b h q k") * (1 / std::sqrt(depth));
        const Tensor seen =
            ein::tril(scores, "... [q k]", 0, -std::numeric_limits<double>::infinity());
        return Tensors{
            ein::einsum(ein::softmax(seen, "b h q [k]"), x[2], "b h q k, b h k d -> b h q d")};
      }}},
    {"cross_entropy",
     {1, [](const std::string& p,
            const Tensors& x) { return Tensors{cross_entropy(x[0], x[1], ein::runtime(p))}; }}},
    {"distances",
     {2,
      [](const std::string&, const Tensors& x) {
        return Tensors{ein::map(x[0], x[1], "i d, j d -> i j", squared, "sum")};
      }}},
    {"max_plus",
     {2,
      [](const std::string&, const Tensors& x) {
        return Tensors{ein::map(x[0], x[1], "i k, k j -> i j", ein::fn::add, "max")};
      }}},
    {"logsumexp_plus",
     {2,
      [](const std::string&, const Tensors& x) {
        return Tensors{ein::map(x[0], x[1], "i k, k j -> i j", ein::fn::add, "logsumexp")};
      }}},
    {"kernel_sums",
     {3,
      [](const std::string&, const Tensors& x) {
        const auto kernel = [](const Tensor& d, const Tensor& w) { return exp(-d) * w; };
        const Tensor distances = ein::map(x[0], x[1], "i d, j d -> i j", squared, "sum");
        return Tensors{ein::map(distances, x[2], "i j, j -> i", kernel, "sum")};
      }}},
};

/// The results, and the gradients of the operands where cotangents are there.
Tensors run_chain(const Chain& chain, const std::string& pattern, bool backward, Tensors x) {
  if (!backward) return chain.run(pattern, x);
  std::vector<Tensor> operands(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(chain.operands));
  for (std::size_t i = 0; i < chain.operands; ++i)
    x[i] = operands[i] = ein::detail::differentiable(x[i]);
  Tensors results = chain.run(pattern, x);
  const std::size_t first = x.size() - results.size();
  Tensors found;
  if (results.size() == 1) {
    found = results[0].rank() == 0 ? gradients(results[0], operands)
                                   : gradients(results[0], x[first], operands);
  } else {
    Tensor total = ein::zeros({});
    for (std::size_t i = 0; i < results.size(); ++i) {
      total =
          total + ein::einsum((results[i] * x[first + i]).reshape({results[i].numel()}), "i ->");
    }
    found = gradients(total, operands);
  }
  for (Tensor& result : results) result = result.detach();
  results.insert(results.end(), found.begin(), found.end());
  return results;
}

/// A function of a list of tensors as a compiled one.
template <class F>
std::function<Tensors(const Tensors&)> compiled(F f) {
  struct Program {
    F f;
    ein::detail::CompiledFunction program;
  };
  const auto kept = std::make_shared<Program>(Program{std::move(f), {}});
  return [kept](const Tensors& x) {
    const auto trace = [](const void* context, std::span<const Tensor> given) {
      return (*static_cast<const F*>(context))(Tensors(given.begin(), given.end()));
    };
    return kept->program.run(x, {}, trace, &kept->f);
  };
}

}  // namespace

Subject fused_subject(const Json& c, const Tensors& inputs, bool is_compiled) {
  const Chain& chain = chains.at(c.at("name"));
  const auto run = [&chain, pattern = c.value("pattern", ""),
                    backward = c.value("backward", false)](const Tensors& x) {
    return run_chain(chain, pattern, backward, x);
  };
  if (!is_compiled) return subject([=] { return run(inputs); });
  return subject([f = compiled(run), inputs] { return f(inputs); });
}

/// The inputs are parameters, then their gradients.
Subject optimizer_subject(const Tensors& inputs, bool is_compiled) {
  struct State {
    Tensors parameters;
    std::unique_ptr<ein::optim::AdamW> optimizer;
  };
  const auto state = std::make_shared<State>();
  const std::size_t count = inputs.size() / 2;
  for (std::size_t i = 0; i < count; ++i)
    state->parameters.push_back(inputs[i].clone().requires_grad(true));
  state->optimizer = std::make_unique<ein::optim::AdamW>(
      state->parameters, ein::optim::AdamOptions{.weight_decay = 0.1});
  const Tensors gradients(inputs.begin() + static_cast<std::ptrdiff_t>(count), inputs.end());
  const auto step = [state](const Tensors& g) -> Tensors {
    for (std::size_t i = 0; i < g.size(); ++i) state->parameters[i].set_grad(g[i]);
    state->optimizer->step();
    return {};
  };
  const std::function<Tensors(const Tensors&)> run = is_compiled ? compiled(step) : step;
  return {[=] { run(gradients); },
          [=] {
            run(gradients);
            return state->parameters;
          }};
}

namespace {

ein::nn::TransformerConfig config_of(const Json& c) {
  return {.vocab_size = c.at("vocabulary"),
          .block_size = c.at("block_size"),
          .n_layer = c.at("n_layer"),
          .n_head = c.at("n_head"),
          .n_embd = c.at("n_embd")};
}

/// Writes the weights of a case's model where the case says so.
void write_weights(const Json& c, const ein::nn::Transformer& model) {
  if (c.contains("write_weights")) ein::save_safetensors(c.at("write_weights"), model.state_dict());
}

}  // namespace

/// A step of the model of `ein train` on one batch of tokens and targets.
Subject training_subject(const Json& c, const Tensors& inputs) {
  ein::manual_seed(1337);
  const auto state = std::make_shared<bench::TrainingStep>(
      config_of(c), *ein::parse_dtype(c.value("dtype", "f32")));
  write_weights(c, state->model());
  auto step = ein::compile(
      [state](const Tensor& tokens, const Tensor& targets) { return (*state)(tokens, targets); });
  step.prepare(inputs.at(0), inputs.at(1));
  const double flops = step.cost().model.approximate();
  const auto kept = std::make_shared<decltype(step)>(std::move(step));
  Subject made = subject([=] { return (*kept)(inputs[0], inputs[1]); });
  made.flops = flops;
  return made;
}

/// All of a text, token by token; the logits after the last. Compiled, the function has the text so
/// far as its argument, and looks at as much of the cache.
Subject decoding_subject(const Json& c, const Tensors& inputs, bool is_compiled) {
  ein::manual_seed(1337);
  struct State {
    explicit State(const Json& c) : model(config_of(c)), cache(model.make_cache()) {
      write_weights(c, model);
    }
    ein::nn::Transformer model;
    std::vector<ein::nn::KVCache> cache;
  };
  const auto state = std::make_shared<State>(c);
  const Tensor text = inputs.at(0);
  const std::int64_t length = text.numel();
  if (!is_compiled) {
    return subject([=] {
      for (ein::nn::KVCache& block : state->cache) block.length = 0;
      Tensor logits;
      for (std::int64_t p = 0; p < length; ++p)
        logits =
            state->model.next_logits(text.at({ein::slice(p, p + 1)}).view({1, 1}), state->cache);
      return logits;
    });
  }
  auto next = ein::compile(
      [state](const Tensor& so_far) {
        const ein::Size before = ein::size_of(so_far, "t") - 1;
        std::vector<ein::nn::KVCache> cache = state->cache;
        for (ein::nn::KVCache& block : cache) block.length = before;
        return state->model.next_logits(so_far.at({ein::slice(before)}).view({1, 1}), cache);
      },
      {"t"});
  return subject([=, kept = std::make_shared<decltype(next)>(std::move(next))] {
    Tensor logits;
    for (std::int64_t p = 0; p < length; ++p) logits = (*kept)(text.at({ein::slice(0, p + 1)}));
    return logits;
  });
}

}  // namespace peers
