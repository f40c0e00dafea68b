// Fft: Fourier transforms by a library.
#pragma once

#include <array>
#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

inline constexpr int kMostFftDims = 3;  // of one transform

// At the real end of a real transform there are real numbers, at its other end the first half of the spectrum's last
// dimension.
enum class FftKind { kComplexToComplex, kRealToComplex, kComplexToReal };

// How one end of a batch of transforms is stored. The element (i, j, k) of transform b is at
//
//   b * distance + ((i * embed[1] + j) * embed[2] + k) * stride
struct FftLayout {
  int64_t stride = 1;
  int64_t distance = 0;
  std::array<int64_t, kMostFftDims> embed{};  // sizes of the array that the transform is a part of

  bool operator==(const FftLayout&) const = default;
};

// A batch of transforms, without a factor. None is empty.
struct FftTransform {
  FftKind kind;
  bool is_double;
  bool forward;                             // exp(-2 pi i ...); of a real transform determined by its kind
  int rank;                                 // 1 to kMostFftDims; of the arrays below the first `rank` elements count
  std::array<int64_t, kMostFftDims> sizes;  // in points: of real transforms the real end's
  int64_t batch;
  FftLayout from, to;
};

class Fft {
 public:
  virtual ~Fft() = default;
  // Enqueues it, from `from` to `to`, both aligned to a complex number; they may be the same where their layouts are.
  // A transform of kind kComplexToReal overwrites `from`. Returns false, with nothing done, where the library does not
  // support it. Thread-safe. Throws Error (RuntimeError) where the library fails.
  virtual bool transform(const Queue& queue, const FftTransform& transform, void* from, void* to) = 0;
};

// The process's, opened at first use: cuFFT. Null where it is absent: transforms are our own kernels' then.
Fft* fft();
std::unique_ptr<Fft> make_fft();

}  // namespace tt::cuda
