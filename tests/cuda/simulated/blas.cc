// Blas for simulated devices: plain loops, run when the stream reaches them.
#include "kernels/cuda/runtime/blas.h"

#include <cmath>

#include "kernels/common/iteration/float8.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/launch_host.h"

namespace tt::cuda {
namespace {

// A library's relu may turn NaN into 0; this one does, so that no caller relies on NaN.
template <typename C>
C activated(Activation activation, C x) {
  if constexpr (!is_complex_v<C>) {
    if (activation == Activation::kRelu) return std::fmax(C(0), x);
    const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
    if (activation == Activation::kGelu) return C(0.5) * x * (1 + std::tanh(inner));
  }
  return x;
}

template <typename T, typename R>
void multiply_now(const BlasProduct& p) {
  using C = std::conditional_t<is_complex_v<T>, T, AccumulateType<T>>;
  for (int64_t e = 0; e < p.batch; ++e) {
    const T* a = static_cast<const T*>(p.a.data) + e * p.a_step;
    const T* b = static_cast<const T*>(p.b.data) + e * p.b_step;
    R* c = static_cast<R*>(p.c) + e * p.c_step;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        C sum(0);
        for (int64_t l = 0; l < p.k; ++l) {
          sum += convert<C>(a[i * p.a.row_stride + l * p.a.column_stride]) *
                 convert<C>(b[l * p.b.row_stride + j * p.b.column_stride]);
        }
        if (p.alpha != 1) sum = sum * convert<C>(p.alpha);
        if (p.bias) sum = activated(p.activation, sum + convert<C>(static_cast<const T*>(p.bias)[j]));
        R& element = c[i * p.n + j];
        element = convert<R>(p.accumulate ? sum + convert<C>(element) : sum);
      }
    }
  }
}

float factor(const float* scale) { return scale ? *scale : 1; }

// An element of an 8-bit, 16-bit or float32 matrix.
float narrow_at(const void* data, DType dtype, int64_t i) {
  if (!is_float8(dtype)) return Access(const_cast<void*>(data), dtype).load<float>(i);
  return with_float8(dtype, [&]<typename T>(std::type_identity<T>) { return float{static_cast<const T*>(data)[i]}; });
}

void store_narrow(void* data, DType dtype, int64_t i, float value) {
  if (!is_float8(dtype)) return Access(data, dtype).store(i, value);
  with_float8(dtype, [&]<typename T>(std::type_identity<T>) { static_cast<T*>(data)[i] = T(value); });
}

void multiply_float8(const BlasProduct& p) {
  const Float8Params& terms = p.float8;
  const float scale = factor(terms.a_scale) * factor(terms.b_scale);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum += narrow_at(p.a.data, p.dtype, i * p.a.row_stride + l * p.a.column_stride) *
               narrow_at(p.b.data, terms.other, l * p.b.row_stride + j * p.b.column_stride);
      }
      sum *= scale;
      if (p.bias) sum += narrow_at(p.bias, terms.bias, j);
      store_narrow(p.c, terms.result, i * p.n + j, sum * factor(terms.result_scale));
    }
  }
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Fails for 8-bit products that a real library does not support.
void check_float8(const BlasProduct& p) {
  const Float8Params& terms = p.float8;
  check(p.n % 16 == 0 && p.k % 16 == 0, "8-bit matrices whose sizes are not multiples of 16");
  check(is_float8(terms.other) && (p.dtype != DType::kFloat8E5m2 || terms.other != p.dtype),
        "an unsupported combination of 8-bit dtypes");
  check(p.a.column_stride == 1 && p.a.row_stride % 16 == 0 && p.b.row_stride == 1 && p.b.column_stride % 16 == 0,
        "8-bit matrices of unsupported layout");
  check(is_aligned(p.a.data) && is_aligned(p.b.data) && is_aligned(p.c) && is_aligned(p.bias), "an unaligned address");
  check(p.batch == 1 && p.alpha == 1 && p.activation == Activation::kNone && !p.wide && !p.accumulate,
        "unsupported product of 8-bit matrices");
  const bool wider = p.dtype == DType::kFloat8E5m2 || terms.other == DType::kFloat8E5m2;
  check(terms.result != DType::kFloat8E5m2 || wider, "an unsupported 8-bit result dtype");
  check(is_float8(terms.result) || !terms.result_scale, "a scale for a result that is not 8-bit");
  check(!p.bias || terms.result != DType::kFloat32, "a bias with a float32 result");
  check(!p.bias || terms.bias == DType::kFloat16 || terms.bias == DType::kBFloat16, "an unsupported bias dtype");
}

// Libraries check the leading dimension even if there is only one row or column.
bool leads(const Matrix& x, int64_t rows, int64_t columns) {
  return x.column_stride == 1 ? x.row_stride >= columns : x.row_stride == 1 && x.column_stride >= rows;
}

// Fails for products that a real library does not support.
void check_product(const BlasProduct& p) {
  check(p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0, "an empty product");
  check(leads(p.a, p.m, p.k) && leads(p.b, p.k, p.n), "a matrix of unsupported layout");
  check(p.activation == Activation::kNone || p.bias, "an activation without a bias");
  if (is_float8(p.dtype)) return check_float8(p);
  check(!p.bias || (p.batch == 1 && p.dtype < DType::kFloat64 && !p.wide && !p.accumulate), "an unsupported bias");
}

template <typename T, typename R>
void add(const Queue& queue, const BlasProduct& product) {
  queue.add([product](StreamHandle stream) { enqueue(stream, [product] { multiply_now<T, R>(product); }); });
}

class PlainLoops final : public Blas {
 public:
  void multiply(const Queue& queue, const BlasProduct& product) override {
    check_product(product);
    if (is_float8(product.dtype)) {
      return queue.add([product](StreamHandle stream) { enqueue(stream, [product] { multiply_float8(product); }); });
    }
    if (product.dtype == DType::kComplex64) return add<Complex<float>, Complex<float>>(queue, product);
    if (product.dtype == DType::kComplex128) return add<Complex<double>, Complex<double>>(queue, product);
    with_floating(product.dtype, [&]<typename T>(std::type_identity<T>) {
      product.wide ? add<T, AccumulateType<T>>(queue, product) : add<T, T>(queue, product);
    });
  }
};

}  // namespace

std::unique_ptr<Blas> make_blas() { return std::make_unique<PlainLoops>(); }

}  // namespace tt::cuda
