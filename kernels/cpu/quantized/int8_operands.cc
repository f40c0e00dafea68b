#include "kernels/cpu/quantized/int8_operands.h"

#include <algorithm>
#include <limits>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/quantized/operand_checks.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {
namespace {

void check_int32(const Tensor& t, const char* name) {
  const Tensor wide = contiguous_as(t, DType::kFloat64);
  const double* x = wide.data_as<const double>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    const bool fits = x[i] >= std::numeric_limits<int32_t>::min() && x[i] <= std::numeric_limits<int32_t>::max();
    if (!fits) throw wider_than_int32(name, x[i]);
  }
}

Tensor repeated(const Tensor& t, int64_t count, DType dtype, const char* name) {
  check_column_numbers(t, count, name);
  if (dtype == DType::kInt32 && t.dtype() != dtype) check_int32(t, name);
  const Tensor flat = contiguous_as(t, dtype);
  if (t.numel() == count) return flat;
  Tensor result = empty(Sizes{count}, dtype, t.device());
  if (dtype == DType::kInt32)
    std::fill_n(result.data_as<int32_t>(), count, *flat.data_as<int32_t>());
  else
    std::fill_n(result.data_as<float>(), count, *flat.data_as<float>());
  return result;
}

}  // namespace

UnsignedOperand as_unsigned(const Tensor& t, int64_t zero_point) {
  const bool is_signed = t.dtype() == DType::kInt8;
  const int64_t offset = is_signed ? 128 : 0;
  if (zero_point < -offset || zero_point > 255 - offset) throw zero_point_outside(zero_point);
  const Tensor rows = contiguous_as(t, t.dtype());
  if (!is_signed) return {rows, static_cast<int32_t>(zero_point)};
  Tensor result = empty(t.sizes(), DType::kUInt8, t.device());
  const uint8_t* from = rows.data_as<const uint8_t>();
  uint8_t* to = result.data_as<uint8_t>();
  parallel_for(t.numel(), int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] ^ 0x80;
  });
  return {result, static_cast<int32_t>(zero_point + offset)};
}

int64_t integer_of(const Tensor& number) {
  check_one_number(number);
  return *contiguous_as(number, DType::kInt64).data_as<int64_t>();
}

double number_of(const Tensor& number) {
  check(number.numel() == 1, "expected one number, got ", number.numel());
  return *contiguous_as(number, DType::kFloat64).data_as<double>();
}

Tensor integers(const Tensor& t, int64_t count, const char* name) { return repeated(t, count, DType::kInt32, name); }
Tensor numbers(const Tensor& t, int64_t count, const char* name) { return repeated(t, count, DType::kFloat32, name); }

}  // namespace tt::cpu
