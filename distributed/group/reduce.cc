#include "distributed/group/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "engine/schema/error.h"
#include "engine/schema/half.h"

// On x86-64 the loops are compiled for AVX2 and F16C too, and selected at run time. Fused multiply-add stays disabled,
// so that both variants give the same bits. Sanitizer builds compile only the baseline.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TT_REDUCE_AVX2 1
#include <immintrin.h>
#else
#define TT_REDUCE_AVX2 0
#endif

#define TT_INLINE __attribute__((always_inline)) inline
// The iterations of the next loop are independent, although its arrays may have the same address. clang has no such
// pragma that is silent about loops that it does not vectorize.
#ifdef __clang__
#define TT_INDEPENDENT
#else
#define TT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace tt::distributed {
namespace {

std::string_view torch_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "SUM";
    case ReduceOp::kProduct: return "PRODUCT";
    case ReduceOp::kMin: return "MIN";
    case ReduceOp::kMax: return "MAX";
    case ReduceOp::kBand: return "BAND";
    case ReduceOp::kBor: return "BOR";
    case ReduceOp::kBxor: return "BXOR";
  }
  return "an unknown operation";
}

// An element at any address: slices of tensors and messages are not aligned.
template <typename T>
struct __attribute__((packed, may_alias)) Unaligned {
  T value;
};
template <typename T>
struct Complex {
  T re, im;
};
struct Bool {
  uint8_t byte;
};

struct Sum {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    if constexpr (std::is_same_v<T, uint16_t>) return static_cast<T>(uint32_t{a} * b);  // int would overflow
    return static_cast<T>(a * b);
  }
  template <typename T>
  static TT_INLINE Complex<T> apply(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
// A NaN in either argument is returned.
struct Min {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || a != a ? a : b;
    return a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a > b || a != a ? a : b;
    return a > b ? a : b;
  }
};
struct Band {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <typename T>
  static TT_INLINE T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// Any byte except 0 is true; results are 0 or 1.
template <typename Op>
struct Logical {
  static TT_INLINE Bool apply(Bool a, Bool b) { return {Op::template apply<uint8_t>(a.byte != 0, b.byte != 0)}; }
};

// Bytes of a block: the intermediate results of one block stay in the first-level cache.
constexpr size_t kBlockBytes = 8192;

template <typename T, typename Op>
TT_INLINE void combine(char* output, const char* a, const char* b, size_t n) {
  auto* to = reinterpret_cast<Unaligned<T>*>(output);
  auto* x = reinterpret_cast<const Unaligned<T>*>(a);
  auto* y = reinterpret_cast<const Unaligned<T>*>(b);
  TT_INDEPENDENT
  for (size_t i = 0; i < n; ++i) to[i].value = Op::apply(x[i].value, y[i].value);
}

// The intermediate results are stored in a buffer, because the output may be one of the inputs that are read later.
template <typename T, typename Op>
TT_INLINE void reduce_items(char* output, absl::Span<const char* const> inputs, size_t count) {
  alignas(64) char partial[kBlockBytes];
  const size_t last = inputs.size() - 1;
  for (size_t from = 0; from < count; from += kBlockBytes / sizeof(T)) {
    const size_t n = std::min(kBlockBytes / sizeof(T), count - from), at = from * sizeof(T);
    const char* left = inputs[0] + at;
    for (size_t k = 1; k <= last; ++k) {
      char* to = k == last ? output + at : partial;
      combine<T, Op>(to, left, inputs[k] + at, n);
      left = partial;
    }
  }
}

using Loop = void (*)(char* output, absl::Span<const char* const> inputs, size_t count);

template <typename H, typename Op>
void reduce_halves(char* output, absl::Span<const char* const> inputs, size_t count) {
  constexpr size_t kBlock = 1024;
  float partial[kBlock];
  for (size_t from = 0; from < count; from += kBlock) {
    const size_t n = std::min(kBlock, count - from), at = from * sizeof(H);
    for (size_t k = 0; k < inputs.size(); ++k) {
      auto* x = reinterpret_cast<const Unaligned<uint16_t>*>(inputs[k] + at);
      const bool first = k == 0;
      TT_INDEPENDENT
      for (size_t i = 0; i < n; ++i) {
        H item;
        item.bits = x[i].value;
        partial[i] = first ? static_cast<float>(item) : Op::apply(partial[i], static_cast<float>(item));
      }
    }
    auto* y = reinterpret_cast<Unaligned<uint16_t>*>(output + at);
    TT_INDEPENDENT
    for (size_t i = 0; i < n; ++i) y[i].value = H(partial[i]).bits;
  }
}

struct Baseline {
  template <typename T, typename Op>
  static void run(char* output, absl::Span<const char* const> inputs, size_t count) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      reduce_halves<T, Op>(output, inputs, count);
    } else {
      reduce_items<T, Op>(output, inputs, count);
    }
  }
};

#if TT_REDUCE_AVX2
#define TT_AVX2 __attribute__((target("avx2,f16c")))

TT_AVX2 TT_INLINE __m256 apply(Sum, __m256 a, __m256 b) { return _mm256_add_ps(a, b); }
TT_AVX2 TT_INLINE __m256 apply(Product, __m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
// The instructions return their second operand if one operand is NaN: `b`. A NaN in `a` is selected afterwards.
TT_AVX2 TT_INLINE __m256 apply(Min, __m256 a, __m256 b) {
  return _mm256_blendv_ps(_mm256_min_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
TT_AVX2 TT_INLINE __m256 apply(Max, __m256 a, __m256 b) {
  return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
TT_AVX2 TT_INLINE __m256 widen(Half, __m128i bits) { return _mm256_cvtph_ps(bits); }
TT_AVX2 TT_INLINE __m256 widen(BFloat16, __m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
TT_AVX2 TT_INLINE __m128i narrow(Half, __m256 value) { return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT); }
TT_AVX2 TT_INLINE __m128i narrow(BFloat16, __m256 value) {  // as BFloat16(float)
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i result = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
}

// Eight items at a time, over all inputs.
template <typename H, typename Op>
TT_AVX2 void reduce_halves_avx2(char* output, absl::Span<const char* const> inputs, size_t count) {
  const auto load = [](const char* from) TT_AVX2 { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  size_t at = 0;
  const size_t whole = count / 8 * 16;
  for (; at < whole; at += 16) {
    __m256 value = widen(H(), load(inputs[0] + at));
    for (size_t k = 1; k < inputs.size(); ++k) value = apply(Op(), value, widen(H(), load(inputs[k] + at)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(output + at), narrow(H(), value));
  }
  const size_t rest = count % 8 * sizeof(H);
  if (rest == 0) return;
  char item[16] = {};
  std::memcpy(item, inputs[0] + at, rest);
  __m256 value = widen(H(), load(item));
  for (size_t k = 1; k < inputs.size(); ++k) {
    std::memcpy(item, inputs[k] + at, rest);
    value = apply(Op(), value, widen(H(), load(item)));
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(item), narrow(H(), value));
  std::memcpy(output + at, item, rest);
}

struct Avx2 {
  template <typename T, typename Op>
  TT_AVX2 static void run(char* output, absl::Span<const char* const> inputs, size_t count) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      reduce_halves_avx2<T, Op>(output, inputs, count);
    } else {
      reduce_items<T, Op>(output, inputs, count);
    }
  }
};
#endif

// Two's complement arithmetic is the same for signed and unsigned integers: `U` is the unsigned type, `T` the dtype's.
template <typename Isa, typename T>
Loop integer_loop(ReduceOp op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::kSum: return Isa::template run<U, Sum>;
    case ReduceOp::kProduct: return Isa::template run<U, Product>;
    case ReduceOp::kMin: return Isa::template run<T, Min>;
    case ReduceOp::kMax: return Isa::template run<T, Max>;
    case ReduceOp::kBand: return Isa::template run<U, Band>;
    case ReduceOp::kBor: return Isa::template run<U, Bor>;
    case ReduceOp::kBxor: return Isa::template run<U, Bxor>;
  }
  return nullptr;
}

template <typename Isa>
Loop bool_loop(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBor: return Isa::template run<Bool, Logical<Bor>>;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBand: return Isa::template run<Bool, Logical<Band>>;
    case ReduceOp::kBxor: return Isa::template run<Bool, Logical<Bxor>>;
  }
  return nullptr;
}

template <typename Isa, typename T>
Loop floating_loop(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return Isa::template run<T, Sum>;
    case ReduceOp::kProduct: return Isa::template run<T, Product>;
    case ReduceOp::kMin: return Isa::template run<T, Min>;
    case ReduceOp::kMax: return Isa::template run<T, Max>;
    default: return nullptr;
  }
}

template <typename Isa>
Loop loop_for(ReduceOp op, DType dtype) {
  switch (dtype) {
    case DType::kBool: return bool_loop<Isa>(op);
    case DType::kUInt8: return integer_loop<Isa, uint8_t>(op);
    case DType::kInt8: return integer_loop<Isa, int8_t>(op);
    case DType::kUInt16: return integer_loop<Isa, uint16_t>(op);
    case DType::kInt16: return integer_loop<Isa, int16_t>(op);
    case DType::kUInt32: return integer_loop<Isa, uint32_t>(op);
    case DType::kInt32: return integer_loop<Isa, int32_t>(op);
    case DType::kUInt64: return integer_loop<Isa, uint64_t>(op);
    case DType::kInt64: return integer_loop<Isa, int64_t>(op);
    case DType::kFloat16: return floating_loop<Isa, Half>(op);
    case DType::kBFloat16: return floating_loop<Isa, BFloat16>(op);
    case DType::kFloat32: return floating_loop<Isa, float>(op);
    case DType::kFloat64: return floating_loop<Isa, double>(op);
    case DType::kComplex64: return Isa::template run<Complex<float>, Product>;
    case DType::kComplex128: return Isa::template run<Complex<double>, Product>;
    case DType::kFloat8E4m3fn:
    case DType::kFloat8E5m2: break;
  }
  return nullptr;
}

Loop best_loop_for(ReduceOp op, DType dtype) {
#if TT_REDUCE_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (has_avx2) return loop_for<Avx2>(op, dtype);
#endif
  return loop_for<Baseline>(op, dtype);
}

}  // namespace

void check_reduction(ReduceOp op, DType dtype) {
  const bool bitwise = op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  const bool ordered = op == ReduceOp::kMin || op == ReduceOp::kMax;
  check(ErrorKind::kRuntime, !is_float8(dtype), "reductions are not defined for ", name(dtype));
  check(ErrorKind::kRuntime, !bitwise || is_integral(dtype), "ReduceOp.", torch_name(op),
        " requires an integral dtype, got ", name(dtype));
  check(ErrorKind::kValue, !ordered || !is_complex(dtype), "ReduceOp.", torch_name(op),
        " is not defined for complex numbers, got ", name(dtype));
}

void reduce(ReduceOp op, DType dtype, char* output, absl::Span<const char* const> inputs, size_t count) {
  check_reduction(op, dtype);
  if (count == 0) return;
  if (inputs.size() == 1) {
    if (output != inputs[0]) std::memcpy(output, inputs[0], count * item_size(dtype));
    return;
  }
  if (is_complex(dtype) && op == ReduceOp::kSum) {
    dtype = to_real(dtype);
    count *= 2;
  }
  best_loop_for(op, dtype)(output, inputs, count);
}

}  // namespace tt::distributed
