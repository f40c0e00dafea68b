// Runs the fuzz target of the CPU kernels with a seeded generator.
//
// TT_FUZZ_CALLS=<count> sets the number of calls; TT_FUZZ_FIRST=<seed> sets the first seed; TT_FUZZ_TRACE=1 prints
// each call.
#include <gtest/gtest.h>

#include "engine/schema/default_float.h"
#include "tests/fuzz/kernels_call.h"
#include "tests/fuzz/random_bytes.h"

namespace tt::fuzz {
namespace {

TEST(KernelsRandomTest, RandomCallsReturnResultsOrErrors) {
  const uint64_t first = count_from("TT_FUZZ_FIRST", 0), calls = count_from("TT_FUZZ_CALLS", 20'000);
  for (uint64_t seed = first; seed < first + calls; ++seed) {
    const RandomBytes bytes(seed);
    const DefaultFloat default_float(default_float_of(seed));
    ASSERT_EQ(call_kernels(bytes.data(), bytes.size()), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace tt::fuzz
