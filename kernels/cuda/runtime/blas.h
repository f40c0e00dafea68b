// Blas: products of floating-point and complex matrices, by a library.
#pragma once

#include <memory>

#include "kernels/common/linalg/matmul_operand.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// What becomes of a product with its bias. Whether a NaN stays one is the library's: fmax(0, NaN) is 0.
enum class Activation : uint8_t { kNone, kRelu, kGelu };  // gelu: approximated by tanh

// What 8-bit matrices have beside: dtypes of their own, and factors, each a float32 on the device (null: 1).
struct Float8Terms {
  DType other = DType::kFloat8E4m3fn;  // b's, not e5m2 where a's is
  DType result = DType::kFloat32;      // c's: 8-bit too (e5m2 only where a's or b's is), 16-bit or float32
  DType bias = DType::kBFloat16;       // 16-bit
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  const float* result_scale = nullptr;  // of an 8-bit result only
  bool fast_sums = false;               // in fewer bits than float32 has
};

// c = alpha * a x b, a batch of them. Elements are of `dtype`, floating or complex; narrow ones are summed in float.
struct BlasProduct {
  DType dtype;
  int64_t m, n, k;  // none is 0
  Matrix a;         // m x k; lies as leading() says
  Matrix b;         // k x n, likewise
  void* c;          // m x n, row-major
  int64_t batch = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0;  // from entry to entry, in elements
  // n contiguous numbers, 16-byte aligned, added to every row; never with a batch, float64 or complex numbers.
  const void* bias = nullptr;
  Activation activation = Activation::kNone;  // never without a bias, nor of 8-bit matrices
  double alpha = 1;
  bool tf32 = false;        // whether float32 may be multiplied with fewer bits
  bool wide = false;        // whether c is float32 where `dtype` has 16 bits; never with a bias
  bool accumulate = false;  // whether c grows by the product instead of being overwritten; never with a bias
  // Where `dtype` is 8-bit. Then a lies in rows, b in columns, k and n are multiples of 16, addresses and strides of 16
  // bytes, and there is no batch.
  Float8Terms float8{};
};

class Blas {
 public:
  virtual ~Blas() = default;
  // Enqueues it. Thread-safe. Throws Error (RuntimeError) where the library cannot.
  virtual void multiply(const Queue& queue, const BlasProduct& product) = 0;
};

// The process's, opened at first use: cuBLASLt, or the tests' plain loops. Throws Error (RuntimeError) where it is
// absent.
Blas& blas();
std::unique_ptr<Blas> make_blas();

}  // namespace tt::cuda
