// Blocks: what pointwise kernels are made of, and the tables of them for this machine.
//
// A pointwise operator is computed a block at a time, in one of six types: float (also for
// narrower floating types), double, int32_t (also for bool and narrower integers), int64_t (also for
// wider unsigned ones, uint64 bit by bit) and the complex ones. A block function reads blocks of
// that type and writes one; loads and stores convert between blocks and memory. Operators that cost less than those do
// have a function of bfloat16 as it lies in memory, too. Each instruction set has a table of its own. Constant after
// start; any thread.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/schema/dtype.h"
#include "engine/schema/half.h"
#include "engine/session/generator.h"
#include "kernels/common/math/complex.h"

namespace tt::cpu {

// Elements in a block: a few of them fit the L1 cache in any type.
inline constexpr int64_t kBlock = 512;

inline constexpr int kMaxStepInputs = 4;

// What elements of C are computed in.
template <typename C>
using ComputedIn = std::conditional_t<std::is_same_v<C, BFloat16>, float, C>;

// An operator's parameters that are not tensors, in order, in the type of the computation.
template <typename C>
struct Numbers {
  ComputedIn<C> value[8];
  uint32_t present = 0;  // bit i: parameter i was given
  // A number in a tensor's place is a block of C. These are the bits of a float that bfloat16 has no place for, by
  // input; 0 for tensors.
  uint32_t low_bits[kMaxStepInputs] = {};
};

// out[i] = f(in[0][i], in[1][i], ..., numbers) for i < n, any n. `out` may be one of the inputs.
template <typename C>
using BlockFunction = void (*)(int64_t n, const C* const* in, C* out, const Numbers<C>& numbers);

// One operator's functions; null where it does not compute in that type.
struct PointwiseRow {
  uint16_t op;
  int8_t num_inputs;
  int8_t divisor;  // the input that must hold no zero when computing in integers; -1: none
  bool costly;     // takes longer than its elements take to come from memory
  BlockFunction<float> f32;
  BlockFunction<double> f64;
  BlockFunction<int32_t> i32;
  BlockFunction<int64_t> i64;
  BlockFunction<int32_t> boolean;  // what computes bool results' truth, in 0 and 1
  BlockFunction<int64_t> u64;      // uint64's, on its bits
  BlockFunction<Complex<float>> c64;
  BlockFunction<Complex<double>> c128;
  BlockFunction<BFloat16> bf16;  // null: costs enough to be computed in blocks of floats
};

// Rows of equal length in memory; both strides in elements.
struct Rows {
  int64_t count = 1;
  int64_t row_stride = 0;
  int64_t length = 0;
  int64_t stride = 1;
};

// Fills dst with the rows at src one after the other, converted.
template <typename C>
using LoadFunction = void (*)(const void* src, const Rows& rows, C* dst);
// Writes src to the rows at dst, converted as PyTorch casts.
template <typename C>
using StoreFunction = void (*)(const C* src, const Rows& rows, void* dst);

template <typename C>
struct Moves {
  LoadFunction<C> load[kNumDTypes];  // by dtype
  StoreFunction<C> store[kNumDTypes];
  // dst[i] = src[i] past the caches: for results that will not fit them.
  void (*stream)(const C* src, int64_t n, C* dst);
};

// Random words, a group (engine/session/generator.h) at a time: the first words of all its blocks, then all second
// words, and so on, which is how vectors come by them.
struct Draws {
  void (*words)(uint64_t seed, uint64_t counter, uint32_t* out);
  // A group gives 512 floats or 256 doubles: uniform in [0, 1), or standard normal.
  void (*uniform_f32)(const uint32_t* words, float* out);
  void (*uniform_f64)(const uint32_t* words, double* out);
  void (*normal_f32)(const uint32_t* words, float* out);
  void (*normal_f64)(const uint32_t* words, double* out);
};

// What one generated source contributes.
struct PointwiseRows {
  const PointwiseRow* rows;
  int count;
};

// Plain arrays: a standard container's code, compiled for AVX-512, would be the linker's choice for
// the whole program.
struct BlockTable {
  const char* isa;
  const PointwiseRows* files;
  int num_files;
  Moves<float> f32;
  Moves<double> f64;
  Moves<int32_t> i32;
  Moves<int64_t> i64;
  Moves<Complex<float>> c64;
  Moves<Complex<double>> c128;
  Moves<BFloat16> bf16;  // to and from bfloat16 alone
  Draws draws;

  template <typename C>
  const Moves<C>& moves() const {
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

// The dtype whose elements lie in memory as C.
template <typename C>
inline constexpr DType kDTypeOf = std::is_same_v<C, float>            ? DType::kFloat32
                                  : std::is_same_v<C, double>         ? DType::kFloat64
                                  : std::is_same_v<C, int32_t>        ? DType::kInt32
                                  : std::is_same_v<C, int64_t>        ? DType::kInt64
                                  : std::is_same_v<C, Complex<float>> ? DType::kComplex64
                                  : std::is_same_v<C, BFloat16>       ? DType::kBFloat16
                                                                      : DType::kComplex128;

// The table of the best instruction set that this machine has; TELETENSOR_CPU_ISA (baseline, avx2,
// avx512) asks for a lesser one. Throws Error (ValueError) where that names none.
const BlockTable& blocks();

}  // namespace tt::cpu
