// Braces on a GPU give what they give on the CPU, and so do their gradients in a compiled function.
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include <ein/compile.hpp>
#include <ein/ein.hpp>
#include "support/window_forms.hpp"

namespace ein {
namespace {

/// Halves, so that sums are exact in any order.
Tensor halves(const Shape& shape) {
  return (rand(shape) * 9.0).to(DType::i32).to(DType::f32) * 0.5 - 2.0;
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    EXPECT_EQ(got[r].device(), cuda);
    ASSERT_EQ(got[r].shape(), wanted[r].shape());
    EXPECT_TRUE(all_close(got[r].to(cpu), wanted[r], 1e-6, 1e-6)) << "result " << r;
  }
}

TEST(WindowsOnDevice, EqualThoseOfTheCpu) {
  manual_seed(1);
  for (const test::WindowForm& form : test::window_forms({.b = 2, .side = 7, .c = 4, .o = 6})) {
    SCOPED_TRACE(form.name);
    std::vector<Tensor> here, there;
    for (const Shape& shape : form.shapes) here.push_back(halves(shape));
    for (const Tensor& x : here) there.push_back(x.to(cuda));
    expect_equal({form.function(there)}, {form.function(here)});
    here.push_back(halves(form.function(here).shape()));
    there.push_back(here.back().to(cuda));
    // Of two or three operands: the last one stands for what a form lacks.
    const std::size_t count = there.size();
    auto f = compile([&](const Tensor& x, const Tensor& w, const Tensor& cotangent) {
      const Tensor all[] = {x, w, cotangent};
      return test::run_form(form, std::span(all).first(count), true);
    });
    expect_equal(f(there[0], there[1], there.back()), test::run_form(form, here, true));
  }
}

}  // namespace
}  // namespace ein
