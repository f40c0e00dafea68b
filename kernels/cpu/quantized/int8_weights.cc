#include "kernels/cpu/quantized/int8_weights.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/blas/packed_weights.h"
#include "kernels/cpu/quantized/int8_dot.h"

namespace tt::cpu {
namespace {

using Dims = dnnl::memory::dims;

// Finds or makes the copy of `bytes` bytes that the sizes `dims` of the weight identify: those of matrices have 2, of
// filters one more than the weight.
Tensor kept_copy(const Tensor& weight, const Dims& dims, int64_t bytes, absl::FunctionRef<void(const Tensor&)> make) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
  const dnnl::memory::desc plain(dims, dnnl::memory::data_type::s8, strides);
  const dnnl::memory::desc wanted({bytes}, dnnl::memory::data_type::u8, Dims{1});
  if (!used_before(weight, wanted)) return Tensor();
  try {
    return packed_by(weight, plain, wanted, make, true);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    return Tensor();
  }
}

}  // namespace

void taps_first(int64_t filters, int64_t channels, int64_t taps, const int8_t* from, int8_t* to) {
  parallel_for(filters, std::max<int64_t>(1, (int64_t{1} << 15) / (channels * taps)), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t ch = 0; ch < channels; ++ch) {
        for (int64_t t = 0; t < taps; ++t) to[(o * taps + t) * channels + ch] = from[(o * channels + ch) * taps + t];
      }
    }
  });
}

Tensor packed_rows(const Tensor& weight, int64_t m) {
  const int64_t n = weight.size(0), k = weight.size(1);
  if (weight.dtype() != DType::kInt8 || !weight.is_contiguous() || !uses_packed(m, n, k)) return Tensor();
  return kept_copy(weight, {n, k}, packed_weights_bytes(n, k), [&](const Tensor& copy) {
    pack_weights(n, k, weight.data_as<const int8_t>(), k, copy.data_as<int8_t>());
  });
}

Tensor packed_filters(const Tensor& weight, int64_t groups, int64_t m) {
  const int64_t n = weight.size(0) / groups, channels = weight.size(1), k = weight.numel() / weight.size(0);
  if (weight.dtype() != DType::kInt8 || !weight.is_contiguous() || !uses_packed(m, n, k)) return Tensor();
  Dims dims(weight.sizes().begin(), weight.sizes().end());
  dims.push_back(groups);
  const int64_t bytes = packed_weights_bytes(n, k);
  return kept_copy(weight, dims, groups * bytes, [&](const Tensor& copy) {
    const Tensor rows = empty(Sizes{weight.numel()}, DType::kInt8, weight.device());
    taps_first(weight.size(0), channels, k / channels, weight.data_as<const int8_t>(), rows.data_as<int8_t>());
    for (int64_t g = 0; g < groups; ++g) {
      pack_weights(n, k, rows.data_as<const int8_t>() + g * n * k, k, copy.data_as<int8_t>() + g * bytes);
    }
  });
}

}  // namespace tt::cpu
