// Which frames of a session become spans, and of which parents.
#include "server/session/session_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c", kSpan[] = "b7ad6b7169203331";
constexpr uint64_t kSecond = 1'000'000'000;

std::string header(const char* flags = "01") { return absl::StrCat("00-", kTrace, "-", kSpan, "-", flags); }

template <typename Bytes>
std::string hex(const Bytes& bytes) {
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

class SessionTraceTest : public ::testing::Test {
 protected:
  void start(double ratio, const std::string& traceparent = "") {
    tracer_ = std::make_shared<Tracer>(Tracer::Options{.ratio = ratio});
    trace_ = std::make_unique<SessionTrace>(tracer_, traceparent, 7, "alice", "10.0.0.1");
  }
  void execute(const std::string& traceparent, uint64_t duration = 1000) {
    v1::Frame frame;
    frame.set_sequence(++sequence_);
    frame.set_traceparent(traceparent);
    trace_->frame(frame, v1::Reply(), {.duration = duration});
  }
  // Ends the session and returns all spans, that of the session last.
  std::vector<Span> spans() {
    trace_->end(v1::SessionStatus());
    trace_->end(v1::SessionStatus());  // counts once
    tracer_->close();
    std::vector<Span> all;
    for (std::vector<Span> batch = tracer_->take(); !batch.empty(); batch = tracer_->take()) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  }

  std::shared_ptr<Tracer> tracer_;
  std::unique_ptr<SessionTrace> trace_;
  uint64_t sequence_ = 0;
};

TEST_F(SessionTraceTest, AFrameWithoutAContextBelongsToTheSession) {
  start(1);
  execute("");
  const std::vector<Span> all = spans();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].context.trace, all[1].context.trace);
  EXPECT_EQ(all[0].parent, all[1].context.span);
  EXPECT_FALSE(all[0].link);
  EXPECT_FALSE(all[1].parent);
}

TEST_F(SessionTraceTest, AFrameWithAContextBelongsToTheClientsSpan) {
  start(0, header());
  execute(header());
  const std::vector<Span> all = spans();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(hex(all[0].context.trace), kTrace);
  EXPECT_EQ(hex(*all[0].parent), kSpan);
  EXPECT_EQ(all[0].link->span, all[1].context.span);
  EXPECT_EQ(hex(*all[1].parent), kSpan);
}

TEST_F(SessionTraceTest, OnlySampledAndSlowFramesAreExported) {
  start(0);
  execute("");
  execute(header("00"));
  execute("", 2 * kSecond);
  execute(header("00"), 2 * kSecond);
  const std::vector<Span> all = spans();
  ASSERT_EQ(all.size(), 3u);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(all[i].parent, all[2].context.span);
    EXPECT_EQ(all[i].end - all[i].start, 2 * kSecond);
  }
}

TEST_F(SessionTraceTest, ASessionInAnUnsampledContextExportsSampledFramesOnly) {
  start(1, header("00"));
  execute("", 2 * kSecond);
  execute(header());
  const std::vector<Span> all = spans();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(hex(*all[0].parent), kSpan);
  EXPECT_FALSE(all[0].link);
}

TEST_F(SessionTraceTest, InvalidContextsAreIgnored) {
  start(1, "00-" + std::string(4096, '\xff'));
  for (const std::string& text : {std::string("x"), std::string(1 << 20, 'a'), header() + "-", std::string(55, '\0')}) {
    execute(text);
  }
  const std::vector<Span> all = spans();
  ASSERT_EQ(all.size(), 5u);
  for (const Span& span : all) EXPECT_EQ(span.context.trace, all[4].context.trace);
  EXPECT_NE(hex(all[4].context.trace), kTrace);
}

TEST_F(SessionTraceTest, FramesOfASessionHaveARate) {
  start(0);
  for (int i = 0; i < 2000; ++i) execute(header());
  const uint64_t dropped = tracer_->dropped(Tracer::Dropped::kRate);
  EXPECT_GE(dropped, 1000u);
  EXPECT_EQ(spans().size(), 2000 - dropped + 1);
}

TEST_F(SessionTraceTest, TheErrorOfTheReplyIsAnAttribute) {
  start(1);
  v1::Frame frame;
  v1::Reply reply;
  reply.add_reads()->mutable_error()->set_kind(v1::OUT_OF_MEMORY);
  trace_->frame(frame, reply, {.failed = 2});
  v1::Reply fault;
  fault.mutable_fault()->set_kind(v1::VALUE);
  trace_->frame(frame, fault, {});
  const std::vector<Span> all = spans();
  const auto text = [](const Span& span) {
    for (const auto& [key, value] : span.attributes) {
      if (std::string(key) == "error.type") return std::get<std::string>(value);
    }
    return std::string();
  };
  EXPECT_EQ(text(all[0]), "OUT_OF_MEMORY");
  EXPECT_EQ(text(all[1]), "VALUE");
  EXPECT_TRUE(all[0].failed && all[1].failed);
}

}  // namespace
}  // namespace tt::server
