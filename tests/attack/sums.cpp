// Rows of the table whose patterns have sums of axes: tensors joined, pieces in another order, and
// products piece by piece.
#include "calls.hpp"

namespace ein::attack {
namespace {

/// "(m + n)" or "(n + m)".
std::string sum_of(Maker& maker, std::vector<std::string> pieces) {
  pieces = maker.shuffled(std::move(pieces));
  std::string text;
  for (const std::string& piece : pieces) text += (text.empty() ? "" : " + ") + piece;
  return "(" + text + ")";
}

/// An earlier value of one to three axes, whose axis `at` a sum is put in the place of.
int value_to_part(Maker& maker, std::size_t& at) {
  const int x = maker.value([&](int v) {
    return maker.shape(v).rank() >= 1 && maker.shape(v).rank() <= 3 &&
           numel(maker.shape(v)) <= 4000;
  });
  if (x >= 0) at = static_cast<std::size_t>(maker.below(maker.shape(x).rank()));
  return x;
}
std::vector<std::string> axes_of(const Shape& shape, std::size_t at, const std::string& there) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < shape.rank(); ++d)
    names.push_back(d == at ? there : std::string(1, static_cast<char>('a' + d)));
  return names;
}

/// Two tensors, and maybe a third that has no axis of the sum.
bool make_join(Maker& maker, Step& step) {
  std::size_t at = 0;
  const int x = value_to_part(maker, at);
  if (x < 0) return false;
  Shape other = maker.shape(x), without;
  if (maker.chance(60)) other[at] = maker.size();
  for (std::size_t d = 0; d < other.rank(); ++d) {
    if (d != at) without.push_back(other[d]);
  }
  std::vector<std::string> pieces{"m", "n"};
  std::vector<int> args{x, maker.like(other, maker.dtype(x))};
  std::string text = maker.joined(axes_of(other, at, "m"), false) + ", " +
                     maker.joined(axes_of(other, at, "n"), false);
  if (maker.chance(40)) {
    pieces.push_back("1");
    args.push_back(maker.like(without, maker.dtype(x)));
    std::vector<std::string> names = axes_of(other, at, "m");
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(at));
    text += ", " + maker.joined(std::move(names), false);
  }
  step.args = args;
  step.pattern = text + " -> " +
                 maker.joined(maker.shuffled(axes_of(other, at, sum_of(maker, pieces))), false);
  return std::all_of(args.begin(), args.end(), [](int v) { return v >= 0; });
}

bool make_order(Maker& maker, Step& step) {
  std::size_t at = 0;
  const int x = value_to_part(maker, at);
  if (x < 0) return false;
  const Shape& shape = maker.shape(x);
  step.sizes.emplace_back("m", maker.below(shape[at] + 1));
  step.pattern = maker.joined(axes_of(shape, at, sum_of(maker, {"m", "n"})), false) + " -> " +
                 maker.joined(maker.shuffled(axes_of(shape, at, sum_of(maker, {"m", "n"}))), false);
  return take(step, {x});
}

bool make_product(Maker& maker, Step& step) {
  std::size_t at = 0;
  const int x = value_to_part(maker, at);
  if (x < 0) return false;
  const Shape shape = maker.shape(x);
  const std::int64_t columns = 1 + maker.below(4);
  if (numel(shape) * columns > most_points) return false;
  step.sizes.emplace_back("m", maker.below(shape[at] + 1));
  std::vector<std::string> output = axes_of(shape, at, "o");
  if (maker.chance(50))
    output.erase(output.begin() + static_cast<std::ptrdiff_t>(maker.below(shape.rank())));
  step.pattern = maker.joined(axes_of(shape, at, sum_of(maker, {"m", "n"})), false) + ", " +
                 sum_of(maker, {"m", "n"}) + " o -> " +
                 maker.joined(maker.shuffled(std::move(output)), false);
  return take(step, {x, maker.like({shape[at], columns}, maker.dtype(x))});
}

Tensor run_join(const Step& s, Args x) { return rearrange(x, runtime(s.pattern)); }

}  // namespace

void add_sums(std::vector<Operation>& t) {
  t.push_back(
      {"join", make_join, run_join, "ein::rearrange(std::vector{$a}, $p)", "join([$a], $p)", 3});
  t.push_back({"order of pieces", make_order, run_rearrange, "ein::rearrange($0, $p$h)",
               "order_of_pieces($0, $p$h)", 2});
  t.push_back({"einsum of pieces", make_product, run_einsum, "ein::einsum($0, $1, $p$h)",
               "einsum_of_pieces([$0, $1], $p$h)", 2});
}

}  // namespace ein::attack
