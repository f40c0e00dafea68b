// Argument checks and value ranges of the random operators. The random words are defined in engine/session/generator.h.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/schema/dtype.h"
#include "engine/schema/error.h"
#include "engine/schema/half.h"

namespace tt {

// ---- Checks; these throw Error (RuntimeError) --------------------------------------------------

inline void check_uniform(double from, double to, DType dtype) {
  const double largest = dtype == DType::kFloat16    ? 65504.0
                         : dtype == DType::kBFloat16 ? 0x1.fep127
                         : dtype == DType::kFloat32  ? double{std::numeric_limits<float>::max()}
                                                     : std::numeric_limits<double>::max();
  const std::string_view type = scalar_type_name(dtype);
  check(std::abs(from) <= largest, "from is out of bounds for ", type, ", got ", from);
  check(std::abs(to) <= largest, "to is out of bounds for ", type, ", got ", to);
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  check(to - from <= largest, "uniform_ expects to-from <= ", largest, ", but found to=", to, " and from=", from);
}
inline void check_normal(double std) { check(std >= 0, "normal expects std >= 0.0, but found std ", std); }
inline void check_exponential(double lambd) {
  check(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
}
inline void check_bernoulli(double p) {
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}
// Whether the dtype has all numbers below n: a permutation has each of them once.
inline void check_randperm(int64_t n, DType dtype) {
  int64_t most = std::numeric_limits<int64_t>::max();
  switch (dtype) {
    case DType::kBool: most = 2; break;
    case DType::kUInt8: most = int64_t{1} << 8; break;
    case DType::kInt8: most = int64_t{1} << 7; break;
    case DType::kInt16: most = int64_t{1} << 15; break;
    case DType::kInt32: most = int64_t{1} << 31; break;
    case DType::kBFloat16: most = (int64_t{1} << 8) + 1; break;
    case DType::kFloat16: most = (int64_t{1} << 11) + 1; break;
    case DType::kFloat32: most = (int64_t{1} << 24) + 1; break;
    case DType::kFloat64: most = (int64_t{1} << 53) + 1; break;
    default: break;
  }
  check(n <= most, "n is too large for result tensor type ", scalar_type_name(dtype), ", got ", n);
}
inline constexpr const char* kNoProbability = "Expected p_in >= 0 && p_in <= 1 to be true, but got false.";

// Errors of multinomial.
inline constexpr const char* kBadWeights = "probability tensor contains either `inf`, `nan` or element < 0";
inline constexpr const char* kNoWeight = "invalid multinomial distribution (sum of probabilities <= 0)";
inline constexpr const char* kFewWeights =
    "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)";

// ---- Ranges --------------------------------------------------------------------------------

// Returns the lowest float that rounds to `to`, a finite number of a 16-bit dtype.
template <typename T>
float lowest_rounding_to(T to) {
  T below;  // the next lower number of the dtype
  below.bits = static_cast<uint16_t>(to.bits == 0 ? 0x8001 : to.bits & 0x8000 ? to.bits + 1 : to.bits - 1);
  const float last = to, middle = static_cast<float>((double{below} + double{last}) / 2);
  return static_cast<float>(T(middle)) == last ? middle : std::nextafter(middle, last);
}

// Converts numbers in [0, 1) to numbers in [from, to). A number that the dtype would round up to `to` becomes `from`,
// as in PyTorch. Requires bounds that check_uniform() accepts.
struct UniformRange {
  double from, length;
  double limit;  // the lowest number that is rounded to `to`

  template <typename C>
  constexpr C operator()(C u) const {
    const C x = static_cast<C>(from) + u * static_cast<C>(length);
    return x < static_cast<C>(limit) ? x : static_cast<C>(from);
  }
};

inline UniformRange uniform_range(double from, double to, DType dtype) {
  const auto rounded = [=]<typename T>(T low, T high, double limit) {
    return UniformRange{double{low}, double{high} - double{low}, limit};
  };
  const auto low = static_cast<float>(from), high = static_cast<float>(to);
  switch (dtype) {
    case DType::kFloat16: return rounded(float{Half(low)}, float{Half(high)}, lowest_rounding_to(Half(high)));
    case DType::kBFloat16:
      return rounded(float{BFloat16(low)}, float{BFloat16(high)}, lowest_rounding_to(BFloat16(high)));
    case DType::kFloat32: return rounded(low, high, high);
    default: return rounded(from, to, to);
  }
}

// The smallest exponentially distributed number of rate 1, which replaces 0 as in PyTorch: samples are positive.
template <typename C>
inline constexpr C kLeastExponential = std::numeric_limits<C>::epsilon() / 2;

// The largest n for which a dtype represents every integer of [0, n].
inline uint64_t last_exact_integer(DType dtype) {
  switch (dtype) {
    case DType::kBool: return 1;
    case DType::kUInt8: return std::numeric_limits<uint8_t>::max();
    case DType::kInt8: return std::numeric_limits<int8_t>::max();
    case DType::kInt16: return std::numeric_limits<int16_t>::max();
    case DType::kInt32: return std::numeric_limits<int32_t>::max();
    case DType::kUInt16: return std::numeric_limits<uint16_t>::max();
    case DType::kUInt32: return std::numeric_limits<uint32_t>::max();
    case DType::kUInt64: return std::numeric_limits<uint64_t>::max();
    case DType::kFloat16: return uint64_t{1} << 11;
    case DType::kBFloat16: return uint64_t{1} << 8;
    case DType::kFloat32: return uint64_t{1} << 24;
    case DType::kFloat64: return uint64_t{1} << 53;
    default: return std::numeric_limits<int64_t>::max();
  }
}

// Integers in [low, low + range). Each element uses one random word for ranges up to kWordRange, else two.
struct IntegerRange {
  static constexpr uint64_t kWordRange = uint64_t{1} << 24;
  int64_t low;
  uint64_t range;  // 0 represents 2^64

  constexpr bool uses_one_word() const { return range != 0 && range <= kWordRange; }

  // Scales random bits to the range: low + the high half of the product with `range`. The bias is below 2^-32.
  constexpr int64_t from_word(uint32_t word) const { return plus(word * range >> 32); }
  constexpr int64_t from_words(uint64_t pair) const {
    if (range == 0) return plus(pair);
    return plus(static_cast<uint64_t>(static_cast<unsigned __int128>(pair) * range >> 64));
  }

 private:
  constexpr int64_t plus(uint64_t drawn) const { return static_cast<int64_t>(static_cast<uint64_t>(low) + drawn); }
};

constexpr IntegerRange integers_between(int64_t low, int64_t high) {
  return {low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low)};
}

// The range of random_(from, to), random_(to) and random_(). Throws Error (RuntimeError) if it is empty.
inline IntegerRange random_range(std::optional<int64_t> from, std::optional<int64_t> to, DType dtype) {
  const int64_t low = to ? from.value_or(0) : 0;
  const std::optional<int64_t> high = to ? to : from;
  if (!high) return {0, last_exact_integer(dtype) + 1};
  check(low < *high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", *high);
  return integers_between(low, *high);
}

// The standard deviation to draw with: `std` for real dtypes. For complex dtypes, the standard deviation of each part,
// chosen so that the standard deviation of the complex number is `std`.
inline double part_std(DType dtype, double std) { return is_complex(dtype) ? std * std::sqrt(0.5) : std; }

// ---- Permutations --------------------------------------------------------------------------

// Writes a random permutation of [0, n) to `to` by the Fisher-Yates shuffle, from n random words of 64 bits.
template <typename T>
void shuffle(const uint64_t* drawn, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(i);
  for (int64_t i = 0; i + 1 < n; ++i) {
    const auto left = static_cast<unsigned __int128>(n - i);
    std::swap(to[i], to[i + static_cast<int64_t>(left * drawn[i] >> 64)]);
  }
}

}  // namespace tt
