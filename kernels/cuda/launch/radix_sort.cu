#include "kernels/cuda/launch/radix_sort.h"

#ifdef __CUDACC__
#include "kernels/cuda/launch/radix_sort_device.h"
#else
#include "kernels/cuda/launch/radix_sort_host.h"
#endif

namespace tt::cuda {

KeyIndexPairs radix_sort(const Queue& queue, const KeyIndexPairs& items, int bits) {
  if (items.keys.numel() < 2 || bits == 0) return items;
  return items.keys.dtype() == DType::kInt32 ? radix_sort_as<uint32_t>(queue, items, bits)
                                             : radix_sort_as<uint64_t>(queue, items, bits);
}

}  // namespace tt::cuda
