// Coupled cluster with double excitations, in complex numbers: the residual of the amplitudes, term
// by term as it is written in books, solved by iteration.
#include <complex>
#include <cstdio>

#include <ein/compile.hpp>
#include <ein/complex.hpp>
#include <ein/ein.hpp>

using ein::einsum, ein::Tensor;
using Number = std::complex<double>;

namespace {

// Axes: occupied orbitals i j k l, virtual ones a b c d.

/// Integrals ⟨pq‖rs⟩ by the kinds of their orbitals (o, v), and the energies of orbitals.
struct Integrals {
  Tensor vvoo, oovv, oooo, vvvv, ovvo, occupied, virtual_;

  Integrals(const Tensor& all, const Tensor& energies, std::int64_t electrons) {
    const auto o = ein::slice(0, electrons), v = ein::slice(electrons);
    vvoo = all(v, v, o, o);
    oovv = all(o, o, v, v);
    oooo = all(o, o, o, o);
    vvvv = all(v, v, v, v);
    ovvo = all(o, v, v, o);
    occupied = energies(o);
    virtual_ = energies(v);
  }

  /// e_i + e_j - e_a - e_b
  Tensor gaps() const {
    return ein::rearrange(occupied, "i -> 1 1 i 1") + ein::rearrange(occupied, "j -> 1 1 1 j") -
           ein::rearrange(virtual_, "a -> a 1 1 1") - ein::rearrange(virtual_, "b -> 1 b 1 1");
  }
};

Tensor antisymmetric_ab(const Tensor& x) { return x - ein::rearrange(x, "a b i j -> b a i j"); }
Tensor antisymmetric_ij(const Tensor& x) { return x - ein::rearrange(x, "a b i j -> a b j i"); }

/// What the Schrödinger equation leaves of amplitudes t, in the terms of Crawford and Schaefer, "An
/// Introduction to Coupled Cluster Theory for Computational Chemists" (2000), without singles.
Tensor residual(const Tensor& t, const Integrals& v) {
  const Tensor linear =
      v.vvoo - v.gaps() * t + 0.5 * einsum(v.oooo, t, "k l i j, a b k l -> a b i j") +
      0.5 * einsum(v.vvvv, t, "a b c d, c d i j -> a b i j") +
      antisymmetric_ij(antisymmetric_ab(einsum(v.ovvo, t, "k b c j, a c i k -> a b i j")));
  const Tensor quadratic =
      0.5 * antisymmetric_ij(
                antisymmetric_ab(einsum(v.oovv, t, t, "k l c d, a c i k, d b l j -> a b i j"))) +
      0.25 * einsum(v.oovv, t, t, "k l c d, c d i j, a b k l -> a b i j") -
      0.5 * antisymmetric_ab(einsum(v.oovv, t, t, "k l c d, a c i j, b d k l -> a b i j")) -
      0.5 * antisymmetric_ij(einsum(v.oovv, t, t, "k l c d, a b i k, c d j l -> a b i j"));
  return linear + quadratic;
}

/// The energy of correlation, after so many steps. Without triples and so on it is not quite real.
Number solve(const Integrals& v, int steps) {
  const Tensor t = ein::zeros(v.vvoo.shape(), ein::DType::c128);
  auto step = ein::compile([&] {
    const Tensor r = residual(t, v);
    t.copy_from(t + r / v.gaps());
    const Tensor energy = 0.25 * einsum(v.oovv, t, "i j a b, a b i j ->");
    return std::vector<Tensor>{energy, ein::reduce(ein::abs(r), "a b i j ->", ein::Reduction::max)};
  });
  Number energy;
  for (int i = 0; i <= steps; ++i) {
    const std::vector<Tensor> found = step();
    energy = found[0].item<Number>();
    if (i % 5 == 0)
      std::printf("step %2d  energy %.9f %+.0ei  largest residual %.0e\n", i, energy.real(),
                  energy.imag(), found[1].item());
  }
  std::printf("a step: %s FLOPs in contractions, 8 for each multiply-add of complex numbers\n",
              step.cost().matmul_only.to_string().c_str());
  return energy;
}

}  // namespace

int main() {
  const std::int64_t electrons = 4, orbitals = 12;
  const ein::Shape shape{orbitals, orbitals, orbitals, orbitals};
  // Random integrals with the symmetries of real ones: ⟨pq‖rs⟩ = -⟨qp‖rs⟩ = -⟨pq‖sr⟩ = ⟨rs‖pq⟩*.
  Tensor v =
      0.01 * ein::complex(ein::randn(shape, ein::DType::f64), ein::randn(shape, ein::DType::f64));
  v = v - ein::rearrange(v, "p q r s -> q p r s");
  v = v - ein::rearrange(v, "p q r s -> p q s r");
  v = v + ein::conj(ein::rearrange(v, "p q r s -> r s p q"));
  const Tensor energies =
      ein::where(ein::arange(orbitals) < electrons, -2.0, 1.0).to(ein::DType::f64);
  const Number energy = solve({v, energies, electrons}, 20);

  // Orbitals are known up to a phase each: others give other integrals, and the same energy.
  const Tensor u =
      ein::polar(ein::ones({orbitals}, ein::DType::f64), ein::randn({orbitals}, ein::DType::f64));
  const Tensor turned =
      einsum(ein::conj(u), ein::conj(u), v, u, u, "p, q, p q r s, r, s -> p q r s");
  const Number again = solve({turned, energies, electrons}, 20);
  std::printf("with other phases of the orbitals the energy differs by %.0e\n",
              std::abs(again - energy));
  return std::abs(again - energy) < 1e-12 ? 0 : 1;
}
