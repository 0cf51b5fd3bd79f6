#include "decoders.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/parallel.hpp>
#include "support/tensor_values.hpp"

namespace ein::attack {
namespace {

using namespace test;
using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

double length(const Values& values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(values.size(), 1)));
}

/// The greatest difference of a tensor from what it should be, both as lengths, as a part of its
/// own or of a thousandth of the greatest: gradients may be 0 but for rounding.
double error_of(const std::vector<Values>& results, const std::vector<Values>& wanted) {
  if (results.size() != wanted.size()) return INFINITY;
  double greatest = 0, error = 0;
  for (const Values& values : wanted) greatest = std::max(greatest, length(values));
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    if (results[r].size() != wanted[r].size()) return INFINITY;
    Values difference = wanted[r];
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= results[r][i];
    const double part = length(difference) / (length(wanted[r]) + 1e-3 * greatest + 1e-30);
    if (!std::isfinite(part)) return INFINITY;
    error = std::max(error, part);
  }
  return error;
}

/// What a few hundred roundings may do, without luck and without a division by nearly nothing.
double usual_error(const Decoder& decoder) {
  return decoder.dtype == DType::bf16 || decoder.autocast ? 0.03 : 2e-5;
}

constexpr std::uint64_t runs = 2;

/// The results of all runs, and the parameters after them.
template <class Step>
std::vector<Values> results_of(const Decoder& decoder, const DecoderModel& model, Step&& step) {
  model.restart();
  manual_seed(decoder.seed);
  std::vector<Values> results;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const Tensors x = model.arguments(run);
    for (const Tensor& result : step(x[0], x[1], x[2])) results.push_back(get_values(result));
  }
  for (const Tensor& p : model.parameters()) results.push_back(get_values(p));
  return results;
}

bool same_bits(const std::vector<Values>& a, const std::vector<Values>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Values& x, const Values& y) {
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), [](double one, double other) {
             return one == other || (std::isnan(one) && std::isnan(other));
           });
  });
}

DecoderVerdict compare(const Decoder& decoder) {
  const auto step_of = [](const DecoderModel& model) {
    return [&model](const Tensor& x, const Tensor& memory, const Tensor& targets) {
      return model.step(x, memory, targets);
    };
  };
  const DecoderModel exact(decoder, DType::f64), model(decoder, decoder.dtype);
  const std::vector<Values> wanted = results_of(decoder, exact, step_of(exact)),
                            eager = results_of(decoder, model, step_of(model));
  auto compiled = decoder.any_length ? compile(step_of(model), {"b s c", "b m c", "b s"})
                                     : compile(step_of(model));
  std::optional<std::vector<Values>> first;
  for (const int count : {1, 2}) {
    const ThreadLimit limit(count);
    const std::vector<Values> results = results_of(decoder, model, compiled);
    if (first && !same_bits(*first, results)) return {"two threads give other bits than one"};
    first = results;
  }
  const bool in_tiles = compiled.text().find("as the gradients of attention") != std::string::npos;
  const double error = error_of(*first, wanted), of_eager = error_of(eager, wanted);
  if (!(of_eager < 10 * usual_error(decoder))) return {.uncertain = true, .in_tiles = in_tiles};
  if (error <= 8 * of_eager + usual_error(decoder)) return {.in_tiles = in_tiles};
  std::ostringstream text;
  text << "compiled it is off by " << error << ", call by call by " << of_eager;
  return {text.str()};
}

}  // namespace

DecoderVerdict check(const Decoder& decoder) {
  try {
    return compare(decoder);
  } catch (const std::exception& error) {
    return {std::string("throws: ") + error.what()};
  }
}

std::vector<Decoder> decoder_grid() {
  std::vector<Decoder> grid;
  for (const Norm norm : {Norm::none, Norm::rms, Norm::rms_by_hand, Norm::layer})
    for (std::int64_t layers = 1; layers <= 4; ++layers)
      for (const Mask mask : {Mask::none, Mask::tril, Mask::where})
        for (const Feed feed : {Feed::none, Feed::gelu})
          for (const DType dtype : {DType::f32, DType::bf16})
            for (const Checkpoint checkpoint : {Checkpoint::none, Checkpoint::layers})
              for (const std::int64_t positions : {256, 512})
                grid.push_back({.seed = grid.size(),
                                .layers = layers,
                                .positions = positions,
                                .heads = 4,
                                .depth = 32,
                                .key_heads = 4,
                                .norm = norm,
                                .mask = mask,
                                .feed = feed,
                                .checkpoint = checkpoint,
                                .dtype = dtype});
  return grid;
}

Decoder shrunk(Decoder decoder) {
  const auto kind_of = [](const std::string& wrong) {
    return wrong.substr(0, wrong.find_first_of("0123456789"));
  };
  const std::string kind = kind_of(check(decoder).wrong);
  const auto set = [](auto member, auto value) { return [=](Decoder& d) { d.*member = value; }; };
  const std::vector<std::function<void(Decoder&)>> simpler{
      [](Decoder& d) { d.layers = std::max<std::int64_t>(1, d.layers - 1); },
      [](Decoder& d) { d.positions = std::max<std::int64_t>(4, d.positions / 2); },
      [](Decoder& d) { d.heads = d.key_heads = 1; },
      [](Decoder& d) { d.key_heads = d.heads; },
      [](Decoder& d) { d.depth = std::max<std::int64_t>(4, d.depth / 2); },
      set(&Decoder::batch, 1),
      set(&Decoder::memory, 0),
      set(&Decoder::words, 0),
      set(&Decoder::norm, Norm::none),
      set(&Decoder::norm_is_last, false),
      set(&Decoder::mask, Mask::none),
      set(&Decoder::feed, Feed::none),
      [](Decoder& d) { d.feed = d.feed == Feed::none ? d.feed : Feed::relu; },
      set(&Decoder::checkpoint, Checkpoint::none),
      set(&Decoder::scales_queries, false),
      set(&Decoder::softmax_by_hand, false),
      set(&Decoder::packed, false),
      set(&Decoder::biases, false),
      set(&Decoder::residual, true),
      set(&Decoder::dropout, false),
      set(&Decoder::of_input, false),
      set(&Decoder::updates, false),
      set(&Decoder::any_length, false),
      set(&Decoder::autocast, false),
      set(&Decoder::dtype, DType::f32)};
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& simplify : simpler) {
      Decoder candidate = decoder;
      simplify(candidate);
      if (to_string(candidate) == to_string(decoder)) continue;
      const std::string wrong = check(candidate).wrong;
      if (wrong.empty() || kind_of(wrong) != kind) continue;
      decoder = candidate;
      progress = true;
    }
  }
  return decoder;
}

}  // namespace ein::attack
