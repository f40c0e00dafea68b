// Session: order, duplicates, poison, limits, and leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/device/cancellation.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using testing::add;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::engine_bytes;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::literal;
using testing::read;
using testing::session_options;
using testing::uploaded;

class SessionTest : public testing::SessionFixture {};

TEST_F(SessionTest, ExecutesInOrderAndAnswersReads) {
  v1::Frame frame;
  literal(&frame, 1, {2, 2}, {1, 2, 3, 4});
  literal(&frame, 2, {2}, {10, 20});
  add(&frame, 3, 1, 2);
  read(&frame, 77, 3);
  v1::Reply reply = run(frame);
  ASSERT_EQ(reply.executed(), 1u);
  ASSERT_EQ(reply.reads_size(), 1);
  EXPECT_EQ(reply.reads(0).request(), 77u);
  EXPECT_THAT(reply.reads(0).tensor().sizes(), ElementsAre(2, 2));
  EXPECT_THAT(floats_of(reply.reads(0).data()), ElementsAre(11, 22, 13, 24));
}

// The default dtype applies to its instruction only, also in chains that the engine fuses.
TEST_F(SessionTest, DefaultDtypeIsOfItsInstruction) {
  v1::Frame frame;
  testing::Instruction(&frame, "arange").integer(1 << 16).integer(5).integer(0).result(1);
  const DType defaults[] = {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat64};
  uint64_t name = 2;
  for (DType t : defaults) {
    testing::Instruction(&frame, "div").handle(1).integer(3).result(name).default_dtype(t);
    testing::Instruction(&frame, "mul").handle(name).real(0.1).result(name + 1).default_dtype(t);
    testing::Instruction(&frame, "mul").handle(1).real(1.5).result(name + 2).default_dtype(t).release(name);
    for (uint64_t result : {name + 1, name + 2}) {
      read(&frame, result, result);
      frame.mutable_reads(frame.reads_size() - 1)->set_meta_only(true);
    }
    name += 3;
  }
  // Steps with different defaults are no chain.
  testing::Instruction(&frame, "div").handle(1).integer(3).result(name).default_dtype(DType::kFloat64);
  testing::Instruction(&frame, "add").handle(name).handle(1).result(name + 1);
  testing::Instruction(&frame, "div").handle(1).integer(7).result(name + 2).release(name);
  testing::Instruction(&frame, "mul").handle(name + 2).handle(name + 1).result(name + 3);
  read(&frame, name + 3, name + 3);
  frame.mutable_reads(frame.reads_size() - 1)->set_meta_only(true);
  frame.add_release(name + 1);
  frame.add_release(name + 2);
  v1::Reply reply = run(frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  ASSERT_EQ(reply.reads_size(), 9);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(reply.reads(i).tensor().dtype(), static_cast<uint32_t>(defaults[i / 2])) << i;
  EXPECT_EQ(reply.reads(8).tensor().dtype(), static_cast<uint32_t>(DType::kFloat64));
}

TEST_F(SessionTest, ReadsPrecedeReleases) {
  v1::Frame frame;
  literal(&frame, 1, {1}, {5});
  read(&frame, 1, 1);
  frame.add_release(1);
  v1::Reply reply = run(frame);
  EXPECT_THAT(floats_of(reply.reads(0).data()), ElementsAre(5));
  EXPECT_EQ(session_->status().handles(), 0u);
}

TEST_F(SessionTest, MetaOnlyReadsCarryNoBytes) {
  v1::Frame frame;
  literal(&frame, 1, {3}, {1, 2, 3});
  read(&frame, 1, 1);
  frame.mutable_reads(0)->set_meta_only(true);
  v1::Reply reply = run(frame);
  EXPECT_THAT(reply.reads(0).tensor().sizes(), ElementsAre(3));
  EXPECT_EQ(reply.reads(0).data(), "");
}

TEST_F(SessionTest, AcknowledgesDuplicateWithoutExecuting) {
  v1::Frame first;
  literal(&first, 1, {1}, {1});
  run(first);
  v1::Frame twice;
  testing::Instruction(&twice, "add").handle(1).real(1).into(1);
  EXPECT_EQ(run(twice).executed(), 2u);
  twice.set_sequence(2);
  EXPECT_EQ(run_as_is(twice).executed(), 2u);
  EXPECT_THAT(value(1), ElementsAre(2));
}

TEST_F(SessionTest, RepeatsReplyForDuplicate) {
  v1::Frame frame;
  literal(&frame, 1, {1}, {7});
  read(&frame, 9, 1);
  frame.add_release(1);
  run(frame);
  frame.set_sequence(1);
  v1::Reply again = run_as_is(frame);
  ASSERT_EQ(again.reads_size(), 1);
  EXPECT_EQ(again.reads(0).request(), 9u);
  EXPECT_THAT(floats_of(again.reads(0).data()), ElementsAre(7));
}

TEST_F(SessionTest, DropsAcknowledgedReplies) {
  v1::Frame frame;
  literal(&frame, 1, {1}, {7});
  read(&frame, 9, 1);
  frame.add_release(1);
  run(frame);
  v1::Frame later;
  later.set_received(1);
  run(later);
  frame.set_sequence(1);
  v1::Reply again = run_as_is(frame);
  ASSERT_FALSE(again.has_fault());
  EXPECT_THAT(again.reads(0).error().message(), HasSubstr("lost"));
}

TEST_F(SessionTest, SequenceGapIsFault) {
  v1::Frame frame;
  frame.set_sequence(2);
  v1::Reply reply = run_as_is(frame);
  EXPECT_THAT(reply.fault().message(), HasSubstr("expected frame 1, got 2"));
  EXPECT_TRUE(session_->over());
}

TEST_F(SessionTest, FailurePoisonsItsResultOnly) {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {3}, {1, 2, 3});
  add(&frame, 3, 1, 2).site(12);
  add(&frame, 4, 3, 1).site(13);
  add(&frame, 5, 1, 1);
  ASSERT_FALSE(run(frame).has_fault());
  v1::Error root = error(3);
  EXPECT_EQ(root.kind(), v1::RUNTIME);
  EXPECT_EQ(root.op(), "add");
  EXPECT_EQ(root.site(), 12u);
  EXPECT_EQ(error(4).SerializeAsString(), root.SerializeAsString());
  EXPECT_THAT(value(5), ElementsAre(2, 4));
}

TEST_F(SessionTest, FailurePoisonsOutTensor) {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {3}, {1, 2, 3});
  testing::Instruction(&frame, "add").handle(1).handle(2).into(1);
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_EQ(error(1).op(), "add");
}

TEST_F(SessionTest, MemoryLimitIsErrorOfOperation) {
  Session::Options limited = session_options();
  limited.memory_limit = 4096;
  restart(limited);
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {2048}, std::vector<float>(2048, 1.0f));
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(value(1), ElementsAre(1, 2));
  v1::Error oom = error(2);
  EXPECT_EQ(oom.kind(), v1::OUT_OF_MEMORY);
  EXPECT_TRUE(oom.retriable());
}

TEST_F(SessionTest, TooManyHandlesAreFault) {
  Session::Options limited = session_options();
  limited.limits.max_handles = 3;
  restart(limited);
  v1::Frame frame;
  for (uint64_t name = 1; name <= 4; ++name) literal(&frame, name, {1}, {0});
  EXPECT_THAT(run(frame).fault().message(), HasSubstr("at most 3 handles"));
}

TEST_F(SessionTest, CountsHandlesAtCreation) {
  Session::Options limited = session_options();
  limited.limits.max_handles = 3;
  restart(limited);
  v1::Frame frame;
  literal(&frame, 1, {1}, {0});
  for (uint64_t name = 2; name <= 9; ++name) literal(&frame, name, {1}, {0}).release(name - 1);
  EXPECT_FALSE(run(frame).has_fault());
  EXPECT_EQ(session_->status().handles(), 1u);
}

TEST_F(SessionTest, TooManyReadsAreFault) {
  Session::Options limited = session_options();
  limited.limits.max_reads = 3;
  restart(limited);
  v1::Frame frame;
  literal(&frame, 1, {1}, {0});
  for (uint64_t i = 0; i < 4; ++i) read(&frame, i, 1);
  EXPECT_THAT(run(frame).fault().message(), HasSubstr("at most 3 reads"));
}

TEST_F(SessionTest, LimitsReplySize) {
  Session::Options limited = session_options();
  limited.limits.max_reply_bytes = 100000;
  restart(limited);
  v1::Frame frame;
  literal(&frame, 1, {8192}, std::vector<float>(8192));
  testing::Instruction(&frame, "gelu").handle(1).bytes(std::string(60000, 'x')).result(2);
  for (uint64_t i = 0; i < 1000; ++i) read(&frame, i, 1 + i % 2);
  const v1::Reply reply = run(frame);
  ASSERT_EQ(reply.reads_size(), 1000);
  EXPECT_LT(reply.ByteSizeLong(), 100000u + 1000 * 300);
  EXPECT_THAT(reply.reads(999).error().message(), HasSubstr("[gelu] approximate"));
}

TEST_F(SessionTest, LimitsSizeOfKeptReplies) {
  Session::Options limited = session_options();
  limited.limits.max_kept_bytes = 40000;
  restart(limited);
  v1::Frame frame;
  literal(&frame, 1, {8192}, std::vector<float>(8192));
  for (uint64_t i = 0; i < 4; ++i) read(&frame, i, 1);
  frame.add_release(1);
  run(frame);
  frame.set_sequence(1);
  EXPECT_THAT(run_as_is(frame).reads(0).error().message(), HasSubstr("lost with the connection"));
}

// Strings sent by a client are returned as valid UTF-8.
TEST_F(SessionTest, ErrorsAreUtf8) {
  v1::Frame frame;
  literal(&frame, 1, {1}, {0});
  v1::Site* site = frame.add_sites();
  site->set_id(1);
  site->set_file(std::string(254, 'f') + "é\xff");
  testing::Instruction(&frame, "gelu").handle(1).bytes("\xff\xfe").result(2).site(1);
  testing::Instruction(&frame, "gelu").handle(1).bytes(std::string(9000, '\xff')).result(3);
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(error(2).message(), HasSubstr("got \\xff\\xfe"));
  EXPECT_LT(error(3).message().size(), 5000u);
  v1::Frame invalid;
  testing::Instruction(&invalid, "literal").bytes("\xff").bytes("\xff").result(7);
  const v1::Reply reply = run(invalid);
  ASSERT_TRUE(reply.has_fault());
  v1::Reply parsed;
  EXPECT_TRUE(parsed.ParseFromString(reply.SerializeAsString()));
}

TEST_F(SessionTest, LargeValuesRequireDownload) {
  v1::Frame frame;
  literal(&frame, 1, {8192}, std::vector<float>(8192, 1.0f));
  literal(&frame, 2, {8192}, std::vector<float>(8192, 2.0f));
  ASSERT_FALSE(run(frame).has_fault());
  v1::Frame stack;
  uploaded(&stack, 3, 5, {32, 1024});
  std::vector<float> big(32 * 1024, 3.0f);
  auto upload = session_->begin_upload(5, big.size() * sizeof(float));
  ASSERT_TRUE(upload.ok());
  ASSERT_TRUE((*upload)->append({reinterpret_cast<char*>(big.data()), big.size() * sizeof(float)}).ok());
  read(&stack, 1, 3);
  v1::Reply reply = run(stack);
  EXPECT_THAT(reply.reads(0).tensor().sizes(), ElementsAre(32, 1024));
  EXPECT_EQ(reply.reads(0).data(), "");
  auto download = session_->begin_download(3, 2, [] { return true; });
  ASSERT_TRUE(download.ok());
  std::string got(download->bytes->bytes(), '\0');
  EXPECT_EQ(download->bytes->read(got.data(), got.size()), got.size());
  EXPECT_EQ(got, bytes_of(big));
}

TEST_F(SessionTest, UploadIsUsedWithoutCopy) {
  auto upload = session_->begin_upload(1, 8);
  ASSERT_TRUE(upload.ok());
  uint64_t held = session_->status().held_bytes();
  ASSERT_TRUE((*upload)->append(bytes_of({1})).ok());
  ASSERT_TRUE((*upload)->append(bytes_of({2})).ok());
  v1::Frame frame;
  uploaded(&frame, 1, 1, {2});
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(value(1), ElementsAre(1, 2));
  EXPECT_EQ(session_->status().peak_bytes(), held);
}

TEST_F(SessionTest, InstructionWaitsForUpload) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    auto upload = session_->begin_upload(4, 4);
    ASSERT_TRUE((*upload)->append(bytes_of({9})).ok());
  });
  v1::Frame frame;
  uploaded(&frame, 1, 4, {1});
  run(frame);
  later.join();
  EXPECT_THAT(value(1), ElementsAre(9));
}

TEST_F(SessionTest, MissingUploadPoisonsResult) {
  v1::Frame frame;
  uploaded(&frame, 1, 4, {1});
  ASSERT_FALSE(run(frame).has_fault());
  EXPECT_THAT(error(1).message(), HasSubstr("did not arrive"));
}

// Waits up to 10 s until the session holds `bytes`.
bool wait_until_held_bytes(const Session& session, uint64_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (session.status().held_bytes() != bytes && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return session.status().held_bytes() == bytes;
}

TEST_F(SessionTest, BrokenUploadCanBeRepeated) {
  {
    auto upload = session_->begin_upload(4, 8);
    ASSERT_TRUE((*upload)->append(bytes_of({1})).ok());
  }
  auto upload = session_->begin_upload(4, 8);
  ASSERT_TRUE(upload.ok());
  EXPECT_EQ((*upload)->received(), 0u);
  EXPECT_EQ(session_->status().held_bytes(), 8u);
  ASSERT_TRUE((*upload)->append(bytes_of({3, 4})).ok());
  v1::Frame frame;
  uploaded(&frame, 1, 4, {2});
  run(frame);
  EXPECT_THAT(value(1), ElementsAre(3, 4));
  auto unheard = session_->begin_upload(4, 8);  // sent again by a client that received no reply
  ASSERT_TRUE(unheard.ok());
  EXPECT_TRUE((*unheard)->append(bytes_of({3, 4})).ok());
  EXPECT_EQ(session_->status().held_bytes(), 8u);
}

TEST_F(SessionTest, BrokenUploadContinuesAfterReceivedBytes) {
  session_->begin_upload(4, 12).value()->append(bytes_of({1})).IgnoreError();
  session_->begin_upload(4, 12, Device(), true).value()->append(bytes_of({2})).IgnoreError();
  auto upload = session_->begin_upload(4, 12, Device(), true);
  ASSERT_TRUE(upload.ok());
  EXPECT_EQ((*upload)->received(), 8u);
  EXPECT_EQ((*upload)->left(), 4u);
  EXPECT_EQ((*upload)->append(bytes_of({3, 4})).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE((*upload)->append(bytes_of({3})).ok());
  v1::Frame frame;
  uploaded(&frame, 1, 4, {3});
  run(frame);
  EXPECT_THAT(value(1), ElementsAre(1, 2, 3));
  auto unheard = session_->begin_upload(4, 12, Device(), true);
  ASSERT_TRUE(unheard.ok());
  EXPECT_EQ((*unheard)->left(), 0u);
}

TEST_F(SessionTest, DifferentUploadDoesNotContinueBrokenUpload) {
  session_->begin_upload(4, 12).value()->append(bytes_of({1})).IgnoreError();
  auto upload = session_->begin_upload(4, 8, Device(), true);
  ASSERT_TRUE(upload.ok());
  EXPECT_EQ((*upload)->received(), 0u);
  EXPECT_EQ(session_->status().held_bytes(), 8u);
}

TEST_F(SessionTest, BrokenUploadExpires) {
  session_->begin_upload(4, 1 << 20).value()->append(bytes_of({1})).IgnoreError();
  EXPECT_EQ(session_->status().held_bytes(), 1u << 20);
  EXPECT_TRUE(wait_until_held_bytes(*session_, 0));
  auto upload = session_->begin_upload(4, 8, Device(), true);
  ASSERT_TRUE(upload.ok());
  EXPECT_EQ((*upload)->received(), 0u);
}

TEST_F(SessionTest, DiscardedUploadIsDropped) {
  {
    auto upload = session_->begin_upload(4, 8);
    ASSERT_TRUE((*upload)->append(bytes_of({1})).ok());
    (*upload)->discard();
  }
  EXPECT_EQ(session_->status().held_bytes(), 0u);
}

TEST_F(SessionTest, AbandonedUploadDoesNotCompleteLaterUploadOfSameNumber) {
  auto late = session_->begin_upload(4, 8);
  ASSERT_TRUE((*late)->append(bytes_of({1})).ok());
  v1::Frame frame;
  uploaded(&frame, 1, 4, {2});
  run(frame);  // the wait times out
  EXPECT_THAT(error(1).message(), HasSubstr("did not arrive"));
  auto second = session_->begin_upload(4, 8);  // the frame no longer waits for it
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(session_->status().held_bytes(), 8u);  // held by the late upload, which has not ended
  EXPECT_EQ((*late)->append(bytes_of({2})).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE((*second)->append(bytes_of({3})).ok());
  v1::Frame again;
  uploaded(&again, 2, 4, {2});
  run(again);
  EXPECT_THAT(error(2).message(), HasSubstr("was already taken"));
}

TEST_F(SessionTest, EndedUploadDoesNotAffectItsContinuation) {
  auto account = std::make_shared<Account>("test");
  auto transfers = std::make_shared<Transfers>(account, 8, session_options().transfer_timeouts);
  auto refused = transfers->begin(1, 8);
  EXPECT_FALSE((*refused)->fail(Error(ErrorKind::kRuntime, "the device failed")).ok());
  auto again = transfers->begin(1, 8);
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE((*again)->append(bytes_of({1})).ok());
  EXPECT_EQ((*refused)->append(bytes_of({7, 8})).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE((*refused)->fail(Error(ErrorKind::kRuntime, "the device failed")).ok());
  refused->reset();
  ASSERT_TRUE((*again)->append(bytes_of({2})).ok());
  Ref<Storage> storage = transfers->take(1, 8, Device{}).storage;
  EXPECT_EQ(std::memcmp(storage->data(), bytes_of({1, 2}).data(), 8), 0);
}

// Memory is allocated outside the lock; the frame is cancelled as soon as it is.
TEST_F(SessionTest, UploadIsAcceptedIfItsFrameIsCancelledWhileItBegins) {
  auto account = std::make_shared<Account>("test");
  auto transfers = std::make_shared<Transfers>(account, 8, session_options().transfer_timeouts);
  constexpr uint64_t kRounds = 2000, kBytes = 1 << 20;
  const uint64_t before = engine_bytes();
  std::atomic<uint64_t> round{0}, cancelled_rounds{0};
  std::thread cancelled([&] {
    Cancellation cancellation;
    cancellation.request(CancelReason::kClient);
    const CancellationScope scope(&cancellation);
    for (uint64_t transfer = 1; transfer <= kRounds; ++transfer) {
      while (round < transfer || engine_bytes() == before) {
      }
      EXPECT_THROW(transfers->take(transfer, kBytes, Device{}), Cancelled);
      cancelled_rounds = transfer;
    }
  });
  for (uint64_t transfer = 1; transfer <= kRounds; ++transfer) {
    round = transfer;
    auto upload = transfers->begin(transfer, kBytes);
    EXPECT_TRUE(upload.ok()) << upload.status();
    while (cancelled_rounds < transfer) std::this_thread::yield();
  }
  cancelled.join();
}

TEST_F(SessionTest, TooManyWaitingUploadsAreUnavailable) {
  Session::Options limited = session_options();
  limited.limits.max_transfers = 2;
  restart(limited);
  for (uint64_t transfer : {1, 2}) {
    ASSERT_TRUE(session_->begin_upload(transfer, 4).value()->append(bytes_of({1})).ok());
  }
  EXPECT_EQ(session_->begin_upload(3, 4).status().code(), absl::StatusCode::kAborted);
  v1::Frame frame;
  uploaded(&frame, 1, 2, {1});
  run(frame);
  EXPECT_TRUE(session_->begin_upload(3, 4).ok());
}

TEST_F(SessionTest, UploadOfWrongSizePoisonsResult) {
  auto upload = session_->begin_upload(4, 8);
  ASSERT_TRUE((*upload)->append(bytes_of({3, 4})).ok());
  EXPECT_EQ((*upload)->append("x").code(), absl::StatusCode::kInvalidArgument);
  v1::Frame frame;
  uploaded(&frame, 1, 4, {3});
  run(frame);
  EXPECT_THAT(error(1).message(), HasSubstr("transfer 4 has 8 bytes, but the tensor has 12"));
}

TEST_F(SessionTest, RejectsUploadOverLimitBeforeItsBytes) {
  Session::Options limited = session_options();
  limited.memory_limit = 4096;
  restart(limited);
  EXPECT_EQ(session_->begin_upload(1, 1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(session_->begin_upload(2, UINT64_MAX).status().code(), absl::StatusCode::kInvalidArgument);
  v1::Frame frame;
  uploaded(&frame, 1, 1, {1 << 18});
  run(frame);
  EXPECT_EQ(error(1).kind(), v1::OUT_OF_MEMORY);
}

TEST_F(SessionTest, DownloadWaitsForFrame) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    v1::Frame frame;
    literal(&frame, 1, {1}, {4});
    run(frame);
  });
  auto download = session_->begin_download(1, 1, [] { return true; });
  later.join();
  ASSERT_TRUE(download.ok()) << download.status();
  EXPECT_EQ(download->bytes->bytes(), 4u);
}

TEST_F(SessionTest, AbandonedDownloadEnds) {
  EXPECT_EQ(session_->begin_download(1, 5, [] { return false; }).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(SessionTest, CloseFreesAllMemory) {
  v1::Frame frame;
  literal(&frame, 1, {100}, std::vector<float>(100));
  for (uint64_t name = 2; name < 50; ++name) add(&frame, name, name - 1, 1);
  run(frame);
  auto waiting = session_->begin_upload(9, 1 << 20);
  EXPECT_GT(engine_bytes(), bytes_before_ + (1 << 20));
  v1::Frame last;
  last.set_close(true);
  EXPECT_EQ(run(last).executed(), 2u);
  EXPECT_TRUE(session_->over());
  EXPECT_FALSE((*waiting)->append("late").ok());
  waiting->reset();
  EXPECT_EQ(engine_bytes(), bytes_before_);
  EXPECT_EQ(session_->status().held_bytes(), 0u);
  EXPECT_TRUE(run(v1::Frame()).has_fault());
}

TEST_F(SessionTest, CloseFreesReferenceCycles) {
  v1::Frame frame;
  literal(&frame, 1, {2}, {1, 2});
  literal(&frame, 2, {2}, {3, 4});
  testing::Instruction(&frame, "set_grads").handles({1, 2}).handles({2, 1});
  testing::Instruction(&frame, "requires_grad").handle(1).boolean(true);
  testing::Instruction(&frame, "mul").handle(1).handle(2).result(3);
  testing::Instruction(&frame, "custom_function").integer(5).handles({3}).handles({2});
  frame.add_release(1);
  frame.add_release(2);
  frame.add_release(3);
  v1::Reply reply = run(frame);
  ASSERT_FALSE(reply.has_fault()) << reply.fault().message();
  EXPECT_EQ(session_->status().failed(), 0u);
  session_->close();
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

TEST_F(SessionTest, CloseEndsWaitingInstruction) {
  Session::Options patient = session_options();
  patient.transfer_timeouts = {std::chrono::minutes(5), std::chrono::minutes(5)};
  restart(patient);
  std::thread runs([&] {
    v1::Frame frame;
    uploaded(&frame, 1, 4, {1});
    run(frame);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  session_->close();
  runs.join();
  EXPECT_EQ(engine_bytes(), bytes_before_);
}

}  // namespace
}  // namespace tt::server
