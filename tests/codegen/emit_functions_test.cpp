// Which functions of CUDA's library the kernels call: those whose errors docs/functions.md names,
// and no approximate ones.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/vocabulary.hpp"
#include "support/emitted_nests.hpp"

namespace ein::codegen {
namespace {

/// Every word before a parenthesis.
std::set<std::string> calls_in(const std::string& text) {
  std::set<std::string> found;
  for (std::size_t at = text.find('('); at != std::string::npos; at = text.find('(', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_'))
      --begin;
    if (begin < at) found.insert(text.substr(begin, at - begin));
  }
  return found;
}

/// The kernel of a map, without the vocabulary.
std::string kernel_of(ScalarOp op, DType compute) {
  const int arity = info(op).arity;
  const Ex x = Ex::input(0), y = Ex::input(1), z = Ex::input(2);
  Op map{.kind = OpKind::map,
         .dtype = compute,
         .shape = {64},
         .axes = {{"i", 64}},
         .write = test::plain({0}),
         .expr = arity == 1   ? Ex::apply(op, x)
                 : arity == 2 ? Ex::apply(op, x, y)
                              : Ex::apply(op, x, y, z),
         .compute = compute};
  std::vector<std::pair<DType, Shape>> inputs;
  for (int i = 0; i < arity; ++i) {
    inputs.push_back({compute, {64}});
    map.reads.push_back(test::plain({0}));
  }
  std::string text;
  for (const KernelSource& source : emit(test::lowered(test::graph_of(inputs, map)).nests.at(0))) {
    text += source.text.substr(source.kernel_begin);
  }
  return text;
}

/// What it calls for the function alone.
std::set<std::string> calls_of(ScalarOp op, DType compute) {
  std::set<std::string> calls = calls_in(kernel_of(op, compute));
  for (const std::string& other : calls_in(kernel_of(ScalarOp::add, compute))) calls.erase(other);
  return calls;
}

TEST(EmitFunctions, CallOnlyWhatIsKnownToBeNear) {
  const std::map<ScalarOp, std::string> library{
      {ScalarOp::sqrt, "sqrt"},   {ScalarOp::rsqrt, "rsqrt"},   {ScalarOp::exp, "exp"},
      {ScalarOp::exp2, "exp2"},   {ScalarOp::expm1, "expm1"},   {ScalarOp::log, "log"},
      {ScalarOp::log2, "log2"},   {ScalarOp::log1p, "log1p"},   {ScalarOp::sin, "sin"},
      {ScalarOp::cos, "cos"},     {ScalarOp::tan, "tan"},       {ScalarOp::asin, "asin"},
      {ScalarOp::acos, "acos"},   {ScalarOp::atan, "atan"},     {ScalarOp::atan2, "atan2"},
      {ScalarOp::sinh, "sinh"},   {ScalarOp::cosh, "cosh"},     {ScalarOp::tanh, "tanh"},
      {ScalarOp::erf, "erf"},     {ScalarOp::erfinv, "erfinv"}, {ScalarOp::hypot, "hypot"},
      {ScalarOp::floor, "floor"}, {ScalarOp::ceil, "ceil"},     {ScalarOp::round, "rint"},
      {ScalarOp::trunc, "trunc"}, {ScalarOp::pow, "pow"},       {ScalarOp::abs, "fabs"}};
  const std::set<std::string> ours{"sigmoid",      "silu",           "gelu",
                                   "gelu_slope",   "normal_cdf",     "normal_quantile",
                                   "remainder_of", "floor_quotient", "log_add_exp",
                                   "least",        "greatest",       "if",
                                   "for",          "float",          "double"};
  for (int i = static_cast<int>(ScalarOp::neg); i <= static_cast<int>(ScalarOp::where); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (op >= ScalarOp::bit_and && op <= ScalarOp::shift_right) continue;  // of integers alone
    for (DType compute : {DType::f32, DType::f64}) {
      const auto known = library.find(op);
      for (const std::string& called : calls_of(op, compute)) {
        if (known != library.end() && called == known->second + (compute == DType::f32 ? "f" : ""))
          continue;
        EXPECT_TRUE(ours.contains(called)) << called << " for " << info(op).name;
      }
      if (known != library.end()) {
        EXPECT_TRUE(
            calls_of(op, compute).contains(known->second + (compute == DType::f32 ? "f" : "")))
            << info(op).name;
      }
    }
  }
  // The device functions that these lead to.
  const std::string gates = vocabulary_for("sigmoid( silu( gelu(");
  for (const char* needed : {"expf", "exp", "normcdf"})
    EXPECT_TRUE(calls_in(gates).contains(needed)) << needed;
  // Approximate functions begin with two underscores, or are instructions.
  for (const char* fast : {"__expf", "__logf", "__powf", "__fdividef", "__tanhf", "tanh.approx",
                           "ex2.approx.ftz.f16", "use_fast_math"}) {
    EXPECT_EQ(vocabulary().find(fast), std::string::npos) << fast;
  }
}

}  // namespace
}  // namespace ein::codegen
