// Sizes of pools whose blocks are as large as the tests state, also with AddressSanitizer.
#pragma once

#include "engine/memory/caching_pool.h"

namespace tt {

inline PoolSizes exact_sizes(PoolSizes sizes = {}) {
  sizes.red_zone = 0;
  return sizes;
}

}  // namespace tt
