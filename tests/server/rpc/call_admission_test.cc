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
using ::testing::EndsWith;
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

class AdmittedCalls {
 public:
  // The number of calls that the holder gets.
  int fill(Kind kind, const CallAdmission::Holder& holder) {
    for (int count = 0;; ++count) {
      auto slot = admission.admit(kind, holder);
      if (!slot.ok()) {
        EXPECT_EQ(slot.status().code(), absl::StatusCode::kUnavailable);
        EXPECT_THAT(std::string(slot.status().message()), EndsWith("try again later"));  // clients recognise it
        return count;
      }
      slots.push_back(*std::move(slot));
    }
  }
  CallAdmission admission;
  std::vector<CallAdmission::Slot> slots;
};

TEST(CallAdmissionTest, DividesQuotaAmongPrincipals) {
  AdmittedCalls calls;
  EXPECT_EQ(calls.fill(Kind::kHello, {"a"}), 45);  // of 64, of which 4 are for operators
  EXPECT_GT(calls.fill(Kind::kHello, {"b"}), 5);
  EXPECT_EQ(calls.fill(Kind::kHello, {"a"}), 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(calls.fill(Kind::kHello, {"new " + std::to_string(i)}) > 0);
  EXPECT_GT(calls.fill(Kind::kHello, {"root", /*is_operator=*/true}), 0);
  EXPECT_TRUE(calls.admission.admit(Kind::kAdmin, {"a"}).ok());
  calls.slots.clear();
  EXPECT_EQ(calls.fill(Kind::kHello, {"b"}), 45);
}

TEST(CallAdmissionTest, LimitsPartsOfAHolder) {
  AdmittedCalls calls;
  EXPECT_EQ(calls.fill(Kind::kTransfer, {"a", false, "session 1"}), 128);
  EXPECT_EQ(calls.fill(Kind::kTransfer, {"a", false, "session 2"}), 128);
  EXPECT_EQ(calls.fill(Kind::kReflection, {"address 10.0.0.1", false, "10.0.0.1"}), 4);
  EXPECT_GT(calls.fill(Kind::kReflection, {"address unix", false, "unix"}), 4);
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
