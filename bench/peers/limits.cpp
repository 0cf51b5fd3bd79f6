// What the hardware's own libraries do: products by Eigen, OpenBLAS and oneDNN, and memcpy. The
// latter two libraries are opened at run time, so that nothing needs them to build.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <ein/create.hpp>
#include <ein/parallel.hpp>
#include "../eigen.hpp"
#include "cpu/level.hpp"
#include "subject.hpp"

namespace peers {
namespace {

using ein::Tensor;

/// c = a · b of contiguous row-major matrices; a is stored (k, m) where `ta`, b (n, k) where `tb`.
struct Product {
  std::int64_t m, n, k, batch;
  bool ta, tb;
};
/// Computes product `i` of a batch.
using Gemm = std::function<void(const Product&, const float* a, const float* b, float* c)>;

struct Library {
  void* handle = nullptr;
  std::string path;
};
Library open(const char* variable, std::initializer_list<const char*> names) {
  std::vector<std::string> paths(names.begin(), names.end());
  if (const char* given = std::getenv(variable)) paths.insert(paths.begin(), given);
  for (const std::string& path : paths) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, path};
  }
  return {};
}
template <class F>
F* symbol(const Library& library, const std::string& name) {
  return library.handle ? reinterpret_cast<F*>(dlsym(library.handle, name.c_str())) : nullptr;
}

/// The functions of CBLAS with its integers of 32 or 64 bits, by the names that OpenBLAS's builds
/// give them.
template <class Int>
Gemm cblas(const Library& library, const std::string& prefix, const std::string& suffix) {
  using Sgemm = void(int, int, int, Int, Int, Int, float, const float*, Int, const float*, Int,
                     float, float*, Int);
  Sgemm* const sgemm = symbol<Sgemm>(library, prefix + "cblas_sgemm" + suffix);
  if (!sgemm) return nullptr;
  if (auto* set = symbol<void(int)>(library, prefix + "openblas_set_num_threads" + suffix))
    set(ein::num_threads());
  return [sgemm](const Product& p, const float* a, const float* b, float* c) {
    constexpr int row_major = 101, plain = 111, transposed = 112;
    const auto m = static_cast<Int>(p.m), n = static_cast<Int>(p.n), k = static_cast<Int>(p.k);
    sgemm(row_major, p.ta ? transposed : plain, p.tb ? transposed : plain, m, n, k, 1, a,
          p.ta ? m : k, b, p.tb ? k : n, 0, c, n);
  };
}
Library& openblas_library() {
  static Library library = open("EIN_OPENBLAS", {"libopenblas.so.0"});
  return library;
}
Gemm openblas() {
  const Library& library = openblas_library();
  if (Gemm found = cblas<std::int64_t>(library, "scipy_", "64_")) return found;
  if (Gemm found = cblas<int>(library, "scipy_", "")) return found;
  return cblas<int>(library, "", "");
}

Library& onednn_library() {
  static Library library = open("EIN_ONEDNN", {"libdnnl.so.3", "libdnnl.so.2"});
  return library;
}
Gemm onednn() {
  using Dim = std::int64_t;
  using Sgemm = int(char, char, Dim, Dim, Dim, float, const float*, Dim, const float*, Dim, float,
                    float*, Dim);
  Sgemm* const sgemm = symbol<Sgemm>(onednn_library(), "dnnl_sgemm");
  if (!sgemm) return nullptr;
  return [sgemm](const Product& p, const float* a, const float* b, float* c) {
    sgemm(p.ta ? 'T' : 'N', p.tb ? 'T' : 'N', p.m, p.n, p.k, 1, a, p.ta ? p.m : p.k, b,
          p.tb ? p.k : p.n, 0, c, p.n);
  };
}

using Map = Eigen::Map<const bench::RowMajor<float>>;

/// A product's rows, or a batch's products, go to the threads.
void eigen(const Product& p, const float* a, const float* b, float* c) {
  Eigen::Map<bench::RowMajor<float>> z(c, p.m, p.n);
  const Map x(a, p.ta ? p.k : p.m, p.ta ? p.m : p.k), y(b, p.tb ? p.n : p.k, p.tb ? p.k : p.n);
  if (p.ta && p.tb) {
    bench::eigen_product(x.transpose(), y.transpose(), z);
  } else if (p.ta) {
    bench::eigen_product(x.transpose(), y, z);
  } else if (p.tb) {
    bench::eigen_product(x, y.transpose(), z);
  } else {
    bench::eigen_product(x, y, z);
  }
}

Subject product_subject(const Json& gemm, const Tensors& inputs, const Gemm& by,
                        bool batches_to_threads) {
  const Product p{gemm.at("m"),
                  gemm.at("n"),
                  gemm.at("k"),
                  gemm.value("batch", std::int64_t{1}),
                  gemm.value("ta", false),
                  gemm.value("tb", false)};
  // Matrices of their own stand for a contraction whose operands are no matrices.
  const bool own = gemm.value("own_data", false);
  const Tensor a = own ? ein::randn({p.batch, p.m, p.k}) : inputs.at(0),
               b = own ? ein::randn({p.batch, p.k, p.n}) : inputs.at(1);
  const Tensor c = p.batch == 1 ? ein::empty({p.m, p.n}) : ein::empty({p.batch, p.m, p.n});
  return subject([=] {
    const auto one = [&](std::int64_t i) {
      by(p, a.data<float>() + i * p.m * p.k, b.data<float>() + i * p.k * p.n,
         c.data<float>() + i * p.m * p.n);
    };
    if (batches_to_threads && p.batch > 1) {
      ein::host::parallel_for(p.batch, one);
    } else {
      for (std::int64_t i = 0; i < p.batch; ++i) one(i);
    }
    return c;
  });
}

/// A copy of as many bytes as the result has, or the first operand.
Subject copy_subject(const Json& c, const Tensors& inputs) {
  const Tensor from =
      c.contains("copied") ? ein::zeros({c.at("copied").get<std::int64_t>()}) : inputs.at(0);
  const Tensor to = ein::empty(from.shape(), from.dtype());
  return subject([=] {
    const std::int64_t cuts = ein::num_threads(), bytes = static_cast<std::int64_t>(from.nbytes());
    ein::host::parallel_for(cuts, [&](std::int64_t cut) {
      const std::int64_t begin = bytes * cut / cuts, end = bytes * (cut + 1) / cuts;
      std::memcpy(static_cast<char*>(to.raw_data()) + begin,
                  static_cast<const char*>(from.raw_data()) + begin,
                  static_cast<std::size_t>(end - begin));
    });
    return to;
  });
}

/// What no program can be faster than: the longer of reading the operands once and as many
/// multiply-adds as the case has, in its dtype's fastest instructions.
Subject processor_subject(const Json& c, const Tensors& inputs) {
  const ein::DType dtype = inputs.at(0).dtype();
  const ein::host::Level& level = ein::host::level();
  const auto* const bf16 = ein::host::bf16_products().in_pairs;
  const auto multiply = dtype == ein::DType::f64            ? level.multiply_add_f64
                        : dtype == ein::DType::bf16 && bf16 ? bf16->multiply_add
                                                            : level.multiply_add_f32;
  constexpr std::int64_t few = 1000;
  const auto steps = static_cast<std::int64_t>(c.at("flops").get<double>() / multiply(few) * few);
  const std::int64_t cuts = ein::num_threads();
  const auto multiplying = [=] {
    ein::host::parallel_for(
        cuts, [&](std::int64_t cut) { multiply(steps * (cut + 1) / cuts - steps * cut / cuts); });
    return ein::Tensor();
  };
  const auto reading = [=, &level] {
    for (const Tensor& x : inputs) {
      const auto bytes = static_cast<std::int64_t>(x.nbytes());
      ein::host::parallel_for(cuts, [&](std::int64_t cut) {
        const std::int64_t begin = bytes * cut / cuts, end = bytes * (cut + 1) / cuts;
        level.checksum(static_cast<const std::byte*>(x.raw_data()) + begin,
                       static_cast<std::size_t>(end - begin));
      });
    }
    return ein::Tensor();
  };
  const auto seconds = [](const auto& f) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      f();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      least = std::min(least, took.count());
    }
    return least;
  };
  return seconds(reading) > seconds(multiplying) ? subject(reading) : subject(multiplying);
}

/// A loop over products of matrices whose size the compiler knows, on all threads.
template <int n>
Subject fixed_size_subject(const Tensors& inputs) {
  using Matrix = Eigen::Matrix<float, n, n, Eigen::RowMajor>;
  const Tensor a = inputs.at(0), b = inputs.at(1), c = ein::empty(a.shape());
  return subject([=] {
    const std::int64_t cuts = ein::num_threads(), batch = a.shape()[0];
    ein::host::parallel_for(cuts, [&](std::int64_t cut) {
      for (std::int64_t i = batch * cut / cuts; i < batch * (cut + 1) / cuts; ++i) {
        Eigen::Map<Matrix>(c.data<float>() + i * n * n).noalias() =
            Eigen::Map<const Matrix>(a.data<float>() + i * n * n) *
            Eigen::Map<const Matrix>(b.data<float>() + i * n * n);
      }
    });
    return c;
  });
}

}  // namespace

Subject limit_subject(const Json& c, const Tensors& inputs, const std::string& who) {
  if (who == "memcpy") return copy_subject(c, inputs);
  if (who == "processor") return processor_subject(c, inputs);
  if (who == "Eigen, fixed size")
    return inputs.at(0).shape()[1] == 3 ? fixed_size_subject<3>(inputs)
                                        : fixed_size_subject<4>(inputs);
  const Gemm by = who == "Eigen"      ? Gemm(eigen)
                  : who == "OpenBLAS" ? openblas()
                  : who == "oneDNN"   ? onednn()
                                      : nullptr;
  if (!by) throw std::runtime_error(who + " is not there");
  return product_subject(c.at("gemm"), inputs, by, who == "Eigen");
}

Json libraries() {
  Json found = {{"Eigen", std::to_string(EIGEN_WORLD_VERSION) + "." +
                              std::to_string(EIGEN_MAJOR_VERSION) + "." +
                              std::to_string(EIGEN_MINOR_VERSION) + " (" +
                              Eigen::SimdInstructionSetsInUse() + ")"}};
  if (openblas()) {
    found["OpenBLAS"] = openblas_library().path;
    for (const char* name :
         {"scipy_openblas_get_config64_", "scipy_openblas_get_config", "openblas_get_config"}) {
      if (auto* get = symbol<char*()>(openblas_library(), name)) found["OpenBLAS"] = get();
    }
  }
  struct Version {
    int major, minor, patch;
  };
  if (onednn()) {
    found["oneDNN"] = onednn_library().path;
    if (auto* get = symbol<const Version*()>(onednn_library(), "dnnl_version")) {
      const Version* v = get();
      found["oneDNN"] = std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
                        std::to_string(v->patch);
    }
  }
  return found;
}

}  // namespace peers
