// Blas: interface to a library for floating-point and complex matrix products.
#pragma once

#include <memory>

#include "kernels/common/linalg/matmul_operand.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Activation applied to the product plus bias. The treatment of NaN depends on the library: fmax(0, NaN) is 0.
enum class Activation : uint8_t { kNone, kRelu, kGelu };  // gelu: the tanh approximation

// Additional parameters of 8-bit matrix products: dtypes and scales. A scale is a float32 on the device; null means 1.
struct Float8Params {
  DType other = DType::kFloat8E4m3fn;  // dtype of b; at most one of a and b is e5m2
  DType result = DType::kFloat32;      // dtype of c: 8-bit (e5m2 only if a or b is), 16-bit or float32
  DType bias = DType::kBFloat16;       // 16-bit
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  const float* result_scale = nullptr;  // only if the result is 8-bit
  bool fast_sums = false;               // whether to accumulate with less precision than float32
};

// c = alpha * a x b, for a batch of matrices. Elements have dtype `dtype`, floating-point or complex; 16-bit elements
// are accumulated in float.
struct BlasProduct {
  DType dtype;
  int64_t m, n, k;  // all positive
  Matrix a;         // m x k; layout as required by leading()
  Matrix b;         // k x n; layout as required by leading()
  void* c;          // m x n, row-major
  int64_t batch = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0;  // strides between batch entries, in elements
  // n contiguous elements, 16-byte aligned, added to every row. Not allowed with a batch, float64 or complex elements.
  const void* bias = nullptr;
  Activation activation = Activation::kNone;  // requires a bias; not for 8-bit matrices
  double alpha = 1;
  bool tf32 = false;        // whether float32 products may use TF32
  bool wide = false;        // whether c is float32 if `dtype` is 16-bit; not with a bias
  bool accumulate = false;  // whether to add to c instead of overwriting it; not with a bias
  // Used if `dtype` is 8-bit. Then a is row-major, b is column-major, k and n are multiples of 16, addresses and
  // strides are multiples of 16 bytes, and there is no batch.
  Float8Params float8{};
};

class Blas {
 public:
  virtual ~Blas() = default;
  // Enqueues the product. Thread-safe. Throws Error (RuntimeError) if the library fails.
  virtual void multiply(const Queue& queue, const BlasProduct& product) = 0;
};

// Returns the process-wide instance, loaded at first use: cuBLASLt, or plain loops in tests. Throws Error
// (RuntimeError) if the library is missing.
Blas& blas();
std::unique_ptr<Blas> make_blas();

}  // namespace tt::cuda
