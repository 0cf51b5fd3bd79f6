// expect: the two types call some axes alike and another differently
#include <ein/ein.hpp>

ein::Float<"batch queries keys"> scores(const ein::Float<"batch queries d">& q,
                                        const ein::Float<"batch keys d">& k) {
  return ein::einsum<"b q d, b k d -> b q k">(q, k);
}

int main() {
  const ein::Float<"batch queries d"> q = ein::ones({2, 3, 4});
  const ein::Float<"batch keys d"> k = ein::ones({2, 5, 4});
#ifdef MISTAKE
  const auto y = scores(k, q);
#else
  const auto y = scores(q, k);
#endif
  return y.shape() == ein::Shape{2, 3, 5} ? 0 : 1;
}
