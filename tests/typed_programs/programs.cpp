#include "programs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

namespace ein::typed_programs {
namespace {

constexpr int runs = 4;
std::size_t open_axes = 0;  // of this run

/// The sizes of a run. In the first all are one size, that of numbers in types, too: no shape tells
/// that axes were taken for each other.
struct Choice {
  std::vector<std::int64_t> sizes, open;
};
Choice choose(const Program& program, int run, std::mt19937_64& random) {
  const auto below = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  Choice choice;
  const std::int64_t all = 2 + below(3);
  for (std::size_t k = 0; k < program.sizes; ++k)
    choice.sizes.push_back(run == 0 ? all : run == 1 ? 1 + below(4) : 1 + below(6));
  if (run == 3 && program.may_be_empty && program.sizes > 0)
    choice.sizes[static_cast<std::size_t>(below(static_cast<int>(program.sizes)))] = 0;
  for (std::int64_t d = run == 0 ? 1 : below(3); d > 0; --d)
    choice.open.push_back(run == 0 ? all : 1 + below(3));
  return choice;
}

DType dtype_named(std::string_view text) {
  for (const DType dtype : real_dtypes) {
    if (name(dtype) == text) return dtype;
  }
  throw std::runtime_error("no dtype " + std::string(text));
}

Tensor make_input(const std::string& text, const Choice& choice, std::mt19937_64& random) {
  std::istringstream words(text);
  std::string dtype_text, below, word;
  words >> dtype_text >> below;
  Shape shape;
  while (words >> word) {
    if (word == "...")
      for (const std::int64_t n : choice.open) shape.push_back(n);
    else
      shape.push_back(size(choice.sizes, word));
  }
  const DType dtype = dtype_named(dtype_text);
  std::vector<double> values(static_cast<std::size_t>(numel(shape)));
  std::normal_distribution<double> normal;
  const bool are_whole = is_integral(dtype) || random() % 4 == 0;  // whose elements tie
  const auto limit = below == "-" ? 0 : static_cast<unsigned>(size(choice.sizes, below));
  for (double& x : values) {
    if (limit > 0)
      x = static_cast<double>(random() % limit);
    else if (dtype == DType::boolean)
      x = static_cast<double>(random() % 2);
    else if (are_whole)
      x = static_cast<double>(random() % 7) - (is_unsigned(dtype) ? 0 : 3);
    else
      x = normal(random);
  }
  return from_vector(values, shape).to(dtype);
}

double greatest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) {
    if (std::isfinite(x)) most = std::max(most, std::abs(x));
  }
  return most;
}

/// Where two tensors differ; empty if nowhere. `ulps`: as many units in the last place of the
/// greatest element are no difference.
std::string difference(const Tensor& typed, const Tensor& plain, double ulps = 0) {
  if (typed.dtype() != plain.dtype())
    return "has dtype " + std::string(name(typed.dtype())) + ", the plain one " +
           std::string(name(plain.dtype()));
  if (!(typed.shape() == plain.shape()))
    return "has shape " + typed.shape().to_string() + ", the plain one " +
           plain.shape().to_string();
  const Tensor a = typed.detach().contiguous(), b = plain.detach().contiguous();
  const auto values = a.to(DType::f64).to_vector<double>(),
             others = b.to(DType::f64).to_vector<double>();
  const double tolerance = ulps * (ulps > 0 ? finfo(typed.dtype()).eps : 0) * greatest(others);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], y = others[i];
    const bool are_equal = (x == y && std::signbit(x) == std::signbit(y)) || (x != x && y != y) ||
                           (ulps > 0 && std::abs(x - y) <= tolerance);
    if (!are_equal) {
      std::ostringstream text;
      text.precision(17);
      text << "has element " << i << " " << x << ", the plain one " << y;
      return text.str();
    }
  }
  return "";
}

/// The gradients of a sum of all values of floats.
std::vector<Tensor> gradients_of(std::span<const Tensor> values, std::span<const Tensor> inputs) {
  Tensor loss = zeros({}, DType::f64);
  double factor = 1;
  for (const Tensor& value : values) {
    factor *= -0.75;
    if (is_floating(value.dtype()) && value.requires_grad())
      loss = loss + factor * reduce(value.to(DType::f64), "... ->", "sum");
  }
  return loss.requires_grad() ? gradients(loss, inputs) : std::vector<Tensor>();
}

/// What is wrong in a run; empty if nothing is.
std::string wrong_in_run(const Program& program, int run) {
  std::mt19937_64 random(program.seed * 7919 + static_cast<std::uint64_t>(run));
  const Choice choice = choose(program, run, random);
  open_axes = choice.open.size();
  std::vector<Tensor> inputs, leaves;
  std::istringstream texts(program.inputs);
  for (std::string text; std::getline(texts, text, ';');) {
    inputs.push_back(make_input(text, choice, random));
    if (!is_floating(inputs.back().dtype())) continue;
    inputs.back().requires_grad(true);
    leaves.push_back(inputs.back());
  }
  std::vector<Tensor> typed, plain;
  program.plain(choice.sizes, inputs, plain);
  program.typed(choice.sizes, inputs, typed);
  for (std::size_t k = 0; k < plain.size(); ++k) {
    if (const std::string text = difference(typed[k], plain[k]); !text.empty())
      return "the value of call " + std::to_string(k + 1) + " " + text;
  }
  const std::vector<Tensor> of_typed = gradients_of(typed, leaves),
                            of_plain = gradients_of(plain, leaves);
  if (of_typed.size() != of_plain.size()) return "one half alone has gradients";
  const double ulps_of_sums = program.has_vmap ? 64 : 0;
  for (std::size_t k = 0; k < of_plain.size(); ++k) {
    if (const std::string text = difference(of_typed[k], of_plain[k], ulps_of_sums); !text.empty())
      return "the gradient of input " + std::to_string(k + 1) + " of floats " + text;
  }
  return "";
}

}  // namespace

std::int64_t size(Sizes n, std::string_view text) {
  if (const std::size_t at = text.find('*'); at != std::string_view::npos)
    return size(n, text.substr(0, at)) * size(n, text.substr(at + 1));
  if (text.ends_with("/2")) return (size(n, text.substr(0, text.size() - 2)) + 1) / 2;
  const bool is_chosen = text.front() == 'n';
  const std::int64_t number = std::stoll(std::string(text.substr(is_chosen ? 1 : 0)));
  return is_chosen ? n[static_cast<std::size_t>(number)] : number;
}

Tensor read(const Tensor& x, std::string_view pattern) {
  std::string text;
  for (const char c : pattern) {
    if (c != '#')
      text += c;
    else
      for (std::size_t d = 0; d < open_axes; ++d) text += "1 ";
  }
  return rearrange(x, runtime(text));
}

Tensor along(const Tensor& x, int dimension, const Index& index) {
  const auto before =
      static_cast<std::size_t>(dimension < 0 ? dimension + static_cast<int>(x.rank()) : dimension);
  std::vector<Index> indices(before, every);
  indices.push_back(index);
  return x.at(indices);
}

int run(int argc, char** argv, std::span<const Program> programs) {
  const bool is_one = argc > 2 && std::strcmp(argv[1], "--only") == 0;
  long count = 0, wrong = 0;
  for (const Program& program : programs) {
    if (is_one && program.seed != std::stoull(argv[2])) continue;
    ++count;
    for (int r = 0; r < runs; ++r) {
      std::string text;
      try {
        text = wrong_in_run(program, r);
      } catch (const std::exception& error) {
        text = std::string("an exception: ") + error.what();
      }
      if (text.empty()) continue;
      ++wrong;
      std::cout << "seed " << program.seed << ", run " << r << ": " << text << std::endl;
      break;
    }
  }
  std::cout << count << " programs, " << wrong << " wrong\n";
  return wrong > 0 || count == 0 ? 1 : 0;
}

}  // namespace ein::typed_programs
