#include <ein/ein.hpp>
using namespace ein::literals;

int main() {
  ein::manual_seed(0);
  ein::Tensor x = ein::randn({2, 128, 512});
  ein::Tensor wq = ein::randn({512, 512}) / 22.6f, wk = ein::randn({512, 512}) / 22.6f;
  auto heads = [](const ein::Tensor& t) {
    return ein::rearrange(t, "b s (heads d) -> b heads s d", "heads"_a = 8);
  };
  ein::Tensor q = heads(ein::einsum(x, wq, "b s c, c e -> b s e"));
  ein::Tensor k = heads(ein::einsum(x, wk, "b s c, c e -> b s e"));
  ein::Tensor scores = ein::einsum(q, k, "b heads s1 d, b heads s2 d -> b heads s1 s2");
  ein::Tensor top = ein::reduce(scores, "b heads s1 s2 -> b heads", "max");
  return top.shape() == ein::Shape{2, 8} ? 0 : 1;
}
