#include "engine/memory/bytes.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(BytesTest, ParsesHumanReadableSizes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1 KiB");
  EXPECT_EQ(bytes_text(uint64_t{600} << 20), "600 MiB");
  EXPECT_EQ(bytes_text(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(bytes_text(~uint64_t{0}), "16 EiB");
}

}  // namespace
}  // namespace tt
