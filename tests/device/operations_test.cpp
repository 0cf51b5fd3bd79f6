// Calls on a GPU give what they give on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/nn.hpp>
#include <ein/optim.hpp>
#include "support/expect_error.hpp"

namespace ein {
namespace {

/// Runs `call` on both devices on the same operands and compares every element.
void expect_equal(const std::string& what, const std::vector<Tensor>& operands,
                  const std::function<Tensor(std::vector<Tensor>)>& call, double tolerance = 0) {
  std::vector<Tensor> there;
  for (const Tensor& x : operands) there.push_back(x.to(cuda));
  const Tensor want = call(operands), got = call(there);
  EXPECT_EQ(got.device(), cuda) << what;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  EXPECT_TRUE(all_close(got.to(cpu), want, tolerance, tolerance)) << what << "\n"
                                                                  << to_string(got) << "\n"
                                                                  << to_string(want);
}

using Operands = std::vector<Tensor>;

TEST(OnDevice, Creation) {
  EXPECT_EQ(arange(7, cuda).to_vector<std::int64_t>(), arange(7).to_vector<std::int64_t>());
  EXPECT_EQ(arange(1, 2, 0.25, cuda).to_vector<float>(), arange(1, 2, 0.25).to_vector<float>());
  EXPECT_EQ(eye(3, DType::f32, cuda).to_vector<float>(), eye(3).to_vector<float>());
  EXPECT_EQ(full({2, 2}, 2.5, cuda).to_vector<float>(), full({2, 2}, 2.5).to_vector<float>());
  EXPECT_EQ(ones({3}, DType::i32, cuda).to_vector<std::int32_t>(),
            ones({3}, DType::i32).to_vector<std::int32_t>());
}

TEST(OnDevice, RandomNumbersAreTheSame) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    manual_seed(7);
    const Tensor a = randn({1000}, dtype), b = rand({333}, dtype),
                 c = trunc_normal({100}, 1, -2, 2, dtype);
    manual_seed(7);
    const Tensor x = randn({1000}, dtype, cuda), y = rand({333}, dtype, cuda),
                 z = trunc_normal({100}, 1, -2, 2, dtype, cuda);
    EXPECT_EQ(x.to_vector<double>(), a.to_vector<double>());
    EXPECT_EQ(y.to_vector<double>(), b.to_vector<double>());
    EXPECT_EQ(z.to_vector<double>(), c.to_vector<double>());
  }
}

TEST(OnDevice, LinearAlgebraIsOfTheCpu) {
  const Tensor m = eye(2, DType::f32, cuda);
  const std::vector<std::string> words{"inverse: operand 1 lies on cuda:0",
                                       "copy it there first, x.to(ein::cpu)"};
  test::expect_error([&] { inverse(m, "[i j]"); }, ErrorKind::device, words);
  auto f = compile([](const Tensor& x) { return inverse(x, "[i j]"); });
  test::expect_error([&] { f(m); }, ErrorKind::device, words);
  EXPECT_EQ(inverse(m.to(cpu), "[i j]").to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
}

TEST(OnDevice, Elementwise) {
  const Tensor a = randn({6, 50}), b = randn({50});
  expect_equal("a + b", {a, b}, [](Operands x) { return x[0] + x[1]; });
  expect_equal("a * 2 - b", {a, b}, [](Operands x) { return x[0] * 2 - x[1]; });
  expect_equal(
      "exp", {a}, [](Operands x) { return exp(x[0]); }, 1e-6);
  expect_equal(
      "gelu", {a}, [](Operands x) { return gelu(x[0]); }, 1e-6);
  expect_equal("where", {a, b}, [](Operands x) { return where(x[0] > 0, x[0], x[1]); });
  expect_equal("tril", {a}, [](Operands x) { return tril(x[0], "... [i j]"); });
  expect_equal("to bf16", {a}, [](Operands x) { return x[0].to(DType::bf16); });
  expect_equal("to i64", {a}, [](Operands x) { return (x[0] * 10).to(DType::i64); });
  // Views at every alignment.
  for (std::int64_t begin = 0; begin < 5; ++begin) {
    expect_equal("view", {a, b}, [begin](Operands x) {
      return x[0].at({slice(1, 5), slice(begin, begin + 40)}) +
             x[1].at({slice(4 - begin, 44 - begin)});
    });
  }
}

TEST(OnDevice, FunctionsOfPairs) {
  const auto squared = [](const Tensor& x, const Tensor& y) { return (x - y) * (x - y); };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor a = randn({150, 40}, dtype), b = randn({130, 40}, dtype);
    const double tolerance = dtype == DType::bf16 ? 0.02 : 1e-4;
    expect_equal(
        "squared distances", {a, b},
        [&](Operands x) { return map(x[0], x[1], "i d, j d -> i j", squared, "sum"); }, tolerance);
    expect_equal("tropical product", {a, b},
                 [&](Operands x) { return map(x[0], x[1], "i d, j d -> j i", fn::add, "max"); });
    expect_equal(
        "a gradient", {a, b},
        [&](Operands x) {
          x[0].requires_grad(true);
          const Tensor distances = map(x[0], x[1], "i d, j d -> i j", squared, "sum");
          const Operands leaves{x[0]};
          return gradients(distances, ones(distances.shape(), distances.dtype(), x[0].device()),
                           leaves)
              .front();
        },
        dtype == DType::bf16 ? 0.1 : 1e-4);
  }
}

// Φ is the kernels' own: of all magnitudes, also where it is nearly 0, 1/2 or 1.
TEST(OnDevice, GeluOfEveryMagnitude) {
  std::vector<float> numbers{0, -0.0F, INFINITY, -INFINITY, NAN};
  for (std::uint32_t bits = 1; bits < 0x7f800000; bits += 98765) {
    numbers.push_back(std::bit_cast<float>(bits));
    numbers.push_back(-numbers.back());
  }
  for (float x = -15; x < 15; x += 0.00173F) numbers.push_back(x);
  const Tensor x = from_vector(numbers);
  const std::vector<float> got = gelu(x.to(cuda)).to(cpu).to_vector<float>();
  const std::vector<double> wanted = gelu(x.to(DType::f64)).to_vector<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) {
      EXPECT_TRUE(std::isnan(got[i]));
      continue;
    }
    EXPECT_EQ(std::signbit(got[i]), std::signbit(numbers[i])) << numbers[i];
    if (std::isinf(wanted[i])) {
      EXPECT_EQ(got[i], wanted[i]);
      continue;
    }
    // Units in the last place; below -12.9 Φ is subnormal.
    const double unit = std::ldexp(1.0, std::max(std::ilogb(wanted[i]), -126) - 23);
    EXPECT_LE(std::abs(got[i] - wanted[i]), std::max(9 * unit, 2e-43)) << numbers[i];
  }
}

TEST(OnDevice, ComplexNumbers) {
  for (const DType part : {DType::f32, DType::f64}) {
    const double tolerance = part == DType::f32 ? 1e-5 : 1e-13;
    const Tensor a = complex(randn({6, 20}, part), randn({6, 20}, part)),
                 b = complex(randn({20, 8}, part), randn({20, 8}, part)),
                 row = complex(randn({1, 20}, part), randn({1, 20}, part));
    const auto same = [&](const std::string& what, const Operands& operands,
                          const std::function<Tensor(Operands)>& call) {
      expect_equal(what, operands, call, tolerance);
    };
    same("product", {a, b}, [](Operands x) { return einsum(x[0], x[1], "m k, k n -> m n"); });
    same("one row", {row, repeat(b, "k n -> k (n r)", AxisSize{"r", 40})},
         [](Operands x) { return einsum(x[0], x[1], "m k, k n -> m n"); });
    if (part == DType::f64) continue;
    same("by elements", {a, a}, [](Operands x) { return einsum(x[0], x[1], "m k, m k -> k m"); });
    same("a * row / a", {a, row}, [](Operands x) { return x[0] * x[1] / (x[0] + 1); });
    same("exp", {a}, [](Operands x) { return exp(x[0]); });
    same("abs", {a}, [](Operands x) { return abs(x[0]); });
    same("conj", {a}, [](Operands x) { return conj(x[0]); });
    same("sum", {a}, [](Operands x) { return reduce(x[0], "m k -> k", Reduction::sum); });
    same("flip", {a}, [](Operands x) { return flip(x[0], "m [k]"); });
    same("gradient", {a, b}, [](Operands x) {
      const Tensor leaf = x[0].clone().requires_grad(true);
      const Tensor y = einsum(leaf, x[1], "m k, k n -> m n");
      reduce(abs(y), "m n ->", Reduction::sum).backward();
      return leaf.grad();
    });
    same("view", {a}, [](Operands x) { return x[0].at({slice(1, 5), slice(3, 10)}) * 2; });
  }
}

TEST(OnDevice, EveryDtypeAtEveryAlignment) {
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    const Tensor x = (rand({3, 64}) * 100).to(dtype);
    for (std::int64_t begin = 0; begin < 18; begin += begin < 4 ? 1 : 7) {
      expect_equal(std::string(name(dtype)), {x}, [begin](Operands x) {
        const Tensor part = x[0].at({slice(1, 3), slice(begin, begin + 40)});
        const Tensor copy = empty(part.shape(), part.dtype(), part.device());
        copy.copy_from(part + part);
        return copy;
      });
    }
  }
}

TEST(OnDevice, Rearranges) {
  const Tensor x = arange(2 * 33 * 40).view({2, 33, 40}).to(DType::f32);
  expect_equal("transpose", {x},
               [](Operands x) { return rearrange(x[0], "b i j -> b j i").contiguous(); });
  expect_equal("split", {x},
               [](Operands x) { return rearrange(x[0], "b i (h d) -> (b h) i d", axis("h", 4)); });
  expect_equal("repeat", {x},
               [](Operands x) { return repeat(x[0], "b i j -> b i 3 j").contiguous(); });
  expect_equal("reshape", {x}, [](Operands x) { return rearrange(x[0], "b i j -> (j b i)"); });
}

TEST(OnDevice, Reduces) {
  const Tensor x = randn({20, 130});
  for (const Reduction by :
       {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min, Reduction::logsumexp}) {
    expect_equal(
        "rows", {x}, [by](Operands x) { return reduce(x[0], "i j -> i", by); }, 2e-6);
    expect_equal(
        "columns", {x}, [by](Operands x) { return reduce(x[0], "i j -> j", by); }, 2e-6);
    expect_equal(
        "all", {x}, [by](Operands x) { return reduce(x[0], "i j ->", by); }, 2e-5);
  }
  expect_equal(
      "of a view", {x},
      [](Operands x) {
        return reduce(x[0].at({slice(3, 17), slice(1, 100)}), "i j -> i", Reduction::sum);
      },
      2e-6);
}

TEST(OnDevice, SumsIntoWhatTheyRead) {
  const auto total_on = [](Device device, const Tensor& x, auto sum) {
    const Tensor total = full(sum(x).shape(), 3.0).to(device);
    auto add = compile([&](const Tensor& x) {
      total.copy_from(total * 0.5 + sum(x));
      return total.clone();
    });
    add(x.to(device));
    return add(x.to(device)).to(cpu);
  };
  const auto check = [&](const Tensor& x, auto sum) {
    EXPECT_TRUE(all_close(total_on(cuda, x, sum), total_on(cpu, x, sum), 1e-4, 1e-3));
  };
  check(randn({20, 130}), [](const Tensor& x) { return reduce(x, "i j -> i", Reduction::sum); });
  check(randn({130, 20}), [](const Tensor& x) { return reduce(x, "i j -> j", Reduction::sum); });
  check(randn({100000}), [](const Tensor& x) { return reduce(x, "i ->", Reduction::sum); });
}

TEST(OnDevice, Contracts) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor a = randn({40, 30}, dtype), b = randn({30, 50}, dtype);
    const double tolerance = dtype == DType::bf16 ? 2e-2 : 1e-5;
    expect_equal(
        "matmul", {a, b}, [](Operands x) { return einsum(x[0], x[1], "m k, k n -> m n"); },
        tolerance);
    expect_equal(
        "transposed", {a, b}, [](Operands x) { return einsum(x[0], x[1], "m k, k n -> n m"); },
        tolerance);
    expect_equal(
        "vector", {a, b},
        [](Operands x) {
          return einsum(x[0], x[1].at({every, 3}), "m k, k -> m");
        },
        tolerance);
  }
  const Tensor q = randn({2, 7, 3, 8}), k = randn({2, 9, 3, 8}), v = randn({2, 9, 3, 8});
  expect_equal(
      "scores", {q, k},
      [](Operands x) { return einsum(x[0], x[1], "b q h d, b k h d -> b h q k"); }, 1e-5);
  expect_equal(
      "three", {q, k, v},
      [](Operands x) { return einsum(x[0], x[1], x[2], "b q h d, b k h d, b k h e -> b q h e"); },
      1e-4);
}

TEST(OnDevice, NamedOperations) {
  const Tensor x = randn({5, 70}), weight = randn({70}), bias = randn({70});
  expect_equal(
      "softmax", {x}, [](Operands x) { return softmax(x[0], "b [d]"); }, 1e-6);
  expect_equal(
      "log_softmax", {x}, [](Operands x) { return log_softmax(x[0], "b [d]"); }, 1e-5);
  expect_equal(
      "layer_norm", {x, weight, bias},
      [](Operands x) { return layer_norm(x[0], x[1], x[2], "b [d]"); }, 1e-5);
  expect_equal(
      "rms_norm", {x, weight}, [](Operands x) { return rms_norm(x[0], x[1], "b [d]"); }, 1e-5);
  expect_equal("argmax", {x}, [](Operands x) { return argmax(x[0], "b [d]"); });
  expect_equal(
      "cumsum", {x}, [](Operands x) { return cumsum(x[0], "b [d]"); }, 1e-5);
  expect_equal("sort", {x}, [](Operands x) { return sort(x[0], "b [d]").values; });
  const Tensor positions = from_vector(std::vector<std::int64_t>{0, 4, 2, 2, 1, 3}, {2, 3});
  expect_equal("gather", {x, positions},
               [](Operands x) { return gather(x[0], x[1], "[v] d, b s -> b s d"); });
  expect_equal("one_hot", {positions}, [](Operands x) { return one_hot(x[0], "b s -> b s [5]"); });
  const Tensor targets = from_vector(std::vector<std::int64_t>{3, 0, 69, 5, 5});
  expect_equal(
      "cross_entropy", {x, targets},
      [](Operands x) { return cross_entropy(x[0], x[1], "b [v], b"); }, 1e-5);
}

TEST(OnDevice, EverydayOperations) {
  const Tensor x = randn({5, 33, 4});
  expect_equal("flip", {x}, [](Operands x) { return flip(x[0], "[a] b [c]"); });
  expect_equal("flip of rows", {x}, [](Operands x) { return flip(x[0], "a [b] c"); });
  expect_equal("roll", {x}, [](Operands x) { return roll(x[0], "a [b c]", {5, -1}); });
  expect_equal("pad", {x}, [](Operands x) { return pad(x[0], "a [b c]", {1, 2}, 3, -1); });
  expect_equal("pad, reflect", {x},
               [](Operands x) { return pad(x[0], "a [b] c", 7, 3, PadMode::reflect); });
  expect_equal("tril", {x}, [](Operands x) { return tril(x[0], "a [b c]", -1); });
  expect_equal("diagonal", {x}, [](Operands x) { return diagonal(x[0], "[a b] c", 2) * 2; });
  expect_equal("from_diagonal", {x}, [](Operands x) { return from_diagonal(x[0], "a b [c]"); });
  expect_equal("clamp", {x, x[1]}, [](Operands x) { return clamp(x[0], x[1] - 1, x[1]); });
  expect_equal(
      "quantile", {x},
      [](Operands x) {
        return quantile(x[0], "a [b] c", {0.2, 0.5});
      },
      1e-6);
  expect_equal(
      "median", {x}, [](Operands x) { return median(x[0], "a [b] c"); }, 1e-6);
  const Tensor edges = sort(randn({4, 20}), "c [e]").values;
  expect_equal("searchsorted", {edges, x},
               [](Operands x) { return searchsorted(x[0], x[1], "c [e], a b c -> a b c"); });
  expect_equal("histogram", {x}, [](Operands x) { return histogram(x[0], "a [b] c", 6, -2, 2); });
  expect_equal("nonzero", {x}, [](Operands x) { return nonzero(x[0] > 0.5); });
  expect_equal("unique", {x}, [](Operands x) { return unique(round(x[0])).positions; });
  const auto seeded = [](auto&& draw) {
    return [draw](Operands x) {
      manual_seed(11);
      return draw(x);
    };
  };
  expect_equal("bernoulli", {sigmoid(x)}, seeded([](Operands x) { return bernoulli(x[0]); }));
  expect_equal("multinomial", {exp(x)},
               seeded([](Operands x) { return multinomial(x[0], "a [b] c", 9); }));
  const auto gradient = [](Operands x) {
    x[0].requires_grad(true);
    const Tensor y =
        pad(roll(flip(x[0], "a [b] c"), "[a] b c", 2), "a b [c]", 1, 1, PadMode::reflect);
    reduce(y * y, "a b c ->", Reduction::sum).backward();
    const Tensor gradient = x[0].grad();
    x[0].zero_grad();
    return gradient;
  };
  expect_equal("gradient", {x}, gradient, 1e-5);
}

TEST(OnDevice, Gradients) {
  const Tensor x = randn({6, 8}), w = randn({8, 5}),
               targets = from_vector(std::vector<std::int64_t>{3, 0, 4, 1, 1, 2});
  const auto gradient = [](Operands x) {
    x[1].requires_grad(true);
    const Tensor loss = cross_entropy(einsum(x[0], x[1], "b i, i o -> b o"), x[2], "b [v], b");
    reduce(loss, "... ->", Reduction::mean).backward();
    const Tensor gradient = x[1].grad();
    x[1].zero_grad();
    return gradient;
  };
  expect_equal("cross_entropy", {x, w, targets}, gradient, 1e-5);
  const auto of_rows = [](Operands x) {
    x[0].requires_grad(true);
    const Tensor rows = gather(x[0], x[1], "[v] d, n -> n d");
    reduce(rows * rows, "n d ->", Reduction::sum).backward();
    const Tensor gradient = x[0].grad();
    x[0].zero_grad();
    return gradient;
  };
  expect_equal("gather", {x, targets}, of_rows, 1e-5);
}

/// Losses of some steps of a small Transformer, with dropout and AdamW.
std::vector<double> losses(Device device, bool compiled) {
  manual_seed(3);
  nn::Transformer model(
      {.vocab_size = 11, .block_size = 8, .n_layer = 1, .n_head = 2, .n_embd = 8, .dropout = 0.1});
  model.to(device);
  optim::AdamW optimizer(model.parameters(), {.learning_rate = 0.01});
  const Tensor tokens = (rand({3, 9}) * 11).to(DType::i64).to(device);
  const Tensor x = tokens.at({every, slice(0, 8)}), y = tokens.at({every, slice(1, 9)});
  const auto step = [&](const Tensor& a, const Tensor& b) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(a), b, "b s [v], b s");
    loss.backward();
    clip_grad_norm(optimizer.parameters(), 1);
    optimizer.step();
    return loss;
  };
  std::vector<double> found;
  if (compiled) {
    auto whole = compile(step);
    for (int i = 0; i < 3; ++i) found.push_back(whole(x, y).item());
  } else {
    for (int i = 0; i < 3; ++i) found.push_back(step(x, y).item());
  }
  return found;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 2e-5 * want[i]) << "step " << i;
}

TEST(OnDevice, SlowTrainsATransformer) { expect_near(losses(cuda, false), losses(cpu, false)); }
TEST(OnDevice, TrainsACompiledTransformer) { expect_near(losses(cuda, true), losses(cpu, true)); }

TEST(OnDevice, WritesToParts) {
  const auto step = [](const Tensor& state, const Tensor& x) {
    const Tensor before = state * 3.0;
    state.at({slice(1, 3)}).copy_from(x);
    state.at({every, slice(0, 6, 5)}).copy_from(state.at({every, slice(2, 4)}));
    state.at({3}).fill(7);
    return before + softmax(state, "a [b]");
  };
  const Tensor here = randn({4, 6}), there = here.to(cuda), x = randn({2, 6});
  auto on_host = compile([&](const Tensor& a) { return step(here, a); });
  auto on_device = compile([&](const Tensor& a) { return step(there, a); });
  for (int call = 0; call < 3; ++call) {
    const Tensor want = on_host(x + call), got = on_device((x + call).to(cuda));
    EXPECT_TRUE(all_close(got.to(cpu), want, 1e-6, 1e-6)) << call;
    EXPECT_TRUE(all_close(there.to(cpu), here, 0, 0)) << call;
  }
}

TEST(OnDevice, WritesToPartsAtPositions) {
  const auto step = [](const Tensor& state, const Tensor& position, const Tensor& x) {
    const Tensor before = state.at({slice_of(position, 2)}) * 3.0;
    state.at({slice(position, position + 2)}).copy_from(x);
    state.at({every, slice_of(position + 1, 3)})
        .copy_from(state.at({every, slice_of(position, 3)}));
    position.copy_from(position + 1);
    return before + softmax(state.at({slice_of(position - 1, 2)}), "a [b]");
  };
  const Tensor here = randn({4, 6}), there = here.to(cuda), x = randn({2, 6});
  const Tensor position = zeros({}, DType::i64), position_there = position.to(cuda);
  auto on_host = compile([&](const Tensor& a) { return step(here, position, a); });
  auto on_device = compile([&](const Tensor& a) { return step(there, position_there, a); });
  for (int call = 0; call < 3; ++call) {
    const Tensor want = on_host(x + call), got = on_device((x + call).to(cuda));
    EXPECT_TRUE(all_close(got.to(cpu), want, 1e-6, 1e-6)) << call;
    EXPECT_TRUE(all_close(there.to(cpu), here, 0, 0)) << call;
  }
  // The next one leaves the axis.
  auto write =
      compile([&](const Tensor& a) { there.at({slice_of(position_there, 2)}).copy_from(a); });
  try {
    write(x.to(cuda));
    there.to(cpu);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_NE(std::string(error.what())
                  .find("a slice of 2 from position 3 on is not inside an axis of size 4"),
              std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(all_close(there.to(cpu), here, 0, 0));
}

TEST(OnDevice, ACompiledFunctionStaysOnItsDevice) {
  auto f = compile([](const Tensor& x) { return softmax(x + 1, "b [d]"); });
  const Tensor x = randn({4, 6});
  const Tensor here = f(x), there = f(x.to(cuda));
  EXPECT_EQ(there.device(), cuda);
  EXPECT_TRUE(all_close(there.to(cpu), here, 1e-6, 1e-6));
  auto moves = compile([](const Tensor& x) { return x.to(cpu); });
  EXPECT_THROW(moves(there), Error);
}

}  // namespace
}  // namespace ein
