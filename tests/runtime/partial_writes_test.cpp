// Writes of a compiled function to parts and other views of tensors from outside.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <ein/compile.hpp>
#include <ein/cost.hpp>
#include <ein/ein.hpp>
#include "support/expect_error.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein {
namespace {

using test::get_values;

/// A function of an argument that may write to `state`.
using Function = std::function<Tensor(const Tensor& state, const Tensor& x)>;

/// Calls f three times as it is and three times compiled; results and state are the same each time.
std::string expect_like_eager(const Function& f, const Tensor& first, const Tensor& x) {
  const Tensor eager = first.clone(), compiled = first.clone();
  auto g = compile([&](const Tensor& a) { return f(compiled, a); });
  for (int call = 0; call < 3; ++call) {
    const Tensor argument = x + static_cast<double>(call);
    const std::vector<double> want = get_values(f(eager, argument)), got = get_values(g(argument));
    EXPECT_EQ(got, want) << "result of call " << call << "\n" << g.text();
    EXPECT_EQ(get_values(compiled), get_values(eager)) << "call " << call << "\n" << g.text();
  }
  return g.text();
}

TEST(PartialWrites, AreLikeEagerOnes) {
  const Tensor s = arange(24).to(DType::f32).view({4, 6}), x = ones({2, 6});
  const auto is_same = [&](const Function& f) { return expect_like_eager(f, s, x); };
  is_same([](const Tensor& t, const Tensor& a) {
    t.at({slice(1, 3)}).copy_from(a);
    return t * 2.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {
    const Tensor before = t * 3.0;
    t.at({every, slice(0, 6, 5)}).copy_from(t.at({every, slice(2, 4)}));
    return before + t + a.at({0});
  });
  is_same([](const Tensor& t, const Tensor& a) {  // one after the other, which overlap
    t.at({slice(0, 2)}).copy_from(a);
    t.at({slice(1, 3)}).copy_from(a * 10.0);
    t.at({3}).fill(7);
    return exp(t * 0.01);
  });
  is_same([](const Tensor& t, const Tensor& a) {  // a part of a part, transposed
    t.at({slice(1, 3)}).transpose().at({slice(2, 4)}).copy_from(a.at({every, slice(0, 2)}));
    return t.transpose() * 1.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // a view that was made before
    const Tensor row = t.at({1});
    row.copy_from(a.at({0}));
    const Tensor once = row * 2.0;
    row.copy_from(once + t.at({0}));
    return row + once;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // what is read later was read before
    const Tensor old = t.clone();
    t.at({slice(2, 4)}).copy_from(a);
    return old - t;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // the whole of it through a view
    t.view({24}).copy_from(a.at({0, 0}) + arange(24).to(DType::f32));
    return t * 1.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // after the whole was assigned
    t.copy_from(t + 1.0);
    t.at({0}).copy_from(a.at({1}));
    return t.clone();
  });
  is_same([](const Tensor& t, const Tensor& a) {  // nothing
    t.at({slice(2, 2)}).copy_from(a.at({slice(0, 0)}));
    return t + a.at({0});
  });
}

/// A position that depends on a value: the first of x, which is a whole number.
Tensor position_in(const Tensor& x) { return x.view({x.numel()}).at({0}).to(DType::i64); }

TEST(PartialWrites, AtPositionsOfTheTraceAreLikeEagerOnes) {
  const Tensor s = arange(24).to(DType::f32).view({4, 6}), x = zeros({2, 6});  // then 1 and 2
  const auto is_same = [&](const Function& f) { return expect_like_eager(f, s, x); };
  is_same([](const Tensor& t, const Tensor& a) {
    const Tensor p = position_in(a);
    t.at({slice(p, p + 2)}).copy_from(a + 0.5);
    return t * 2.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // reads before, between and after
    const Tensor p = position_in(a), q = (p + 1).to(DType::i32);
    const Tensor before = t.at({slice_of(p, 2)}) * 3.0;
    t.at({slice_of(p, 2)}).copy_from(a - 7.0);
    const Tensor between = t.at({slice(q, q + 1)}) * 2.0;
    t.at({every, slice(q - 1, 3 + q)}).fill(5);
    return before + between + t.at({slice_of(p, 2)});
  });
  is_same([](const Tensor& t, const Tensor& a) {  // a view that was made before it is written to
    const Tensor p = position_in(a), rows = t.at({slice_of(p, 2)});
    t.at({1}).fill(9);
    const Tensor once = rows * 1.0;
    rows.transpose().at({slice(1, 3)}).copy_from(a.at({every, slice(0, 2)}));
    return rows + once;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // two positions at once, with numbers between
    const Tensor p = position_in(a);
    t.view({2, 2, 6}).at({slice_of(p - p, 1), 1, slice_of(p, 3)}).fill(-1);
    return t.view({2, 2, 6}).at({slice_of(p - p, 1), 1, slice_of(p, 3)}) * 2.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // from one position to another
    const Tensor p = position_in(a);
    t.at({slice_of(p, 1)}).copy_from(t.at({slice_of(3 - p, 1)}));
    t.at({slice(p, p)}).fill(3);  // nothing
    return t.clone();
  });
  is_same([](const Tensor& t, const Tensor& a) {  // the whole of an axis
    t.at({every, slice_of(position_in(a) * 0, 6)}).copy_from(repeat(a, "r c -> (2 r) c"));
    return t * 1.0;
  });
  is_same([](const Tensor& t, const Tensor& a) {  // returned: what it was then
    const Tensor rows = t.at({slice_of(position_in(a), 1)}) * 1.0;
    t.at({slice_of(position_in(a), 1)}).fill(3);
    return rows;
  });
}

TEST(PartialWrites, AtAPositionThatIsStateGoOn) {
  const Tensor cache = zeros({5, 3}), position = zeros({}, DType::i64);
  auto f = compile([&](const Tensor& row) {
    cache.at({slice(position, position + 1)}).copy_from(row);
    position.copy_from(position + 1);
    return position * 10;
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(full({1, 3}, 1.0 + i)).item(), 10 * (i + 1)) << f.text();
  EXPECT_EQ(get_values(cache.at({every, 2})), (std::vector<double>{1, 2, 3, 4, 5}));
  // There is no sixth row: nothing is written.
  test::expect_error(
      [&] {
        f(full({1, 3}, 6.0));
      },
      ErrorKind::value, {"position 5", "axis of size 5"});
  EXPECT_EQ(get_values(cache.at({every, 0})), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(position.item(), 5);
}

TEST(PartialWrites, PositionsOutsideAreErrorsAndWriteNothing) {
  const Tensor state = arange(10).view({5, 2}), position = zeros({1}, DType::i32);
  const auto write = [&](const Tensor& rows, const Tensor& at) {
    state.at({slice_of(at, 3)}).copy_from(rows);
  };
  const auto read = [&](const Tensor& at) { return state.at({slice_of(at, 3)}) * 1; };
  auto compiled_write = compile([&](const Tensor& rows, const Tensor& at) { write(rows, at); });
  auto compiled_read = compile(read);
  const Tensor rows = full({3, 2}, 99, DType::i64);
  for (const std::int64_t wrong : {-1, 3, 1000000}) {
    for (const DType dtype : {DType::i32, DType::i64}) {
      const Tensor at = full({}, wrong, dtype);
      const std::vector<std::string> words{"a slice of 3 from position " + std::to_string(wrong),
                                           "an axis of size 5"};
      test::expect_error([&] { write(rows, at); }, ErrorKind::value, words);
      test::expect_error([&] { compiled_write(rows, at); }, ErrorKind::value, words);
      test::expect_error([&] { read(at); }, ErrorKind::value, words);
      test::expect_error([&] { compiled_read(at); }, ErrorKind::value, words);
    }
  }
  // A part of the state has fewer positions.
  auto write_within = compile([&](const Tensor& at) {
    state.at({slice(0, 3)}).at({slice_of(at, 2)}).copy_from(rows.at({slice(0, 2)}));
  });
  test::expect_error([&] { write_within(full({}, 2, DType::i64)); }, ErrorKind::value,
                     {"a slice of 2 from position 2", "an axis of size 3"});
  EXPECT_EQ(get_values(state), get_values(arange(10)));
  compiled_write(rows, full({}, 2, DType::i64));
  EXPECT_EQ(get_values(state), (std::vector<double>{0, 1, 2, 3, 99, 99, 99, 99, 99, 99}));
}

TEST(PartialWrites, ATensorThatIsNoPositionIsRefused) {
  const Tensor state = zeros({5, 2}), position = zeros({}, DType::i64);
  test::expect_error([&] { slice_of(zeros({2}, DType::i64), 1); }, ErrorKind::shape, {"(2,)"});
  test::expect_error([&] { slice_of(zeros({}), 1); }, ErrorKind::dtype, {"i64 or i32", "f32"});
  test::expect_error([&] { slice_of(position, -1); }, ErrorKind::value, {"-1"});
  test::expect_error([&] { state.at({slice_of(position, 6)}); }, ErrorKind::value,
                     {"a slice of 6", "an axis of size 5"});
  const auto read = [&](const Tensor& end) { return state.at({slice(position, end)}) * 1.0; };
  EXPECT_EQ(read(position + 2).shape(), (Shape{2, 2}));
  test::expect_error([&] { compile(read)(full({}, 2, DType::i64)); }, ErrorKind::value,
                     {"cannot depend on values", "slice_of(first, 3)"});
}

TEST(PartialWrites, GradientsFlowThroughReadsAtPositions) {
  const Tensor w = arange(12).to(DType::f32).view({4, 3});
  const auto gradient = [&](const Tensor& position) {
    const Tensor leaf = w.detach().requires_grad(true);
    const Tensor rows = leaf.at({slice_of(position, 2)});
    reduce(rows * rows * rows + leaf.at({slice(1, 3)}), "a b ->", Reduction::sum).backward();
    return leaf.grad();
  };
  auto compiled = compile(gradient);
  for (int p = 0; p < 3; ++p) {
    const Tensor position = full({}, p, DType::i64);
    EXPECT_EQ(get_values(compiled(position)), get_values(gradient(position))) << compiled.text();
  }
  test::expect_error(
      [&] {
        compile([&](const Tensor& position) {
          const Tensor value = Tensor(ones({1, 3})).requires_grad(true);
          zeros({4, 3}).at({slice_of(position, 1)}).copy_from(value);
        })(zeros({}, DType::i64));
      },
      ErrorKind::value, {"gradients flow"});
}

TEST(PartialWrites, AtAPositionCostThePartAlone) {
  const Tensor cache = zeros({2, 64, 1000}), position = zeros({}, DType::i64);
  auto write = compile([&](const Tensor& rows) {
    cache.at({every, slice_of(position, 3)}).copy_from(rows);
    position.copy_from(position + 3);
  });
  write(ones({2, 3, 1000}));
  EXPECT_EQ(write.cost().bytes_read, Count(2 * 3 * 4000 + 8 + 8)) << write.text();
  EXPECT_EQ(write.cost().bytes_written, Count(2 * 3 * 4000 + 8)) << write.text();
  EXPECT_EQ(write.memory().arena, 0u) << write.text();
  EXPECT_EQ(get_values(reduce(cache, "a b c -> b", Reduction::sum))[2], 2000);
  // Also where the part is a view of a view.
  auto within = compile([&](const Tensor& row) {
    cache.at({1}).at({slice_of(position, 1)}).at({0}).copy_from(row);
    cache.at({every, slice(4, 9)}).at({0, slice(1, 2)}).copy_from(row.view({1, 1000}));
  });
  within(full({1000}, 5.0));
  EXPECT_EQ(within.cost().bytes_written, Count(2 * 4000)) << within.text();
  EXPECT_EQ(get_values(reduce(cache, "a b c -> a b", Reduction::max)).at(64 + 3), 5);
  EXPECT_EQ(get_values(reduce(cache, "a b c -> a b", Reduction::max)).at(5), 5);
  auto read = compile([&] { return cache.at({1, slice_of(position, 3)}) + 0.0; });
  EXPECT_EQ(get_values(read()), get_values(cache.at({1, slice(3, 6)})));
  EXPECT_EQ(read.cost().bytes_read, Count(2 * 3 * 4000 + 8)) << read.text();
  EXPECT_EQ(read.cost().bytes_written, Count(2 * 3 * 4000)) << read.text();
}

TEST(PartialWrites, CostThePartAlone) {
  const Tensor cache = zeros({64, 1000});
  auto f = compile([&](const Tensor& row) { cache.at({5}).copy_from(row); });
  f(ones({1000}));
  EXPECT_EQ(f.cost().bytes_read, Count(4000)) << f.text();
  EXPECT_EQ(f.cost().bytes_written, Count(4000)) << f.text();
  EXPECT_EQ(f.memory().arena, 0u) << f.text();
  // Two of them, and what reads the whole after both.
  auto g = compile([&](const Tensor& row) {
    cache.at({5}).copy_from(row);
    cache.at({6}).copy_from(row);
    return reduce(cache, "a b -> b", Reduction::sum);
  });
  EXPECT_EQ(get_values(g(full({1000}, 3.0)))[0], 6.0);
  EXPECT_EQ(g.cost().bytes_written, Count(3 * 4000)) << g.text();
  EXPECT_EQ(g.cost().bytes_read, Count(2 * 4000 + 64 * 4000)) << g.text();
}

TEST(PartialWrites, Refusals) {
  const Tensor s = zeros({4, 4}), x = ones({4});
  const auto refuse = [&](auto f, std::vector<std::string> words) {
    test::expect_error([&] { compile([&](const Tensor& a) { f(a); })(x); }, ErrorKind::value,
                       words);
  };
  refuse([&](const Tensor& a) { a.at({slice(1, 3)}).fill(1); },
         {"fill: a value of shape (2,)", "only tensors from outside can"});
  refuse([&](const Tensor&) { repeat(s.at({0}), "a -> 2 a").fill(1); }, {"fill", "share memory"});
  refuse(
      [&](const Tensor& a) {
        const Tensor w = a.detach();
        s.at({0}).copy_from(Tensor(w).requires_grad(true));
      },
      {"gradients flow"});
}

/// Random writes to views of a matrix between reads of it; positions are numbers, or values of the
/// trace.
TEST(PartialWrites, RandomOnesAreLikeEagerOnes) {
  test::for_seeds(2000, [](unsigned seed) {
    const auto f = [seed](const Tensor& t, const Tensor& a) {
      std::mt19937 random(seed);
      const auto below = [&](std::int64_t n) {
        return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
      };
      const Tensor moving = position_in(a) - 1;  // 0, then 1 and 2
      std::vector<Tensor> reads{a * 1.0};
      std::vector<Tensor> views{t};
      for (int step = 0; step < 6; ++step) {
        Tensor view = views[static_cast<std::size_t>(below(std::ssize(views)))];
        if (view.rank() == 2 && below(3) == 0) view = view.transpose();
        for (std::int64_t more = below(3); more > 0 && view.rank() > 0; --more) {
          const std::int64_t n = view.shape()[0], begin = below(n);
          if (n > 2 && below(3) == 0) {
            const std::int64_t count = 1 + below(n - 2);
            const Tensor first = moving + below(n - 1 - count);
            view = view.at({below(2) == 0 ? slice_of(first, count) : slice(first, first + count)});
            continue;
          }
          view = below(4) == 0
                     ? view.at({begin})
                     : view.at({slice(begin, begin + 1 + below(n - begin), 1 + below(2))});
        }
        if (below(2) == 0 && view.numel() > 0) views.push_back(view);
        const Tensor value = reduce(reads[static_cast<std::size_t>(below(std::ssize(reads)))],
                                    "... -> ", Reduction::sum);
        if (below(3) == 0) {
          view.fill(static_cast<double>(step));
        } else if (below(2) == 0) {
          view.copy_from(view * 0.5 + value * 0.125);
        } else {
          const Tensor other = t.at({below(t.shape()[0])});
          if (view.shape() == other.shape()) view.copy_from(other + 1.0);
        }
        reads.push_back((below(2) == 0 ? t : view) * 2.0);
      }
      Tensor sum = zeros({});
      for (const Tensor& x : reads) sum = sum + reduce(x, "... -> ", Reduction::sum);
      return sum;
    };
    expect_like_eager(f, arange(20).to(DType::f64).view({4, 5}), ones({3}, DType::f64));
  });
}

}  // namespace
}  // namespace ein
