#include <utility>

#include "eigen.hpp"
#include "harness.hpp"

namespace bench {
namespace {

using ein::einsum, ein::rearrange, ein::randn, ein::Tensor;

/// Batches of x · yᵀ by Eigen, whole matrices going to the threads: x is (batch, rows, depth), y is
/// (batch, columns, depth).
void eigen_scores(const Tensor& x, const Tensor& y, const Tensor& z, std::int64_t batch) {
  const std::int64_t depth = x.shape().back();
  const std::int64_t rows = x.numel() / batch / depth, columns = y.numel() / batch / depth;
  ein::host::parallel_for(batch, [&](std::int64_t b) {
    matrix(z, rows, columns, b).noalias() =
        matrix(x, rows, depth, b) * matrix(y, columns, depth, b).transpose();
  });
}

void attention_scores(Bench& bench, const std::string& name, std::int64_t b, std::int64_t s,
                      std::int64_t h) {
  const Tensor x = randn({b, s, h}), y = randn({b, s, h}), z = ein::empty({b, s, s});
  const auto beside = [=] { eigen_scores(x, y, z, b); };
  bench.run({.title = "b s1 h, b s2 h -> b s1 s2  " + name,
             .peer = "Eigen",
             .ours = [=] { return einsum(x, y, "b s1 h, b s2 h -> b s1 s2"); },
             .beside = beside,
             .work = 2.0 * static_cast<double>(b * s * s * h),
             .target = at_least(0.9),
             .expected = [=] { return beside(), z; }},
            one_and_all());
}

void contiguous(Bench& bench) {
  bench.section(
      "Products of contiguous operands, beside plain Eigen on as many threads (batches go to "
      "threads whole, "
      "a single product is cut by rows)");
  attention_scores(bench, "8 512 64", 8, 512, 64);
  attention_scores(bench, "96 128 64", 96, 128, 64);
  attention_scores(bench, "2 512 64", 2, 512, 64);
  for (std::int64_t n : {256, 1024}) {
    const Tensor a = randn({n, n}), b = randn({n, n}), c = ein::empty({n, n});
    const auto beside = [=] { eigen_product(matrix(a, n, n), matrix(b, n, n), matrix(c, n, n)); };
    bench.run({.title = "i k, k j -> i j  " + std::to_string(n),
               .peer = "Eigen",
               .ours = [=] { return einsum(a, b, "i k, k j -> i j"); },
               .beside = beside,
               .work = 2.0 * static_cast<double>(n * n * n),
               .target = at_least(0.9),
               .expected = [=] { return beside(), c; }},
              one_and_all());
  }
}

void permuted(Bench& bench) {
  bench.section("The same with permuted operands, beside plain Eigen on contiguous ones");
  const std::int64_t n = 1024;
  const Tensor a = randn({n, n}), b = randn({n, n}), c = ein::empty({n, n});
  const Tensor at = a.transpose().contiguous(), bt = b.transpose().contiguous();
  const auto product = [=] { eigen_product(matrix(a, n, n), matrix(b, n, n), matrix(c, n, n)); };
  const auto row = [&](const std::string& pattern, Tensor x, Tensor y,
                       std::function<Tensor()> expected) {
    bench.run({.title = pattern + "  1024",
               .peer = "Eigen, contiguous",
               .ours = [=] { return einsum(x, y, ein::runtime(pattern)); },
               .beside = product,
               .work = 2.0 * static_cast<double>(n * n * n),
               .target = at_least(0.8),
               .expected = std::move(expected)},
              one_and_all());
  };
  row("k i, j k -> i j", at, bt, [=] { return product(), c; });
  row("k i, k j -> i j", at, b, [=] { return product(), c; });
  row("i k, k j -> j i", a, b, [=] { return product(), c.transpose(); });

  const auto heads = [&](std::int64_t batch, std::int64_t h, std::int64_t s, std::int64_t d) {
    const Tensor q = randn({batch, s, h, d}), k = randn({batch, s, h, d});
    const Tensor q2 = rearrange(q, "b s h d -> b h s d").contiguous(),
                 k2 = rearrange(k, "b s h d -> b h s d").contiguous();
    const Tensor z = ein::empty({batch, h, s, s});
    const std::string sizes = std::to_string(batch) + " " + std::to_string(h) + " " +
                              std::to_string(s) + " " + std::to_string(d);
    const auto scores = [=] { eigen_scores(q2, k2, z, batch * h); };
    const double work = 2.0 * static_cast<double>(batch * h * s * s * d);
    bench.run({.title = "b s1 h d, b s2 h d -> b h s1 s2  " + sizes,
               .peer = "Eigen, contiguous",
               .ours = [=] { return einsum(q, k, "b s1 h d, b s2 h d -> b h s1 s2"); },
               .beside = scores,
               .work = work,
               .target = at_least(0.8),
               .expected = [=] { return scores(), z; }},
              one_and_all());
    const Tensor p = randn({batch, h, s, s}), out = ein::empty({batch, h, s, d});
    const auto values = [=] {
      ein::host::parallel_for(batch * h, [&](std::int64_t i) {
        matrix(out, s, d, i).noalias() = matrix(p, s, s, i) * matrix(k2, s, d, i);
      });
    };
    bench.run({.title = "b h s1 s2, b s2 h d -> b s1 h d  " + sizes,
               .peer = "Eigen, contiguous",
               .ours = [=] { return einsum(p, k, "b h s1 s2, b s2 h d -> b s1 h d"); },
               .beside = values,
               .work = work,
               .target = at_least(0.8),
               .expected = [=] { return values(), rearrange(out, "b h s d -> b s h d"); }},
              one_and_all());
  };
  heads(8, 12, 128, 64);
  heads(2, 8, 512, 64);

  // Rows and depths that no stride walks as one: (a c) and (b d) of a stored "a b c d".
  const std::int64_t e = 32;
  const Tensor x = randn({e, e, e, e}), y = randn({e, e, n});
  const Tensor x2 = rearrange(x, "a b c d -> (a c) (b d)").contiguous();
  const auto interleaved = [=] {
    eigen_product(matrix(x2, n, n), matrix(y, n, n), matrix(c, n, n));
  };
  bench.run({.title = "a b c d, b d j -> a c j  32 32 32 32 1024",
             .peer = "Eigen, contiguous",
             .ours = [=] { return einsum(x, y, "a b c d, b d j -> a c j"); },
             .beside = interleaved,
             .work = 2.0 * static_cast<double>(n * n * n),
             .target = at_least(0.8),
             .expected =
                 [=] {
                   return interleaved(), c.view({e, e, n});
                 }},
            one_and_all());
}

/// Narrow floats are converted as they are packed, and compared with Eigen's f32 product.
void dtypes(Bench& bench) {
  bench.section("Other dtypes, 512 x 512 x 512");
  const std::int64_t n = 512;
  const double work = 2.0 * static_cast<double>(n * n * n);
  const Tensor a = randn({n, n}), b = randn({n, n}), c = ein::empty({n, n});
  const auto single = [=] { eigen_product(matrix(a, n, n), matrix(b, n, n), matrix(c, n, n)); };
  const auto small_float = [&](ein::DType dtype, double tolerance) {
    const Tensor x = a.to(dtype), y = b.to(dtype);
    bench.run({.title = "i k, k j -> i j  " + std::string(ein::name(dtype)),
               .peer = "Eigen, f32",
               .ours = [=] { return einsum(x, y, "i k, k j -> i j"); },
               .beside = single,
               .work = work,
               .target = at_least(0.7),
               .expected =
                   [=] {
                     return einsum(x.to(ein::DType::f32), y.to(ein::DType::f32), "i k, k j -> i j");
                   },
               .tolerance = tolerance},
              one_and_all());
  };
  small_float(ein::DType::f16, 1e-3);
  small_float(ein::DType::bf16, 8e-3);

  const Tensor a64 = a.to(ein::DType::f64), b64 = b.to(ein::DType::f64),
               c64 = c.to(ein::DType::f64);
  const auto f64 = [=] {
    eigen_product(matrix<double>(a64, n, n), matrix<double>(b64, n, n), matrix<double>(c64, n, n));
  };
  bench.run({.title = "i k, k j -> i j  f64",
             .peer = "Eigen",
             .ours = [=] { return einsum(a64, b64, "i k, k j -> i j"); },
             .beside = f64,
             .work = work,
             .target = at_least(0.9),
             .expected = [=] { return f64(), c64; },
             .tolerance = 1e-12},
            one_and_all());

  const Tensor ai = (a * 100).to(ein::DType::i64), bi = (b * 100).to(ein::DType::i64),
               ci = c.to(ein::DType::i64);
  const auto i64 = [=] {
    eigen_product(matrix<std::int64_t>(ai, n, n), matrix<std::int64_t>(bi, n, n),
                  matrix<std::int64_t>(ci, n, n));
  };
  bench.run({.title = "i k, k j -> i j  i64",
             .peer = "Eigen",
             .ours = [=] { return einsum(ai, bi, "i k, k j -> i j"); },
             .beside = i64,
             .work = work,
             .target = at_least(0.9),
             .expected = [=] { return i64(), ci; },
             .tolerance = 0},
            one_and_all());
}

void odd_shapes(Bench& bench) {
  bench.section("Odd shapes, at least half as fast as plain Eigen on one thread");
  const std::vector<int> one = {1};
  const auto row = [&](const std::string& title, const std::string& pattern, Tensor x, Tensor y,
                       double work, Tensor z, std::function<void()> beside) {
    bench.run({.title = pattern + "  " + title,
               .peer = "Eigen",
               .ours = [=] { return einsum(x, y, ein::runtime(pattern)); },
               .beside = beside,
               .work = work,
               .target = at_least(0.5),
               .expected = [=] { return beside(), z; }},
              one);
  };
  {
    const std::int64_t n = 1024;
    const Tensor a = randn({n, n}), x = randn({n}), y = ein::empty({n});
    const double work = 2.0 * n * n;
    row("1024", "i k, k -> i", a, x, work, y,
        [=] { matrix(y, n, 1).noalias() = matrix(a, n, n) * matrix(x, n, 1); });
    row("1024", "k, k j -> j", x, a, work, y,
        [=] { matrix(y, 1, n).noalias() = matrix(x, 1, n) * matrix(a, n, n); });
    const Tensor z = ein::empty({n, n});
    row("1024", "i, j -> i j", x, y, n * n, z,
        [=] { matrix(z, n, n).noalias() = matrix(x, n, 1) * matrix(y, 1, n); });
  }
  {
    const std::int64_t n = 1 << 20;
    const Tensor x = randn({n}), y = randn({n}), z = ein::empty({});
    row("2^20", "k, k ->", x, y, 2.0 * n, z,
        [=] { *z.data<float>() = (matrix(x, 1, n) * matrix(y, n, 1)).value(); });
  }
  for (std::int64_t k : {2, 4, 16}) {
    const std::int64_t n = 1024;
    const Tensor a = randn({n, k}), b = randn({k, n}), c = ein::empty({n, n});
    row("1024 " + std::to_string(k) + " 1024", "i k, k j -> i j", a, b,
        2.0 * static_cast<double>(n * n * k), c,
        [=] { matrix(c, n, n).noalias() = matrix(a, n, k) * matrix(b, k, n); });
  }
  {
    const std::int64_t n = 65536, k = 64, m = 4;
    const Tensor a = randn({n, k}), b = randn({k, m}), c = ein::empty({n, m});
    row("65536 64 4", "i k, k j -> i j", a, b, 2.0 * n * k * m, c,
        [=] { matrix(c, n, m).noalias() = matrix(a, n, k) * matrix(b, k, m); });
  }
  for (std::int64_t n : {4, 8, 16, 32}) {
    const std::int64_t batch = (1 << 22) / (n * n * n);
    const Tensor a = randn({batch, n, n}), b = randn({batch, n, n}), c = ein::empty({batch, n, n});
    row(std::to_string(batch) + " " + std::to_string(n), "b i k, b k j -> b i j", a, b,
        2.0 * static_cast<double>(batch * n * n * n), c, [=] {
          for (std::int64_t i = 0; i < batch; ++i) {
            matrix(c, n, n, i).noalias() = matrix(a, n, n, i) * matrix(b, n, n, i);
          }
        });
  }
  {
    const std::int64_t batch = 65536, n = 64;
    const Tensor a = randn({batch, n}), b = randn({batch, n}), c = ein::empty({batch});
    row("65536 64", "b k, b k -> b", a, b, 2.0 * batch * n, c, [=] {
      for (std::int64_t i = 0; i < batch; ++i) {
        c.data<float>()[i] = (matrix(a, 1, n, i) * matrix(b, n, 1, i)).value();
      }
    });
    const Tensor d = ein::empty({n});
    row("65536 64", "k b, k b -> b", a, b, 2.0 * batch * n, d, [=] {
      matrix(d, 1, n) = matrix(a, batch, n).cwiseProduct(matrix(b, batch, n)).colwise().sum();
    });
  }
}

/// What a training step of a small Transformer consists of: 12 sequences of 64 tokens.
void transformer(Bench& bench) {
  bench.section("Products of a small Transformer, beside plain Eigen on as many threads");
  const std::int64_t m = 12 * 64;
  const auto row = [&](const std::string& pattern, std::int64_t k, std::int64_t n, Tensor x,
                       Tensor y, Tensor z, std::function<void()> beside) {
    bench.run({.title = pattern + "  768 " + std::to_string(k) + " " + std::to_string(n),
               .peer = "Eigen",
               .ours = [=] { return einsum(x, y, ein::runtime(pattern)); },
               .beside = beside,
               .work = 2.0 * static_cast<double>(m * n * k),
               .target = at_least(1.1),
               .expected = [=] { return beside(), z; }},
              one_and_all());
  };
  const std::pair<std::int64_t, std::int64_t> sizes[] = {
      {128, 384}, {128, 128}, {128, 512}, {512, 128}, {128, 65}};
  for (const auto& [depth, columns] : sizes) {
    const std::int64_t k = depth, n = columns;
    const Tensor x = randn({m, k}), w = randn({k, n}), y = randn({m, n});
    const Tensor z = ein::empty({m, n}), dx = ein::empty({m, k}), dw = ein::empty({k, n});
    row("t i, i o -> t o", k, n, x, w, z,
        [=] { eigen_product(matrix(x, m, k), matrix(w, k, n), matrix(z, m, n)); });
    row("t o, i o -> t i", k, n, y, w, dx,
        [=] { eigen_product(matrix(y, m, n), matrix(w, k, n).transpose(), matrix(dx, m, k)); });
    row("t i, t o -> i o", k, n, x, y, dw,
        [=] { eigen_product(matrix(x, m, k).transpose(), matrix(y, m, n), matrix(dw, k, n)); });
  }
}

}  // namespace

void contractions(Bench& bench) {
  contiguous(bench);
  transformer(bench);
  permuted(bench);
  dtypes(bench);
  odd_shapes(bench);
}

}  // namespace bench
