#include <atomic>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/math/value_ranges.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

void check_range(const Tensor& input, std::string_view range, Tensor& out) {
  const ValueRange& limits = kValueRanges[value_range(range)];
  const Tensor values = contiguous_as(input, input.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  std::atomic<bool> fits{true};
  with_real(values.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* x = values.data_as<T>();
    const T low = static_cast<T>(limits.low), high = static_cast<T>(limits.high);
    parallel_for(values.numel(), 32768, [&](int64_t begin, int64_t end) {
      bool all = true;
      for (int64_t i = begin; i < end; ++i) all &= x[i] >= low && x[i] <= high;
      if (!all) fits.store(false, std::memory_order_relaxed);
    });
  });
  check(fits.load(std::memory_order_relaxed), limits.message);
  std::memset(out.data(), 0, item_size(out.dtype()));
}

}  // namespace tt::cpu
