// Fuzz target: an engine restores a session from an image, as after a restart or an upgrade, and continues it.
//
// The input is an image (server/session/session_image.h), whose checksums do not matter. Whatever it says, it is
// refused with an Error, or the session works: its tensors are read, gradients are computed, and it is stored and
// restored again. The session stays within its memory limit, and afterwards the engine holds as much memory as before.
// Seeds are the images of sessions that execute the frames of the operators' samples (tests/fuzz/image_seeds.py).
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/schema/error.h"
#include "server/session/session.h"
#include "tests/fuzz/image_bytes.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace {

using tt::fuzz::require;
using tt::server::Session;
using tt::server::testing::Instruction;

constexpr uint64_t kMemoryLimit = uint64_t{1} << 20;
// Names of tensors that are tried. Clients count them from 1.
constexpr uint64_t kNames = 64;
constexpr size_t kUsed = 12;  // of those that exist

std::unique_ptr<Session> make_session() {
  Session::Options options;
  options.id = 1;
  options.client = "a fuzz target";
  options.memory_limit = kMemoryLimit;
  options.frame_time_limit = std::chrono::milliseconds(2000);
  options.transfer_timeouts = {std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  return std::make_unique<Session>(options);
}

// Returns null if the image is refused, with the kind of the error.
std::unique_ptr<Session> restored(std::string_view image, tt::ErrorKind* refusal = nullptr) {
  std::unique_ptr<Session> session = make_session();
  try {
    tt::fuzz::LenientSource source(image);
    (void)read_record(&source);
    session->read_image(&source);
  } catch (const tt::Error& error) {
    require(!error.message().empty(), "an error has a message");
    if (refusal != nullptr) *refusal = error.kind();
    session->close();
    require(session->account()->held() == 0, "an image that was refused leaves no memory");
    return nullptr;
  }
  require(session->account()->held() <= kMemoryLimit, "the tensors are within the memory limit");
  require(!session->account()->is_overdrawn(), "the bookkeeping is within the memory limit");
  return session;
}

std::vector<uint64_t> names_of(Session& session) {
  std::vector<uint64_t> names;
  for (uint64_t name = 1; name <= kNames && names.size() < kUsed; ++name) {
    if (!absl::IsInvalidArgument(session.begin_download(name, 0, [] { return true; }).status())) names.push_back(name);
  }
  return names;
}

// Reads each tensor, and computes the gradient of its sum twice: for its leaves, and as a graph.
void use(Session& session) {
  if (session.executed() >= UINT64_MAX - 1) return;
  tt::v1::Frame frame;
  frame.set_sequence(session.executed() + 1);
  uint64_t result = 1 << 20;
  for (uint64_t name : names_of(session)) {
    tt::server::testing::read(&frame, name, name);
    const uint64_t sum = result++;
    Instruction(&frame, "sum").handle(name).none().boolean(false).none().result(sum);
    Instruction(&frame, "backward")
        .handles({sum})
        .handles({})
        .handles({name})
        .boolean(true)
        .boolean(true)
        .boolean(false)
        .result(result++, 1);
    Instruction(&frame, "backward")
        .handles({sum})
        .handles({})
        .handles({name})
        .boolean(false)
        .boolean(false)
        .boolean(true)
        .result(result++, 1);
  }
  tt::v1::Reply reply;
  session.execute(frame, &reply);
  require(session.account()->held() <= kMemoryLimit, "the tensors stay within the memory limit");
}

void store_again(Session& session) {
  std::string image;
  try {
    image = tt::fuzz::image_of(session);
  } catch (const tt::Error&) {
    return;  // it has what cannot be stored, such as a backward pass that waits for the client
  }
  tt::ErrorKind refusal{};
  const std::unique_ptr<Session> again = restored(image, &refusal);
  require(again != nullptr || refusal == tt::ErrorKind::kOutOfMemory, "a restored session can be restored again");
  if (again) again->close();
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  return 0;
}

// Most mutations change the bytes of one part, and adapt the sizes around them.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  std::optional<tt::fuzz::ImageParts> parts =
      tt::fuzz::split_image({reinterpret_cast<const char*>(data), size});
  if (!parts || random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string& part = random() % 16 == 0 ? parts->record : parts->structure;
  if (random() % 2 == 0) {
    for (unsigned i = 0, count = 1 + random() % 3; i < count; ++i) tt::fuzz::mutate_number(&part, random);
  } else {
    std::string bytes = part;
    bytes.resize(part.size() + 64);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), part.size(), bytes.size()));
    part = std::move(bytes);
  }
  const std::string image = tt::fuzz::join_image(*parts);
  if (image.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, image.data(), image.size());
  return image.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint64_t before = tt::server::testing::engine_bytes();
  if (const std::unique_ptr<Session> session = restored({reinterpret_cast<const char*>(data), size})) {
    store_again(*session);
    use(*session);
    store_again(*session);
    session->close();
    require(session->account()->held() == 0, "a closed session holds no memory");
  }
  require(tt::server::testing::engine_bytes() == before, "a closed session holds no memory of the engine");
  return 0;
}
