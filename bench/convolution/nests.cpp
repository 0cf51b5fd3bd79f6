// usage: ein_convolution_nests THREADS
// The nests of convolutions alone, for bench/peers/convolutions.py, which asks by lines:
//   case DTYPE LAYOUT PASS BATCH SIDE IN OUT WINDOW STEP MARGIN     answers with the FLOP of a call
//   run SECONDS                                                 answers with the seconds of a call,
//                                                 and those with the copy that makes the margins
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ein/parallel.hpp>
#include "cpu/kernel.hpp"
#include "tensor/convert.hpp"

namespace {

using ein::DType, ein::LoopNest, ein::Size;

struct Case {
  DType dtype = DType::f32;
  bool channels_last = true;
  std::string pass;
  std::int64_t batch = 1, side = 1, in = 1, out = 1, window = 1, step = 1, margin = 0;
  std::int64_t result_side() const { return (side + 2 * margin - window) / step + 1; }
};

/// An image (batch, rows, columns, channels), or weights (rows and columns of the window, in, out),
/// as strides.
struct Strides {
  std::int64_t b, y, x, c;
};
Strides image_strides(const Case& c, std::int64_t side, std::int64_t channels) {
  return c.channels_last ? Strides{side * side * channels, side * channels, channels, 1}
                         : Strides{side * side * channels, side, 1, side * side};
}
struct WeightStrides {
  std::int64_t y, x, in, out;
};
WeightStrides weight_strides(const Case& c) {
  return c.channels_last
             ? WeightStrides{c.window * c.in * c.out, c.in * c.out, c.out, 1}
             : WeightStrides{c.window, 1, c.window * c.window, c.in * c.window * c.window};
}

/// Kernels over buffers of their own: the image with margins, the weights, the result with margins,
/// and an image and a result without them.
class Convolution {
 public:
  explicit Convolution(const Case& c) : case_(c) {
    const std::int64_t inner = c.side + 2 * c.margin, side = c.result_side();
    const std::int64_t around = c.window;  // margins of a result
    sides_ = {inner, 0, side + 2 * around, c.side, side};
    elements_ = {c.batch * inner * inner * c.in, c.window * c.window * c.in * c.out,
                 c.batch * sides_[2] * sides_[2] * c.out, c.batch * c.side * c.side * c.in,
                 c.batch * side * side * c.out};
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-1, 1);
    for (std::int64_t n : elements_) {
      buffers_.emplace_back(static_cast<std::size_t>(n) * ein::size_of(c.dtype) + 64);
      for (std::int64_t i = 0; i < n; ++i) {
        const double number = value(random);
        ein::store_from(&number, 1, at(buffers_.back()) + i * std::int64_t(ein::size_of(c.dtype)),
                        c.dtype, 1);
      }
    }
    if (c.pass == "forward") {
      forward();
      add_margin(3, 0, c.side, c.margin, c.in);
    } else if (c.pass == "weights") {
      weights();
      add_margin(3, 0, c.side, c.margin, c.in);
    } else {
      image();
      if (c.window > 1) add_margin(4, 2, side, around, c.out);
    }
    std::size_t bytes = 64;
    for (const auto& kernel : kernels_)
      bytes = std::max(bytes, kernel->workspace_bytes(ein::num_threads()) + 64);
    if (margin_) bytes = std::max(bytes, margin_->workspace_bytes(ein::num_threads()) + 64);
    workspace_.resize(bytes);
  }

  double flop() const {
    const auto side = static_cast<double>(case_.result_side());
    return 2 * side * side *
           static_cast<double>(case_.batch * case_.in * case_.out * case_.window * case_.window);
  }
  void run() {
    for (const auto& kernel : kernels_) run(*kernel);
  }
  void run_margin() {
    if (margin_) run(*margin_);
  }

 private:
  static std::byte* at(std::vector<std::byte>& bytes) {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(bytes.data()) + 63) / 64 *
                                        64);
  }
  void run(const ein::host::Kernel& kernel) {
    std::vector<std::byte*> data;
    for (auto& buffer : buffers_) data.push_back(at(buffer));
    kernel.run({data, at(workspace_), {}, ein::num_threads()});
  }

  static LoopNest products() {
    LoopNest nest;
    nest.body = ein::Ex::input(0) * ein::Ex::input(1);
    nest.combine = ein::Combine::sum;
    return nest;
  }
  void add(LoopNest nest) {
    ein::simplify(nest);
    kernels_.push_back(ein::host::make_kernel(nest));
  }

  /// Copies an image to the middle of another.
  void add_margin(int from, int to, std::int64_t side, std::int64_t margin, std::int64_t channels) {
    if (margin == 0) return;
    const Strides inner = image_strides(case_, side, channels),
                  outer = image_strides(case_, side + 2 * margin, channels);
    LoopNest nest;
    nest.axes = {{"b", case_.batch}, {"y", side}, {"x", side}, {"c", channels}};
    nest.inputs = {{from, case_.dtype, 0, {inner.b, inner.y, inner.x, inner.c}}};
    nest.output = {
        to, case_.dtype, margin * (outer.y + outer.x), {outer.b, outer.y, outer.x, outer.c}};
    nest.body = ein::Ex::input(0);
    ein::simplify(nest);
    margin_ = ein::host::make_kernel(nest);
  }

  // Axes: b, y, x, ky, kx, c, o.
  void forward() {
    const Case& c = case_;
    const std::int64_t side = c.result_side(), k = c.window, s = c.step;
    const Strides x = image_strides(c, sides_[0], c.in), z = image_strides(c, side, c.out);
    const WeightStrides w = weight_strides(c);
    LoopNest nest = products();
    nest.axes = {{"b", c.batch},  {"y", side},       {"x", side}, {"ky", k, true},
                 {"kx", k, true}, {"c", c.in, true}, {"o", c.out}};
    nest.inputs = {{0, c.dtype, 0, {x.b, s * x.y, s * x.x, x.y, x.x, x.c, 0}},
                   {1, c.dtype, 0, {0, 0, 0, w.y, w.x, w.in, w.out}}};
    nest.output = {4, c.dtype, 0, {z.b, z.y, z.x, 0, 0, 0, z.c}};
    add(nest);
  }
  void weights() {
    const Case& c = case_;
    const std::int64_t side = c.result_side(), k = c.window, s = c.step;
    const Strides x = image_strides(c, sides_[0], c.in), z = image_strides(c, side, c.out);
    const WeightStrides w = weight_strides(c);
    LoopNest nest = products();
    nest.axes = {{"b", c.batch, true}, {"y", side, true}, {"x", side, true}, {"ky", k}, {"kx", k},
                 {"c", c.in},          {"o", c.out}};
    nest.inputs = {{0, c.dtype, 0, {x.b, s * x.y, s * x.x, x.y, x.x, x.c, 0}},
                   {4, c.dtype, 0, {z.b, z.y, z.x, 0, 0, 0, z.c}}};
    nest.output = {1, c.dtype, 0, {0, 0, 0, w.y, w.x, w.in, w.out}};
    add(nest);
  }
  /// The gradient of the image: one nest for each remainder of places by the step.
  void image() {
    const Case& c = case_;
    const std::int64_t k = c.window, s = c.step, p = c.margin;
    const std::int64_t around = k > 1 ? k : 0, side = c.result_side();
    const Strides x = image_strides(c, c.side, c.in),
                  z = image_strides(c, side + 2 * around, c.out);
    const WeightStrides w = weight_strides(c);
    for (std::int64_t ry = 0; ry < s; ++ry) {
      for (std::int64_t rx = 0; rx < s; ++rx) {
        const std::int64_t ky = (ry + p) % s, kx = (rx + p) % s;
        const std::int64_t taps_y = (k - ky + s - 1) / s, taps_x = (k - kx + s - 1) / s;
        if (ky >= k || kx >= k) continue;
        const std::int64_t first_y = around + (ry + p - ky) / s,
                           first_x = around + (rx + p - kx) / s;
        LoopNest nest = products();
        nest.axes = {{"b", c.batch},
                     {"y", (c.side - ry + s - 1) / s},
                     {"x", (c.side - rx + s - 1) / s},
                     {"ky", taps_y, true},
                     {"kx", taps_x, true},
                     {"o", c.out, true},
                     {"c", c.in}};
        nest.inputs = {{c.window > 1 ? 2 : 4,
                        c.dtype,
                        first_y * z.y + first_x * z.x,
                        {z.b, z.y, z.x, -z.y, -z.x, z.c, 0}},
                       {1, c.dtype, ky * w.y + kx * w.x, {0, 0, 0, s * w.y, s * w.x, w.out, w.in}}};
        nest.output = {3, c.dtype, ry * x.y + rx * x.x, {x.b, s * x.y, s * x.x, 0, 0, 0, x.c}};
        add(nest);
      }
    }
  }

  Case case_;
  std::vector<std::int64_t> sides_, elements_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<std::unique_ptr<ein::host::Kernel>> kernels_;
  std::unique_ptr<ein::host::Kernel> margin_;
  std::vector<std::byte> workspace_;
};

/// As bench/harness.cpp's.
double now() {
  timespec time{};
  clock_gettime(ein::num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
template <class F>
double seconds_of(const F& f, double least) {
  const double begin = now();
  int calls = 0;
  double spent = 0;
  do {
    f();
    ++calls;
    spent = now() - begin;
  } while (spent < least);
  return spent / calls;
}

}  // namespace

int main(int argc, char** argv) {
  ein::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::unique_ptr<Convolution> convolution;
  for (std::string word; std::cin >> word;) {
    if (word == "case") {
      Case c;
      std::string dtype, layout;
      std::cin >> dtype >> layout >> c.pass >> c.batch >> c.side >> c.in >> c.out >> c.window >>
          c.step >> c.margin;
      c.dtype = dtype == "bf16" ? DType::bf16 : dtype == "f64" ? DType::f64 : DType::f32;
      c.channels_last = layout == "nhwc";
      convolution = std::make_unique<Convolution>(c);
      convolution->run_margin();
      convolution->run();
      std::cout << convolution->flop() << std::endl;
    } else {
      double seconds = 0;
      std::cin >> seconds;
      const double alone = seconds_of([&] { convolution->run(); }, seconds);
      const double margin = seconds_of([&] { convolution->run_margin(); }, seconds / 10);
      std::cout << alone << ' ' << alone + margin << std::endl;
    }
  }
}
