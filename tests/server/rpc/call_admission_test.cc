// CallAdmission: quotas, and the keys they count by. LogLimit: the number of log lines.
#include "server/rpc/call_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "server/log.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

using Kind = CallAdmission::Kind;
using ::testing::HasSubstr;

TEST(CallAdmissionTest, CountsAddressesWithoutPorts) {
  EXPECT_EQ(address_of("ipv4:10.1.2.3:4711"), "10.1.2.3");
  EXPECT_EQ(address_of("ipv4:127.9.9.9:1"), "127.0.0.1");
  EXPECT_EQ(address_of("ipv6:[::1]:1"), "127.0.0.1");
  EXPECT_EQ(address_of("ipv6:%5B::1%5D:1"), "127.0.0.1");
  EXPECT_EQ(address_of("ipv6:[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
  EXPECT_EQ(address_of("ipv6:%5B2001:db8:1:2:ffff:4:5:6%5D:99"), "2001:db8:1:2::");
  EXPECT_EQ(address_of("unix:"), "unix");
  EXPECT_EQ(address_of("unix:/run/client.sock"), "unix");
  EXPECT_EQ(connection_of("ipv6:%5Bfe80::1%25eth0%5D:99"), "[fe80::1]:99");
  EXPECT_EQ(connection_of("ipv4:10.1.2.3:4711"), "10.1.2.3:4711");
}

TEST(CallAdmissionTest, LimitsQuotaPerHolderAndInTotal) {
  CallAdmission admission;
  std::vector<CallAdmission::Slot> slots;
  for (int holder = 0; holder < 4; ++holder) {
    const std::string address = "10.0.0." + std::to_string(holder);
    for (int i = 0; i < 16; ++i) {
      auto slot = admission.admit(Kind::kHello, address);
      ASSERT_TRUE(slot.ok()) << slot.status();
      slots.push_back(*std::move(slot));
    }
    if (holder == 3) break;
    EXPECT_THAT(std::string(admission.admit(Kind::kHello, address).status().message()), HasSubstr(address));
  }
  EXPECT_EQ(admission.admit(Kind::kHello, "10.0.0.9").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(admission.admit(Kind::kAdmin, "10.0.0.9").ok());
  slots.pop_back();
  EXPECT_TRUE(admission.admit(Kind::kHello, "10.0.0.9").ok());
}

TEST(LogLimitTest, DropsLinesAfterBurstAndReportsCount) {
  std::ostringstream text;
  auto saved = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  LogLimit limit(3, std::chrono::milliseconds(200));
  for (int i = 0; i < 1000; ++i) limit.warn("a\nforged line\x1b[2J");
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  limit.warn("later");
  spdlog::set_default_logger(saved);
  const std::string log = text.str();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 6);
  EXPECT_THAT(log, HasSubstr("a\\nforged line\\x1b[2J"));
  EXPECT_THAT(log, HasSubstr("similar lines were dropped"));
}

}  // namespace
}  // namespace tt::server
