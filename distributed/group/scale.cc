#include "distributed/group/scale.h"

#include <complex>

#include "engine/schema/error.h"
#include "engine/schema/half.h"

namespace tt::distributed {
namespace {

template <typename T, typename Compute, typename Apply>
void each(char* items, size_t count, Apply apply) {
  T* values = reinterpret_cast<T*>(items);
  for (size_t i = 0; i < count; ++i) values[i] = T(apply(Compute(values[i])));
}

// Calls apply(x) with float for 16-bit and 32-bit types, and double for 64-bit ones; complex numbers by their parts.
template <typename Apply>
void each_value(DType dtype, char* items, size_t count, Apply apply) {
  switch (dtype) {
    case DType::kFloat16: return each<Half, float>(items, count, apply);
    case DType::kBFloat16: return each<BFloat16, float>(items, count, apply);
    case DType::kFloat32: return each<float, float>(items, count, apply);
    case DType::kFloat64: return each<double, double>(items, count, apply);
    case DType::kComplex64: return each<float, float>(items, count * 2, apply);
    case DType::kComplex128: return each<double, double>(items, count * 2, apply);
    default: fail(ErrorKind::kRuntime, "expected a floating or complex dtype, got ", dtype);
  }
}

}  // namespace

void divide(DType dtype, char* items, size_t count, double divisor) {
  each_value(dtype, items, count, [divisor](auto x) { return x / static_cast<decltype(x)>(divisor); });
}

void multiply(DType dtype, char* items, size_t count, double factor) {
  each_value(dtype, items, count, [factor](auto x) { return x * static_cast<decltype(x)>(factor); });
}

}  // namespace tt::distributed
