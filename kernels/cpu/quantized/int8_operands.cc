#include "kernels/cpu/quantized/int8_operands.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/quantized/operand_checks.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

void check_int32(const Tensor& t, const char* name) {
  const Tensor wide = contiguous_as(t, DType::kFloat64);
  const double* x = wide.data_as<const double>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    const bool fits = x[i] >= std::numeric_limits<int32_t>::min() && x[i] <= std::numeric_limits<int32_t>::max() &&
                      x[i] == std::floor(x[i]);
    if (!fits) throw wider_than_int32(name, x[i]);
  }
}

// Converts contiguous int64 integers; returns whether all are of 32 bits.
TT_CLONES bool narrow(int64_t n, const int64_t* from, int32_t* to) {
  int64_t lost = 0;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<int32_t>(from[i]);
    lost |= from[i] ^ static_cast<int64_t>(to[i]);
  }
  return lost == 0;
}

// The integers as int32.
Tensor narrowed(const Tensor& t, const char* name) {
  if (t.dtype() == DType::kInt64 && t.is_contiguous()) {
    Tensor result = empty(t.sizes(), DType::kInt32, t.device());
    if (narrow(t.numel(), t.data_as<const int64_t>(), result.data_as<int32_t>())) return result;
  }
  if (t.dtype() != DType::kInt32) check_int32(t, name);
  return contiguous_as(t, DType::kInt32);
}

Tensor repeated(const Tensor& t, int64_t count, DType dtype, const char* name) {
  check_column_numbers(t, count, name);
  const Tensor flat = dtype == DType::kInt32 ? narrowed(t, name) : contiguous_as(t, dtype);
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
