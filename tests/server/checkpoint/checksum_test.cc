// update_checksum: known values, and the same result whatever the bytes' alignment and division into calls.
#include "server/checkpoint/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tt::server {
namespace {

TEST(Checksum, KnownValues) {
  EXPECT_EQ(update_checksum(0, "", 0), 0u);
  EXPECT_EQ(update_checksum(0, "123456789", 9), 0xCBF43926u);
  const std::vector<uint8_t> zeros(1 << 20, 0);
  EXPECT_EQ(update_checksum(0, zeros.data(), 64), 0x758D6336u);
  EXPECT_EQ(update_checksum(0, zeros.data(), zeros.size()), 0xA738EA1Cu);
}

TEST(Checksum, DoesNotDependOnTheDivisionIntoCalls) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(3000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (int trial = 0; trial < 2000; ++trial) {
    const size_t begin = random() % 70;
    const size_t size = random() % (trial % 10 == 0 ? bytes.size() - begin : 300);
    const auto start = static_cast<uint32_t>(random());
    uint32_t expected = start;  // one byte per call
    for (size_t i = 0; i < size; ++i) expected = update_checksum(expected, &bytes[begin + i], 1);
    const size_t first = size == 0 ? 0 : random() % size;
    const uint32_t divided =
        update_checksum(update_checksum(start, &bytes[begin], first), &bytes[begin + first], size - first);
    ASSERT_EQ(update_checksum(start, &bytes[begin], size), expected) << begin << " " << size;
    ASSERT_EQ(divided, expected) << begin << " " << size << " " << first;
    std::vector<uint8_t> copy(size);
    ASSERT_EQ(copy_with_checksum(start, copy.data(), &bytes[begin], size), expected);
    ASSERT_TRUE(std::equal(copy.begin(), copy.end(), bytes.begin() + static_cast<ptrdiff_t>(begin)));
    const uint32_t second = update_checksum(0, &bytes[begin + first], size - first);
    ASSERT_EQ(combine_checksums(update_checksum(start, &bytes[begin], first), second, size - first), expected);
  }
}

}  // namespace
}  // namespace tt::server
