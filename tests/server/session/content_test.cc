// Uploads whose bytes another tensor of the principal has: copied inside the engine, and never wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "proto/sha256.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using testing::bytes_of;
using testing::floats_of;

constexpr int64_t kFloats = 50'000;
constexpr uint64_t kBytes = kFloats * sizeof(float);

// A session and the transfers and frames sent to it.
class Peer {
 public:
  explicit Peer(std::shared_ptr<ContentIndex> contents) {
    Session::Options options = testing::session_options();
    options.contents = std::move(contents);
    session = std::make_unique<Session>(std::move(options));
  }
  // Begins an upload with a digest, as a client does that offers it.
  std::unique_ptr<Upload> begin(uint64_t transfer, const std::string& digest, uint64_t bytes = kBytes) {
    auto upload = session->begin_upload(transfer, bytes, Device(), /*resume=*/true, nullptr, digest);
    EXPECT_TRUE(upload.ok()) << upload.status();
    return *std::move(upload);
  }
  // Uploads the bytes, as far as the engine does not have them, as the tensor `name`. Returns how many were reused.
  uint64_t upload(uint64_t name, const std::string& bytes) {
    auto upload = begin(name, Sha256::of(bytes), bytes.size());
    const uint64_t reused = upload->received();
    EXPECT_TRUE(upload->append(absl::string_view(bytes).substr(reused)).ok());
    v1::Frame frame;
    testing::uploaded(&frame, name, name, {kFloats});
    run(frame);
    return reused;
  }
  void run(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    v1::Reply reply;
    session->execute(frame, &reply);
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
  }
  // Adds 1 to a tensor in place.
  void add_one(uint64_t name) {
    v1::Frame frame;
    testing::Instruction(&frame, "add").handle(name).real(1).into(name);
    run(frame);
  }
  void release(uint64_t name) {
    v1::Frame frame;
    frame.add_release(name);
    run(frame);
  }
  std::string bytes(uint64_t name) {
    auto download = session->begin_download(name, sequence_, [] { return true; });
    EXPECT_TRUE(download.ok() && !download->error);
    std::string bytes(download->bytes->bytes(), '\0');
    download->bytes->read(bytes.data(), bytes.size());
    return bytes;
  }

  std::unique_ptr<Session> session;

 private:
  uint64_t sequence_ = 0;
};

class ContentTest : public ::testing::Test {
 protected:
  ContentTest() { testing::start_engine(); }
  const std::string content_ = bytes_of(std::vector<float>(kFloats, 1.5f));
  const std::shared_ptr<ContentIndex> index_ = std::make_shared<ContentIndex>();
  Peer first_{index_}, second_{index_};
};

TEST_F(ContentTest, SameBytesAreCopied) {
  EXPECT_EQ(first_.upload(1, content_), 0u);
  EXPECT_EQ(first_.upload(2, content_), kBytes);
  EXPECT_EQ(second_.upload(1, content_), kBytes);
  EXPECT_EQ(first_.session->status().held_bytes(), 2 * kBytes);
  EXPECT_EQ(second_.session->status().held_bytes(), kBytes) << "a storage of its own";
  second_.add_one(1);
  EXPECT_TRUE(first_.bytes(1) == content_);
  EXPECT_TRUE(first_.bytes(2) == content_);
  EXPECT_TRUE(second_.bytes(1) == bytes_of(std::vector<float>(kFloats, 2.5f)));
}

TEST_F(ContentTest, OtherBytesAndPrincipalsAreNot) {
  first_.upload(1, content_);
  EXPECT_EQ(second_.upload(1, bytes_of(std::vector<float>(kFloats, 3))), 0u);
  Peer other(std::make_shared<ContentIndex>());
  EXPECT_EQ(other.upload(1, content_), 0u);
}

TEST_F(ContentTest, WrittenAndFreedTensorsAreNotUsed) {
  first_.upload(1, content_);
  first_.add_one(1);
  EXPECT_EQ(second_.upload(1, content_), 0u);
  second_.release(1);
  EXPECT_EQ(second_.session->status().held_bytes(), 0u) << "the index keeps nothing";
  EXPECT_EQ(first_.upload(2, content_), 0u);
  first_.session->close();
  EXPECT_EQ(second_.upload(3, content_), 0u);
  EXPECT_EQ(first_.session->status().held_bytes(), 0u);
}

// The copy keeps its own place in the index.
TEST_F(ContentTest, CopyOutlivesItsSource) {
  first_.upload(1, content_);
  second_.upload(1, content_);
  first_.release(1);
  EXPECT_EQ(first_.session->status().held_bytes(), 0u);
  EXPECT_EQ(first_.upload(2, content_), kBytes);
}

TEST_F(ContentTest, WrongDigestIsRejected) {
  auto upload = first_.begin(1, Sha256::of("other bytes"));
  EXPECT_EQ(upload->append(content_).code(), absl::StatusCode::kInvalidArgument);
  upload = nullptr;
  EXPECT_EQ(second_.upload(1, content_), 0u);
  auto claims = second_.begin(2, Sha256::of("other bytes"));
  EXPECT_EQ(claims->received(), 0u);
}

TEST_F(ContentTest, InterruptedUploadContinues) {
  const std::string digest = Sha256::of(content_);
  const absl::string_view bytes = content_;
  ASSERT_TRUE(first_.begin(1, digest)->append(bytes.substr(0, 70'000)).ok());
  auto upload = first_.begin(1, digest);
  EXPECT_EQ(upload->received(), 70'000u);
  ASSERT_TRUE(upload->append(bytes.substr(70'000)).ok());
  EXPECT_EQ(second_.upload(1, content_), kBytes);
  // If the first call had no digest, the bytes are sent again, so that all are hashed.
  Peer alone(std::make_shared<ContentIndex>());
  ASSERT_TRUE((*alone.session->begin_upload(1, kBytes))->append(bytes.substr(0, 70'000)).ok());
  EXPECT_EQ(alone.begin(1, digest)->received(), 0u);
}

// A session writes to the source at any time, also while it is copied.
TEST_F(ContentTest, ConcurrentWriterNeverChangesTheCopy) {
  const std::string large = bytes_of(std::vector<float>(kFloats, 0.5f));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t name = 1; !done; ++name) {
      first_.upload(name, large);
      first_.add_one(name);
      first_.release(name);
    }
  });
  int reused = 0;
  for (uint64_t name = 1; name <= 2000 && reused < 20; ++name) {
    reused += second_.upload(name, large) == kBytes;
    ASSERT_TRUE(second_.bytes(name) == large);
    second_.release(name);
  }
  done = true;
  writer.join();
  EXPECT_GT(reused, 0);
}

}  // namespace
}  // namespace tt::server
