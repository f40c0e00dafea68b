// Elementwise reductions of all dtypes, compared with scalar ones.
#include "distributed/group/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "engine/schema/error.h"
#include "engine/schema/half.h"

namespace tt::distributed {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum,  ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kBand, ReduceOp::kBor,     ReduceOp::kBxor};
constexpr size_t kCounts[] = {0, 1, 3, 7, 8, 9, 31, 64, 1000, 1025, 9001};

struct Bool {
  uint8_t byte;
};

template <typename T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool is_std_complex = false;
template <typename T>
constexpr bool is_std_complex<std::complex<T>> = true;

// The type in which a reduction accumulates.
template <typename T>
struct Accumulator {
  using type = std::conditional_t<is_half<T>, float, T>;
};

template <typename T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_same_v<T, Bool>) {
    const bool x = a.byte != 0, y = b.byte != 0;
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMax:
      case ReduceOp::kBor: return {x || y};
      case ReduceOp::kProduct:
      case ReduceOp::kMin:
      case ReduceOp::kBand: return {x && y};
      case ReduceOp::kBxor: return {x != y};
    }
  } else if constexpr (is_std_complex<T>) {
    if (op == ReduceOp::kSum) return a + b;
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case ReduceOp::kSum: return a + b;
      case ReduceOp::kProduct: return a * b;
      case ReduceOp::kMin: return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::min(a, b);
      default: return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::max(a, b);
    }
  } else {
    using U = std::make_unsigned_t<T>;
    const auto wide = [](T v) { return static_cast<uint64_t>(static_cast<U>(v)); };
    switch (op) {
      case ReduceOp::kSum: return static_cast<T>(wide(a) + wide(b));
      case ReduceOp::kProduct: return static_cast<T>(wide(a) * wide(b));
      case ReduceOp::kMin: return std::min(a, b);
      case ReduceOp::kMax: return std::max(a, b);
      case ReduceOp::kBand: return static_cast<T>(wide(a) & wide(b));
      case ReduceOp::kBor: return static_cast<T>(wide(a) | wide(b));
      case ReduceOp::kBxor: return static_cast<T>(wide(a) ^ wide(b));
    }
  }
  return a;
}

template <typename T>
T random_item(std::mt19937_64& random) {
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<uint8_t>(random() % 3 == 0 ? random() : 0)};
  } else if constexpr (is_std_complex<T>) {
    using R = typename T::value_type;
    return T(random_item<R>(random), random_item<R>(random));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    if (random() % 32 == 0) return T(std::numeric_limits<float>::quiet_NaN());
    if (random() % 64 == 0) return T(std::numeric_limits<float>::infinity());
    return T(static_cast<float>(static_cast<int>(random() % 4001) - 2000) / 256);
  }
}

template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_same_v<T, Bool>) {
    return a.byte == b.byte;
  } else if constexpr (is_std_complex<T>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const double x = a, y = b;
    return std::isnan(x) ? std::isnan(y) : x == y;
  }
}

// `misaligned` is added to all addresses; `alias` is the input whose address the output has, or -1.
template <typename T>
void compare(ReduceOp op, DType dtype, size_t inputs, size_t count, size_t misaligned, int alias) {
  std::mt19937_64 random(count * 31 + inputs);
  std::vector<std::vector<T>> items(inputs, std::vector<T>(count));
  for (auto& input : items) {
    for (T& item : input) item = random_item<T>(random);
  }
  std::vector<std::vector<char>> memory(inputs + 1, std::vector<char>(count * sizeof(T) + misaligned + 1, 'x'));
  std::vector<const char*> pointers;
  for (size_t k = 0; k < inputs; ++k) {
    if (count > 0) std::memcpy(memory[k].data() + misaligned, items[k].data(), count * sizeof(T));
    pointers.push_back(memory[k].data() + misaligned);
  }
  std::vector<char>& written = memory[alias < 0 ? inputs : static_cast<size_t>(alias)];
  reduce(op, dtype, written.data() + misaligned, pointers, count);
  EXPECT_EQ(written.back(), 'x');
  using A = typename Accumulator<T>::type;
  for (size_t i = 0; i < count; ++i) {
    A expected = static_cast<A>(items[0][i]);
    for (size_t k = 1; k < inputs; ++k) expected = combine<A>(op, expected, static_cast<A>(items[k][i]));
    T got;
    std::memcpy(&got, written.data() + misaligned + i * sizeof(T), sizeof(T));
    ASSERT_TRUE(same(got, T(expected))) << name(dtype) << " op " << static_cast<int>(op) << " inputs " << inputs
                                        << " count " << count << " item " << i;
  }
}

template <typename T>
void compare_all(DType dtype) {
  ASSERT_EQ(sizeof(T), item_size(dtype));
  for (ReduceOp op : kOps) {
    try {
      check_reduction(op, dtype);
    } catch (const Error&) {
      continue;
    }
    for (size_t inputs : {1, 2, 3, 5}) {
      for (size_t count : kCounts) {
        // A bool that is its own reduction keeps its byte.
        if (inputs == 1 && std::is_same_v<T, Bool>) continue;
        compare<T>(op, dtype, inputs, count, 0, -1);
        compare<T>(op, dtype, inputs, count, 1, -1);
        compare<T>(op, dtype, inputs, count, 0, static_cast<int>(count % inputs));
        compare<T>(op, dtype, inputs, count, 0, static_cast<int>(inputs) - 1);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Reduce, EveryDTypeMatchesAScalarReduction) {
  compare_all<Bool>(DType::kBool);
  compare_all<uint8_t>(DType::kUInt8);
  compare_all<int8_t>(DType::kInt8);
  compare_all<int16_t>(DType::kInt16);
  compare_all<int32_t>(DType::kInt32);
  compare_all<int64_t>(DType::kInt64);
  compare_all<uint16_t>(DType::kUInt16);
  compare_all<uint32_t>(DType::kUInt32);
  compare_all<uint64_t>(DType::kUInt64);
  compare_all<Half>(DType::kFloat16);
  compare_all<BFloat16>(DType::kBFloat16);
  compare_all<float>(DType::kFloat32);
  compare_all<double>(DType::kFloat64);
  compare_all<std::complex<float>>(DType::kComplex64);
  compare_all<std::complex<double>>(DType::kComplex128);
}

TEST(Reduce, HalvesAreRoundedOnce) {
  // 2048 + 1 rounds to 2048 in float16, so that rounding after each addition would lose all ones.
  for (size_t count : {1, 8, 11}) {
    const std::vector<Half> large(count, Half(2048.0f)), one(count, Half(1.0f));
    std::vector<Half> sum(count);
    const char* inputs[] = {reinterpret_cast<const char*>(large.data()), reinterpret_cast<const char*>(one.data()),
                            reinterpret_cast<const char*>(one.data()), reinterpret_cast<const char*>(one.data()),
                            reinterpret_cast<const char*>(one.data())};
    reduce(ReduceOp::kSum, DType::kFloat16, reinterpret_cast<char*>(sum.data()), inputs, count);
    for (Half value : sum) EXPECT_EQ(static_cast<float>(value), 2052.0f);
  }
}

ErrorKind kind_of(ReduceOp op, DType dtype) {
  try {
    check_reduction(op, dtype);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kNotImplemented;  // no error
}

TEST(Reduce, UndefinedReductionsAreErrors) {
  EXPECT_EQ(kind_of(ReduceOp::kSum, DType::kFloat8E5m2), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of(ReduceOp::kMax, DType::kFloat8E4m3fn), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of(ReduceOp::kBand, DType::kFloat32), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of(ReduceOp::kBxor, DType::kComplex64), ErrorKind::kRuntime);
  EXPECT_EQ(kind_of(ReduceOp::kMin, DType::kComplex128), ErrorKind::kValue);
  char byte = 0;
  const char* inputs[] = {&byte};
  EXPECT_THROW(reduce(ReduceOp::kSum, DType::kFloat8E5m2, &byte, inputs, 1), Error);
}

TEST(Reduce, CollectiveNames) {
  EXPECT_EQ(name(CollectiveKind::kAllReduce), "all_reduce");
  EXPECT_EQ(name(CollectiveKind::kReduceScatter), "reduce_scatter");
  EXPECT_EQ(name(CollectiveKind::kBarrier), "barrier");
}

}  // namespace
}  // namespace tt::distributed
