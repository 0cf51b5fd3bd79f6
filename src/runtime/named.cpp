#include <ein/named.hpp>

#include <bit>
#include <string>

#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "runtime/autocast.hpp"
#include "runtime/call_pattern.hpp"
#include "runtime/map.hpp"

namespace ein {
namespace detail {

std::vector<Tensor> run_named(const NamedCall& written) {
  const engine::AutocastOperands operands(written.op, Reduction::sum, written.operands);
  NamedCall call = written;
  call.operands = operands.operands();
  const NamedOptions& options = call.options;
  engine::PlanKey key;
  key.add(static_cast<std::int64_t>(call.op) | static_cast<std::int64_t>(options.descending) << 8 |
          (options.dtype ? static_cast<std::int64_t>(*options.dtype) + 1 : 0) << 16 |
          static_cast<std::int64_t>(call.operands.size()) << 32);
  key.add(std::bit_cast<std::int64_t>(options.eps));
  key.add(options.k);
  key.add(call.pattern, call.sizes);
  const auto build = [&](engine::Operands like) {
    const CallPattern parsed(call.op, call.pattern);
    PatternCall written{
        .op = call.op, .pattern = parsed.pattern, .sizes = call.sizes, .named = options};
    written.is_checked = call.pattern.is_checked();
    return build_graph(written, types_of(like));
  };
  const auto what = [&] {
    return std::string(name(call.op)) + " \"" + std::string(call.pattern.text()) + "\"";
  };
  return engine::run(*engine::plan_for(key, call.operands, what, build), call.operands);
}

}  // namespace detail

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
    throw Error(ErrorKind::value, std::string(what) + ": eps is " + std::to_string(eps) +
                                      ", it must not be negative");
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
Sorted top_k(const Tensor& x, const NamedPattern1<Operation::top_k>& pattern, std::int64_t k) {
  return run_sort(Operation::top_k, pattern, x, {.k = k});
}

Tensor one_hot(const Tensor& positions, const NamedPattern1<Operation::one_hot>& pattern,
               DType dtype) {
  return run_one(Operation::one_hot, pattern, {&positions}, {.dtype = dtype});
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const NamedPattern2<Operation::cross_entropy>& pattern) {
  return run_one(Operation::cross_entropy, pattern, {&logits, &targets});
}

}  // namespace ein
