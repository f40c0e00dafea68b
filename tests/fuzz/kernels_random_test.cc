// The fuzz target of the CPU's kernels with a seeded generator.
//
// TT_FUZZ_CALLS=<count> goes on for longer; TT_FUZZ_FIRST=<seed> begins there; TT_FUZZ_TRACE=1 writes each call.
#include <gtest/gtest.h>

#include "tests/fuzz/kernels_call.h"
#include "tests/fuzz/random_bytes.h"

namespace tt::fuzz {
namespace {

TEST(KernelsRandomTest, RandomCallsGiveResultsOrErrors) {
  const uint64_t first = count_from("TT_FUZZ_FIRST", 0), calls = count_from("TT_FUZZ_CALLS", 20'000);
  for (uint64_t seed = first; seed < first + calls; ++seed) {
    const RandomBytes bytes(seed);
    ASSERT_EQ(call_kernels(bytes.data(), bytes.size()), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tt::fuzz
