// ein::cuda on a machine without NVIDIA's driver: an Error that says what to do, and everything
// else works.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ein/ein.hpp>

namespace ein {
namespace {

TEST(NoDevice, SaysWhatIsMissing) {
  if (device_count() > 0) GTEST_SKIP() << "there is a GPU";
  const Tensor x = ones({2});
  for (const auto& call : {+[](const Tensor&) {
                             return randn({2, 3}, cuda);
                           },
                           +[](const Tensor& x) { return x.to(cuda); }}) {
    try {
      call(x);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      EXPECT_NE(std::string(error.what()).find("driver"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace ein
