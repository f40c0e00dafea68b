// Fuzzes uploads: started, fed, interrupted, continued, discarded and consumed in any order, with invalid sizes and
// numbers. The engine must reply to each step, and hold no memory of a closed session.
//
// An input is a list of steps; see run(). The results of `uploaded` instructions are compared with a model of the
// transfers: every byte must have been appended at its position.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/sha256.h"
#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server {
namespace {

constexpr uint64_t kMemoryLimit = 1 << 20;
constexpr size_t kUploads = 6;  // maximum number in progress at the same time

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads the input from its start; returns zeros after its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint64_t number() {
    static constexpr uint64_t kOdd[] = {0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        8,
                                        64,
                                        4096,
                                        65536,
                                        kMemoryLimit,
                                        kMemoryLimit + 1,
                                        1ull << 32,
                                        INT64_MAX,
                                        1ull << 63,
                                        UINT64_MAX - 7,
                                        UINT64_MAX};
    const uint8_t choice = byte();
    if (choice < 128) return choice % 16;
    if (choice < 192) return kOdd[choice % std::size(kOdd)];
    return static_cast<uint64_t>(choice) << (byte() % 58);
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// The byte at a position of a transfer, so that misplaced bytes are detected. `salt` distinguishes uploads of the
// same number after a restart.
char byte_at(uint64_t transfer, uint64_t position) {
  return static_cast<char>(transfer * 41 + position * 7 + position / 251 + 1);
}

class Run {
 public:
  explicit Run(Input input) : input_(input) {
    Session::Options options;
    options.memory_limit = kMemoryLimit;
    options.limits.max_transfers = 8;
    using std::chrono::milliseconds;
    // No other thread releases memory, so that an upload without room need not wait for it.
    options.transfer_timeouts = {milliseconds(0), milliseconds(input.byte() % 2 ? 0 : 2), milliseconds(0)};
    session_ = std::make_unique<Session>(options);
  }
  ~Run() {
    for (auto& upload : uploads_) upload.upload.reset();
    session_->close();
    require(session_->status().held_bytes() == 0);
  }

  void run() {
    for (int steps = 0; !input_.empty() && steps < 400; ++steps) step();
  }

 private:
  struct Slot {
    std::unique_ptr<Upload> upload;
    uint64_t transfer = 0;
  };

  void step() {
    Slot& slot = uploads_[input_.byte() % kUploads];
    switch (input_.byte() % 8) {
      case 0:
      case 1: return begin(slot, input_.number(), input_.number(), input_.byte());
      case 2:
      case 3:
      case 4: return append(slot, input_.number());
      case 5: return slot.upload.reset();
      case 6:
        if (slot.upload) slot.upload->discard();
        return slot.upload.reset();
      case 7: return take(input_.number(), input_.number());
    }
  }

  void begin(Slot& slot, uint64_t transfer, uint64_t bytes, uint8_t how) {
    Device device;
    if (how % 16 == 15) device = Device{static_cast<DeviceType>(how % 3), static_cast<int8_t>(how % 4)};
    // With the digest of the model's bytes, a wrong one, or none.
    std::string digest;
    if (how % 4 == 3 && bytes <= 65536) {
      std::string expected(bytes, '\0');
      for (size_t i = 0; i < bytes; ++i) expected[i] = byte_at(transfer, i);
      digest = Sha256::of(expected);
      if (how % 32 == 7) digest[0] ^= 1;
    }
    auto upload = session_->begin_upload(transfer, bytes, device, how % 2 != 0, nullptr, digest);
    require(session_->status().held_bytes() <= kMemoryLimit);
    if (!upload.ok()) return;
    require((*upload)->bytes() == bytes && (*upload)->received() <= bytes);
    require(how % 2 != 0 || (*upload)->received() == 0);
    slot = {*std::move(upload), transfer};
  }

  void append(Slot& slot, uint64_t wanted) {
    if (!slot.upload) return;
    const uint64_t at = slot.upload->received();
    std::string bytes(static_cast<size_t>(wanted % (2 * kMemoryLimit)), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(slot.transfer, at + i);
    const bool fits = bytes.size() <= slot.upload->left();
    absl::Status status = slot.upload->append(bytes);
    require(fits || absl::IsInvalidArgument(status));
    if (!fits) require(slot.upload->received() == at);
  }

  void take(uint64_t transfer, uint64_t items) {
    v1::Frame frame;
    frame.set_sequence(++sequence_);
    testing::Instruction(&frame, "uploaded")
        .integer(static_cast<int64_t>(transfer))
        .integers({static_cast<int64_t>(items)})
        .integer(static_cast<int64_t>(DType::kUInt8))
        .integer(0)
        .result(sequence_);
    testing::read(&frame, 1, sequence_);
    frame.add_release(sequence_);
    v1::Reply reply;
    session_->execute(frame, &reply);
    if (reply.has_fault()) {
      require(session_->over());
      return;
    }
    const v1::ReadResult& result = reply.reads(0);
    if (result.has_error()) return;
    require(result.tensor().sizes_size() == 1 && static_cast<uint64_t>(result.tensor().sizes(0)) == items);
    for (size_t i = 0; i < result.data().size(); ++i) require(result.data()[i] == byte_at(transfer, i));
  }

  Input input_;
  std::unique_ptr<Session> session_;
  Slot uploads_[kUploads];
  uint64_t sequence_ = 0;
};

}  // namespace
}  // namespace tt::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tt::server;
  testing::start_engine();
  const uint64_t before = testing::engine_bytes();
  { Run(Input(data, size)).run(); }
  require(testing::engine_bytes() == before);
  return 0;
}
