// Which instructions are used: the processor's best, or what EIN_ISA asks for.
#include <gtest/gtest.h>

#include <string>

#include <ein/error.hpp>
#include "machine/processor.hpp"
#include "support/expect_error.hpp"

namespace ein::host {
namespace {

TEST(Isa, AllOfThisProcessorCanBeAskedFor) {
  EXPECT_EQ(isa_of(""), isas_here().back());
  for (const Isa isa : isas_here()) EXPECT_EQ(isa_of(name(isa)), isa);
}

TEST(Isa, OthersAreErrors) {
  test::expect_error([] { isa_of("avx2"); }, ErrorKind::value,
                     {"EIN_ISA is 'avx2', which is no instruction set", "this processor has"});
  const Isa other = isas_here().back() == Isa::neon ? Isa::v3 : Isa::neon;
  test::expect_error([&] { isa_of(name(other)); }, ErrorKind::device,
                     {"EIN_ISA asks for " + std::string(name(other)), "this processor has"});
}

}  // namespace
}  // namespace ein::host
