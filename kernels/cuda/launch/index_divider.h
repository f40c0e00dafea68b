// IndexDivider: division of indices by a number known before the launch.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cuda/launch/fast_divmod.h"

namespace tt::cuda {

// Divides indices below `end`. Uses FastDivmod if `end` and the divisor are small enough, as they usually are. The
// divisor may be 0 if nothing is divided.
class IndexDivider {
 public:
  IndexDivider() = default;
  IndexDivider(int64_t divisor, int64_t end) : divisor_(divisor) {
    constexpr int64_t kMaxSmall = std::numeric_limits<int32_t>::max();
    is_small_ = divisor > 0 && divisor <= kMaxSmall && end <= kMaxSmall;
    if (is_small_) small_ = FastDivmod(static_cast<uint32_t>(divisor));
  }
  TT_FUNCTION int64_t quotient(int64_t i) const {
    return is_small_ ? static_cast<int64_t>(small_.quotient(static_cast<uint32_t>(i))) : i / divisor_;
  }

 private:
  int64_t divisor_ = 1;
  FastDivmod small_;
  bool is_small_ = true;
};

}  // namespace tt::cuda
