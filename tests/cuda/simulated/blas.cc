// Blas for the simulated devices: plain loops, which work when the stream comes to them.
#include "kernels/cuda/blas.h"

#include <cmath>

#include "kernels/cuda/floating.h"
#include "kernels/cuda/launch_host.h"

namespace tt::cuda {
namespace {

// A library's relu may lose a NaN: this one does, so that nobody relies on it.
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
  using C = std::conditional_t<is_complex_v<T>, T, Wide<T>>;
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

// Of a single row or column a library wants the stride that is never walked, too.
bool leads(const Matrix& x, int64_t rows, int64_t columns) {
  return x.column_stride == 1 ? x.row_stride >= columns : x.row_stride == 1 && x.column_stride >= rows;
}

// What a library refuses.
void check_product(const BlasProduct& p) {
  check(p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0, "an empty product");
  check(leads(p.a, p.m, p.k) && leads(p.b, p.k, p.n), "a matrix that lies as no library takes it");
  check(p.activation == Activation::kNone || p.bias, "an activation without a bias");
  check(!p.bias || (p.batch == 1 && p.dtype < DType::kFloat64 && !p.wide && !p.accumulate),
        "a bias that no library adds");
}

template <typename T, typename R>
void add(const Queue& queue, const BlasProduct& product) {
  queue.add([product](StreamHandle stream) { enqueue(stream, [product] { multiply_now<T, R>(product); }); });
}

class PlainLoops final : public Blas {
 public:
  void multiply(const Queue& queue, const BlasProduct& product) override {
    check_product(product);
    if (product.dtype == DType::kComplex64) return add<Complex<float>, Complex<float>>(queue, product);
    if (product.dtype == DType::kComplex128) return add<Complex<double>, Complex<double>>(queue, product);
    with_floating(product.dtype, [&]<typename T>(std::type_identity<T>) {
      product.wide ? add<T, Wide<T>>(queue, product) : add<T, T>(queue, product);
    });
  }
};

}  // namespace

std::unique_ptr<Blas> make_blas() { return std::make_unique<PlainLoops>(); }

}  // namespace tt::cuda
