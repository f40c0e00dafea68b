// The engine accepts every frame that a client builds, whatever the program does: the frames of drawn sequences of
// calls pass the checks of FrameBuffer and decode(), also in a session that has no memory left.
#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/session/session.h"
#include "client/transport/frame_encoder.h"
#include "client/transport/transport.h"
#include "engine/schema/program.h"
#include "server/rpc/frame_buffer.h"
#include "server/session/decode.h"
#include "server/session/sessions.h"

namespace tt::server {
namespace {

using client::Tensor;
using client::Tensors;
using ::testing::HasSubstr;

// What the frames of a session contained in all.
struct Received {
  size_t frames = 0;
  size_t instructions = 0;
  size_t most_releases = 0;  // in one frame
  size_t most_bytes = 0;
  std::set<uint64_t> names;  // of results, not yet released
  uint64_t named = 0;
  std::vector<std::string> refusals;
};

// Checks frames as an engine does, and acknowledges them without executing them.
class CheckingTransport final : public client::Transport {
 public:
  CheckingTransport(CompressionMode compression, std::shared_ptr<Received> received)
      : encoder_({.max_templates = Limits().max_templates, .compression = compression}),
        received_(std::move(received)) {
    account_->charge_host(account_->host_room());
  }

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) override {
    return Sessions(Sessions::Options()).hello(request, reply);  // the limits that every engine announces
  }
  absl::Status open(const std::string&) override { return absl::OkStatus(); }
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds) override {
    const std::string bytes = encoder_.encode(frame).SerializeAsString();
    buffer_.parse(bytes.size(), [&](auto read) {
      google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 4096);
      return read(&stream);
    });
    check(bytes.size());
    std::lock_guard lock(mutex_);
    v1::Reply& reply = replies_.emplace_back();
    reply.set_executed(frame.sequence());
    for (const v1::Read& read : frame.reads()) {
      v1::ReadResult* result = reply.add_reads();
      result->set_request(read.request());
      result->mutable_tensor()->set_dtype(static_cast<uint32_t>(DType::kFloat32));
      result->mutable_tensor()->set_device(Device().encode());
    }
    if (frame.scalar_reads_size() > 0) {
      reply.set_first_number(frame.first_number());
      reply.mutable_numbers()->resize(8 * static_cast<size_t>(frame.scalar_reads_size()));
    }
    changed_.notify_all();
    return absl::OkStatus();
  }
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return !replies_.empty() || closed_; };
    if (timeout == kForever) {
      changed_.wait(lock, ready);
    } else if (!changed_.wait_for(lock, timeout, ready)) {
      return std::nullopt;
    }
    if (replies_.empty()) return absl::UnavailableError("closed");
    *reply = std::move(replies_.front());
    replies_.pop_front();
    return absl::OkStatus();
  }
  absl::Status upload(uint64_t, Device, absl::Span<const char>, client::TransferProgress*) override {
    return absl::OkStatus();
  }
  absl::Status download(uint64_t, uint64_t, absl::Span<char>, client::TransferProgress*, v1::Error*) override {
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> cancel(uint64_t) override { return 0; }
  void shutdown() override {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  void check(size_t bytes) {
    Received& received = *received_;
    if (buffer_.refusal()) return received.refusals.push_back(buffer_.refusal()->message());
    const v1::Frame& frame = buffer_.frame();
    try {
      std::vector<ReadPoint> reads;
      decode(frame, Limits(), &program_);
      decode_scalar_reads(frame, Limits(), &reads);
    } catch (const ProgramFault& fault) {
      received.refusals.push_back(fault.error.message());
    } catch (const Error& error) {
      received.refusals.push_back(error.message());
    }
    size_t releases = static_cast<size_t>(frame.release_size());
    const auto release = [&](uint64_t name) { EXPECT_EQ(received.names.erase(name), 1u) << name; };
    for (const v1::Instruction& instruction : frame.instructions()) {
      releases += static_cast<size_t>(instruction.release_size());
      std::for_each(instruction.release().begin(), instruction.release().end(), release);
      const uint64_t count = instruction.result() == 0 ? 0 : std::max(1u, instruction.result_count());
      for (uint64_t i = 0; i < count; ++i) received.names.insert(received.names.end(), instruction.result() + i);
      received.named += count;
    }
    std::for_each(frame.release().begin(), frame.release().end(), release);
    EXPECT_LE(received.names.size(), Limits().max_handles);
    ++received.frames;
    received.instructions += static_cast<size_t>(frame.instructions_size());
    received.most_releases = std::max(received.most_releases, releases);
    received.most_bytes = std::max(received.most_bytes, bytes);
  }

  client::FrameEncoder encoder_;
  const std::shared_ptr<Received> received_;
  const std::shared_ptr<Account> account_ = std::make_shared<Account>("session 1", uint64_t{1} << 20);
  FrameBuffer buffer_{Limits{}, account_};
  Program program_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::Reply> replies_;
  bool closed_ = false;
};

class BuiltFrames : public ::testing::Test {
 protected:
  void connect(CompressionMode compression = CompressionMode::kNone) {
    session_ = client::Session::connect(std::make_unique<CheckingTransport>(compression, received_), "test");
  }
  void TearDown() override {
    tensors_.clear();
    if (session_) session_->close();
    session_ = nullptr;
    EXPECT_THAT(received_->refusals, ::testing::IsEmpty());
    EXPECT_THAT(received_->names, ::testing::IsEmpty());
  }
  // Issues an instruction with these arguments, and the defaults of the others, and `results` new tensors.
  Tensors call(std::string_view name, std::vector<Arg> args, size_t results, uint32_t site = 0) {
    const std::vector<TensorMeta> metas(results);
    const Op& op = *find_op(name);
    for (size_t i = args.size(); i < op.params.size(); ++i) args.push_back(op.params[i].default_value);
    return session_->call_with_metas(op, args, metas, {.site = site});
  }
  Tensor one() { return call("full", {SizesView{}, Arg(1.0)}, 1)[0]; }
  void keep(Tensors made) {
    for (Tensor& tensor : made) tensors_.push_back(std::move(tensor));
  }

  std::shared_ptr<Received> received_ = std::make_shared<Received>();
  Ref<client::Session> session_;
  std::vector<Tensor> tensors_;
};

std::string text(std::mt19937_64& random, size_t size) {
  std::string made(size, '\0');
  for (char& c : made) c = static_cast<char>(random());
  return made;
}

class DrawnProgram : public BuiltFrames, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(DrawnProgram, HasNoRefusedFrame) {
  std::mt19937_64 random(GetParam());
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  connect(GetParam() % 2 == 0 ? CompressionMode::kNone : CompressionMode::kAlways);
  std::vector<std::unique_ptr<client::PendingValue>> pending;
  uint32_t site = 0;
  // Sizes are drawn from all orders of magnitude.
  const auto size = [&](size_t most) { return std::min(most, size_t{1} << below(20)) - below(2) * (most > 1); };
  for (int step = 0; step < 300; ++step) {
    const size_t repeats = size_t{1} << below(9);
    switch (below(9)) {
      case 0:
      case 1:  // a loop, whose instructions become templates
        keep({one()});
        for (size_t i = 0; i < 8 * repeats; ++i) {
          tensors_.back() = call("add", {tensors_.back().get(), tensors_[below(tensors_.size())].get()}, 1, site)[0];
        }
        break;
      case 2: {  // lists of tensors, again and again
        if (tensors_.empty()) break;
        std::vector<const TensorMeta*> list(size(30'000));
        for (const TensorMeta*& entry : list) entry = tensors_[below(tensors_.size())].get();
        const Arg arg{absl::Span<const TensorMeta* const>(list)};
        for (size_t i = 0; i < std::min<size_t>(repeats, 2'000'000 / (list.size() + 1)); ++i) {
          keep(call("cat", {arg}, 1, site));
        }
        break;
      }
      case 3: {  // literals
        const std::string bytes = text(random, size(Limits().max_inline_bytes));
        for (size_t i = 0; i < std::min<size_t>(repeats, 4'000'000 / (bytes.size() + 1)); ++i) {
          keep({session_->upload(bytes, DType::kUInt8, {static_cast<int64_t>(bytes.size())}, Device())});
        }
        break;
      }
      case 4: {  // lists of numbers
        std::vector<int64_t> numbers(size(40'000));
        for (int64_t& number : numbers) number = static_cast<int64_t>(random()) >> below(64);
        for (size_t i = 0; i < std::min<size_t>(repeats, 500'000 / (numbers.size() + 1)); ++i) {
          keep(call("full", {SizesView(numbers), Arg(0.5)}, 1));
        }
        break;
      }
      case 5:  // many results
        for (size_t i = 0; i < std::min<size_t>(repeats, 4); ++i) {
          const Tensor of = one();
          keep(call("unbind", {of.get()}, 1 + size(50'000)));
        }
        break;
      case 6: {  // drops, singly and at once
        const size_t kept = below(3) == 0 ? 0 : below(tensors_.size() + 1);
        if (below(2) == 0) std::shuffle(tensors_.begin(), tensors_.end(), random);
        tensors_.resize(kept);
        break;
      }
      case 7: {  // source lines, with and without calls
        const std::string file(size(10'000), 'f'), function = "\u00e9" + std::string(size(3'000), 'g');
        for (size_t i = 0; i < repeats; ++i) site = session_->site(file, static_cast<uint32_t>(random()), function);
        break;
      }
      case 8: {  // reads
        if (tensors_.empty()) break;
        Tensors some(tensors_.end() - static_cast<std::ptrdiff_t>(std::min(size(20'000), tensors_.size())),
                     tensors_.end());
        if (below(3) == 0) session_->describe(some);
        for (size_t i = 0; i < repeats; ++i) pending.push_back(session_->read_async(tensors_[below(tensors_.size())]));
        if (below(2) == 0) pending.clear();
        break;
      }
    }
    if (tensors_.size() > 400'000) tensors_.resize(100'000);
  }
  pending.clear();
  session_->synchronize();
  EXPECT_GT(received_->instructions, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnProgram, ::testing::Range<uint64_t>(1, 4));

TEST_F(BuiltFrames, ListOfAllHandlesIsDropped) {
  connect();
  const size_t all = Limits().max_handles;
  keep({one()});
  const Arg of(tensors_[0].get());
  while (tensors_.size() < all) {
    keep(call("unbind", {of}, std::min<size_t>(all - tensors_.size(), Limits().max_results)));
  }
  EXPECT_THROW(call("unbind", {of}, 1), Error);
  tensors_.resize(1);
  keep(call("unbind", {of}, Limits().max_results));
  session_->synchronize();
  EXPECT_EQ(received_->named, all + Limits().max_results);
  EXPECT_LT(received_->most_bytes, size_t{2} << 20);
}

TEST_F(BuiltFrames, ManyReadsAreDivided) {
  connect();
  const Tensor of = one();
  keep(call("unbind", {of.get()}, 3 * Limits().max_reads + 1));
  Tensors all(tensors_.begin(), tensors_.end());
  session_->describe(all);
}

TEST_F(BuiltFrames, InstructionThatDoesNotFitIsErrorOfCall) {
  connect();
  keep({one()});
  const auto expect_error = [&](const char* says, const auto& issue) {
    try {
      issue();
      ADD_FAILURE() << "expected an error: " << says;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(says));
    }
  };
  expect_error("at most 262144 per call", [&] { call("unbind", {tensors_[0].get()}, Limits().max_results + 1); });
  const std::string too_long(Limits().max_inline_bytes + 1, 'x');
  expect_error("expected a string of at most 65536 bytes", [&] {
    call("literal", {std::string_view(too_long), SizesView{}, DType::kUInt8, Device()}, 1);
  });
  const std::vector<const TensorMeta*> list(2'000'000, tensors_[0].get());
  expect_error("expected an instruction of at most",
               [&] { call("cat", {Arg(absl::Span<const TensorMeta* const>(list))}, 1); });
}

}  // namespace
}  // namespace tt::server
