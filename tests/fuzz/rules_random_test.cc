// Runs the fuzz target of the rules with a seeded generator, for a few seconds.
//
// TT_FUZZ_CALLS=<count> sets the number of calls.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/schema/default_float.h"
#include "tests/fuzz/random_bytes.h"
#include "tests/fuzz/rules_call.h"

namespace {

// The largest allocation since the last reset; rules must not allocate sizes taken from arguments.
std::atomic<size_t> largest{0};

}  // namespace

void* operator new(size_t bytes) {
  if (bytes > largest.load(std::memory_order_relaxed)) largest.store(bytes, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tt::fuzz {
namespace {

TEST(RulesRandomTest, RandomCallsReturnResultsOrErrors) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  const uint64_t calls = count_from("TT_FUZZ_CALLS", 300'000);
  for (uint64_t seed = 0; seed < calls; ++seed) {
    const RandomBytes bytes(seed);
    const DefaultFloat default_float(default_float_of(seed));
    largest = 0;
    ASSERT_EQ(call_rules(bytes.data(), bytes.size()), "") << "seed " << seed;
    ASSERT_LE(largest, kMaxBytes) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tt::fuzz
