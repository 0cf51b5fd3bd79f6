#include <cmath>
#include <cstring>

#include "eigen.hpp"
#include "harness.hpp"

namespace bench {
namespace {

using ein::randn, ein::rearrange, ein::reduce, ein::Tensor;

double bytes(const Tensor& x) { return static_cast<double>(x.nbytes()); }

/// Calls copy(begin, end) for even pieces of n bytes, on as many threads as ein has.
template <class F>
void in_pieces(std::size_t n, const F& copy) {
  const auto cuts = static_cast<std::size_t>(ein::num_threads());
  ein::host::parallel_for(static_cast<std::int64_t>(cuts), [&](std::int64_t cut) {
    const auto c = static_cast<std::size_t>(cut);
    copy(n * c / cuts, n * (c + 1) / cuts);
  });
}

std::function<void()> memcpy_of(const Tensor& x) {
  const Tensor to = ein::empty(x.shape(), x.dtype());
  return [=] {
    in_pieces(x.nbytes(), [&](std::size_t begin, std::size_t end) {
      std::memcpy(static_cast<char*>(to.raw_data()) + begin,
                  static_cast<const char*>(x.raw_data()) + begin, end - begin);
    });
  };
}

void copies(Bench& bench) {
  bench.section(
      "Copies, bytes read and written, beside memcpy of as many bytes on as many threads");
  const auto row = [&](const std::string& title, Tensor x, const std::string& pattern,
                       Target target, std::function<Tensor()> expected) {
    bench.run({.title = pattern + "  " + title,
               .peer = "memcpy",
               .ours = [=] { return rearrange(x, ein::runtime(pattern)).contiguous(); },
               .beside = memcpy_of(x),
               .work = 2 * bytes(x),
               .unit = "GB/s",
               .target = target,
               .expected = std::move(expected)},
              one_and_all());
  };
  for (std::int64_t n : {512, 4096}) {
    const Tensor x = randn({n, n});
    // In the caches memcpy is limited by nothing that a transpose shares.
    row(std::to_string(n), x, "i j -> j i", n > 1024 ? at_least(0.5) : Target{}, [=] {
      const Tensor y = ein::empty({n, n});
      matrix(y, n, n) = matrix(x, n, n).transpose();
      return y;
    });
  }
  const Tensor x = randn({16, 512, 12, 64});
  row("16 512 12 64", x, "b s h d -> b h s d", at_least(0.7), [=] {
    const Tensor y = ein::empty({16, 12, 512, 64});
    for (int b = 0; b < 16; ++b) {
      for (int h = 0; h < 12; ++h) {
        for (int s = 0; s < 512; ++s) {
          std::memcpy(y.data<float>() + ((b * 12 + h) * 512 + s) * 64,
                      x.data<float>() + ((b * 512 + s) * 12 + h) * 64, 64 * sizeof(float));
        }
      }
    }
    return y;
  });
}

/// A sum in double by plain loops: over `inner` neighbours if last, else over rows.
Tensor plain_sum(const Tensor& x, std::int64_t rows, std::int64_t columns, bool last) {
  const Tensor y = ein::zeros({last ? rows : columns}, ein::DType::f64);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      y.data<double>()[last ? i : j] += x.data<float>()[i * columns + j];
  }
  return y.to(ein::DType::f32);
}

void reductions(Bench& bench) {
  bench.section("Reductions, bytes read, at least half as fast as Eigen's on one thread");
  const auto pair = [&](std::int64_t rows, std::int64_t columns) {
    const Tensor x = randn({rows, columns});
    const std::string sizes = "  " + std::to_string(rows) + " " + std::to_string(columns);
    const Tensor by_row = ein::empty({rows}), by_column = ein::empty({columns});
    bench.run(
        {.title = "sum a b -> a" + sizes,
         .peer = "Eigen",
         .ours = [=] { return reduce(x, "a b -> a", "sum"); },
         .beside = [=] { matrix(by_row, rows, 1) = matrix(x, rows, columns).rowwise().sum(); },
         .work = bytes(x),
         .unit = "GB/s",
         .target = at_least(0.5),
         .expected = [=] { return plain_sum(x, rows, columns, true); }},
        {1});
    bench.run(
        {.title = "sum a b -> b" + sizes,
         .peer = "Eigen",
         .ours = [=] { return reduce(x, "a b -> b", "sum"); },
         .beside =
             [=] { matrix(by_column, 1, columns) = matrix(x, rows, columns).colwise().sum(); },
         .work = bytes(x),
         .unit = "GB/s",
         .target = at_least(0.5),
         .expected = [=] { return plain_sum(x, rows, columns, false); }},
        {1});
  };
  pair(4096, 4096);
  for (std::int64_t columns : {3, 8, 64}) pair(1000000 / columns * 4, columns);

  const Tensor x = randn({64, 56, 56, 16});
  bench.run({.title = "max b (h 2) (w 2) c -> b h w c  64 56 56 16",
             .peer = "memcpy",
             .ours = [=] { return reduce(x, "b (h 2) (w 2) c -> b h w c", "max"); },
             .beside = memcpy_of(x),
             .work = bytes(x),
             .unit = "GB/s",
             .expected =
                 [=] {
                   const Tensor y = ein::full({64, 28, 28, 16}, -INFINITY);
                   for (std::int64_t i = 0; i < x.numel(); ++i) {
                     const std::int64_t c = i % 16, w = i / 16 % 56, h = i / 896 % 56,
                                        b = i / 50176;
                     float& to = y.data<float>()[((b * 28 + h / 2) * 28 + w / 2) * 16 + c];
                     to = std::max(to, x.data<float>()[i]);
                   }
                   return y;
                 }},
            one_and_all());
}

void maps(Bench& bench) {
  bench.section(
      "Elementwise, bytes read and written, at least half as fast as Eigen on one thread");
  using Array = Eigen::Map<Eigen::ArrayXf>;
  const auto array = [](const Tensor& x) { return Array(x.data<float>(), x.numel()); };
  const std::vector<int> one = {1};
  for (std::int64_t n : {std::int64_t{1} << 14, std::int64_t{1} << 22}) {
    const Tensor a = randn({n}), b = randn({n}), t = ein::empty({n}), u = ein::empty({n});
    const auto chain = [=] {
      array(t) = array(a) * array(b);
      array(u) = array(t) + 1.0f;
      array(t) = array(u).max(0.0f);
    };
    bench.run({.title = "relu(a * b + 1), three calls  " + std::to_string(n),
               .peer = "Eigen, three loops",
               .ours = [=] { return relu(a * b + 1); },
               .beside = chain,
               .work = 7 * bytes(a),
               .unit = "GB/s",
               .target = at_least(0.5),
               .expected = [=] { return chain(), t; }},
              one);
    const auto exp = [=] { array(t) = array(a).exp(); };
    bench.run({.title = "exp(a)  " + std::to_string(n),
               .peer = "Eigen",
               .ours = [=] { return ein::exp(a); },
               .beside = exp,
               .work = 2 * bytes(a),
               .unit = "GB/s",
               .target = at_least(0.5),
               .expected = [=] { return exp(), t; }},
              one);
    const auto tanh = [=] { array(t) = array(a).tanh(); };
    bench.run({.title = "tanh(a)  " + std::to_string(n),
               .peer = "Eigen",
               .ours = [=] { return ein::tanh(a); },
               .beside = tanh,
               .work = 2 * bytes(a),
               .unit = "GB/s",
               .target = at_least(0.5),
               .expected = [=] { return tanh(), t; }},
              one);
  }
  const std::int64_t rows = 1 << 20;
  for (std::int64_t columns : {3, 8, 64}) {
    const std::int64_t count = rows / columns * 3;
    const Tensor x = randn({count, columns}), v = randn({columns}),
                 wide = randn({count, columns + 1});
    const Tensor y = ein::empty({count, columns});
    const std::string sizes = "  " + std::to_string(count) + " " + std::to_string(columns);
    const auto add = [=](const Tensor& from, std::int64_t step) {
      const float* p = from.data<float>();
      const float* w = v.data<float>();
      float* to = y.data<float>();
      for (std::int64_t i = 0; i < count; ++i, p += step, to += columns) {
        for (std::int64_t j = 0; j < columns; ++j) to[j] = p[j] + w[j];
      }
    };
    bench.run({.title = "x + v, rows of x" + sizes,
               .peer = "plain loop",
               .ours = [=] { return x + v; },
               .beside = [=] { add(x, columns); },
               .work = 2 * bytes(x),
               .unit = "GB/s",
               .target = at_least(0.5),
               .expected = [=] { return add(x, columns), y; }},
              one);
    const Tensor cut = wide.at({ein::every, ein::slice(0, columns)});
    bench.run({.title = "x + v, rows with a gap" + sizes,
               .peer = "plain loop",
               .ours = [=] { return cut + v; },
               .beside = [=] { add(wide, columns + 1); },
               .work = 2 * bytes(x),
               .unit = "GB/s",
               .target = at_least(0.5),
               .expected = [=] { return add(wide, columns + 1), y; }},
              one);
  }
}

void squares_and_positions(Bench& bench) {
  bench.section("Norms, deviations and sums at positions, bytes read and written, beside memcpy");
  const auto row = [&](const std::string& title, const Tensor& x, std::function<Tensor()> ours) {
    bench.run({.title = title + "  " + x.shape().to_string(),
               .peer = "memcpy",
               .ours = std::move(ours),
               .beside = memcpy_of(x),
               .work = 2 * bytes(x),
               .unit = "GB/s",
               .expected = nullptr},
              one_and_all());
  };
  for (const ein::Shape& shape : {ein::Shape{256, 768}, ein::Shape{32768, 768}}) {
    const Tensor x = randn(shape);
    row("layer_norm", x, [=] { return ein::layer_norm(x, "a [b]"); });
    row("rms_norm", x, [=] { return ein::rms_norm(x, "a [b]"); });
    row("std of rows", x, [=] { return reduce(x, "a b -> a", "std"); });
    row("std of columns", x, [=] { return reduce(x, "a b -> b", "std"); });
    row("norm", x, [=] { return reduce(x, "a b ->", "norm"); });
    const Tensor at = ein::multinomial(ein::ones({1000}), "[c]", shape[0]);
    row("scatter_add", x, [=] { return ein::scatter_add(x, at, "a b, a -> [1000] b"); });
  }
}

}  // namespace

void memory(Bench& bench) {
  copies(bench);
  reductions(bench);
  squares_and_positions(bench);
  maps(bench);
}

}  // namespace bench
