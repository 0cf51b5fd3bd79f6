#include <ein/linalg.hpp>

#include <string>
#include <utility>

#include <ein/error.hpp>

namespace ein {
namespace {

using detail::NamedPattern1, detail::NamedPattern2;

std::vector<Tensor> run(Operation op, const detail::PatternArgument& pattern,
                        std::initializer_list<const Tensor*> operands) {
  std::size_t k = 0;
  for (const Tensor* operand : operands) {
    ++k;
    if (operand->device() == cpu) continue;
    throw Error(ErrorKind::device, std::string(name(op)) + ": operand " + std::to_string(k) +
                                       " lies on " + to_string(operand->device()) +
                                       ", and linear algebra runs on the CPU" +
                                       "\n  help: copy it there first, x.to(ein::cpu)");
  }
  return detail::run_named({op, pattern, {operands.begin(), operands.size()}});
}

}  // namespace

Tensor inverse(const Tensor& m, const NamedPattern1<Operation::inverse>& pattern) {
  return std::move(run(Operation::inverse, pattern, {&m})[0]);
}
Tensor det(const Tensor& m, const NamedPattern1<Operation::det>& pattern) {
  return std::move(run(Operation::det, pattern, {&m})[0]);
}
Tensor cholesky(const Tensor& m, const NamedPattern1<Operation::cholesky>& pattern) {
  return std::move(run(Operation::cholesky, pattern, {&m})[0]);
}
Tensor solve(const Tensor& a, const Tensor& b, const NamedPattern2<Operation::solve>& pattern) {
  return std::move(run(Operation::solve, pattern, {&a, &b})[0]);
}
Tensor lstsq(const Tensor& a, const Tensor& b, const NamedPattern2<Operation::lstsq>& pattern) {
  return std::move(run(Operation::lstsq, pattern, {&a, &b})[0]);
}
QrFactors qr(const Tensor& m, const NamedPattern1<Operation::qr>& pattern) {
  std::vector<Tensor> results = run(Operation::qr, pattern, {&m});
  return {std::move(results[0]), std::move(results[1])};
}
SvdFactors svd(const Tensor& m, const NamedPattern1<Operation::svd>& pattern) {
  std::vector<Tensor> results = run(Operation::svd, pattern, {&m});
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}
Eigenpairs eigh(const Tensor& m, const NamedPattern1<Operation::eigh>& pattern) {
  std::vector<Tensor> results = run(Operation::eigh, pattern, {&m});
  return {std::move(results[0]), std::move(results[1])};
}

}  // namespace ein
