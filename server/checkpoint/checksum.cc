#include "server/checkpoint/checksum.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tt::server {
namespace {

uint32_t update_in_software(uint32_t crc, const uint8_t* data, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
  for (size_t done = 0; done < size;) {
    const size_t part = std::min(kMost, size - done);
    crc = static_cast<uint32_t>(crc32(crc, data + done, static_cast<uInt>(part)));
    done += part;
  }
  return crc;
}

#if defined(__x86_64__)

#define TT_CARRYLESS __attribute__((target("pclmul,sse4.1")))

// The method of Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009):
// 64 bytes, a polynomial over GF(2), are multiplied by powers of x modulo the checksum's polynomial, so that they can
// be added to the 64 bytes after them. What is left is reduced to 32 bits as by Barrett.
struct Folding {
  // Powers of x modulo the polynomial, reflected.
  static constexpr long long kBy64Low = 0x154442bd4, kBy64High = 0x1c6e41596;     // x^(512+32), x^(512-32)
  static constexpr long long kBy16Low = 0x1751997d0, kBy16High = 0x0ccaa009e;     // x^(128+32), x^(128-32)
  static constexpr long long kTo64 = 0x163cd6124;                                 // x^64
  static constexpr long long kPolynomial = 0x1db710641, kQuotient = 0x1f7011641;  // Barrett: P and x^64 / P
};

TT_CARRYLESS __m128i fold(__m128i value, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

TT_CARRYLESS __m128i load(const uint8_t* data) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)); }

// Requires at least 64 bytes and a multiple of 16. `crc` and the result are inverted checksums.
TT_CARRYLESS uint32_t update_folding(uint32_t crc, const uint8_t* data, size_t size) {
  const __m128i by64 = _mm_set_epi64x(Folding::kBy64High, Folding::kBy64Low);
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = load(data + 16);
  __m128i c = load(data + 32);
  __m128i d = load(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    a = fold(a, by64, load(data));
    b = fold(b, by64, load(data + 16));
    c = fold(c, by64, load(data + 32));
    d = fold(d, by64, load(data + 48));
  }
  const __m128i by16 = _mm_set_epi64x(Folding::kBy16High, Folding::kBy16Low);
  a = fold(fold(fold(a, by16, b), by16, c), by16, d);
  for (; size >= 16; data += 16, size -= 16) a = fold(a, by16, load(data));

  const __m128i low32 = _mm_setr_epi32(-1, 0, -1, 0);
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by16, 0x10));  // to 96 bits
  const __m128i to64 = _mm_set_epi64x(0, Folding::kTo64);
  a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low32), to64, 0x00));
  const __m128i barrett = _mm_set_epi64x(Folding::kQuotient, Folding::kPolynomial);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}

uint32_t update(uint32_t crc, const uint8_t* data, size_t size) {
  static const bool kHasCarryless = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  const size_t folded = kHasCarryless && size >= 64 ? size / 16 * 16 : 0;
  if (folded != 0) crc = ~update_folding(~crc, data, folded);
  return update_in_software(crc, data + folded, size - folded);
}

#else

uint32_t update(uint32_t crc, const uint8_t* data, size_t size) { return update_in_software(crc, data, size); }

#endif

}  // namespace

uint32_t update_checksum(uint32_t crc, const void* data, size_t size) {
  return update(crc, static_cast<const uint8_t*>(data), size);
}

uint32_t combine_checksums(uint32_t first, uint32_t second, uint64_t size) {
  return static_cast<uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(size)));
}

uint32_t copy_with_checksum(uint32_t crc, void* to, const void* from, size_t size) {
  constexpr size_t kPiece = size_t{16} << 10;
  for (size_t done = 0; done < size;) {
    const size_t piece = std::min(kPiece, size - done);
    const char* data = static_cast<const char*>(from) + done;
    crc = update_checksum(crc, data, piece);
    std::memcpy(static_cast<char*>(to) + done, data, piece);
    done += piece;
  }
  return crc;
}

}  // namespace tt::server
