// Trace contexts from clients, and the queue of spans.
#include <gmock/gmock.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/duration.pb.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/trace/otlp_encode.h"
#include "server/trace/otlp_exporter.h"
#include "server/trace/tracer.h"

namespace tt::server {
namespace {

using ::testing::HasSubstr;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c", kParent[] = "b7ad6b7169203331";

std::string header(const std::string& version = "00", const std::string& trace = kTrace,
                   const std::string& parent = kParent, const std::string& flags = "01") {
  return absl::StrCat(version, "-", trace, "-", parent, "-", flags);
}

TEST(TraceparentTest, ParsesWhatTheStandardAllows) {
  const auto context = parse_traceparent(header());
  ASSERT_TRUE(context);
  EXPECT_EQ(absl::BytesToHexString({context->trace.data(), 16}), kTrace);
  EXPECT_EQ(absl::BytesToHexString({context->span.data(), 8}), kParent);
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(parse_traceparent(header("00", kTrace, kParent, "00"))->sampled);
  EXPECT_FALSE(parse_traceparent(header("00", kTrace, kParent, "fe"))->sampled);
  EXPECT_TRUE(parse_traceparent(header("00", kTrace, kParent, "ff"))->sampled);
  EXPECT_TRUE(parse_traceparent(header("cc")));  // a later version, which may have more fields
  EXPECT_TRUE(parse_traceparent(header("cc") + "-anything"));
}

TEST(TraceparentTest, IgnoresEverythingElse) {
  const std::string invalid[] = {"",
                                 "-",
                                 "00",
                                 header().substr(1),
                                 header().substr(0, 54),
                                 header() + "0",
                                 header() + "-01",
                                 header("ff"),
                                 header("0x"),
                                 header("cc") + "01",
                                 header("00", std::string(32, '0')),
                                 header("00", kTrace, std::string(16, '0')),
                                 header("00", "0AF7651916CD43DD8448EB211C80319C"),
                                 header("00", kTrace, kParent, "0g"),
                                 header("00", kTrace, kParent, "1"),
                                 header("00", std::string(32, '\xff')),
                                 header("00", std::string(31, 'a') + '\0'),
                                 std::string(55, '-'),
                                 std::string(1 << 20, 'a'),
                                 "00_" + header().substr(3)};
  for (const std::string& text : invalid) EXPECT_FALSE(parse_traceparent(text)) << text.substr(0, 100);
  std::string text = header();
  for (size_t i = 0; i < text.size(); ++i) {  // any byte in any place: either a context, or none
    for (int c = 0; c < 256; ++c) {
      std::string changed = text;
      changed[i] = static_cast<char>(c);
      const auto parsed = parse_traceparent(changed);
      if (parsed) {
        EXPECT_TRUE(changed[i] == '-' || absl::ascii_isxdigit(static_cast<unsigned char>(changed[i])));
      }
    }
  }
}

TEST(TraceparentTest, NewSpansAreOfTheParentsTrace) {
  const auto parent = parse_traceparent(header());
  const auto child = new_span_context(parent), root = new_span_context({});
  EXPECT_EQ(child->trace, parent->trace);
  EXPECT_NE(child->span, parent->span);
  EXPECT_NE(root->trace, parent->trace);
  EXPECT_NE(new_span_context({})->trace, root->trace);
}

TEST(TracerTest, SamplesAsOftenAsTheRatioSays) {
  const Tracer none({.ratio = 0}), all({.ratio = 1}), some({.ratio = 0.1});
  int sampled = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    EXPECT_FALSE(none.samples(i));
    EXPECT_TRUE(all.samples(i));
    sampled += some.samples(i);
  }
  EXPECT_GT(sampled, 800);
  EXPECT_LT(sampled, 1200);
}

TEST(TracerTest, DropsAndCountsWhatTheQueueCannotHold) {
  Tracer tracer({});
  for (size_t i = 0; i < Tracer::kMaxQueued + 5; ++i) {
    Span span;
    span.attribute("text", std::string(1 << 20, 'x') + "\xff");
    EXPECT_LE(std::get<std::string>(span.attributes[0].second).size(), Tracer::kMaxText);
    tracer.add(std::move(span));
  }
  EXPECT_EQ(tracer.dropped(Tracer::Dropped::kQueue), 5u);
  size_t taken = 0;
  tracer.close();
  for (;;) {
    const std::vector<Span> batch = tracer.take();
    if (batch.empty()) break;
    EXPECT_LE(batch.size(), Tracer::kMaxBatch);
    taken += batch.size();
  }
  EXPECT_EQ(taken, Tracer::kMaxQueued);
  tracer.add(Span());
  EXPECT_EQ(tracer.dropped(Tracer::Dropped::kQueue), 6u);
}

TEST(TracerTest, TakeReturnsAFirstSpanWithoutOthers) {
  Tracer tracer({});
  std::thread adds([&] { tracer.add(Span()); });
  EXPECT_EQ(tracer.take().size(), 1u);
  adds.join();
  std::thread closes([&] { tracer.close(); });
  EXPECT_TRUE(tracer.take().empty());
  closes.join();
}

TEST(TracerTest, LimitsSessionsAndCallsPerSecond) {
  Tracer tracer({});
  int allowed = 0;
  for (int i = 0; i < 5000; ++i) allowed += tracer.allow_call();
  EXPECT_GE(allowed, 500);
  EXPECT_LT(allowed, 5000);
  EXPECT_EQ(tracer.dropped(Tracer::Dropped::kRate), static_cast<uint64_t>(5000 - allowed));
}

// A serialized google.rpc.Status with a detail of this type.
std::string status_with(const std::string& type, const std::string& value) {
  google::protobuf::Any detail;
  detail.set_type_url(type);
  detail.set_value(value);
  const std::string bytes = detail.SerializeAsString();
  return absl::StrCat(
      "\x08\x08\x12\x04"
      "full\x1a",
      std::string(1, static_cast<char>(bytes.size())), bytes);
}

TEST(OtlpTest, ReadsTheRequestedPause) {
  google::protobuf::Duration delay;
  delay.set_seconds(2);
  delay.set_nanos(500'000'000);
  const std::string bytes = delay.SerializeAsString();
  const std::string info = absl::StrCat("\x0a", std::string(1, static_cast<char>(bytes.size())), bytes);
  constexpr char kType[] = "type.googleapis.com/google.rpc.RetryInfo";
  EXPECT_EQ(requested_pause(status_with(kType, info)), std::chrono::milliseconds(2500));
  EXPECT_EQ(requested_pause(status_with(kType, "")), std::chrono::milliseconds(0));
  EXPECT_EQ(requested_pause(status_with("type.googleapis.com/google.rpc.Help", info)), std::nullopt);
  EXPECT_EQ(requested_pause(""), std::nullopt);
  EXPECT_EQ(requested_pause("\xff\xff"), std::nullopt);
  EXPECT_EQ(requested_pause(status_with(kType, "\x0a\xff")), std::nullopt);
}

TEST(OtlpTest, ParsesEndpoints) {
  EXPECT_EQ(parse_otlp_endpoint("collector:4317")->target, "collector:4317");
  EXPECT_FALSE(parse_otlp_endpoint("http://[::1]:4317/")->tls);
  EXPECT_TRUE(parse_otlp_endpoint("https://a.b:443")->tls);
  for (const char* text : {"", "collector", "collector:", ":1", "a:0", "a:65536", "a:b", "::1:4317",
                           "http://a:1/v1/traces", "https://", "ftp://a:1", "user@a:1"}) {
    EXPECT_THAT(std::string(parse_otlp_endpoint(text).status().message()), HasSubstr("expected HOST:PORT")) << text;
  }
}

}  // namespace
}  // namespace tt::server
