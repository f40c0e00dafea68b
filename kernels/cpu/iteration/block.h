// Block functions, of which pointwise kernels are made, and their tables per instruction set.
//
// A pointwise operator is computed one block at a time, in one of six types: float (also for narrower floating types),
// double, int32_t (also for bool and narrower integers), int64_t (also for wider unsigned integers; uint64 by its
// bits), and the two complex types. A block function reads blocks of this type and writes one block. Loads and stores
// convert between blocks and memory. Operators that are cheaper than these conversions also have a function that reads
// and writes bfloat16. Each instruction set has its own table.
//
// Tables are immutable after start and may be read by any thread.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/schema/dtype.h"
#include "engine/schema/half.h"
#include "engine/session/generator.h"
#include "kernels/common/math/complex.h"

namespace tt::cpu {

// Elements per block: several blocks of any type fit the L1 cache.
inline constexpr int64_t kBlock = 512;

inline constexpr int kMaxStepInputs = 4;

// The type in which elements of C are computed.
template <typename C>
using ComputedIn = std::conditional_t<std::is_same_v<C, BFloat16>, float, C>;

// An operator's non-tensor parameters, in order, in the type of the computation.
template <typename C>
struct ScalarArgs {
  ComputedIn<C> value[8];
  uint32_t present = 0;  // bit i is set if parameter i was given
  // A scalar that is passed as a tensor argument is read from a block of C. For bfloat16, these are the lower 16 bits
  // of the scalar's float value, per input; 0 for tensors.
  uint32_t low_bits[kMaxStepInputs] = {};
};

// out[i] = f(in[0][i], in[1][i], ..., scalar_args) for i < n, for any n. `out` may be one of the inputs.
template <typename C>
using BlockFunction = void (*)(int64_t n, const C* const* in, C* out, const ScalarArgs<C>& scalar_args);

// One operator's functions; null for types that it does not compute in.
struct PointwiseRow {
  uint16_t op;
  int8_t num_inputs;
  int8_t divisor;  // index of the input that must not contain 0 in integer types; -1: none
  bool costly;     // computing takes longer than reading the elements from memory
  BlockFunction<float> f32;
  BlockFunction<double> f64;
  BlockFunction<int32_t> i32;
  BlockFunction<int64_t> i64;
  BlockFunction<int32_t> boolean;  // for bool results, as 0 and 1
  BlockFunction<int64_t> u64;      // for uint64, on its bits
  BlockFunction<Complex<float>> c64;
  BlockFunction<Complex<double>> c128;
  BlockFunction<BFloat16> bf16;  // null if the operator is costly enough to be computed in blocks of floats
};

// `count` rows of `length` elements each. `row_stride` is the distance between rows, `stride` the distance between the
// elements of a row, both in elements.
struct Rows {
  int64_t count = 1;
  int64_t row_stride = 0;
  int64_t length = 0;
  int64_t stride = 1;
};

// Converts the elements of the rows at src to C and stores them contiguously at dst.
template <typename C>
using LoadFunction = void (*)(const void* src, const Rows& rows, C* dst);
// Converts the contiguous elements at src as PyTorch does and stores them in the rows at dst.
template <typename C>
using StoreFunction = void (*)(const C* src, const Rows& rows, void* dst);

template <typename C>
struct BlockConversions {
  LoadFunction<C> load[kNumDTypes];  // by dtype
  StoreFunction<C> store[kNumDTypes];
  // dst[i] = src[i] with stores that bypass the caches, for results that are too large for the caches.
  void (*stream)(const C* src, int64_t n, C* dst);
};

// Computes random words, one group (engine/session/generator.h) per call. A group holds the first words of all its
// blocks, then the second words, and so on, in the order that vectorised code produces.
struct RandomFunctions {
  void (*words)(uint64_t seed, uint64_t counter, uint32_t* out);
  // A group yields 512 floats or 256 doubles, uniform in [0, 1) or standard normal.
  void (*uniform_f32)(const uint32_t* words, float* out);
  void (*uniform_f64)(const uint32_t* words, double* out);
  void (*normal_f32)(const uint32_t* words, float* out);
  void (*normal_f64)(const uint32_t* words, double* out);
};

// The operators of one generated source file.
struct PointwiseTable {
  const PointwiseRow* rows;
  int count;
};

// Uses plain arrays. The code of a standard container would be compiled once per instruction set, and the linker might
// keep only the AVX-512 copy.
struct BlockTable {
  const char* isa;
  const PointwiseTable* files;
  int num_files;
  BlockConversions<float> f32;
  BlockConversions<double> f64;
  BlockConversions<int32_t> i32;
  BlockConversions<int64_t> i64;
  BlockConversions<Complex<float>> c64;
  BlockConversions<Complex<double>> c128;
  BlockConversions<BFloat16> bf16;  // converts only to and from bfloat16
  RandomFunctions random_functions;

  template <typename C>
  const BlockConversions<C>& conversions() const {
    if constexpr (std::is_same_v<C, float>)
      return f32;
    else if constexpr (std::is_same_v<C, double>)
      return f64;
    else if constexpr (std::is_same_v<C, int32_t>)
      return i32;
    else if constexpr (std::is_same_v<C, int64_t>)
      return i64;
    else if constexpr (std::is_same_v<C, Complex<float>>)
      return c64;
    else if constexpr (std::is_same_v<C, BFloat16>)
      return bf16;
    else
      return c128;
  }
};

// The dtype whose elements are stored as C.
template <typename C>
inline constexpr DType kDTypeOf = std::is_same_v<C, float>            ? DType::kFloat32
                                  : std::is_same_v<C, double>         ? DType::kFloat64
                                  : std::is_same_v<C, int32_t>        ? DType::kInt32
                                  : std::is_same_v<C, int64_t>        ? DType::kInt64
                                  : std::is_same_v<C, Complex<float>> ? DType::kComplex64
                                  : std::is_same_v<C, BFloat16>       ? DType::kBFloat16
                                                                      : DType::kComplex128;

// The table of the best instruction set that this machine supports. TELETENSOR_CPU_ISA (baseline, avx2, avx512)
// selects another one. Throws Error (ValueError) if the machine does not support it.
const BlockTable& blocks();

}  // namespace tt::cpu
