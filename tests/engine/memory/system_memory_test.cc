#include "engine/memory/system_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace tt {
namespace {

TEST(SystemMemoryTest, LargeSegmentsAreHugePageAligned) {
  SystemMemory memory;
  for (size_t bytes : {size_t{4096}, size_t{2} << 20, size_t{6} << 20}) {
    void* segment = memory.map(bytes);
    ASSERT_NE(segment, nullptr);
    size_t alignment = bytes < (size_t{2} << 20) ? 4096 : size_t{2} << 20;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(segment) % alignment, 0u);
    std::memset(segment, 0x5a, bytes);  // all bytes are mapped
    memory.unmap(segment, bytes);
  }
}

TEST(SystemMemoryTest, ExcessiveRequestReturnsNull) { EXPECT_EQ(SystemMemory().map(size_t{1} << 60), nullptr); }

}  // namespace
}  // namespace tt
