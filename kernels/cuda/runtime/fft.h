// Fft: interface to a library for Fourier transforms.
#pragma once

#include <array>
#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

inline constexpr int kMaxFftDims = 3;  // maximum number of dimensions per transform

// A transform from real numbers computes only the first half of the spectrum along the last dimension. A transform to
// real numbers reads only that half.
enum class FftKind { kComplexToComplex, kRealToComplex, kComplexToReal };

// How the source or the target of a batch of transforms is stored. Element (i, j, k) of transform b is at index
//
//   b * distance + ((i * embed[1] + j) * embed[2] + k) * stride
struct FftLayout {
  int64_t stride = 1;
  int64_t distance = 0;
  std::array<int64_t, kMaxFftDims> embed{};  // sizes of the array that contains the transform

  bool operator==(const FftLayout&) const = default;
};

// A batch of transforms without scaling. No transform is empty.
struct FftTransform {
  FftKind kind;
  bool is_double;
  bool forward;                            // sign of the exponent is -1; if real, determined by `kind`
  int rank;                                // 1 to kMaxFftDims; only the first `rank` elements of the arrays are used
  std::array<int64_t, kMaxFftDims> sizes;  // in points; for a real transform, the sizes of the real end
  int64_t batch;
  FftLayout from, to;
};

class Fft {
 public:
  virtual ~Fft() = default;
  // Enqueues the transform from `from` to `to`, both aligned like complex numbers. They may be equal if their layouts
  // are equal. A transform of kind kComplexToReal overwrites `from`. Returns false, and does nothing, if the library
  // does not support the transform. Thread-safe. Throws Error (RuntimeError) if the library fails.
  virtual bool transform(const Queue& queue, const FftTransform& transform, void* from, void* to) = 0;
};

// Returns the process-wide instance, loaded at first use: cuFFT. Returns null if cuFFT is missing; transforms then use
// our own kernels.
Fft* fft();
std::unique_ptr<Fft> make_fft();

}  // namespace tt::cuda
