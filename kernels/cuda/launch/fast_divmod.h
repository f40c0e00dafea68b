// FastDivmod: division by a number known before the launch, as a multiplication and a shift.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// Divides numbers below 2^31 by a divisor in [1, 2^31). (Granlund and Montgomery, "Division by invariant integers using
// multiplication", PLDI 1994.) On a GPU, a general 32-bit division takes about 20 instructions, a 64-bit one about 100.
class FastDivmod {
 public:
  FastDivmod() = default;
  explicit FastDivmod(uint32_t divisor) : divisor_(divisor) {
    while (uint64_t{1} << shift_ < divisor) ++shift_;
    magic_ = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor) / divisor + 1);
  }
  TT_FUNCTION uint32_t quotient(uint32_t n) const {
    return (static_cast<uint32_t>(uint64_t{n} * magic_ >> 32) + n) >> shift_;
  }
  // Returns n % divisor and replaces n by the quotient.
  TT_FUNCTION uint32_t divmod(uint32_t& n) const {
    const uint32_t q = quotient(n), remainder = n - q * divisor_;
    n = q;
    return remainder;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t magic_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace tt::cuda
