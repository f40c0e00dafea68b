// Tensors that sessions of one principal share: the same bytes, single use, and nothing for anybody else.
#include "server/session/shared_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/server/checkpoint/files.h"
#include "tests/server/engine_memory.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::session_options;
using V = std::vector<float>;

constexpr const char* kCapability = "0123456789abcdef0123456789abcdef";
constexpr const char* kNone = "no tensor is shared under this capability";

class SharedTensorsTest : public ::testing::Test {
 protected:
  SharedTensorsTest() {
    testing::start_engine();
    before_ = testing::engine_bytes();
    anna_ = open(principal_);
    bert_ = open(principal_);
  }
  static std::unique_ptr<Session> open(std::shared_ptr<SharedTensors> principal, uint64_t limit = 0) {
    Session::Options options = session_options();
    options.shared_tensors = std::move(principal);
    options.memory_limit = limit;
    return std::make_unique<Session>(std::move(options));
  }
  static v1::Reply run(Session& session, v1::Frame frame) {
    v1::Reply reply;
    frame.set_sequence(session.executed() + 1);
    session.execute(frame, &reply);
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    return reply;
  }
  // Returns the values, or the error's message.
  static std::pair<V, std::string> value(Session& session, uint64_t handle) {
    v1::Frame frame;
    testing::read(&frame, 1, handle);
    const v1::Reply reply = run(session, frame);
    if (reply.reads_size() != 1) return {};
    return {testing::floats_of(reply.reads(0).data()), reply.reads(0).error().message()};
  }
  static void share(Session& session, uint64_t handle, uint64_t result, const std::string& capability = kCapability,
                    double timeout = 100) {
    v1::Frame frame;
    Instruction(&frame, "share_export").handle(handle).bytes(capability).real(timeout).result(result);
    run(session, frame);
  }
  static void import(Session& session, uint64_t result, const std::vector<int64_t>& size = {4},
                     const std::string& capability = kCapability, DType dtype = DType::kFloat32, Device device = {}) {
    v1::Frame frame;
    Instruction(&frame, "share_import")
        .bytes(capability)
        .integers(size)
        .integer(static_cast<int64_t>(dtype))
        .integer(device.encode())
        .result(result);
    run(session, frame);
  }
  static void make(Session& session, uint64_t handle, const V& values = {1, 2, 3, 4}) {
    v1::Frame frame;
    literal(&frame, handle, {static_cast<int64_t>(values.size())}, values);
    run(session, frame);
  }
  static void double_in_place(Session& session, uint64_t handle) {
    v1::Frame frame;
    Instruction(&frame, "add").handle(handle).handle(handle).into(handle);
    run(session, frame);
  }

  const std::shared_ptr<SharedTensors> principal_ = std::make_shared<SharedTensors>();
  uint64_t before_ = 0;
  std::unique_ptr<Session> anna_, bert_;
};

TEST_F(SharedTensorsTest, BothSessionsSeeWritesAndTheLastOneFreesTheBytes) {
  make(*anna_, 1);
  const uint64_t held = anna_->account()->held();
  share(*anna_, 1, 2);
  import(*bert_, 1, {4});
  double_in_place(*anna_, 1);
  EXPECT_EQ(value(*bert_, 1).first, (V{2, 4, 6, 8}));
  double_in_place(*bert_, 1);
  EXPECT_EQ(value(*anna_, 1).first, (V{4, 8, 12, 16}));
  EXPECT_GE(anna_->account()->held(), held);
  EXPECT_EQ(bert_->account()->held(), 16u);
  anna_ = nullptr;
  EXPECT_EQ(value(*bert_, 1).first, (V{4, 8, 12, 16}));
  EXPECT_GT(testing::engine_bytes(), before_);
  bert_ = nullptr;
  EXPECT_EQ(testing::engine_bytes(), before_);
}

// A session that imports what others export and drop pays for it, so it cannot exceed its limit.
TEST_F(SharedTensorsTest, ASurvivingImporterIsCharged) {
  constexpr uint64_t kBytes = 4 << 20;
  const auto importer = open(principal_, 10 << 20);
  for (uint64_t round = 1; round <= 4; ++round) {
    auto exporter = open(principal_, 5 << 20);
    const std::string capability = absl::StrCat(kCapability, round);
    v1::Frame frame;
    Instruction(&frame, "zeros").integers({kBytes / 4}).none().none().result(1);
    run(*exporter, frame);
    share(*exporter, 1, 2, capability);
    import(*importer, round, {kBytes / 4}, capability);
    exporter = nullptr;
    EXPECT_EQ(importer->account()->held(), kBytes * std::min<uint64_t>(round, 2));
  }
  EXPECT_THAT(value(*importer, 4).second,
              HasSubstr(absl::StrCat("requested 4 MiB; session ", importer->id(), " holds 8 MiB of its 10 MiB limit")));
  EXPECT_LT(testing::engine_bytes(), before_ + 3 * kBytes);
  v1::Frame drop;
  drop.add_release(1);
  run(*importer, drop);
  EXPECT_EQ(importer->account()->held(), kBytes);
}

TEST_F(SharedTensorsTest, EachHolderIsChargedOnce) {
  make(*anna_, 1);
  const uint64_t annas = anna_->account()->held();
  for (uint64_t i = 1; i <= 3; ++i) {
    const std::string capability = absl::StrCat(kCapability, i);
    share(*anna_, 1, 10 + i, capability);
    import(*bert_, i, {4}, capability);
  }
  EXPECT_EQ(bert_->account()->held(), 16u);
  v1::Frame drop;
  for (uint64_t handle : {1, 11, 12, 13}) drop.add_release(handle);
  run(*anna_, drop);
  EXPECT_EQ(anna_->account()->held(), annas - 16) << "the exporter pays no longer than it holds the bytes";
  v1::Frame two;
  two.add_release(1);
  two.add_release(3);
  run(*bert_, two);
  EXPECT_EQ(bert_->account()->held(), 16u);
  EXPECT_EQ(value(*bert_, 2).first, (V{1, 2, 3, 4}));
  bert_ = nullptr;
  EXPECT_EQ(testing::engine_bytes(), before_);
}

TEST_F(SharedTensorsTest, ExportsWithoutASessionAreLimitedTogether) {
  constexpr uint64_t kBytes = 4 << 20;
  for (uint64_t round = 1; round <= 4; ++round) {
    const auto exporter = open(principal_, 9 << 20);
    v1::Frame frame;
    Instruction(&frame, "zeros").integers({kBytes / 4}).none().none().result(1);
    run(*exporter, frame);
    share(*exporter, 1, 2, absl::StrCat(kCapability, round));
  }
  EXPECT_LT(testing::engine_bytes(), before_ + 3 * kBytes);
  import(*bert_, 1, {4}, absl::StrCat(kCapability, 1));
  EXPECT_THAT(value(*bert_, 1).second, HasSubstr(kNone));
  import(*bert_, 4, {4}, absl::StrCat(kCapability, 4));
  EXPECT_EQ(value(*bert_, 4).first, (V{0, 0, 0, 0}));
}

TEST_F(SharedTensorsTest, BytesThatTwoEndedSessionsExportedCountOnce) {
  constexpr uint64_t kBytes = 4 << 20;
  const auto capability = [](uint64_t i) { return absl::StrCat(kCapability, i); };
  const auto export_zeros = [&](Session& session, uint64_t i) {
    v1::Frame frame;
    Instruction(&frame, "zeros").integers({kBytes / 4}).none().none().result(1);
    run(session, frame);
    share(session, 1, 2, capability(i));
  };
  auto first = open(principal_, 9 << 20), second = open(principal_, 9 << 20);
  export_zeros(*first, 1);
  import(*second, 1, {kBytes / 4}, capability(1));
  share(*first, 1, 3, capability(2));
  share(*second, 1, 3, capability(3));
  first = nullptr;
  second = nullptr;
  const auto error_of_import = [&](uint64_t i) {
    import(*bert_, i, {kBytes / 4}, capability(i));
    return value(*bert_, i).second;
  };
  export_zeros(*open(principal_, 9 << 20), 4);
  EXPECT_EQ(error_of_import(2), "") << "two allocations are within the limit";
  export_zeros(*open(principal_, 9 << 20), 5);
  EXPECT_THAT(error_of_import(3), HasSubstr(kNone)) << "three allocations exceed the limit";
  EXPECT_EQ(error_of_import(4), "");
  EXPECT_EQ(error_of_import(5), "");
}

TEST_F(SharedTensorsTest, ACapabilityIsUsedOnce) {
  make(*anna_, 1);
  share(*anna_, 1, 2);
  import(*bert_, 1);
  import(*bert_, 2);
  EXPECT_THAT(value(*bert_, 2).second, HasSubstr(kNone));
  share(*anna_, 1, 3);
  EXPECT_THAT(value(*anna_, 3).second, HasSubstr("in use"));
}

TEST_F(SharedTensorsTest, AnotherPrincipalCannotImport) {
  auto eve = open(std::make_shared<SharedTensors>());
  make(*anna_, 1);
  share(*anna_, 1, 2);
  import(*eve, 1);
  EXPECT_THAT(value(*eve, 1).second, HasSubstr(kNone));
  import(*bert_, 1);
  EXPECT_EQ(value(*bert_, 1).first, (V{1, 2, 3, 4}));
}

TEST_F(SharedTensorsTest, AnExportOutlivesItsSessionButNotItsTime) {
  make(*anna_, 1);
  share(*anna_, 1, 2);
  share(*anna_, 1, 3, "another_capability_of_the_tensor", 0.001);
  constexpr uint64_t kFirstOwner = 1;
  while (principal_->table()->num_offers(kFirstOwner) > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  anna_ = nullptr;
  import(*bert_, 1);
  EXPECT_EQ(value(*bert_, 1).first, (V{1, 2, 3, 4}));
  import(*bert_, 2, {4}, "another_capability_of_the_tensor");
  EXPECT_THAT(value(*bert_, 2).second, HasSubstr(kNone));
}

TEST_F(SharedTensorsTest, RejectsWrongSizesDtypesAndCapabilities) {
  make(*anna_, 1);
  const struct {
    std::vector<int64_t> size;
    DType dtype;
    const char* message;
  } kCases[] = {
      {{5}, DType::kFloat32, "at most the 16 bytes of the shared storage"},
      {{3}, DType::kFloat64, "at most the 16 bytes of the shared storage"},
      {{int64_t{1} << 40, int64_t{1} << 40}, DType::kUInt8, ""},
      {{-1}, DType::kFloat32, ""},
  };
  uint64_t name = 10;
  for (const auto& c : kCases) {
    const std::string capability = absl::StrCat("capability_of_a_hostile_case_", name);
    share(*anna_, 1, ++name, capability);
    import(*bert_, name, c.size, capability, c.dtype);
    const auto [values, error] = value(*bert_, name);
    EXPECT_TRUE(values.empty());
    EXPECT_THAT(error, HasSubstr(c.message));
    EXPECT_FALSE(error.empty());
  }
  for (const char* capability : {"", "short", "with spaces and more than enough characters"}) {
    share(*anna_, 1, ++name, capability);
    EXPECT_FALSE(value(*anna_, name).second.empty()) << capability;
    import(*bert_, name, {4}, capability);
    EXPECT_FALSE(value(*bert_, name).second.empty()) << capability;
  }
  share(*anna_, 1, ++name, kCapability, -1);
  EXPECT_THAT(value(*anna_, name).second, HasSubstr("timeout"));
  EXPECT_EQ(value(*anna_, 1).first, (V{1, 2, 3, 4}));
}

TEST_F(SharedTensorsTest, AnErrorIsShared) {
  make(*anna_, 1);
  v1::Frame frame;
  make(*anna_, 2, {1, 2, 3});
  testing::add(&frame, 3, 1, 2);
  Instruction(&frame, "share_export").handle(3).bytes(kCapability).real(100).result(4);
  run(*anna_, frame);
  import(*bert_, 1);
  EXPECT_THAT(value(*bert_, 1).second, HasSubstr("size"));
}

TEST_F(SharedTensorsTest, ReceivedTensorsArePassedOn) {
  auto carl = open(principal_);
  make(*anna_, 1);
  share(*anna_, 1, 2);
  import(*bert_, 1);
  share(*bert_, 1, 2, "second_capability_0123456789abc");
  import(*carl, 1, {2}, "second_capability_0123456789abc");
  double_in_place(*carl, 1);
  bert_ = nullptr;
  EXPECT_EQ(value(*anna_, 1).first, (V{2, 4, 3, 4}));
  share(*anna_, 1, 3, "third_capability_0123456789abcd");
  import(*anna_, 4, {4}, "third_capability_0123456789abcd");  // by the session itself
  double_in_place(*anna_, 4);
  EXPECT_EQ(value(*carl, 1).first, (V{4, 8}));
}

// Another session writes without the saving session's knowledge, so the values are copied before it can.
TEST_F(SharedTensorsTest, ASaveInTheBackgroundHasTheValuesBeforeAnotherSessionWrites) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[4000000],"data_offsets":[0,16000000]},)"
                             R"("x":{"dtype":"F32","shape":[4],"data_offsets":[16000000,16000016]}})";
  for (const bool is_shared_first : {true, false}) {
    const std::string capability(32, is_shared_first ? 'a' : 'b');
    const testing::TemporaryFolder folder;
    Session::Options options = session_options();
    options.shared_tensors = principal_;
    options.checkpoint_root = std::make_shared<const CheckpointRoot>(folder.string());
    Session saver(std::move(options));
    make(saver, 1);
    if (is_shared_first) share(saver, 1, 2, capability);
    v1::Frame save;
    Instruction(&save, "literal")
        .bytes(header)
        .integers({static_cast<int64_t>(header.size())})
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(3);
    Instruction(&save, "zeros").integers({4'000'000}).none().none().result(4);
    Instruction(&save, "checkpoint_write").handle(3).handles({4, 1}).bytes("x").integer(7).result(5);
    run(saver, save);
    if (!is_shared_first) share(saver, 1, 2, capability);
    const std::unique_ptr<Session> other = open(principal_);
    import(*other, 1, {4}, capability);
    double_in_place(*other, 1);
    v1::Frame wait;
    Instruction(&wait, "checkpoint_wait").handle(5).result(6);
    run(saver, wait);
    EXPECT_EQ(value(saver, 1).first, (V{2, 4, 6, 8}));
    const std::string file = testing::read_file(folder / "x");
    ASSERT_GE(file.size(), 16u);
    EXPECT_EQ(testing::floats_of(file.substr(file.size() - 16)), (V{1, 2, 3, 4})) << is_shared_first;
  }
}

}  // namespace
}  // namespace tt::server
