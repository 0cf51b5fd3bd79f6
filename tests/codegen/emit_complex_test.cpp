// Functions of complex numbers and their gradients as CUDA C++, run on the host: by how many units
// they are off; or on the GPU whose number EIN_TEST_DEVICE is.
#include <complex>
#include <string>
#include <vector>

#include "support/complex_errors.hpp"
#include "support/complex_graph.hpp"
#include "support/emitted_cases.hpp"

namespace ein::test {
namespace {

/// What a case computes of which function.
struct Asked {
  const ComplexFunction* function;
  bool is_gradient;
};

class EmitComplexTest : public EmitTest {
 protected:
  template <class T>
  void add_functions(std::size_t count) {
    Random random(suite_seed());
    const DType dtype = complex_dtype(dtype_of<T>);
    const auto points = complex_points<T>(count, random);
    const Shape shape{static_cast<std::int64_t>(count)};
    const Tensor z = view_as_real(from_vector(points)).contiguous();
    const Tensor one = view_as_real(full(shape, std::complex<double>(1), dtype)).contiguous();
    for (const ComplexFunction& f : complex_functions()) {
      for (const bool is_gradient : {false, true}) {
        add(complex_graph(f.op, dtype, shape, is_gradient),
            is_gradient ? std::vector<Tensor>{z, one} : std::vector<Tensor>{z});
        asked_.push_back({&f, is_gradient});
      }
    }
  }

  /// The result of a case's kernels.
  Tensor run(const Case& c) const {
    const Memory memory(c);
    for (const auto& nest : c.kernels) {
      for (const KernelSource& kernel : nest) {
        KernelSource::Fault fault;
        const Fresh workspace(kernel.workspace_bytes);
        const std::string wrong =
            device_
                ? device_->run(kernel, memory.storages, workspace.storage(), c.origin, &fault)
                : host_.run(kernel, memory.buffers, workspace.storage()->data(), c.origin, &fault);
        EXPECT_EQ(wrong, "") << kernel.name;
      }
    }
    const Program::Result& result = c.program.results[0];
    return Tensor(memory.storages[static_cast<std::size_t>(result.buffer)], result.dtype,
                  result.shape, result.strides, result.offset)
        .clone();
  }

  template <class T>
  void check_functions() {
    ASSERT_EQ(device_ ? device_->build() : host_.build(), "");
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const auto& [f, is_gradient] = asked_[i];
      const std::vector<T> z = cases_[i].inputs[0].to_vector<T>(),
                           found = run(cases_[i]).to_vector<T>();
      for (std::size_t k = 0; k < z.size(); k += 2) {
        const WideComplex at(z[k], z[k + 1]);
        if (!f->is_known(at)) continue;
        const WideComplex wanted = is_gradient ? std::conj(f->slope(at)) : f->value(at);
        const WideComplex terms = is_gradient && f->terms ? f->terms(at) : wanted;
        const double error = error_in_units(std::complex<T>(found[k], found[k + 1]), wanted, terms);
        ASSERT_LE(error, most_units) << (is_gradient ? "the gradient of " : "") << f->name << " of "
                                     << z[k] << " and " << z[k + 1] << "\n"
                                     << text_of(cases_[i]);
      }
    }
  }

  std::vector<Asked> asked_;
};

TEST_F(EmitComplexTest, FunctionsOfC64) {
  add_functions<float>(seeds_or(2000));
  check_functions<float>();
}
TEST_F(EmitComplexTest, FunctionsOfC128) {
  add_functions<double>(seeds_or(2000));
  check_functions<double>();
}

}  // namespace
}  // namespace ein::test
