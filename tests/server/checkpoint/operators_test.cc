// The checkpoint operators in a session: values, suspension, errors, and what is left after a failure.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "tests/server/checkpoint/files.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using testing::add;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::read_file;
using testing::safetensors_file;
using testing::TemporaryFolder;
using testing::write_file;

constexpr char kHeader[] = R"({"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";

class CheckpointOperatorsTest : public testing::SessionFixture {
 protected:
  CheckpointOperatorsTest() { restart_with(std::make_shared<const CheckpointRoot>(folder_.string())); }
  ~CheckpointOperatorsTest() override {
    session_.reset();
    EXPECT_EQ(testing::engine_bytes(), bytes_before_);
  }

  void restart_with(std::shared_ptr<const CheckpointRoot> root) {
    Session::Options options = testing::session_options();
    options.checkpoint_root = std::move(root);
    restart(std::move(options));
    sequence_ = 0;
    v1::Frame frame;
    literal(&frame, kX, {2, 3}, {1, 2, 3, 4, 5, 6});
    bytes(&frame, kHeaderBytes, kHeader);
    run(frame);
  }
  // A uint8 tensor.
  static void bytes(v1::Frame* frame, uint64_t name, const std::string& contents) {
    Instruction(frame, "literal")
        .bytes(contents)
        .integers({static_cast<int64_t>(contents.size())})
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(name);
  }
  static void write(v1::Frame* frame, uint64_t result, const std::string& path, int64_t work = 0) {
    Instruction(frame, "checkpoint_write").handle(kHeaderBytes).handles({kX}).bytes(path).integer(work).result(result);
  }
  static void read_box(v1::Frame* frame, uint64_t result, uint64_t output, const std::string& path,
                       const std::vector<int64_t>& offsets, const std::string& names = R"(["x"])") {
    Instruction(frame, "checkpoint_read").handles({output}).bytes(path).bytes(names).integers(offsets).result(result);
  }
  // Executes the frame and returns the value of its result.
  int64_t number(v1::Frame frame, uint64_t result) {
    testing::read(&frame, 1, result);
    const v1::Reply reply = run(std::move(frame));
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    EXPECT_FALSE(reply.reads(0).has_error()) << reply.reads(0).error().message();
    int64_t value = -1;
    if (reply.reads(0).data().size() >= sizeof value) std::memcpy(&value, reply.reads(0).data().data(), sizeof value);
    return value;
  }
  std::string error_message(v1::Frame frame, uint64_t result) {
    testing::read(&frame, 1, result);
    const v1::Reply reply = run(std::move(frame));
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    EXPECT_TRUE(reply.reads(0).has_error());
    return reply.reads(0).error().message();
  }
  std::string text(v1::Frame frame, uint64_t result) {
    testing::read(&frame, 1, result);
    return run(std::move(frame)).reads(0).data();
  }

  static constexpr uint64_t kX = 1, kHeaderBytes = 2;
  TemporaryFolder folder_;
};

TEST_F(CheckpointOperatorsTest, RequireARoot) {
  restart_with(nullptr);
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  EXPECT_THAT(error_message(frame, 10), HasSubstr("start teletensord with --checkpoint-root"));
}

TEST_F(CheckpointOperatorsTest, WriteAndRead) {
  v1::Frame frame;
  write(&frame, 10, "run/a.safetensors");
  EXPECT_EQ(number(frame, 10), 24);
  EXPECT_EQ(read_file(folder_ / "run/a.safetensors"), safetensors_file(kHeader, testing::bytes_of({1, 2, 3, 4, 5, 6})));
  v1::Frame reading;
  literal(&reading, 11, {2, 2}, {0, 0, 0, 0});
  read_box(&reading, 12, 11, "run/a.safetensors", {0, 1});
  EXPECT_EQ(number(reading, 12), 16);
  EXPECT_EQ(value(11), (std::vector<float>{2, 3, 5, 6}));
}

TEST_F(CheckpointOperatorsTest, ReadIntoAView) {
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  literal(&frame, 11, {3, 2}, {0, 0, 0, 0, 0, 0});
  Instruction(&frame, "transpose").handle(11).integer(0).integer(1).result(12);
  read_box(&frame, 13, 12, "a.safetensors", {0, 0});
  EXPECT_EQ(number(frame, 13), 24);
  EXPECT_EQ(value(11), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST_F(CheckpointOperatorsTest, HeaderAndList) {
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  Instruction(&frame, "checkpoint_header").bytes("a.safetensors").result(11);
  EXPECT_EQ(text(frame, 11), kHeader);
  v1::Frame listing;
  Instruction(&listing, "checkpoint_list").bytes(".").result(12);
  EXPECT_EQ(text(listing, 12), absl::StrCat("[[\"a.safetensors\",\"file\",", 8 + strlen(kHeader) + 24, "]]"));
}

TEST_F(CheckpointOperatorsTest, BytesAndCommit) {
  v1::Frame frame;
  bytes(&frame, 10, "contents");
  Instruction(&frame, "checkpoint_write_bytes").handle(10).bytes("new/index.json").result(11);
  Instruction(&frame, "checkpoint_commit").handles({11}).bytes("new").bytes("final").result(12);
  Instruction(&frame, "checkpoint_read_bytes").bytes("final/index.json").result(13);
  EXPECT_EQ(text(frame, 13), "contents");
}

TEST_F(CheckpointOperatorsTest, CommitRequiresThatTheWritesSucceeded) {
  write_file(folder_ / "final.json", "old");
  write_file(folder_ / "new.json", "new");
  v1::Frame frame;
  write(&frame, 10, "../a.safetensors");
  Instruction(&frame, "checkpoint_commit").handles({10}).bytes("new.json").bytes("final.json").result(11);
  EXPECT_THAT(error_message(frame, 11), HasSubstr("without '..'"));
  EXPECT_EQ(read_file(folder_ / "final.json"), "old");
}

TEST_F(CheckpointOperatorsTest, AsynchronousWriteHasTheValuesOfTheCall) {
  v1::Frame frame;
  write(&frame, 10, "a.safetensors", 7);
  Instruction(&frame, "add").handle(kX).handle(kX).into(kX);  // does not change the file
  Instruction(&frame, "checkpoint_wait").handle(10).result(11);
  EXPECT_EQ(number(frame, 11), 24);
  EXPECT_EQ(value(kX), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(read_file(folder_ / "a.safetensors"), safetensors_file(kHeader, testing::bytes_of({1, 2, 3, 4, 5, 6})));
  v1::Frame again;
  Instruction(&again, "checkpoint_wait").handle(10).result(12);
  EXPECT_THAT(error_message(again, 12), HasSubstr("no write was started under number 7"));
}

TEST_F(CheckpointOperatorsTest, ProgressAndErrorOfAnAsynchronousWrite) {
  write_file(folder_ / "file", "");
  v1::Frame frame;
  write(&frame, 10, "file/a.safetensors", 7);
  run(frame);
  bool ready = false;
  for (uint64_t name = 100; !ready && name < 10'000; ++name) {
    v1::Frame progress;
    Instruction(&progress, "checkpoint_progress").handle(10).result(name);
    const std::string bytes = text(progress, name);
    ASSERT_EQ(bytes.size(), 24u);
    ready = bytes[16] == 1;
  }
  EXPECT_TRUE(ready);
  v1::Frame wait;
  Instruction(&wait, "checkpoint_wait").handle(10).result(11);
  EXPECT_THAT(error_message(wait, 11), HasSubstr("cannot open 'file/a.safetensors': Not a directory"));
}

TEST_F(CheckpointOperatorsTest, HeaderMustDescribeTheTensors) {
  v1::Frame frame;
  bytes(&frame, 10, R"({"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}})");
  Instruction(&frame, "checkpoint_write").handle(10).handles({kX}).bytes("a.safetensors").integer(0).result(11);
  EXPECT_THAT(error_message(frame, 11),
              HasSubstr("the header has float32 of shape [3, 2] as tensor 0, got float32 of shape [2, 3]"));
  v1::Frame two;
  Instruction(&two, "checkpoint_write")
      .handle(kHeaderBytes)
      .handles({kX, kX})
      .bytes("a.safetensors")
      .integer(0)
      .result(12);
  EXPECT_THAT(error_message(two, 12), HasSubstr("malformed"));
  EXPECT_TRUE(fs::is_empty(folder_.string()));
}

TEST_F(CheckpointOperatorsTest, BoxesMustBeInTheTensor) {
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  run(frame);
  uint64_t name = 20;
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{1, 0}, {0, 1}, {-1, 0}, {INT64_MAX, 0}, {0, INT64_MIN}}) {
    v1::Frame reading;
    literal(&reading, name, {2, 3}, {0, 0, 0, 0, 0, 0});
    read_box(&reading, name + 1, name, "a.safetensors", offsets);
    EXPECT_THAT(error_message(reading, name + 1), HasSubstr("expected a box of 'x', which has shape [2, 3]"));
    name += 2;
  }
  v1::Frame other;
  literal(&other, 50, {6}, {0, 0, 0, 0, 0, 0});
  read_box(&other, 51, 50, "a.safetensors", {0});
  EXPECT_THAT(error_message(other, 51), HasSubstr("expected a box"));
  v1::Frame count;
  literal(&count, 60, {2}, {0, 0});
  read_box(&count, 61, 60, "a.safetensors", {0, 0});
  EXPECT_THAT(error_message(count, 61), HasSubstr("expected 1 offsets"));
  v1::Frame unknown;
  literal(&unknown, 70, {2, 3}, {0, 0, 0, 0, 0, 0});
  read_box(&unknown, 71, 70, "a.safetensors", {0, 0}, R"(["y"])");
  EXPECT_THAT(error_message(unknown, 71), HasSubstr("no tensor 'y'"));
}

TEST_F(CheckpointOperatorsTest, MalformedFilesAreErrors) {
  write_file(folder_ / "short", safetensors_file(kHeader, "x"));
  write_file(folder_ / "bool",
             safetensors_file(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\x01\x02"));
  v1::Frame frame;
  literal(&frame, 10, {2, 3}, {0, 0, 0, 0, 0, 0});
  read_box(&frame, 11, 10, "short", {0, 0});
  EXPECT_THAT(error_message(frame, 11), HasSubstr("beyond the end of the file ('short')"));
  v1::Frame booleans;
  literal(&booleans, 12, {2}, {0, 0});
  read_box(&booleans, 13, 12, "bool", {0});
  EXPECT_THAT(error_message(booleans, 13), HasSubstr("booleans other than 0 and 1"));
}

// A file may not exceed a limit of the process, as on a full disk.
TEST_F(CheckpointOperatorsTest, FullDiskKeepsThePreviousFile) {
  write_file(folder_ / "a.safetensors", "old");
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  const std::string message = error_message(frame, 10);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(message, HasSubstr("cannot write 'a.safetensors': File too large"));
  EXPECT_EQ(read_file(folder_ / "a.safetensors"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.string()), fs::directory_iterator()), 1);
}

TEST_F(CheckpointOperatorsTest, ASessionMayEndDuringAWrite) {
  v1::Frame frame;
  Instruction(&frame, "zeros").integers({64 << 20}).none().none().result(10);
  bytes(&frame, 11, R"({"x":{"dtype":"F32","shape":[67108864],"data_offsets":[0,268435456]}})");
  Instruction(&frame, "checkpoint_write").handle(11).handles({10}).bytes("a.safetensors").integer(5).result(12);
  EXPECT_FALSE(run(frame).has_fault());
  session_.reset();
  EXPECT_EQ(testing::engine_bytes(), bytes_before_);
}

TEST_F(CheckpointOperatorsTest, ACancelledFrameWritesNothing) {
  v1::Frame frame;
  write(&frame, 10, "a.safetensors");
  session_->cancel(sequence_ + 1);
  EXPECT_THAT(error_message(frame, 10), HasSubstr("cancelled"));
}

}  // namespace
}  // namespace tt::server
