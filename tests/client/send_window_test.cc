// Unit tests of SendWindow, PendingReads and TransferRetry, the parts of a Link.
#include "client/link/send_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/link/pending_reads.h"
#include "client/link/transfer_retry.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void append(SendWindow& window) {
  window.building().count({1, 0});
  window.add_instruction();
}

uint64_t send(SendWindow& window) {
  const uint64_t sequence = window.begin_send({}).sequence();
  window.end_send(true);
  return sequence;
}

int recycle_all(SendWindow& window) {
  int count = 0;
  for (; std::unique_ptr<OutgoingFrame> frame = window.take_acknowledged(); ++count) {
    frame->clear();
    window.recycle(std::move(frame));
  }
  return count;
}

TEST(SendWindowTest, SendsUntilWindowIsFullAndAfterAcknowledgement) {
  SendWindow window;
  EXPECT_FALSE(window.may_send());
  for (uint64_t sequence = 1; sequence <= InFlightLimit::kBase; ++sequence) {
    append(window);
    ASSERT_TRUE(window.may_send());
    EXPECT_EQ(send(window), sequence);
  }
  append(window);
  EXPECT_TRUE(window.has_unsent());
  EXPECT_FALSE(window.may_send());
  window.acknowledge(1);
  EXPECT_TRUE(window.may_send());
  EXPECT_EQ(recycle_all(window), 1);
}

TEST(SendWindowTest, LongLinkAllowsMoreFramesWithinByteLimit) {
  SendWindow window;
  window.set_max_unacknowledged(5);
  for (int i = 0; i < 5; ++i) {
    append(window);
    ASSERT_TRUE(window.may_send());
    send(window);
  }
  append(window);
  EXPECT_FALSE(window.may_send());
  window.acknowledge(3);
  window.building().count({SendWindow::kMaxInFlightBytes, 0});
  ASSERT_TRUE(window.may_send());
  send(window);
  append(window);
  EXPECT_FALSE(window.may_send());  // three frames of at most five, but too many bytes
  window.acknowledge(5);
  EXPECT_TRUE(window.may_send());  // below kBase frames the bytes are not limited
}

// Acknowledgements arrive in bursts; a frame for each of them would be nearly empty.
TEST(SendWindowTest, SmallFrameIsDelayedWhileEngineHasWork) {
  const InFlightLimit::Clock::time_point start{std::chrono::seconds(1)};
  SendWindow window;
  window.set_max_unacknowledged(100);
  for (uint64_t i = 0; i < InFlightLimit::kBase; ++i) {
    append(window);
    EXPECT_FALSE(window.may_delay());
    window.begin_send(start);
    window.end_send(true);
  }
  append(window);
  EXPECT_TRUE(window.may_delay());
  EXPECT_TRUE(window.sent_recently(start));
  EXPECT_FALSE(window.sent_recently(start + InFlightLimit::kMinSpacing));
  for (int i = 1; i < SendWindow::kMaxInstructions / 2; ++i) append(window);
  EXPECT_FALSE(window.may_delay());  // half full
  window.begin_send(start);
  window.end_send(true);
  append(window);
  EXPECT_TRUE(window.may_delay());
  window.flush();
  EXPECT_FALSE(window.may_delay());
}

TEST(SendWindowTest, FlushIgnoresWindowButNotEngineLimit) {
  SendWindow window;
  v1::Limits limits;
  limits.set_max_frames_in_flight(3);
  window.set_limits(limits);
  for (int i = 0; i < 2; ++i) append(window), send(window);
  append(window);
  EXPECT_EQ(window.flush(), 3u);
  ASSERT_TRUE(window.may_send());
  send(window);
  append(window);
  window.flush();
  EXPECT_FALSE(window.may_send());  // the engine accepts three frames
}

TEST(SendWindowTest, BrokenStreamResendsUnacknowledgedFrames) {
  SendWindow window;
  for (int i = 0; i < 2; ++i) append(window), send(window);
  window.acknowledge(1);
  window.rewind();
  EXPECT_EQ(recycle_all(window), 1);
  EXPECT_TRUE(window.has_unsent());
  EXPECT_EQ(send(window), 2u);
}

TEST(SendWindowTest, ResendsFrameThatWasNotWritten) {
  SendWindow window;
  append(window);
  EXPECT_EQ(window.begin_send({}).sequence(), 1u);
  window.end_send(false);
  EXPECT_EQ(send(window), 1u);
}

TEST(SendWindowTest, KeepsFrameDuringWrite) {
  SendWindow window;
  append(window);
  window.begin_send({});
  window.acknowledge(1);
  EXPECT_EQ(recycle_all(window), 0);
  window.end_send(true);
  EXPECT_EQ(recycle_all(window), 1);
}

TEST(SendWindowTest, IgnoresAcknowledgementsOfUnsentFrames) {
  SendWindow window;
  append(window);
  window.acknowledge(7);
  EXPECT_EQ(window.acknowledged(), 0u);
  EXPECT_EQ(send(window), 1u);
}

TEST(SendWindowTest, ReleasesAreSentWithNextInstructionOrFrame) {
  SendWindow window;
  EXPECT_EQ(window.name(3), 1u);
  EXPECT_EQ(window.live_handles(), 3u);
  window.release(1);
  EXPECT_EQ(window.live_handles(), 2u);
  EXPECT_THAT(window.add_instruction()->release(), ElementsAre(1));
  window.release(2);
  window.release(3);
  EXPECT_THAT(window.begin_send({}).message().release(), ElementsAre(2, 3));
  window.end_send(true);
  EXPECT_FALSE(window.has_releases());
  EXPECT_EQ(window.name(1), 4u);
}

TEST(SendWindowTest, FramesHaveTheTraceContextOfTheirInstructions) {
  SendWindow window;
  window.set_max_unacknowledged(5);
  window.set_trace_context("first");  // the empty frame is not ended
  EXPECT_EQ(window.unsent(), 0u);
  append(window);
  window.set_trace_context("first");
  append(window);
  window.set_trace_context("second");
  EXPECT_EQ(window.unsent(), 1u);
  append(window);
  window.set_trace_context("");
  append(window);
  std::vector<std::string> contexts;
  for (int i = 0; i < 3; ++i) {
    v1::Frame& frame = window.begin_send({}).message();
    contexts.push_back(frame.traceparent());
    EXPECT_EQ(frame.instructions_size(), i == 0 ? 2 : 1);
    window.end_send(true);
  }
  EXPECT_THAT(contexts, ElementsAre("first", "second", ""));
  EXPECT_FALSE(window.has_unsent());
  window.acknowledge(3);
  recycle_all(window);
  append(window);
  EXPECT_EQ(window.begin_send({}).message().traceparent(), "");  // of a reused frame
}

TEST(SendWindowTest, LargeInstructionStartsNewFrame) {
  SendWindow window;
  EXPECT_FALSE(window.is_full({2 * SendWindow::kMaxBytes, 0}));  // an empty frame accepts any size
  append(window);
  EXPECT_FALSE(window.is_full({100, 100}));
  EXPECT_TRUE(window.is_full({SendWindow::kMaxBytes, 100}));
  EXPECT_TRUE(window.is_full({100, SendWindow::kMaxMemory + 1}));
}

TEST(SendWindowTest, ReleasesAreDividedAmongFrames) {
  constexpr uint64_t kHandles = 10 * SendWindow::kMaxReleases + 5;
  SendWindow window;
  window.set_max_unacknowledged(100);
  for (uint64_t handle = 1; handle <= kHandles; ++handle) window.release(handle);
  EXPECT_EQ(window.sealed(), 10u);
  append(window);
  window.flush();
  uint64_t last = 0;
  const auto expect_next = [&](const auto& handles) {
    for (const uint64_t handle : handles) ASSERT_EQ(handle, ++last);
  };
  while (window.may_send()) {
    const v1::Frame& frame = window.begin_send({}).message();
    for (const v1::Instruction& instruction : frame.instructions()) expect_next(instruction.release());
    expect_next(frame.release());
    EXPECT_LE(frame.ByteSizeLong(), size_t{100'000});
    window.end_send(true);
  }
  EXPECT_EQ(last, kHandles);
}

TEST(PendingReadsTest, AcknowledgesFrameAfterItsReads) {
  PendingReads reads;
  PendingRead read{5, 10, std::vector<v1::ReadResult>(2), 2};
  reads.add(&read);
  EXPECT_EQ(reads.answered_through(4), 4u);
  EXPECT_EQ(reads.answered_through(9), 4u);
  for (uint64_t request : {9, 11, 11, 12, 10}) {  // results of other callers, and a duplicate
    v1::ReadResult result;
    result.set_request(request);
    reads.answer(result);
  }
  EXPECT_EQ(read.missing, 0u);
  EXPECT_EQ(read.results[0].request(), 10u);
  EXPECT_EQ(reads.answered_through(9), 9u);
}

TEST(TransferRetryDecisionsTest, RetriesConnectionFailuresWithBackoff) {
  TransferRetry retry("upload", 100);
  const absl::Status reset = absl::UnavailableError("reset");
  EXPECT_EQ(retry.record(reset), TransferRetry::Cause::kFailed);
  EXPECT_NO_THROW(retry.throw_if_final(reset));
  EXPECT_EQ(retry.next_pause().count(), 0);
  EXPECT_GT(retry.next_pause().count(), 0);
  retry.progress.bytes = 50;
  retry.record(reset);
  EXPECT_EQ(retry.next_pause().count(), 0);  // the transfer made progress
  EXPECT_EQ(retry.progress.failures, 2);
}

TEST(TransferRetryDecisionsTest, FullEngineIsNotFailure) {
  TransferRetry retry("download", 100);
  EXPECT_EQ(retry.record(absl::AbortedError("no room")), TransferRetry::Cause::kNoRoom);
  EXPECT_EQ(retry.progress.failures, 0);
}

TEST(TransferRetryDecisionsTest, OtherFailuresAreErrors) {
  TransferRetry retry("upload", 100);
  try {
    retry.record(absl::ResourceExhaustedError("no memory for 100 bytes"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  const absl::Status refused = absl::InvalidArgumentError("not a transfer");
  retry.record(refused);
  try {
    retry.throw_if_final(refused);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRuntime);
    EXPECT_THAT(error.what(), HasSubstr("not a transfer"));
  }
}

}  // namespace
}  // namespace tt::client
