// The audit log: lines of one principal are limited, and counted where they are left out.
#include "server/audit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tt::server {
namespace {

TEST(AuditTest, LimitsTheLinesOfEachPrincipal) {
  const std::string file = testing::TempDir() + "/audit.jsonl";
  std::filesystem::remove(file);
  constexpr int64_t kOpened = 5000;
  {
    auto log = AuditLog::open(file);
    ASSERT_TRUE(log.ok()) << log.status();
    for (int64_t i = 0; i < kOpened; ++i) (*log)->record({.event = "session.open", .principal = "alice", .session = 7});
    (*log)->record({.event = "session.open", .principal = "bob", .session = 8});
    (*log)->record({.event = "principal.revoked", .principal = "alice", .is_limited = false});
    for (int64_t i = 0; i < kOpened; ++i) (*log)->record({.event = "session.open", .principal = "alice", .session = 7});
  }
  std::map<std::string, int64_t> lines, left_out;
  bool is_revoked = false;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    ++lines[record["principal"]];
    left_out[record["principal"]] += record.value("left_out", int64_t{0});
    lines[record["principal"]] -= record["event"] == "lines.left_out";
    is_revoked = is_revoked || record["event"] == "principal.revoked";
  }
  EXPECT_TRUE(is_revoked);
  EXPECT_EQ(lines["bob"], 1);
  EXPECT_LT(lines["alice"], 1000);
  EXPECT_EQ(lines["alice"] + left_out["alice"], 2 * kOpened + 1);
}

}  // namespace
}  // namespace tt::server
