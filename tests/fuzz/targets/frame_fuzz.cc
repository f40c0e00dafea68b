// Fuzz target: a new session decodes and executes a frame, executes it again, and is closed.
//
// The input is a serialized v1::Frame. It is parsed twice in one stream, so that its layout may refer to its templates.
// Whatever its contents, the session replies, and afterwards the engine holds as much memory as before. Seeds are the
// frames of the operators' samples (tests/fuzz/seeds.py).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/rpc/frame_buffer.h"
#include "server/session/session.h"
#include "tests/fuzz/frame_mutator.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"

namespace {

tt::server::Session::Options small_session() {
  tt::server::Session::Options options;
  options.memory_limit = 4 << 20;
  options.transfer_timeouts = {std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  return options;
}

void execute_and_close(const uint8_t* data, size_t size) {
  tt::server::Session session(small_session());
  tt::server::FrameBuffer buffer(session.limits(), session.account());
  for (int i = 0; i < 2; ++i) {
    buffer.parse(size, [&](auto read) {
      google::protobuf::io::ArrayInputStream stream(data, static_cast<int>(size));
      return read(&stream);
    });
  }
  tt::v1::Frame frame = buffer.frame();
  tt::v1::Reply reply, again;
  frame.set_sequence(1);
  session.execute(frame, &reply);
  tt::fuzz::require(session.over() == (reply.has_fault() || frame.close()), "only a fault or a close ends a session");
  session.execute(frame, &again);
  session.close();
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return tt::fuzz::mutate_serialized(data, size, max_size, seed, &LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tt::v1::Frame frame;
  if (!frame.ParseFromArray(data, static_cast<int>(size))) return -1;
  const uint64_t before = tt::server::testing::engine_bytes();
  execute_and_close(data, size);
  tt::fuzz::require(tt::server::testing::engine_bytes() == before, "a closed session holds no memory");
  return 0;
}
