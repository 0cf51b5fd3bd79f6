// A program that only rearranges: what the library adds to a small program.
#include <cstdio>
#include <ein/ein.hpp>

int main() {
  const ein::Tensor x = ein::arange(24);
  const ein::Tensor y =
      ein::rearrange(x, "(a b c) -> c (a b)", ein::axis("a", 2), ein::axis("b", 3));
  std::printf("%s\n", ein::to_string(y(1)).c_str());
}
