#include "kernels/cuda/quantized/operands.h"

#include <bit>
#include <limits>

#include "kernels/common/quantized/operand_checks.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/first_error.h"

namespace tt::cuda {
namespace {

constexpr const char* kWeightZeroPoint = "weight_zero_point";

Error invalid_zero_point(const DeviceErrorCell& cell) { return zero_point_outside(cell.values[0]); }

Error invalid_weight_zero_point(const DeviceErrorCell& cell) {
  return wider_than_int32(kWeightZeroPoint, std::bit_cast<double>(cell.values[0]));
}

void check_zero_point(const Queue& queue, const int64_t* from, int64_t low, int32_t* to) {
  DeviceErrorCell* const cell = open_error_cell(queue, &invalid_zero_point);
  for_each(queue, 1, [=] TT_DEVICE(int64_t) {
    const bool valid = *from >= low && *from <= low + 255;
    if (!valid) store_error(cell, 0, *from, 0, 0);
    *to = valid ? static_cast<int32_t>(*from) : 0;
  });
}

void check_weight_zero_points(const Queue& queue, int64_t n, const double* from, int32_t* to) {
  DeviceErrorCell* const cell = open_error_cell(queue, &invalid_weight_zero_point);
  for_each_group(queue, 1, n, [=] TT_DEVICE(Group & group) {
    using Limits = std::numeric_limits<int32_t>;
    const auto fits = [=](int64_t i) {
      return from[i] >= Limits::min() && from[i] <= Limits::max() && from[i] == ::floor(from[i]);
    };
    const int64_t bad = first_bad(group, n, [=](int64_t i) { return !fits(i); });
    if (bad < n && group.rank() == 0) store_error(cell, 0, std::bit_cast<int64_t>(from[bad]), 0, 0);
    for (int64_t i = group.rank(); i < n; i += group.size()) to[i] = fits(i) ? static_cast<int32_t>(from[i]) : 0;
  });
}

}  // namespace

Tensor zero_point_for(const Tensor& zero_point, DType dtype) {
  check_one_number(zero_point);
  const Tensor from = contiguous_as(zero_point, DType::kInt64);
  Tensor result = empty({}, DType::kInt32, zero_point.device());
  check_zero_point(queue_of(result), from.data_as<int64_t>(), dtype == DType::kInt8 ? -128 : 0,
                   result.data_as<int32_t>());
  return result;
}

Tensor weight_zero_points(const Tensor& t, int64_t count) {
  check_column_numbers(t, count, kWeightZeroPoint);
  if (t.dtype() == DType::kInt32) return contiguous_as(t, DType::kInt32);
  const Tensor wide = contiguous_as(t, DType::kFloat64);
  Tensor result = empty({t.numel()}, DType::kInt32, t.device());
  check_weight_zero_points(queue_of(result), t.numel(), wide.data_as<double>(), result.data_as<int32_t>());
  return result;
}

Tensor column_numbers(const Tensor& t, int64_t count, const char* name) {
  if (!t) return t;
  check_column_numbers(t, count, name);
  return contiguous_as(t, DType::kFloat32);
}

}  // namespace tt::cuda
