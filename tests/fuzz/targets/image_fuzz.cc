// Fuzz target: an image of a session is read, as from a file of --state-dir or from the process that is replaced, and
// an image of what sessions share.
//
// The input is changes of a valid image: checksums are computed again after them, so that the bytes reach the readers.
// The image is refused or read; a session that was read executes a frame and writes its image, and afterwards the
// engine holds as much memory as before.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/session/context.h"
#include "server/session/session.h"
#include "server/session/sessions.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"
#include "tests/server/image_bytes.h"

namespace {

using namespace tt;
using namespace tt::server;
using tt::server::testing::Instruction;

constexpr uint64_t kLimit = 4 << 20;  // of a session's memory

class StringSink final : public ImageSink {
 public:
  void write(const void* data, size_t size) override { bytes.append(static_cast<const char*>(data), size); }
  std::string bytes;
};

class StringSource final : public ImageSource {
 public:
  StringSource(const std::string& bytes, bool is_pipe) : bytes_(bytes), is_pipe_(is_pipe) {}
  void read(void* into, size_t size) override {
    check(size <= bytes_.size() - at_, "the image ends early");
    bytes_.copy(static_cast<char*>(into), size, at_);
    at_ += size;
  }
  uint64_t left() const override { return is_pipe_ ? UINT64_MAX : bytes_.size() - at_; }

 private:
  const std::string& bytes_;
  const bool is_pipe_;
  size_t at_ = 0;
};

std::unique_ptr<Session> open_session() {
  Session::Options options;
  options.id = 1;
  options.key = std::string(32, 'k');
  options.client = "fuzz";
  options.memory_limit = kLimit;
  options.shared_tensors = std::make_shared<SharedTensors>();
  options.publications = std::make_shared<Publications>();
  return std::make_unique<Session>(std::move(options));
}

void execute(Session& session, v1::Frame frame) {
  frame.set_sequence(session.executed() + 1);
  v1::Reply reply;
  session.execute(frame, &reply);
}

// A session with a tape, views, an error and an exported tensor.
v1::Frame first_frame() {
  v1::Frame frame;
  testing::literal(&frame, 1, {4}, {1, 2, 3, 4});
  Instruction(&frame, "requires_grad").handle(1).boolean(true);
  Instruction(&frame, "mul").handle(1).handle(1).result(2);
  Instruction(&frame, "exp").handle(2).result(7);
  Instruction(&frame, "sum").handle(7).none().boolean(false).none().result(3);
  testing::literal(&frame, 4, {2}, {5, 6});
  testing::literal(&frame, 5, {3}, {1, 1, 1});
  Instruction(&frame, "add").handle(4).handle(5).result(6);  // the sizes differ
  Instruction(&frame, "share_export").handle(5).bytes("0123456789abcdef0123456789abcdef").real(100).result(8);
  return frame;
}

v1::Frame second_frame() {
  v1::Frame frame;
  Instruction(&frame, "backward")
      .handles({3})
      .handles({})
      .handles({1})
      .boolean(true)
      .boolean(false)
      .boolean(false)
      .result(10, 1);
  testing::read(&frame, 1, 10);
  testing::read(&frame, 2, 6);
  return frame;
}

std::string write(Session& session, ImageBlocks* blocks) {
  StringSink sink;
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  if (!session.hold(soon, blocks != nullptr).ok()) return "";
  try {
    session.write_image(&sink, blocks);
  } catch (const Error&) {
    sink.bytes.clear();
  }
  session.release();
  return sink.bytes;
}

const std::string& valid_image() {
  static const std::string image = [] {
    const auto session = open_session();
    execute(*session, first_frame());
    ImageBlocks blocks;
    return write(*session, &blocks);
  }();
  return image;
}

// Changes bytes of a valid image as the input says: each change is a position (2 bytes), an operation and a value.
std::string changed_image(const uint8_t* data, size_t size) {
  std::string image = valid_image();
  for (size_t i = 0; i + 4 <= size && i < 64; i += 4) {
    const size_t at = (static_cast<size_t>(data[i]) << 8 | data[i + 1]) % std::max<size_t>(image.size(), 1);
    const char value = static_cast<char>(data[i + 3]);
    switch (data[i + 2] % 5) {
      case 0: image[at] = value; break;
      case 1: image[at] = static_cast<char>(image[at] ^ (1 << (data[i + 3] % 8))); break;
      case 2: image.insert(at, 1 + data[i + 3] % 16, static_cast<char>(0xff)); break;
      case 3: image.erase(at, 1 + data[i + 3] % 16); break;
      default: image.resize(std::max<size_t>(at, 1)); break;
    }
  }
  return image;
}

void read_session(const std::string& bytes, bool is_pipe) {
  const auto session = open_session();
  StringSource source(bytes, is_pipe);
  ImageBlocks blocks;
  try {
    read_record(&source);
    session->read_image(&source, is_pipe ? &blocks : nullptr);
  } catch (const Error&) {
    return;  // refused
  }
  execute(*session, second_frame());
  ImageBlocks again;
  write(*session, &again);
  session->close();
}

// The input as it is, as the image of the state that no session owns.
void read_shared(const std::string& structure) {
  Publications publications;
  SharedTensors tensors;
  ImageBlocks blocks;
  std::vector<Ref<Storage>> contents;
  ImageInput in(structure);
  Context context;
  context.account = std::make_shared<Account>("fuzz", kLimit);
  {
    const ContextScope scope(&context);
    try {
      const auto find = [](absl::string_view name) -> absl::StatusOr<Principal> {
        Principal principal;
        principal.name = std::string(name);
        return principal;
      };
      uint64_t left = kLimit;
      publications.read_image(&in, &blocks, find, &left, &contents);
      tensors.read_image(&in, &blocks, context.account, kLimit, &contents, &left);
    } catch (const Error&) {  // refused
    }
  }
  contents.clear();
  context.close();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  valid_image();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  const uint64_t before = tt::server::testing::engine_bytes();
  const uint8_t how = data[0];
  ++data;
  --size;
  if (how % 4 == 3) {
    read_shared(std::string(reinterpret_cast<const char*>(data), size));
  } else {
    std::string image = changed_image(data, size);
    if (how % 4 != 0) tt::server::testing::seal_image(&image);
    read_session(image, how % 4 == 2);
  }
  tt::fuzz::require(tt::server::testing::engine_bytes() == before, "the image's memory was released");
  return 0;
}
