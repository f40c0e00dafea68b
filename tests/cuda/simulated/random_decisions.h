// The random decisions of simulated devices (kernels/cuda/launch/simulated_group.h): execution order, group sizes,
// thread order.
//
// One sequence per process, seeded by TELETENSOR_SIMULATED_SEED or 1: the same work in the same order gets the same
// decisions. Failures report the seed. Requires the simulated runtime's lock.
#pragma once

#include <cstdint>

namespace tt::cuda {

uint64_t simulated_seed();
void set_simulated_seed(uint64_t seed);  // restarts the sequence

}  // namespace tt::cuda
