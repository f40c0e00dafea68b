// The log as lines of JSON: fields, and texts that must not break a line.
#include "server/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class JsonLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = spdlog::default_logger();
    testing::internal::CaptureStderr();
    start_log("info", LogFormat::kJson);
  }
  void TearDown() override {
    if (!text_) testing::internal::GetCapturedStderr();
    spdlog::set_default_logger(before_);
    spdlog::drop("teletensord");
  }
  std::vector<json> lines() {
    text_ = testing::internal::GetCapturedStderr();
    std::vector<json> all;
    std::istringstream stream(*text_);
    for (std::string line; std::getline(stream, line);) all.push_back(json::parse(line));
    return all;
  }

  std::optional<std::string> text_;

 private:
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(JsonLogTest, LinesHaveFieldsOfTheirSubject) {
  spdlog::info("listening on {}", 7070);
  log_line(LogLevel::kError, {7, "alice", "ipv4:10.0.0.1:5"}, "it failed");
  log_line(LogLevel::kDebug, {7}, "below the level");
  spdlog::warn("later");
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[0]["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"));
  EXPECT_EQ(all[0]["message"], "listening on 7070");
  EXPECT_EQ(all[0]["level"], "info");
  EXPECT_EQ(all[0].size(), 3u);
  EXPECT_EQ(all[1]["session"], 7);
  EXPECT_EQ(all[1]["principal"], "alice");
  EXPECT_EQ(all[1]["peer"], "ipv4:10.0.0.1:5");
  EXPECT_EQ(all[1]["level"], "error");
  EXPECT_EQ(all[2].size(), 3u);  // the subject of another line is not kept
}

TEST_F(JsonLogTest, NoTextBreaksALine) {
  const std::string hostile =
      std::string("a\"}\n{\"level\":\"forged\"}\r\x1b[2J\\ \xff\xfe \xe2\x80\xa8 \xc2\x85 ") + '\0' + "z";
  log_line(LogLevel::kInfo, {1, hostile, hostile}, hostile);
  LogLimit limit;
  limit.info(hostile, {2, hostile});
  spdlog::info("{}", std::string(1 << 20, '\n'));
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[0]["message"].get<std::string>(), HasSubstr("a\"}\n{\"level\":\"forged\"}"));
  EXPECT_THAT(all[0]["principal"].get<std::string>(), HasSubstr("\xef\xbf\xbd"));  // instead of invalid UTF-8
  EXPECT_EQ(all[1]["session"], 2);
  EXPECT_EQ(all[2]["message"].get<std::string>().size() + all[2]["left_out_bytes"].get<size_t>(), size_t{1} << 20);
  EXPECT_LT(text_->size(), 100'000u);
  for (const char c : *text_) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
}

}  // namespace
}  // namespace tt::server
