// Memory of others as views, whatever its strides: negative ones, and steps of bytes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/checkpoint_files.hpp>
#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/eigen.hpp>
#include <ein/ein.hpp>
#include <ein/npz.hpp>
#include <ein/optim.hpp>
#include <ein/safetensors.hpp>
#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::expect_error;
using test::for_seeds;
using test::get_values;
using Random = std::mt19937_64;
using Values = std::vector<double>;

std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

Shape random_shape(Random& random, std::size_t most_rank = 4) {
  Shape shape;
  const auto rank = static_cast<std::size_t>(below(random, static_cast<std::int64_t>(most_rank)));
  for (std::size_t d = 0; d <= rank; ++d)
    shape.push_back(below(random, 20) == 0 ? 0 : 1 + below(random, 7));
  return shape;
}

/// A view of memory of ours, whose strides are random and often negative, and what it is a view of.
template <class T>
struct Foreign {
  Foreign(const Shape& shape, Random& random) {
    const Tensor like =
        test::scattered_tensor(shape, dtype_of<T>, std::vector<bool>(shape.rank()), random);
    memory.resize(like.storage()->bytes() / sizeof(T));
    for (T& element : memory) element = convert<T>(static_cast<double>(below(random, 9)) - 4);
    view = from_span(memory, shape, like.strides(), like.offset());
  }
  /// Where an element, by its row-major number, lies in the memory.
  std::vector<std::size_t> places() const {
    std::vector<std::size_t> places;
    std::vector<std::int64_t> at(view.rank(), 0);
    for (std::int64_t n = view.numel(); n > 0; --n) {
      std::int64_t place = view.offset();
      for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * view.strides()[d];
      places.push_back(static_cast<std::size_t>(place));
      for (std::size_t d = at.size(); d-- > 0;) {
        if (++at[d] < view.shape()[d]) break;
        at[d] = 0;
      }
    }
    return places;
  }
  Values values() const {
    Values values;
    for (const std::size_t place : places()) values.push_back(convert<double>(memory[place]));
    return values;
  }

  std::vector<T> memory;
  Tensor view;
};

template <class T>
class ForeignStrides : public testing::Test {};
using Elements = testing::Types<float, double, bf16, f16, std::int8_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ForeignStrides, Elements);

TYPED_TEST(ForeignStrides, ElementsLieWhereTheStridesSay) {
  std::size_t negative = 0, compared = 0;
  for_seeds(200, [&](unsigned seed) {
    Random random(seed);
    const Foreign<TypeParam> x(random_shape(random), random);
    for (const Size stride : x.view.strides()) negative += stride < 0;
    compared += x.values().size();
    EXPECT_EQ(x.view.template to_vector<double>(), x.values());
    EXPECT_EQ(get_values(x.view.clone()), x.values());
    EXPECT_EQ(get_values(x.view.to(DType::f64)), x.values());
    const Tensor flat = x.view.reshape({x.view.numel()});
    EXPECT_EQ(get_values(flat), x.values());
    auto compiled = compile([](const Tensor& t) { return t.to(DType::f64) * 2.0; });
    Values twice = x.values();
    for (double& v : twice) v *= 2;
    EXPECT_EQ(get_values(compiled(x.view)), twice);
    EXPECT_EQ(get_values(x.view.to(DType::f64) * 2.0), twice);
  });
  EXPECT_GT(negative, test::at_least(50));
  EXPECT_GT(compared, test::at_least(1000));
}

/// What writes `value` to all of `x`, in each way that there is.
struct Write {
  const char* name;
  void (*run)(const Tensor& x, const Tensor& value);
};
const Write writes[] = {
    {"copy_from", [](const Tensor& x, const Tensor& value) { x.copy_from(value); }},
    {"copy_from, converted",
     [](const Tensor& x, const Tensor& value) { x.copy_from(value.to(DType::f64)); }},
    {"row by row",
     [](const Tensor& x, const Tensor& value) {
       for (std::int64_t i = 0; i < x.shape()[0]; ++i) x(i).copy_from(value(i));
     }},
    {"every other row",
     [](const Tensor& x, const Tensor& value) {
       for (const std::int64_t first : {0, 1}) {
         if (first >= x.shape()[0]) continue;
         const Slice rows = slice(first, INT64_MAX, 2);
         x(rows).copy_from(value(rows));
       }
     }},
    {"compiled copy_from",
     [](const Tensor& x, const Tensor& value) {
       compile([&](const Tensor& v) {
         x.copy_from(v);
         return v;
       })(value);
     }},
    {"compiled sum",
     [](const Tensor& x, const Tensor& value) {
       x.fill(0);
       compile([&](const Tensor& v) {
         x.copy_from((x.to(DType::f64) + v.to(DType::f64)).to(x.dtype()));
         return v;
       })(value);
     }},
    {"compiled slices",
     [](const Tensor& x, const Tensor& value) {
       if (x.shape()[0] == 0) return;
       compile([&](const Tensor& v) {
         x(0).copy_from(v(0));
         x(slice(1)).copy_from(v(slice(1)));
         return v;
       })(value);
     }},
    {"compiled, at a position",
     [](const Tensor& x, const Tensor& value) {
       auto f = compile([&](const Tensor& v, const Tensor& at) {
         x.at({slice_of(at, 1)}).copy_from(v);
         return v;
       });
       for (std::int64_t i = 0; i < x.shape()[0]; ++i)
         f(value(slice(i, i + 1)).clone(), full({}, i, DType::i64));
     }},
    {"einsum_into",
     [](const Tensor& x, const Tensor& value) {
       x.fill(1);
       einsum_into(x, value, ones({}, x.dtype()), "..., -> ...", 1.0, 0.0);
     }},
};

TYPED_TEST(ForeignStrides, WritesReachTheMemoryAndNothingElse) {
  for_seeds(60, [&](unsigned seed) {
    for (const Write& write : writes) {
      SCOPED_TRACE(write.name);
      Random random(seed);
      const Shape shape = random_shape(random);
      Foreign<TypeParam> x(shape, random);
      const Foreign<TypeParam> value(shape, random);
      std::vector<TypeParam> want = x.memory;
      const std::vector<std::size_t> to = x.places(), from = value.places();
      for (std::size_t i = 0; i < to.size(); ++i) want[to[i]] = value.memory[from[i]];
      write.run(x.view, value.view);
      const auto numbers = [](const std::vector<TypeParam>& memory) {
        Values values;
        for (const TypeParam& element : memory) values.push_back(convert<double>(element));
        return values;
      };
      ASSERT_EQ(numbers(x.memory), numbers(want))
          << shape.to_string() << " " << x.view.strides().to_string() << " from "
          << value.view.strides().to_string();
    }
  });
}

TEST(ForeignStridesOf, AViewCopiedToItselfBackwards) {
  std::vector<float> memory(1000);
  std::iota(memory.begin(), memory.end(), 0.0F);
  const Tensor up = from_span(memory, {1000}), down = from_span(memory, {1000}, {-1}, 999);
  up.copy_from(down);
  EXPECT_EQ(memory[0], 999);
  EXPECT_EQ(memory[999], 0);
  EXPECT_EQ(memory[400], 599);
  einsum_into(down, up, "n -> n", 1.0, 0.0);
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(memory[999], 999);
}

/// The source is what it was before the copy, wherever it overlaps what is written.
TEST(ForeignStridesOf, CopiesBetweenViewsOfOneMemory) {
  for_seeds(300, [](unsigned seed) {
    Random random(seed);
    std::vector<float> memory(60);
    std::iota(memory.begin(), memory.end(), 0.0F);
    const std::int64_t rows = 1 + below(random, 4), columns = 1 + below(random, 4);
    const auto view = [&] {
      std::int64_t offset = below(random, 12);
      Strides strides{4 + below(random, 3), 1};
      for (std::size_t d = 0; d < 2; ++d) {
        if (below(random, 2) == 0) continue;
        offset += strides[d] * ((d == 0 ? rows : columns) - 1);
        strides[d] = -strides[d];
      }
      return from_span(memory, {rows, columns}, strides, offset);
    };
    const Tensor to = view(), from = view();
    std::vector<float> want = memory;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        want[static_cast<std::size_t>(to(i, j).data<float>() - memory.data())] =
            from(i, j).item<float>();
    if (seed % 2 == 0)
      to.copy_from(from);
    else
      einsum_into(to, from, "i j -> i j", 1.0, 0.0);
    EXPECT_EQ(memory, want) << to.strides().to_string() << from.strides().to_string();
  });
}

TEST(ForeignStridesOf, ElementsThatShareMemoryAreReadNotWritten) {
  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  const Tensor windows = from_span(memory, {4, 3}, {-1, 1}, 3);
  EXPECT_EQ(windows.to_vector<float>(), (std::vector<float>{3, 4, 5, 2, 3, 4, 1, 2, 3, 0, 1, 2}));
  expect_error([&] { windows.fill(0); }, ErrorKind::value, {"share memory", "(-1, 1)"});
  const Tensor apart = from_span(memory, {2, 3}, {-3, -1}, 5);
  apart.fill(7);
  EXPECT_EQ(memory, std::vector<float>(6, 7));
  const Tensor interleaved = from_span(memory, {2, 3}, {3, -1}, 2);
  interleaved.fill(8);
  EXPECT_EQ(memory, std::vector<float>(6, 8));
}

TEST(ForeignStridesOf, ViewsOfViewsShareTheMemory) {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0F);
  const Tensor x = from_span(memory, {4, 6}, {-6, -1}, 23);
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(x.view({24}).strides(), Strides{-1});
  EXPECT_EQ(x.view({2, 2, 6}).strides(), (Strides{-12, -6, -1}));
  const Tensor turned = rearrange(x, "a (b c) -> c b a", axis("b", 2));
  EXPECT_TRUE(turned.same_storage(x));
  EXPECT_EQ(turned(2, 1, 3).item(), 0);
  const Tensor rows = x(slice(1, 4, 2), slice(0, 6, 3));
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{17, 14, 5, 2}));
  rows.fill(-1);
  EXPECT_EQ(memory[17], -1);
  EXPECT_EQ(memory[2], -1);
  auto compiled = compile([](const Tensor& y) { return y(1); });
  const Tensor row = compiled(x);
  EXPECT_TRUE(row.same_storage(x)) << "a view, as eager calls have it";
  EXPECT_EQ(row.to_vector<float>(), x(1).to_vector<float>());
}

// --- products ---

/// `shape`, of small whole numbers, whose dimensions go back where a bit of `signs` is set.
Tensor with_signs(const Shape& shape, DType dtype, unsigned signs, Order order, Random& random) {
  Values values(test::count_of_values(shape, dtype));
  for (double& value : values) value = static_cast<double>(below(random, 5)) - 2;
  const Tensor dense = test::make_tensor(values, shape, dtype);
  Strides strides = contiguous_strides(shape, order);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if ((signs >> d & 1) == 0 || shape[d] == 0) continue;
    offset += strides[d] * (shape[d] - 1);
    strides[d] = -strides[d];
  }
  const Tensor x(Storage::allocate(dense.nbytes()), dtype, shape, strides, offset);
  test::set_values(x, values);
  return x;
}

TEST(ForeignStridesOf, ProductsOfAnySigns) {
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                              DType::i32, DType::i64, DType::c64,  DType::f8e4m3};
  constexpr const char* patterns[] = {"a k, k b -> a b", "k a, b k -> b a", "a k, b k -> a b",
                                      "a k, k -> a",     "k, k b -> b",     "a k, a k -> a",
                                      "a b, a b ->"};
  const std::int64_t sizes[] = {1, 3, 4, 17, 40, 130, 300};
  for_seeds(150, [&](unsigned seed) {
    Random random(seed);
    const DType dtype = dtypes[below(random, std::ssize(dtypes))];
    const std::string pattern = patterns[below(random, std::ssize(patterns))];
    std::int64_t size['z' + 1] = {};
    for (const char axis : {'a', 'b', 'k'})
      size[static_cast<std::size_t>(axis)] = sizes[below(random, std::ssize(sizes))];
    std::vector<Tensor> operands(1), dense(1);
    operands.clear();
    dense.clear();
    Shape shape;
    const auto finish = [&] {
      const Order order = below(random, 2) ? Order::row_major : Order::column_major;
      operands.push_back(with_signs(shape, dtype, static_cast<unsigned>(random()), order, random));
      dense.push_back(test::make_tensor(get_values(operands.back()), shape, dtype));
      shape = Shape();
    };
    for (const char c : pattern.substr(0, pattern.find("->"))) {
      if (c >= 'a' && c <= 'z') shape.push_back(size[static_cast<std::size_t>(c)]);
      if (c == ',') finish();
    }
    finish();
    SCOPED_TRACE(pattern + " " + std::string(name(dtype)) + " of strides " +
                 operands[0].strides().to_string() + " and " + operands[1].strides().to_string());
    const Values want = get_values(einsum(dense[0], dense[1], runtime(pattern)));
    EXPECT_EQ(get_values(einsum(operands[0], operands[1], runtime(pattern))), want);
    auto compiled =
        compile([&](const Tensor& x, const Tensor& y) { return einsum(x, y, runtime(pattern)); });
    EXPECT_EQ(get_values(compiled(operands[0], operands[1])), want);
  });
}

/// Sizes that copies cut into tiles and pieces.
TEST(ForeignStridesOf, LargeCopiesOfAnySigns) {
  const Shape shapes[] = {{700, 900}, {64, 96, 3}, {300, 3, 200}, {16, 40, 65}, {1'000'000}};
  constexpr DType dtypes[] = {DType::f32, DType::i8, DType::f64, DType::bf16};
  for_seeds(60, [&](unsigned seed) {
    Random random(seed);
    const Shape& shape = shapes[below(random, std::ssize(shapes))];
    const DType from_dtype = dtypes[below(random, std::ssize(dtypes))],
                to_dtype =
                    below(random, 2) ? from_dtype : dtypes[below(random, std::ssize(dtypes))];
    const auto operand = [&](DType dtype) {
      const Order order = below(random, 2) ? Order::row_major : Order::column_major;
      return with_signs(shape, dtype, static_cast<unsigned>(random()), order, random);
    };
    const Tensor from = operand(from_dtype), to = operand(to_dtype);
    SCOPED_TRACE(std::string(name(from_dtype)) + " of strides " + from.strides().to_string() +
                 " to " + std::string(name(to_dtype)) + " of " + to.strides().to_string());
    to.copy_from(from);
    Values want = get_values(from);
    for (double& value : want) value = test::stored(value, to_dtype);
    EXPECT_TRUE(get_values(to) == want);
  });
}

/// Scores that exceed usual caches, so that attention goes over tiles.
TEST(ForeignStridesOf, AttentionOfAnySigns) {
  const auto attention = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    std::vector<Tensor> inputs;
    for (const Tensor* x : {&q, &k, &v}) inputs.push_back(x->detach().requires_grad(true));
    const Tensor scores = einsum(inputs[0], inputs[1], "h q d, h k d -> h q k") / 8;
    const Tensor out = einsum(softmax(scores, "h q [k]"), inputs[2], "h q k, h k d -> h q d");
    std::vector<Tensor> results{out.detach()};
    for (const Tensor& gradient : gradients(reduce(out * out, "... ->", "sum"), inputs))
      results.push_back(gradient);
    return results;
  };
  auto compiled = compile(attention);
  for_seeds(6, [&](unsigned seed) {
    Random random(seed);
    std::vector<Tensor> x, dense;
    for (int i = 0; i < 3; ++i) {
      x.push_back(with_signs({2, 700, 16}, DType::f32, static_cast<unsigned>(random()),
                             Order::row_major, random));
      dense.push_back(x.back().clone());
    }
    const std::vector<Tensor> want = attention(dense[0], dense[1], dense[2]),
                              got = compiled(x[0], x[1], x[2]), eager = attention(x[0], x[1], x[2]);
    for (std::size_t r = 0; r < want.size(); ++r) {
      const Values a = get_values(want[r]), b = get_values(got[r]), c = get_values(eager[r]);
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(b[i], a[i], 1e-3 * (1 + std::abs(a[i]))) << "result " << r;
        ASSERT_NEAR(c[i], a[i], 1e-3 * (1 + std::abs(a[i]))) << "result " << r;
      }
    }
  });
}

// --- training ---

TEST(ForeignStridesOf, GradientsAndStepsOfParametersThatGoBack) {
  const auto train = [](const Tensor& w, const Tensor& b, bool is_compiled, int which) {
    w.requires_grad(true);
    b.requires_grad(true);
    const std::vector<Tensor> parameters{w, b};
    std::unique_ptr<optim::Optimizer> optimizer;
    if (which == 0)
      optimizer = std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.learning_rate = 0.1});
    else
      optimizer = std::make_unique<optim::AdamW>(parameters, optim::AdamOptions{});
    const auto step = [&](const Tensor& x) {
      const Tensor y = einsum(x, w, "n i, i o -> n o") + b;
      const Tensor loss = reduce(y * y, "n o ->", "mean");
      loss.backward();
      optimizer->step();
      optimizer->zero_grad();
      return loss.detach();
    };
    auto compiled = compile(step);
    manual_seed(1);
    const Tensor x = randn({5, 6});
    Values losses;
    for (int i = 0; i < 4; ++i) losses.push_back((is_compiled ? compiled(x) : step(x)).item());
    w.requires_grad(false);
    b.requires_grad(false);
    return losses;
  };
  for_seeds(8, [&](unsigned seed) {
    Random random(seed);
    const bool is_compiled = seed % 2 == 1;
    Foreign<float> w({6, 3}, random), b({3}, random);
    const Tensor dense_w = w.view.clone(), dense_b = b.view.clone();
    const Values want = train(dense_w, dense_b, is_compiled, static_cast<int>(seed / 2 % 2)),
                 got = train(w.view, b.view, is_compiled, static_cast<int>(seed / 2 % 2));
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4 * want[i]);
    EXPECT_LT(got.back(), got.front());
    const Values of_memory = w.values(), trained = get_values(dense_w);
    for (std::size_t i = 0; i < trained.size(); ++i) EXPECT_NEAR(of_memory[i], trained[i], 1e-5);
  });
}

// --- lengths ---

TEST(ForeignStridesOf, FunctionsForAnyLength) {
  auto f = compile(
      [](const Tensor& x, const Tensor& y) {
        return std::vector<Tensor>{x * 2.0 + y, reduce(x, "n c -> c", "sum"), x.at({0}),
                                   cumsum(y, "[n] c")};
      },
      {"n c=3", "n c=3"});
  for (const std::int64_t n : {4, 9, 1, 33, 100}) {
    for (const unsigned signs : {0u, 1u, 2u, 3u}) {
      for (const Order order : {Order::row_major, Order::column_major}) {
        Random random(static_cast<std::uint64_t>(n));
        const Tensor x = with_signs({n, 3}, DType::f32, signs, order, random);
        const Tensor y = with_signs({n, 3}, DType::f32, 3 - signs, order, random);
        SCOPED_TRACE(x.strides().to_string());
        const std::vector<Tensor> got = f(x, y);
        EXPECT_EQ(get_values(got[0]), get_values(x.clone() * 2.0 + y.clone()));
        EXPECT_EQ(get_values(got[1]), get_values(reduce(x.clone(), "n c -> c", "sum")));
        EXPECT_EQ(get_values(got[2]), get_values(x.clone()(0)));
        EXPECT_TRUE(got[2].same_storage(x));
        EXPECT_EQ(get_values(got[3]), get_values(cumsum(y.clone(), "[n] c")));
      }
    }
  }
}

// --- files ---

TEST(ForeignStridesOf, FilesHoldTheElementsInTheirOrder) {
  const test::ScratchDirectory folder;
  for_seeds(20, [&](unsigned seed) {
    Random random(seed);
    const Foreign<float> x(random_shape(random), random);
    save_npy(folder.path("x.npy"), x.view);
    EXPECT_EQ(get_values(load_npy(folder.path("x.npy"))), x.values());
    save_npz(folder.path("x.npz"), {{"x", x.view}});
    EXPECT_EQ(get_values(load_npz(folder.path("x.npz")).at("x")), x.values());
    save_safetensors(folder.path("x.safetensors"), {{"x", x.view}});
    EXPECT_EQ(get_values(load_safetensors(folder.path("x.safetensors")).tensors.at("x")),
              x.values());
    save_checkpoint(folder.path("checkpoints"), 1, {{"x", x.view}});
    EXPECT_EQ(get_values(load_checkpoint(folder.path("checkpoints")).tensors.at("x")), x.values());
  });
}

// --- Eigen ---

TEST(ForeignStridesOf, EigenMapsBothWays) {
  std::vector<double> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0);
  using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix, 0, Stride> map(memory.data() + 20, 3, 2, Stride(-8, 3));
  const Tensor x = from_eigen(map);
  EXPECT_EQ(x.strides(), (Strides{-8, 3}));
  EXPECT_EQ(x.to_vector<double>(), (Values{20, 23, 12, 15, 4, 7}));
  x.fill(-1);
  EXPECT_EQ(memory[4], -1);
  EXPECT_EQ(map(2, 1), -1);
  auto back = as_matrix<double>(x);
  back(0, 1) = 5;
  EXPECT_EQ(memory[23], 5);
  const Matrix product = as_matrix<double>(x) * as_matrix<double>(x.transpose());
  const Tensor want = einsum(x.clone(), x.clone(), "i k, j k -> i j");
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(product(i, j), want(i, j).item());
}

// --- bytes ---

struct Particle {
  float x, y, z;
};
struct Sample {
  double time;
  std::int32_t count;
};

TEST(ForeignBytes, FieldsOfStructsAreViews) {
  std::vector<Particle> particles{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
  const auto bytes = std::as_writable_bytes(std::span(particles));
  const Tensor y = from_bytes(bytes, DType::f32, {3}, {sizeof(Particle)}, offsetof(Particle, y));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 5, 8}));
  EXPECT_EQ(y.strides(), Strides{3});
  y(1) = 50;
  EXPECT_EQ(particles[1].y, 50);
  const Tensor back =
      from_bytes(bytes, DType::f32, {3, 2}, {-12, 8}, 2 * sizeof(Particle) + offsetof(Particle, x));
  EXPECT_EQ(back.to_vector<float>(), (std::vector<float>{7, 9, 4, 6, 1, 3}));

  std::array<Sample, 3> samples{{{0.5, 1}, {1.5, 2}, {2.5, 3}}};
  const auto of_samples = std::as_writable_bytes(std::span(samples));
  const Tensor times = from_bytes(of_samples, DType::f64, {3}, {sizeof(Sample)});
  const Tensor counts =
      from_bytes(of_samples, DType::i32, {3}, {sizeof(Sample)}, offsetof(Sample, count));
  EXPECT_EQ(times.to_vector<double>(), (Values{0.5, 1.5, 2.5}));
  EXPECT_EQ(counts.to_vector<int>(), (std::vector<int>{1, 2, 3}));
  counts.fill(9);
  times.copy_from(times * 2.0);
  EXPECT_EQ(samples[2].count, 9);
  EXPECT_EQ(samples[2].time, 5);
}

TEST(ForeignBytes, OfConstMemoryAreReadOnlyAndOwnersAreKept) {
  const std::vector<Particle> particles(2);
  const Tensor x = from_bytes(std::as_bytes(std::span(particles)), DType::f32, {2}, {12});
  expect_error([&] { x.fill(0); }, ErrorKind::value, {"read-only"});
  auto owned = std::make_shared<std::vector<Particle>>(2);
  const std::weak_ptr<std::vector<Particle>> watched = owned;
  {
    const Tensor y =
        from_bytes(std::as_writable_bytes(std::span(*owned)), DType::f32, {2}, {12}, 4, owned);
    owned.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

/// Bytes of random fields, any stride: a view where each stride and the start are multiples, and an
/// Error otherwise; a copy always.
TEST(ForeignBytes, RandomStridesAndStarts) {
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::u8, DType::c64};
  std::size_t views = 0, refused = 0;
  for_seeds(400, [&](unsigned seed) {
    Random random(seed);
    const DType dtype = dtypes[below(random, std::ssize(dtypes))];
    const auto size = static_cast<std::int64_t>(size_of(dtype)),
               alignment = static_cast<std::int64_t>(size_of(real_dtype(dtype)));
    const Shape shape = random_shape(random, 3);
    Strides strides(shape.rank(), 0);
    const std::int64_t multiple = below(random, 2) ? size : 1;
    std::int64_t reach = size, offset = below(random, 3) * multiple;
    bool is_view = true;
    for (std::size_t d = shape.rank(); d-- > 0;) {
      const std::int64_t stride = (reach + below(random, 6) + multiple - 1) / multiple * multiple;
      strides[d] = below(random, 2) ? stride : -stride;
      const std::int64_t extent = stride * std::max<std::int64_t>(shape[d] - 1, 0);
      if (strides[d] < 0) offset += extent;
      reach += extent;
      is_view &= shape[d] <= 1 || stride % size == 0;
    }
    const std::size_t start = static_cast<std::size_t>(below(random, 3)) * 4;
    std::vector<std::uint64_t> words(start / 8 + static_cast<std::size_t>(reach + 64) / 8 + 4);
    const std::span<std::byte> bytes =
        std::as_writable_bytes(std::span(words))
            .subspan(start, static_cast<std::size_t>(reach) + static_cast<std::size_t>(2 * size));
    std::int64_t low = offset;
    for (std::size_t d = 0; d < shape.rank(); ++d)
      if (strides[d] < 0 && numel(shape) > 0) low += strides[d] * (shape[d] - 1);
    const Tensor numbers = test::make_tensor(
        [&] {
          Values values(test::count_of_values(shape, dtype));
          for (double& v : values) v = static_cast<double>(below(random, 9));
          return values;
        }(),
        shape, dtype);
    std::vector<std::int64_t> at(shape.rank(), 0);
    test::for_each_element(numbers, [&](const std::byte* from, std::size_t) {
      std::int64_t place = offset;
      for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * strides[d];
      std::memcpy(bytes.data() + place, from, size_of(dtype));
      for (std::size_t d = at.size(); d-- > 0;) {
        if (++at[d] < shape[d]) break;
        at[d] = 0;
      }
    });
    is_view &= (reinterpret_cast<std::uintptr_t>(bytes.data()) + static_cast<std::size_t>(low)) %
                   static_cast<std::size_t>(alignment) ==
               0;
    EXPECT_EQ(get_values(copy_from_bytes(bytes, dtype, shape, strides, offset)),
              get_values(numbers));
    try {
      const Tensor x = from_bytes(bytes, dtype, shape, strides, offset);
      EXPECT_TRUE(is_view || numel(shape) == 0) << shape.to_string() << strides.to_string();
      EXPECT_EQ(get_values(x), get_values(numbers));
      EXPECT_EQ(get_values(x.clone()), get_values(numbers));
      ++views;
    } catch (const Error& error) {
      EXPECT_FALSE(is_view) << error.what();
      EXPECT_NE(std::string(error.what()).find("copy_from_bytes"), std::string::npos);
      ++refused;
    }
  });
  EXPECT_GT(views, test::seeds_or(400) / 8);
  EXPECT_GT(refused, test::seeds_or(400) / 8);
}

TEST(ForeignBytes, ErrorsNameWhatIsWrong) {
  std::vector<std::byte> bytes(64);
  const std::span<std::byte> memory(bytes);
  expect_error([&] { from_bytes(memory, DType::f32, {3}, {13}); }, ErrorKind::shape,
               {"from_bytes: elements of f32 (4 bytes) of shape (3,)",
                "the stride 13 of axis 0 is no multiple of 4", "help: copy_from_bytes"});
  expect_error([&] { from_bytes(memory, DType::f32, {3}, {12}, 6); }, ErrorKind::value,
               {"byte offset 6", "no multiples of 4", "help: copy_from_bytes"});
  expect_error([&] { from_bytes(memory, DType::f32, {7}, {12}); }, ErrorKind::shape,
               {"byte strides (12,)", "up to byte 76", "the memory has 64 bytes"});
}

}  // namespace
}  // namespace ein
