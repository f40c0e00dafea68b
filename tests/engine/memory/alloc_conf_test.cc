#include "engine/memory/alloc_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kGiB = size_t{1} << 30;

std::string error_of(const std::string& text) {
  try {
    parse_alloc_conf(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kValue);
    return e.message();
  }
  return "no error";
}

TEST(AllocConfTest, EmptyStringGivesDefaults) {
  AllocConf conf = parse_alloc_conf("");
  EXPECT_EQ(conf.max_split_size, SIZE_MAX);
  EXPECT_EQ(conf.max_non_split_rounding, 20 * kMiB);
  EXPECT_EQ(conf.garbage_collection_threshold, 0);
  EXPECT_FALSE(conf.expandable_segments);
  EXPECT_EQ(conf.rounded(1000, 512), 1024u);
  EXPECT_EQ(conf.rounded(kGiB + 1, 512), kGiB + 512);
}

TEST(AllocConfTest, ReadsEveryKey) {
  AllocConf conf = parse_alloc_conf(
      "max_split_size_mb:128, max_non_split_rounding_mb:64,garbage_collection_threshold:0.8,expandable_segments:True,"
      "roundup_power2_divisions:4");
  EXPECT_EQ(conf.max_split_size, 128 * kMiB);
  EXPECT_EQ(conf.max_non_split_rounding, 64 * kMiB);
  EXPECT_EQ(conf.garbage_collection_threshold, 0.8);
  EXPECT_TRUE(conf.expandable_segments);
  for (uint16_t divisions : conf.roundup_power2_divisions) EXPECT_EQ(divisions, 4);
}

TEST(AllocConfTest, RoundsToDivisionsOfPowersOfTwo) {
  AllocConf conf = parse_alloc_conf("roundup_power2_divisions:4");
  EXPECT_EQ(conf.rounded(1200 * kMiB, 512), 1280 * kMiB);  // PyTorch's example: 1024, 1280, 1536, 1792
  EXPECT_EQ(conf.rounded(1024 * kMiB, 512), 1024 * kMiB);
  EXPECT_EQ(conf.rounded(1793 * kMiB, 512), 2048 * kMiB);
  EXPECT_EQ(conf.rounded(100, 512), 512u);
  EXPECT_EQ(conf.rounded(2049, 512), 2560u);
}

TEST(AllocConfTest, DivisionsMayDifferBySize) {
  AllocConf conf = parse_alloc_conf("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],expandable_segments:False");
  EXPECT_EQ(conf.rounded(257 * kMiB, 512), 257 * kMiB);
  EXPECT_EQ(conf.rounded(513 * kMiB, 512), 768 * kMiB);
  EXPECT_EQ(conf.rounded(1025 * kMiB, 512), 1280 * kMiB);
  EXPECT_EQ(conf.rounded(2049 * kMiB, 512), 2304 * kMiB);
  EXPECT_EQ(conf.rounded(100 * kGiB, 512), 104 * kGiB);
}

TEST(AllocConfTest, ReportsInvalidValues) {
  EXPECT_EQ(
      error_of("expandable_segment:True"),
      "TELETENSOR_ALLOC_CONF: unknown key 'expandable_segment'; the keys are max_split_size_mb, "
      "max_non_split_rounding_mb, garbage_collection_threshold, expandable_segments and roundup_power2_divisions");
  EXPECT_EQ(error_of("expandable_segments"), "TELETENSOR_ALLOC_CONF: expected key:value, got 'expandable_segments'");
  EXPECT_EQ(error_of("expandable_segments:1"),
            "TELETENSOR_ALLOC_CONF: expandable_segments must be True or False, got '1'");
  EXPECT_EQ(error_of("max_split_size_mb:20"),
            "TELETENSOR_ALLOC_CONF: max_split_size_mb must be a whole number from 21 to 4294967296, got '20'");
  EXPECT_EQ(error_of("garbage_collection_threshold:1"),
            "TELETENSOR_ALLOC_CONF: garbage_collection_threshold must be between 0 and 1, both excluded, got '1'");
  EXPECT_EQ(error_of("roundup_power2_divisions:[256:1,512:3]"),
            "TELETENSOR_ALLOC_CONF: roundup_power2_divisions must be powers of two, got '3'");
}

TEST(AllocConfTest, RejectsInvalidLists) {
  for (const char* bad :
       {",", ":", "max_split_size_mb:", "max_split_size_mb:-1", "max_split_size_mb:99999999999999999999",
        "garbage_collection_threshold:nan", "roundup_power2_divisions:[", "roundup_power2_divisions:[]",
        "roundup_power2_divisions:[256]", "roundup_power2_divisions:[300:2]", "roundup_power2_divisions:[256:2,>]",
        "max_split_size_mb:64,,expandable_segments:True"}) {
    EXPECT_NE(error_of(bad), "no error") << bad;
  }
}

TEST(AllocConfTest, ReadsEnvironmentVariable) {
  setenv("TELETENSOR_ALLOC_CONF", "max_split_size_mb:64", 1);
  EXPECT_EQ(alloc_conf_of_environment().max_split_size, 64 * kMiB);
  unsetenv("TELETENSOR_ALLOC_CONF");
  EXPECT_EQ(alloc_conf_of_environment().max_split_size, SIZE_MAX);
}

}  // namespace
}  // namespace tt
