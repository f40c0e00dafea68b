// Conversion between memory of any dtype and blocks, compiled once per instruction set.

#include <cstring>
#include <type_traits>

#include "engine/schema/float8.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/math/scalar_math.h"
#include "kernels/cpu/isa/half_block.h"
#include "kernels/cpu/iteration/block.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace tt::cpu::TT_ISA {

const PointwiseTable* pointwise_files(int* count);  // generated
RandomFunctions random_functions();                 // philox.cc

namespace {

// Converts as PyTorch does on x86: casts to narrow integers go through int32, so that they wrap around. Numbers that an
// integer cannot represent give the processor's result.
template <typename To, typename From>
TT_HOST_DEVICE To convert(From v) {
  if constexpr (is_complex_v<From> && is_complex_v<To>) {
    return To(v);
  } else if constexpr (is_complex_v<From> && !std::is_same_v<To, Bool>) {
    return convert<To>(v.re);
  } else if constexpr (is_complex_v<To>) {
    return To(convert<real_of_t<To>>(v));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool(v != From{});
  } else if constexpr (std::is_same_v<From, Bool>) {
    return math::number<To>(v.byte != 0);
  } else if constexpr (is_float8_v<From> && !std::is_same_v<To, float>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <typename M, typename C>
TT_HOST_DEVICE void load_row(const M* from, int64_t stride, int64_t n, C* dst) {
  if (stride == 1) {
    if constexpr (std::is_same_v<M, Half> && std::is_same_v<C, float>) {
      widen(from, n, dst);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(from[i]);
    }
  } else if (stride == 0) {
    const C value = n > 0 ? convert<C>(*from) : C();
    for (int64_t i = 0; i < n; ++i) dst[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = convert<C>(from[i * stride]);
  }
}

template <typename M, typename C>
void load(const void* src, const Rows& rows, C* dst) {
  const M* from = static_cast<const M*>(src);
  for (int64_t r = 0; r < rows.count; ++r, from += rows.row_stride, dst += rows.length) {
    load_row(from, rows.stride, rows.length, dst);
  }
}

template <typename M, typename C>
TT_HOST_DEVICE void store_row(const C* src, int64_t stride, int64_t n, M* to) {
  if (stride == 1) {
    if constexpr (std::is_same_v<M, Half> && std::is_same_v<C, float>) {
      narrow(src, n, to);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = convert<M>(src[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * stride] = convert<M>(src[i]);
  }
}

template <typename M, typename C>
void store(const C* src, const Rows& rows, void* dst) {
  M* to = static_cast<M*>(dst);
  for (int64_t r = 0; r < rows.count; ++r, to += rows.row_stride, src += rows.length) {
    store_row(src, rows.stride, rows.length, to);
  }
}

#if defined(__AVX512F__)
constexpr int64_t kLine = 64;
TT_HOST_DEVICE void stream_line(const void* src, void* dst) {
  _mm512_stream_si512(static_cast<__m512i*>(dst), _mm512_loadu_si512(src));
}
#elif defined(__AVX__)
constexpr int64_t kLine = 32;
TT_HOST_DEVICE void stream_line(const void* src, void* dst) {
  _mm256_stream_si256(static_cast<__m256i*>(dst), _mm256_loadu_si256(static_cast<const __m256i*>(src)));
}
#elif defined(__SSE2__)
constexpr int64_t kLine = 16;
TT_HOST_DEVICE void stream_line(const void* src, void* dst) {
  _mm_stream_si128(static_cast<__m128i*>(dst), _mm_loadu_si128(static_cast<const __m128i*>(src)));
}
#else
constexpr int64_t kLine = 64;
TT_HOST_DEVICE void stream_line(const void* src, void* dst) { std::memcpy(dst, src, kLine); }
#endif

template <typename C>
void stream(const C* src, int64_t n, C* dst) {
  const char* from = reinterpret_cast<const char*>(src);
  char* to = reinterpret_cast<char*>(dst);
  int64_t bytes = n * static_cast<int64_t>(sizeof(C));
  int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & (kLine - 1));
  if (head > bytes) head = bytes;
  std::memcpy(to, from, head);
  int64_t at = head;
  for (; at + kLine <= bytes; at += kLine) stream_line(from + at, to + at);
  std::memcpy(to + at, from + at, bytes - at);
}

template <typename... M>
struct Elements {};
using AllElements =
    Elements<Bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double, Complex<float>,
             Complex<double>, uint16_t, uint32_t, uint64_t, Float8E4m3fn, Float8E5m2>;  // in DType's order

template <typename C, typename... M>
BlockConversions<C> conversions(Elements<M...>) {
  static_assert(sizeof...(M) == static_cast<size_t>(kNumDTypes));
  return {{&load<M, C>...}, {&store<M, C>...}, &stream<C>};
}

BlockConversions<BFloat16> conversions_of_bfloat16() {
  BlockConversions<BFloat16> conversions{{}, {}, &stream<BFloat16>};
  conversions.load[static_cast<int>(DType::kBFloat16)] = &load<BFloat16, BFloat16>;
  conversions.store[static_cast<int>(DType::kBFloat16)] = &store<BFloat16, BFloat16>;
  return conversions;
}

#define TT_STRING(x) #x
#define TT_NAME_OF(isa) TT_STRING(isa)

}  // namespace

BlockTable make_table() {
  BlockTable table{TT_NAME_OF(TT_ISA),
                   nullptr,
                   0,
                   conversions<float>(AllElements()),
                   conversions<double>(AllElements()),
                   conversions<int32_t>(AllElements()),
                   conversions<int64_t>(AllElements()),
                   conversions<Complex<float>>(AllElements()),
                   conversions<Complex<double>>(AllElements()),
                   conversions_of_bfloat16(),
                   random_functions()};
  table.files = pointwise_files(&table.num_files);
  return table;
}

}  // namespace tt::cpu::TT_ISA
