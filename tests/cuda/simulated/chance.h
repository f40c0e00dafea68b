// What simulated devices draw (kernels/cuda/launch/simulated_group.h): orders, sizes of groups, turns.
//
// From one sequence, which begins at TELETENSOR_SIMULATED_SEED, or at 1: a process that gives its devices the same work
// in the same order sees the same. Failures name the seed. Used by whoever has the simulated runtime's lock.
#pragma once

#include <cstdint>

namespace tt::cuda {

uint64_t simulated_seed();
void set_simulated_seed(uint64_t seed);  // begins anew

}  // namespace tt::cuda
