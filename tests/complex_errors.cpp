// The errors of functions of complex numbers on this processor, as a table in Markdown; what
// `make complex-errors` runs. tests/operations/complex_functions_test.cpp asks for the limits by
// the same means.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "support/complex_errors.hpp"

namespace {

using namespace ein;

constexpr std::string_view begin = "<!-- complex-errors -->\n", end = "<!-- end -->";

/// Of `batches` times 20,000 numbers.
template <class T>
test::ComplexErrors<T> worst_of(const test::ComplexFunction& f, int batches) {
  std::mt19937_64 random(1);
  test::ComplexErrors<T> worst;
  for (int i = 0; i < batches; ++i) {
    const auto errors = test::measure(f, test::complex_points<T>(20'000, random));
    worst.take(errors.value, errors.value_at, false);
    worst.take(errors.gradient, errors.gradient_at, true);
  }
  return worst;
}

std::string cell(double units) {
  char text[32];
  std::snprintf(text, sizeof text, " %.2f |", units);
  return text;
}

}  // namespace

/// Arguments: the page to write, and how many batches, 50 if nothing else is said.
int main(int count, char** texts) {
  const int batches = count > 2 ? std::atoi(texts[2]) : 50;
  if (count < 2 || batches < 1) {
    std::cerr << "usage: ein_complex_errors PAGE [BATCHES]\n";
    return 2;
  }
  std::string table = "\n| | c64 | its gradient | c128 | its gradient |\n|---|---|---|---|---|\n";
  bool is_right = true;
  for (const test::ComplexFunction& f : test::complex_functions()) {
    const auto singles = worst_of<float>(f, batches);
    const auto doubles = worst_of<double>(f, batches);
    table += "| " + f.name + " |" + cell(singles.value) + cell(singles.gradient) +
             cell(doubles.value) + cell(doubles.gradient) + '\n';
    is_right &= singles.value <= test::most_units && singles.gradient <= test::most_units &&
                doubles.value <= test::most_units && doubles.gradient <= test::most_units;
  }
  std::cout << table;
  std::ifstream in(texts[1]);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::size_t from = page.find(begin), to = page.find(end, from);
  if (from == std::string::npos || to == std::string::npos) {
    std::cerr << texts[1] << " has no mark " << begin;
    return 1;
  }
  std::ofstream(texts[1]) << page.substr(0, from + begin.size()) << table << '\n'
                          << page.substr(to);
  return is_right ? 0 : 1;
}
