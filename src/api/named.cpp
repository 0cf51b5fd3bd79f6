#include <ein/named.hpp>

#include <string>

#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "api/calls.hpp"
#include "graph/fields.hpp"
#include "graph/named.hpp"
#include "runtime/autocast.hpp"
#include "runtime/call.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"

namespace ein {

std::shared_ptr<const engine::Plan> engine::plan_of_call(const detail::NamedCall& written) {
  detail::NamedCall call = written;
  if (!call.pattern.sizes().empty()) call.sizes = call.pattern.sizes();
  const detail::NamedOptions& options = call.options;
  engine::PlanKey key;
  key.add(static_cast<std::int64_t>(call.op) | static_cast<std::int64_t>(call.operands.size())
                                                   << 32);
  const auto add = [&](std::int64_t word) { key.add(word); };
  for_each_word<Scalar>(options, add);
  const Scalar& otherwise = options.otherwise;
  add(otherwise.formula() ? otherwise.formula()->word() : otherwise.integer());
  for_each_word(otherwise.real(), add);
  add((otherwise.is_integer() ? 1 : 0) | (otherwise.is_large_integer() ? 2 : 0));
  key.add(call.pattern, call.sizes);
  const auto what = [&] {
    return std::string(name(call.op)) + " \"" + std::string(call.pattern.text()) + "\"";
  };
  const auto build = [&](engine::Operands like) {
    const CallPattern parsed(call.op, call.pattern, call.sizes, shapes_of(like));
    PatternCall written{
        .op = call.op, .pattern = parsed.pattern, .sizes = call.sizes, .named = options};
    written.is_checked = call.pattern.is_checked();
    const Graph graph = build_graph(written, types_of(like));
    if (!parsed.pattern.has_placements()) return graph;
    return engine::lying_as_written(what(), graph, parsed.pattern,
                                    engine::mesh_of_call(what(), call.operands));
  };
  return engine::plan_for(key, call.operands, what, build);
}

std::vector<Tensor> detail::run_named(const NamedCall& written) {
  const engine::AutocastOperands operands(written.op, Reduction::sum, written.operands);
  NamedCall call = written;
  call.operands = operands.operands();
  return engine::run(*engine::plan_of_call(call), call.operands);
}

namespace {

Tensor run_one(Operation op, const detail::PatternArgument& pattern,
               std::initializer_list<const Tensor*> operands,
               const detail::NamedOptions& options = {}) {
  return std::move(
      detail::run_named({op, pattern, {operands.begin(), operands.size()}, {}, options}).front());
}

Sorted run_sort(Operation op, const detail::PatternArgument& pattern, const Tensor& x,
                const detail::NamedOptions& options) {
  const Tensor* const operand = &x;
  std::vector<Tensor> results = detail::run_named({op, pattern, {&operand, 1}, {}, options});
  return {std::move(results[0]), std::move(results[1])};
}

detail::NamedOptions with_eps(const char* what, double eps) {
  if (!(eps >= 0))
    throw Error(ErrorKind::value,
                std::string(what) + ": eps is " + show(eps) + ", it must not be negative");
  return {.eps = eps};
}

}  // namespace

using detail::NamedPattern1, detail::NamedPattern2;

#define EIN_OF_PATTERN(name)                                                    \
  Tensor name(const Tensor& x, const NamedPattern1<Operation::name>& pattern) { \
    return run_one(Operation::name, pattern, {&x});                             \
  }
EIN_OF_PATTERN(softmax)
EIN_OF_PATTERN(log_softmax)
EIN_OF_PATTERN(argmax)
EIN_OF_PATTERN(argmin)
EIN_OF_PATTERN(cumsum)
EIN_OF_PATTERN(cumprod)
EIN_OF_PATTERN(cummax)
EIN_OF_PATTERN(cummin)
EIN_OF_PATTERN(logcumsumexp)
EIN_OF_PATTERN(flip)
EIN_OF_PATTERN(median)
#undef EIN_OF_PATTERN

Tensor cumsum(const Tensor& x, const NamedPattern1<Operation::cumsum>& pattern, ResultDType dtype) {
  return run_one(Operation::cumsum, pattern, {&x}, {.dtype = dtype.dtype});
}
Tensor cumprod(const Tensor& x, const NamedPattern1<Operation::cumprod>& pattern,
               ResultDType dtype) {
  return run_one(Operation::cumprod, pattern, {&x}, {.dtype = dtype.dtype});
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const NamedPattern1<Operation::layer_norm>& pattern, double eps) {
  return run_one(Operation::layer_norm, pattern, {&x, &weight, &bias}, with_eps("layer_norm", eps));
}
Tensor layer_norm(const Tensor& x, const NamedPattern1<Operation::layer_norm>& pattern,
                  double eps) {
  return run_one(Operation::layer_norm, pattern, {&x}, with_eps("layer_norm", eps));
}
Tensor rms_norm(const Tensor& x, const Tensor& weight,
                const NamedPattern1<Operation::rms_norm>& pattern, double eps) {
  return run_one(Operation::rms_norm, pattern, {&x, &weight}, with_eps("rms_norm", eps));
}
Tensor rms_norm(const Tensor& x, const NamedPattern1<Operation::rms_norm>& pattern, double eps) {
  return run_one(Operation::rms_norm, pattern, {&x}, with_eps("rms_norm", eps));
}

Sorted sort(const Tensor& x, const NamedPattern1<Operation::sort>& pattern, bool descending) {
  return run_sort(Operation::sort, pattern, x, {.descending = descending});
}
Sorted top_k(const Tensor& x, const NamedPattern1<Operation::top_k>& pattern, std::int64_t k,
             bool least) {
  return run_sort(Operation::top_k, pattern, x, {.k = k, .descending = !least});
}

Tensor quantile(const Tensor& x, const NamedPattern1<Operation::quantile>& pattern, double q,
                Interpolation interpolation) {
  return run_one(Operation::quantile, pattern, {&x},
                 {.reals = {&q, 1}, .interpolation = interpolation});
}
Tensor quantile(const Tensor& x, const NamedPattern1<Operation::quantile>& pattern,
                const std::vector<double>& q, Interpolation interpolation) {
  return run_one(Operation::quantile, pattern, {&x},
                 {.reals = q, .keeps_axis = true, .interpolation = interpolation});
}

// --- where elements lie ---

Tensor roll(const Tensor& x, const NamedPattern1<Operation::roll>& pattern, const PerAxis& shifts) {
  return run_one(Operation::roll, pattern, {&x}, {.numbers = shifts.numbers()});
}

namespace {
Tensor run_pad(const Tensor& x, const detail::PatternArgument& pattern, const PerAxis& before,
               const PerAxis& after, detail::NamedOptions options) {
  std::vector<Size> numbers(before.numbers().begin(), before.numbers().end());
  numbers.insert(numbers.end(), after.numbers().begin(), after.numbers().end());
  options.k = static_cast<std::int64_t>(before.numbers().size());
  options.numbers = numbers;
  return run_one(Operation::pad, pattern, {&x}, options);
}
}  // namespace

Tensor pad(const Tensor& x, const NamedPattern1<Operation::pad>& pattern, const PerAxis& before,
           const PerAxis& after, Scalar value) {
  return run_pad(x, pattern, before, after, {.otherwise = value});
}
Tensor pad(const Tensor& x, const NamedPattern1<Operation::pad>& pattern, const PerAxis& before,
           const PerAxis& after, PadMode mode) {
  return run_pad(x, pattern, before, after, {.pad_mode = mode});
}

Tensor tril(const Tensor& x, const NamedPattern1<Operation::tril>& pattern, Size diagonal,
            Scalar otherwise) {
  return run_one(Operation::tril, pattern, {&x},
                 {.numbers = {&diagonal, 1}, .otherwise = otherwise});
}
Tensor triu(const Tensor& x, const NamedPattern1<Operation::triu>& pattern, Size diagonal,
            Scalar otherwise) {
  return run_one(Operation::triu, pattern, {&x},
                 {.numbers = {&diagonal, 1}, .otherwise = otherwise});
}
Tensor diagonal(const Tensor& x, const NamedPattern1<Operation::diagonal>& pattern, Size offset) {
  return run_one(Operation::diagonal, pattern, {&x}, {.numbers = {&offset, 1}});
}
Tensor from_diagonal(const Tensor& x, const NamedPattern1<Operation::from_diagonal>& pattern,
                     Size offset) {
  return run_one(Operation::from_diagonal, pattern, {&x}, {.numbers = {&offset, 1}});
}

// --- in order, and counted ---

Tensor searchsorted(const Tensor& sorted, const Tensor& values,
                    const NamedPattern2<Operation::searchsorted>& pattern, bool right) {
  return run_one(Operation::searchsorted, pattern, {&sorted, &values}, {.right = right});
}
Tensor histogram(const Tensor& x, const NamedPattern1<Operation::histogram>& pattern, Size bins,
                 double low, double high) {
  const double range[] = {low, high};
  return run_one(Operation::histogram, pattern, {&x}, {.numbers = {&bins, 1}, .reals = range});
}

Tensor one_hot(const Tensor& positions, const NamedPattern1<Operation::one_hot>& pattern,
               DType dtype) {
  return run_one(Operation::one_hot, pattern, {&positions}, {.dtype = dtype});
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const NamedPattern2<Operation::cross_entropy>& pattern) {
  return run_one(Operation::cross_entropy, pattern, {&logits, &targets});
}
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const NamedPattern2<Operation::cross_entropy>& pattern,
                     const CrossEntropyOptions& options) {
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    throw Error(ErrorKind::value, "cross_entropy: smoothing is " + show(options.smoothing) +
                                      ", 0 <= smoothing <= 1 is wanted");
  }
  const detail::NamedOptions named{.ignored = options.ignored, .smoothing = options.smoothing};
  if (!options.weights)
    return run_one(Operation::cross_entropy, pattern, {&logits, &targets}, named);
  return run_one(Operation::cross_entropy, pattern, {&logits, &targets, &*options.weights}, named);
}

}  // namespace ein
