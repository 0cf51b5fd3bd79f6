// Braces on a mesh: what they compute of an axis is on one process, and other axes are split.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include <ein/mesh.hpp>

#include "support/expect_error.hpp"
#include "support/placed_tensors.hpp"
#include "support/window_forms.hpp"

namespace ein {
namespace {

using namespace literals;

using test::expect_error;
using test::expect_same;
using test::mesh_of;
using test::numbers;
using test::two_by_two;

std::string pattern_of(std::size_t rank, int split, const std::string& over) {
  std::string pattern;
  for (std::size_t d = 0; d < rank; ++d)
    pattern += " i" + std::to_string(d) + (static_cast<int>(d) == split ? "@" + over : "");
  return pattern;
}

/// The batch, which no brace has, is split; weights are whole, and their gradients are summed.
TEST(MeshWindowsTest, OfAnAxisThatIsWhole) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(1);
  for (const test::WindowForm& form : test::window_forms({.b = 4, .side = 5, .c = 2, .o = 4})) {
    SCOPED_TRACE(form.name);
    std::vector<Tensor> whole, placed;
    for (std::size_t i = 0; i < form.shapes.size(); ++i) {
      whole.push_back(numbers(form.shapes[i], random));
      const std::string batch = pattern_of(form.shapes[i].rank(), 0, "data");
      placed.push_back(i == 0 ? place(whole[0], mesh, runtime(batch)) : whole[i]);
    }
    const Tensor result = form.function(whole);
    expect_same(form.function(placed), result);
    auto f = compile([&](const Tensor& x, const Tensor& w) {
      return form.function(std::vector{x, w});
    });
    expect_same(f(placed.front(), placed.back()), result);

    whole.push_back(numbers(result.shape(), random));
    placed.push_back(place(whole.back(), mesh, runtime(pattern_of(result.rank(), 0, "data"))));
    const std::vector<Tensor> gradients = test::run_form(form, placed, true),
                              wanted = test::run_form(form, whole, true);
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_same(gradients[i], wanted[i]);
  }
}

/// Features over one mesh axis, the batch over another.
TEST(MeshWindowsTest, OfOutputsThatAreSplit) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(2);
  const Tensor x = numbers({2, 6, 6, 4}, random), w = numbers({3, 3, 4, 8}, random);
  const auto convolved = [](const Tensor& x, const Tensor& w) {
    return einsum(x, w, "b {2*y + ky - 1} {2*x + kx - 1} c, ky kx c o -> b y x o");
  };
  const Tensor made = convolved(place(x, mesh, "b@data y x c"), place(w, mesh, "ky kx c o@model"));
  EXPECT_EQ(placement(made), "i0@data i1 i2 i3@model");
  expect_same(made, convolved(x, w));
  // Channels are summed by all_reduce.
  const Tensor sum = convolved(place(x, mesh, "b y x c@model"), place(w, mesh, "ky kx c@model o"));
  EXPECT_FALSE(sum.is_placed());
  expect_same(sum, convolved(x, w));
}

/// The line that the error names is one that makes the call work.
TEST(MeshWindowsTest, OfAnAxisThatIsSplitNamesTheReshard) {
  const Mesh mesh = two_by_two();
  std::mt19937_64 random(3);
  const Tensor whole = numbers({4, 8, 6}, random), w = numbers({3, 6}, random),
               x = place(whole, mesh, "b@data t@model c");
  const std::string several = "its positions are functions of several indices";
  const auto check = [&](const std::string& why, const auto& f, const std::string& b = "b",
                         const std::string& t = "t", const std::string& c = "c") {
    const std::string split = b + "@data " + t + "@model " + c, joined = b + "@data " + t + " " + c,
                      way = split + " -> " + joined;
    expect_error([&] { f(x); }, ErrorKind::placement,
                 {"axis " + t + " must be whole, as " + why, "it is " + t + "@model in operand 1",
                  "help: ein::reshard(x, \"" + way + "\") of operand 1"});
    expect_same(f(reshard(x, runtime(way))), f(whole));
  };
  check(several, [&](const Tensor& t) { return einsum(t, w, "b {t + k - 1} c, k c -> b t c"); });
  check(several,
        [&](const Tensor& t) { return reduce(t, "b {t + k - 1} c -> b t c", "max", "k"_a = 3); });
  check(several,
        [&](const Tensor& t) { return rearrange(t, "b {t + k} c -> b t k c", "k"_a = 3); });
  check(several, [&](const Tensor& t) { return einsum(t, w, "b t c, k c -> b {t + k} c"); });
  check(several,
        [&](const Tensor& t) { return map(t, w, "b t c, k c -> b {t + k} c", fn::sub, "sum"); });
  const std::string part = "a part of it is taken";
  // What map reads beside an operand is padded before axes have names.
  check(
      part,
      [&](const Tensor& t) { return map(t, w, "b {t + k - 1} c, k c -> b t c", fn::sub, "sum"); },
      "i0", "i1", "i2");
  check(part, [&](const Tensor& t) { return reduce(t, "b t c -> b {2*t} c", "sum"); });
  check(part, [&](const Tensor& t) { return rearrange(t, "b t c -> b {2*t} c"); });
  check(part, [&](const Tensor& t) { return einsum(t, "b {2*t} c -> b t c"); });
  check("it is gone along backwards",
        [&](const Tensor& t) { return einsum(t, "b {-t} c -> b t c"); });
}

}  // namespace
}  // namespace ein
