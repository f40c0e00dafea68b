// Writes the images of sessions that have executed recorded frames: seeds of image_fuzz (tests/fuzz/image_seeds.py).
//
// usage: image_seeds FRAMES IMAGES
//
// Each file of the folder FRAMES is a serialized v1::Frame. The session keeps all of its tensors, and stops before the
// first backward pass, which would free what the tape has saved; a file whose name starts with "session" is executed as
// it is. The image is written to the file of the same name in IMAGES.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/rpc/frame_buffer.h"
#include "server/session/session.h"
#include "tests/fuzz/image_bytes.h"
#include "tests/server/engine_memory.h"

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

tt::v1::Frame frame_of(const std::string& bytes, tt::server::Session& session) {
  tt::server::FrameBuffer buffer(session.limits(), session.account());
  buffer.parse(bytes.size(), [&](auto read) {
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    return read(&stream);
  });
  tt::v1::Frame frame = buffer.frame();
  frame.set_sequence(1);
  frame.set_close(false);
  return frame;
}

void keep_everything(tt::v1::Frame* frame) {
  int end = 0;
  for (; end < frame->instructions_size(); ++end) {
    tt::v1::Instruction& instruction = *frame->mutable_instructions(end);
    if (instruction.op() == tt::op_id::kBackward || instruction.op() == tt::op_id::kBackwardBegin) break;
    instruction.clear_release();
  }
  frame->mutable_instructions()->DeleteSubrange(end, frame->instructions_size() - end);
  frame->clear_release();
  frame->clear_reads();
  frame->clear_scalar_reads();
}

bool write_image(const std::filesystem::path& from, const std::filesystem::path& to) {
  tt::server::Session::Options options;
  options.id = 1;
  options.key = std::string(32, 'k');
  options.client = "a client";
  options.principal = "someone";
  options.memory_limit = uint64_t{1} << 20;
  tt::server::Session session(options);
  tt::v1::Frame frame = frame_of(read_file(from), session);
  if (!from.filename().native().starts_with("session")) keep_everything(&frame);
  tt::v1::Reply reply;
  session.execute(frame, &reply);
  if (reply.has_fault()) {
    std::fprintf(stderr, "%s: %s\n", from.c_str(), reply.fault().message().c_str());
    return false;
  }
  try {
    std::ofstream(to, std::ios::binary) << tt::fuzz::image_of(session);
  } catch (const tt::Error& error) {
    std::fprintf(stderr, "%s: %s\n", from.c_str(), std::string(error.message()).c_str());
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: image_seeds FRAMES IMAGES\n"), 2;
  tt::server::testing::start_engine();
  size_t images = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) images += write_image(entry.path(), std::filesystem::path(argv[2]) / entry.path().filename());
  }
  std::printf("%zu images\n", images);
  return images == 0;
}
