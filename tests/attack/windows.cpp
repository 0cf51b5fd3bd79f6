// Rows of the table whose patterns have braces: convolutions, their transposes, pools, windows as
// views, windows added up, functions of pairs in windows.
#include <numeric>

#include <ein/nn.hpp>

#include "calls.hpp"

namespace ein::attack {
namespace {

using Numbers = std::vector<std::int64_t>;

PerAxis per_axis(const Numbers& numbers) {
  return std::vector<Size>(numbers.begin(), numbers.end());
}

/// Windows of some axes of a tensor; `wide` has them, `narrow` are their numbers.
struct Windows {
  Numbers wide, narrow, kernel, stride, padding, dilation;
  std::int64_t channels = 1, batch = 1;
  bool has_batch = true, channels_first = false;

  std::size_t axes() const { return wide.size(); }
  std::string name(std::size_t d) const { return std::string(1, "zyx"[3 - axes() + d]); }
  /// The dimensions as a pattern has them, `along` those of the axes.
  std::string text(const std::vector<std::string>& along) const {
    std::string text = has_batch ? "b " : "";
    if (channels_first) text += "c ";
    for (const std::string& word : along) text += word + " ";
    return channels_first ? text.substr(0, text.size() - 1) : text + "c";
  }
  std::string layer_axes() const {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < axes(); ++d)
      names.push_back((d == 0 ? "[" : "") + name(d) + (d + 1 == axes() ? "]" : ""));
    return text(names);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < axes(); ++d) names.push_back(name(d));
    return names;
  }
  std::string brace(std::size_t d, const std::string& size_name = "") const {
    return "{" + std::to_string(stride[d]) + "*" + name(d) + " + " + std::to_string(dilation[d]) +
           "*k" + name(d) + (padding[d] > 0 ? " - " + std::to_string(padding[d]) : "") +
           (size_name.empty() ? "" : " : " + size_name) + "}";
  }
  std::vector<std::string> braces() const {
    std::vector<std::string> braces;
    for (std::size_t d = 0; d < axes(); ++d) braces.push_back(brace(d));
    return braces;
  }
  Shape shape(const Numbers& along) const {
    Shape shape;
    if (has_batch) shape.push_back(batch);
    if (channels_first) shape.push_back(channels);
    for (const std::int64_t n : along) shape.push_back(n);
    if (!channels_first) shape.push_back(channels);
    return shape;
  }
  static std::int64_t product(const Numbers& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{1}, std::multiplies<>());
  }
  /// Of a channel.
  std::int64_t points() const { return batch * product(narrow) * product(kernel); }
  /// What peers.py reads: the number of axes, `first`, then each option for each axis.
  Numbers options(std::int64_t first, const Numbers& more = {}) const {
    Numbers all{static_cast<std::int64_t>(axes()), first};
    for (const Numbers* numbers : {&kernel, &stride, &padding, &dilation, &more})
      all.insert(all.end(), numbers->begin(), numbers->end());
    return all;
  }
};

/// A window along `n` elements; whether it fits.
bool add_window(Maker& maker, Windows& w, std::int64_t n, bool may_pad) {
  const std::int64_t k = 1 + maker.below(4), s = 1 + maker.below(3),
                     d = maker.chance(60) ? 1 : 1 + maker.below(3), reach = d * (k - 1);
  const std::int64_t p = may_pad && maker.chance(60) ? maker.below(reach + 1) : 0;
  w.wide.push_back(n);
  w.kernel.push_back(k);
  w.stride.push_back(s);
  w.dilation.push_back(d);
  w.padding.push_back(p);
  w.narrow.push_back((n + 2 * p - reach - 1) / s + 1);
  return n > 0 && n + 2 * p > reach;
}

/// A tensor, often an earlier value, and windows along up to three of its axes; -1 where they do
/// not fit.
int make_windows(Maker& maker, Windows& w, bool may_pad, bool wants_floats = false) {
  w.channels_first = maker.chance(50);
  const int earlier = maker.chance(50) ? maker.value([&](int v) {
    return maker.shape(v).rank() >= 2 && maker.shape(v).rank() <= 5 &&
           numel(maker.shape(v)) <= 4000 && (!wants_floats || is_floating(maker.dtype(v)));
  })
                                       : -1;
  Shape shape;
  std::int64_t axes = 1 + maker.below(3);
  if (earlier >= 0) {
    shape = maker.shape(earlier);
    const auto rank = static_cast<std::int64_t>(shape.rank());
    w.has_batch = rank == 5 || (rank > 2 && maker.chance(70));
    axes = rank - 1 - (w.has_batch ? 1 : 0);
  } else {
    constexpr std::int64_t most[] = {40, 12, 6};
    w.has_batch = maker.chance(80);
    if (w.has_batch) shape.push_back(1 + maker.below(3));
    const std::int64_t channels = 1 + maker.below(6);
    if (w.channels_first) shape.push_back(channels);
    for (std::int64_t d = 0; d < axes; ++d)
      shape.push_back(1 + maker.size() % most[static_cast<std::size_t>(axes - 1)]);
    if (!w.channels_first) shape.push_back(channels);
  }
  std::size_t d = 0;
  if (w.has_batch) w.batch = shape[d++];
  if (w.channels_first) w.channels = shape[d++];
  for (std::int64_t a = 0; a < axes; ++a) {
    if (!add_window(maker, w, shape[d++], may_pad)) return -1;
  }
  if (!w.channels_first) w.channels = shape[d];
  if (w.points() * w.channels > most_points || w.points() * w.channels == 0) return -1;
  if (earlier >= 0) return earlier;
  const DType dtype = maker.any_dtype();
  return wants_floats && !is_floating(dtype) ? -1 : maker.input(shape, dtype);
}

/// A part of the channels, so that several are as many.
std::int64_t some_groups(Maker& maker, std::int64_t channels) {
  const std::int64_t groups = maker.chance(50)   ? 1
                              : maker.chance(30) ? channels
                                                 : 1 + maker.below(channels);
  return channels % groups == 0 ? groups : 1;
}

bool make_conv(Maker& maker, Step& step) {
  Windows w;
  const int x = make_windows(maker, w, true);
  if (x < 0) return false;
  const std::int64_t groups = some_groups(maker, w.channels), out = groups * (1 + maker.below(4));
  if (w.points() * w.channels * out / groups > most_points) return false;
  const nn::Conv layer(w.layer_axes(), w.channels, out, per_axis(w.kernel),
                       {.stride = per_axis(w.stride),
                        .padding = per_axis(w.padding),
                        .dilation = per_axis(w.dilation),
                        .groups = groups,
                        .with_bias = false});
  step.pattern = layer.pattern();
  step.whole = w.options(groups);
  return take(step, {x, maker.like(layer.weight.shape(), maker.dtype(x))});
}

bool make_conv_transpose(Maker& maker, Step& step) {
  Windows w;
  // The result's windows begin where the elements of x are: x has the sizes of `narrow`.
  const int like = make_windows(maker, w, true);
  if (like < 0) return false;
  Numbers more;
  for (std::size_t d = 0; d < w.axes(); ++d) {
    const std::int64_t least =
        (w.narrow[d] - 1) * w.stride[d] - 2 * w.padding[d] + w.dilation[d] * (w.kernel[d] - 1) + 1;
    more.push_back(maker.chance(40) ? maker.below(std::max(w.stride[d], w.dilation[d])) : 0);
    if (least < 1) return false;
    if (more[d] > 0) step.sizes.emplace_back("n" + w.name(d), least + more[d]);
  }
  const std::int64_t groups = some_groups(maker, w.channels), out = groups * (1 + maker.below(4));
  if (w.points() * w.channels * out / groups > most_points) return false;
  const nn::ConvTranspose layer(w.layer_axes(), w.channels, out, per_axis(w.kernel),
                                {.stride = per_axis(w.stride),
                                 .padding = per_axis(w.padding),
                                 .output_padding = per_axis(more),
                                 .dilation = per_axis(w.dilation),
                                 .groups = groups,
                                 .with_bias = false});
  step.pattern = layer.pattern();
  step.whole = w.options(groups, more);
  const DType dtype = maker.dtype(like);
  return take(step,
              {maker.like(w.shape(w.narrow), dtype), maker.like(layer.weight.shape(), dtype)});
}

template <Reduction R>
bool make_pool(Maker& maker, Step& step) {
  Windows w;
  const int x = make_windows(maker, w, true, wants_floating(R));
  if (x < 0) return false;
  step.pattern = nn::Pool(w.layer_axes(), R, per_axis(w.kernel),
                          {.stride = per_axis(w.stride),
                           .padding = per_axis(w.padding),
                           .dilation = per_axis(w.dilation)})
                     .pattern();
  for (std::size_t d = 0; d < w.axes(); ++d) step.sizes.emplace_back("k" + w.name(d), w.kernel[d]);
  step.whole = w.options(0);
  return take(step, {x});
}

bool make_unfold(Maker& maker, Step& step) {
  Windows w;
  const int x = make_windows(maker, w, false);
  if (x < 0) return false;
  std::vector<std::string> result = w.names();
  for (std::size_t d = 0; d < w.axes(); ++d) {
    result.push_back("k" + w.name(d));
    step.sizes.emplace_back("k" + w.name(d), w.kernel[d]);
  }
  result.push_back("c");
  if (w.has_batch) result.push_back("b");
  step.pattern =
      w.text(w.braces()) + " -> " + maker.joined(maker.shuffled(std::move(result)), true);
  step.whole = w.options(0);
  return take(step, {x});
}

/// Windows as tensors, each added to where it would be read.
bool make_fold(Maker& maker, Step& step) {
  Windows w;
  const int like = make_windows(maker, w, true);
  if (like < 0) return false;
  std::vector<std::string> input = w.names(), output;
  for (std::size_t d = 0; d < w.axes(); ++d) {
    input.push_back("k" + w.name(d));
    output.push_back(w.brace(d, "n" + w.name(d)));
    step.sizes.emplace_back("n" + w.name(d), w.wide[d]);
  }
  Numbers along = w.narrow;
  along.insert(along.end(), w.kernel.begin(), w.kernel.end());
  step.pattern = w.text(input) + " -> " + w.text(output);
  step.whole = w.options(0);
  return take(step, {maker.like(w.shape(along), maker.dtype(like))});
}

/// A function of an element and a weight of its place in the window and its channel.
bool make_map(Maker& maker, Step& step) {
  Windows w;
  const int x = make_windows(maker, w, true);
  if (x < 0) return false;
  std::string weight;
  Shape shape;
  for (std::size_t d = 0; d < w.axes(); ++d) {
    weight += "k" + w.name(d) + " ";
    shape.push_back(w.kernel[d]);
  }
  shape.push_back(w.channels);
  step.pattern = w.text(w.braces()) + ", " + weight + "c -> " + w.text(w.names());
  step.whole = w.options(0);
  return take(step, {x, maker.like(shape, maker.dtype(x))});
}

}  // namespace

void add_windows(std::vector<Operation>& t) {
  t.push_back({"windows conv", make_conv, run_einsum, "ein::einsum($0, $1, $p)",
               "conv($0, $1, $p, $w)", 4});
  t.push_back({"windows conv_transpose", make_conv_transpose, run_einsum,
               "ein::einsum($0, $1, $p$h)", "conv_transpose($0, $1, $p, $w$h)", 3});
  t.push_back({"windows max", make_pool<Reduction::max>, run_reduce<Reduction::max>,
               "ein::reduce($0, $p, \"max\"$h)", "pool($0, $p, \"max\", $w$h)", 2});
  t.push_back({"windows mean", make_pool<Reduction::mean>, run_reduce<Reduction::mean>,
               "ein::reduce($0, $p, \"mean\"$h)", "pool($0, $p, \"mean\", $w$h)", 2});
  t.push_back({"windows unfold", make_unfold, run_rearrange, "ein::rearrange($0, $p$h)",
               "unfold($0, $p, $w$h)", 3});
  t.push_back(
      {"windows fold", make_fold, run_einsum, "ein::einsum($0, $p$h)", "fold($0, $p, $w$h)", 2});
  t.push_back({"windows map sub max", make_map,
               [](const Step& s, Args x) {
                 return map(x[0], x[1], runtime(s.pattern), fn::sub, Reduction::max);
               },
               "ein::map($0, $1, $p, ein::fn::sub, \"max\")",
               "map_of_windows($0, $1, $p, \"sub\", \"max\")", 2});
  // A mean, as a sum of few values is added up in another order where lengths are open.
  t.push_back({"windows map minimum mean", make_map,
               [](const Step& s, Args x) {
                 return map(x[0], x[1], runtime(s.pattern), fn::minimum, Reduction::mean);
               },
               "ein::map($0, $1, $p, ein::fn::minimum, \"mean\")",
               "map_of_windows($0, $1, $p, \"minimum\", \"mean\")", 1});
}

}  // namespace ein::attack
