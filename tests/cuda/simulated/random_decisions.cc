#include "tests/cuda/simulated/random_decisions.h"

#include <cstdlib>
#include <numeric>

#include "absl/strings/numbers.h"
#include "kernels/cuda/launch/simulated_group.h"

namespace tt::cuda {
namespace {

uint64_t seed_of_environment() {
  const char* text = std::getenv("TELETENSOR_SIMULATED_SEED");
  uint64_t seed = 0;
  return text && absl::SimpleAtoi(text, &seed) ? seed : 1;
}

uint64_t seed = seed_of_environment(), state = seed;

// SplitMix64.
uint64_t next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t simulated_seed() { return seed; }

void set_simulated_seed(uint64_t value) { seed = state = value; }

int64_t draw(int64_t below) { return static_cast<int64_t>((next() >> 1) % static_cast<uint64_t>(below)); }

Shuffle::Shuffle(int64_t n) : n_(n), step_(1 + draw(n)), at_(draw(n)) {
  while (std::gcd(step_, n) != 1) step_ = 1 + step_ % n;
}

}  // namespace tt::cuda
