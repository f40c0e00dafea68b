// proto/version.h: which versions of clients and engines accept each other.
#include "proto/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tt {
namespace {

using ::testing::HasSubstr;

TEST(Version, ParsesMajorAndMinor) {
  EXPECT_EQ(*parse_version("0.1.0"), (Version{0, 1}));
  EXPECT_EQ(*parse_version("12.34"), (Version{12, 34}));
  EXPECT_EQ(*parse_version("1.2.3rc4+local"), (Version{1, 2}));
  for (const char* text : {"", "1", "1.", ".1", "-1.2", "1.-2", " 1.2", "1. 2", "1.2rc", "a.b", "1234567.0"}) {
    EXPECT_EQ(parse_version(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Version, AcceptsThePreviousMinorVersion) {
  const Version own = *parse_version(own_version());
  const Version previous{own.major, own.minor - 1};
  EXPECT_TRUE(kOldestPeer <= own);
  // 0.1 is the first version.
  if (own != Version{0, 1}) EXPECT_TRUE(kOldestPeer < own && (own.minor == 0 || kOldestPeer <= previous));
  EXPECT_TRUE(check_client_version(own_version()).ok());
  EXPECT_TRUE(check_client_version("").ok());
  EXPECT_TRUE(check_engine_version("99.0.0", "there").ok());  // the newer one decides
}

TEST(Version, NamesWhatIsTooOld) {
  const absl::Status client = check_client_version("0.0.5");
  EXPECT_EQ(client.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(client.message()), HasSubstr("this client, version 0.0.5, is too old for the engine"));
  const absl::Status engine = check_engine_version("0.0.5", "gpu-box:7070");
  EXPECT_EQ(engine.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(engine.message()), HasSubstr("the engine at gpu-box:7070, version 0.0.5, is too old"));
  EXPECT_EQ(check_engine_version("\n", "there").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tt
