// Fuzzes the engine's side of the shared ring against a peer that writes arbitrary values into the header (counters,
// sleepers), before a transfer and while it waits. Each transfer must end, with success or an error, and access only
// its own memory. The same for the pipes of frames and replies.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/transfer/host_reader.h"
#include "server/transfer/shared_segment.h"
#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

using shared_ring::kChunkBytes;
using shared_ring::kChunks;
using shared_ring::LaneCounters;

void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint32_t word() {
    const uint32_t high = byte();
    return high < 64 ? high : high << 24 | static_cast<uint32_t>(byte()) << 16 | byte();
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// The hostile client: maps the segment and writes anywhere in its header.
class Peer {
 public:
  Peer(SharedSegment& engine, Input& input) : input_(input) {
    const v1::SharedMemory offer = engine.describe();
    segment_ = shared_ring::Segment::open(offer.pid(), offer.file_descriptor(), offer.bytes(), offer.nonce());
    require(segment_ != nullptr);
  }

  // One random step.
  void act() {
    shared_ring::Header& header = segment_->header();
    LaneCounters& lane = input_.byte() % 2 != 0 ? header.upload : header.download;
    switch (input_.byte() % 10) {
      case 0: lane.produced = input_.word(); break;
      case 1: lane.consumed = input_.word(); break;
      case 2: lane.consumer_sleeps = input_.word(); break;
      case 3: lane.producer_sleeps = input_.word(); break;
      case 4: lane.produced += 1 + input_.byte() % (kChunks + 2); break;
      case 5: lane.consumed += 1 + input_.byte() % (kChunks + 2); break;
      case 6: header.nonce = input_.word(); break;
      case 7: header.layout = input_.word(); break;
      case 8: {
        const size_t at = input_.word() % shared_ring::kHeaderBytes;
        std::memset(reinterpret_cast<char*>(&header) + at, input_.byte(),
                    std::min<size_t>(input_.byte(), shared_ring::kHeaderBytes - at));
        break;
      }
      case 9: std::memset(segment_->upload_chunks() + input_.byte() * size_t{1000}, input_.byte(), 256); break;
    }
  }
  // One random step on the pipes.
  void act_on_pipes() {
    shared_ring::Header& header = segment_->header();
    shared_ring::PipeCounters& pipe = input_.byte() % 2 != 0 ? header.frames : header.replies;
    switch (input_.byte() % 6) {
      case 0: pipe.written = input_.word(); break;
      case 1: pipe.read = input_.word(); break;
      case 2: pipe.reader_sleeps = pipe.writer_sleeps = input_.word(); break;
      case 3: pipe.written += input_.word() % (shared_ring::kPipeBytes + 9); break;
      case 4: pipe.read = pipe.written.load(); break;
      case 5: {
        char* const at = segment_->frame_bytes() + input_.word() % (2 * shared_ring::kPipeBytes - 256);
        std::memset(at, input_.byte() % 3, 256);  // sizes of messages
        break;
      }
    }
  }
  // Acts as an honest client, so that transfers make progress: supplies the bytes or space the engine waits for.
  void help() {
    shared_ring::Header& header = segment_->header();
    header.upload.produced = header.upload.consumed + 1;
    header.download.consumed = header.download.produced.load();
  }

 private:
  Input& input_;
  std::unique_ptr<shared_ring::Segment> segment_;
};

void run_pipes(SharedSegment& engine, Peer& peer, Input& input) {
  auto pipes = engine.claim_pipes();
  if (!pipes) return;
  int asked = 0;
  auto next_sleep = [&]() -> std::optional<std::chrono::nanoseconds> {
    for (int acts = input.byte() % 3; acts > 0; --acts) peer.act_on_pipes();
    if (++asked > 3) return std::nullopt;
    return std::chrono::nanoseconds(100);
  };
  for (int messages = 0; messages < 8 && !input.empty(); ++messages, asked = 0) {
    peer.act_on_pipes();
    if (input.byte() % 2 != 0) {
      uint32_t size = 0;
      if (pipes->frames.await(&size, true, next_sleep) != shared_ring::Outcome::kReady) continue;
      std::string message(std::min<uint32_t>(size, 2 * shared_ring::kPipeBytes), '\0');
      pipes->frames.read(message.data(), static_cast<uint32_t>(message.size()), next_sleep);
    } else {
      const std::string message(input.byte() * size_t{6000}, 'x');
      if (pipes->replies.write(message, next_sleep) != shared_ring::Outcome::kReady) return;
    }
  }
}

void run(Input input) {
  auto engine = SharedSegment::create();
  require(engine != nullptr);
  auto account = std::make_shared<Account>("fuzz");
  auto transfers = std::make_shared<Transfers>(account, 8, Transfers::Timeouts());
  auto peer = std::make_unique<Peer>(*engine, input);
  uint64_t number = 0;
  for (int transfer = 0; transfer < 6 && !input.empty(); ++transfer) {
    for (int acts = input.byte() % 4; acts > 0; --acts) peer->act();
    const bool helps = input.byte() % 2 != 0;
    int asked = 0;
    auto should_continue = [&] {
      for (int acts = input.byte() % 3; acts > 0; --acts) peer->act();
      if (helps) peer->help();
      return ++asked < 3;
    };
    const size_t bytes = input.byte() % 5 * kChunkBytes + input.byte() % 3;
    if (input.byte() % 2 != 0) {
      auto upload = transfers->begin(++number, bytes);
      require(upload.ok());
      const absl::Status status = engine->receive(**upload, should_continue);
      require(!status.ok() || (*upload)->left() == 0);
    } else {
      const Tensor t = empty({static_cast<int64_t>(bytes)}, DType::kUInt8, Device{});
      HostReader source(t);
      const absl::Status status = engine->send(source, should_continue);
      require(!status.ok() || source.left() == 0);
    }
    if (input.byte() % 4 == 1) run_pipes(*engine, *peer, input);
    if (input.byte() % 4 == 0) {  // a new Hello
      peer = nullptr;
      engine->client_exited();
      engine = SharedSegment::create();
      require(engine != nullptr);
      peer = std::make_unique<Peer>(*engine, input);
    }
  }
  transfers->close();
}

}  // namespace
}  // namespace tt::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tt::server;
  testing::start_engine();
  const uint64_t before = testing::engine_bytes();
  run(Input(data, size));
  require(testing::engine_bytes() == before);
  return 0;
}
