// Simulated NCCL and driver: collectives between the simulated devices of several processes, which exchange bytes as
// files in the folder TELETENSOR_SIMULATED_NCCL.
//
// The library is the plug-in itself: tests create links to it, named libnccl.so.2 and libcuda.so.1, in a folder of
// LD_LIBRARY_PATH. Each collective is work of a simulated stream, so that a missing wait gives a wrong value. Calls
// return ncclInProgress like a communicator that does not block. Calls are logged in the folder's file calls-PID.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "distributed/group/reduce.h"
#include "distributed/group/scale.h"
#include "distributed/nccl/nccl_library.h"
#include "tests/cuda/simulated/runtime.h"

#define TT_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tt::DType;
using tt::distributed::ReduceOp;
using namespace tt::distributed::nccl;  // the types of NCCL's functions

constexpr Result kSystemError = static_cast<Result>(2), kInvalidUsage = static_cast<Result>(5),
                 kRemoteError = static_cast<Result>(6);

// How long work waits for another rank. It holds the simulated runtime's lock meanwhile.
constexpr auto kLimit = std::chrono::seconds(3);

std::string folder() {
  const char* value = std::getenv("TELETENSOR_SIMULATED_NCCL");
  return value == nullptr ? "" : value;
}

void log(const std::string& line) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::ofstream(absl::StrCat(folder(), "/calls-", getpid()), std::ios::app) << line << "\n";
}

struct Communicator {
  std::string folder;
  int rank, size;
  uint64_t collectives = 0;
  std::map<int, uint64_t> sent, received;
  std::atomic<int> polls{2};  // until the latest call is complete
  std::atomic<int> state{kSuccess};
  std::atomic<bool> joined{false}, aborted{false};

  void publish(const std::string& name, const char* bytes, size_t size) const {
    const std::string path = absl::StrCat(folder, "/", name), part = absl::StrCat(path, ".part");
    std::ofstream(part, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
    std::filesystem::rename(part, path);
  }
  // Waits for the bytes that a rank publishes; null, and an error of the communicator, if they do not arrive.
  std::optional<std::vector<char>> await(const std::string& name, size_t size) {
    const std::string path = absl::StrCat(folder, "/", name);
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    while (!std::filesystem::exists(path)) {
      if (aborted || state != kSuccess || std::chrono::steady_clock::now() > deadline) {
        state = kRemoteError;
        return std::nullopt;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::vector<char> bytes(size);
    std::ifstream file(path, std::ios::binary);
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (static_cast<size_t>(file.gcount()) != size || file.peek() != EOF) {
      state = kInvalidUsage;
      return std::nullopt;
    }
    return bytes;
  }
};
using Shared = std::shared_ptr<Communicator>;

const Shared& shared(Comm comm) { return *static_cast<Shared*>(comm); }

DType dtype_of(DataType type) {
  constexpr DType kTypes[] = {DType::kInt8,   DType::kUInt8,   DType::kInt32,   DType::kUInt32,  DType::kInt64,
                              DType::kUInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16};
  return kTypes[type];
}

ReduceOp op_of(RedOp op) {
  switch (op) {
    case kProd: return ReduceOp::kProduct;
    case kMax: return ReduceOp::kMax;
    case kMin: return ReduceOp::kMin;
    default: return ReduceOp::kSum;
  }
}

// Issues work to a stream: publishes `bytes` of `from`, unless it is null, and calls use(bytes of all ranks) on the
// ranks that `receives`.
Result collective(Comm comm, Stream stream, const char* name, const void* from, size_t bytes, std::vector<int> senders,
                  bool receives, std::function<void(const std::vector<std::vector<char>>&)> use) {
  const Shared c = shared(comm);
  log(absl::StrCat(name, " ", bytes, " of ", c->size));
  const std::string call = absl::StrCat("collective-", c->collectives++);
  tt::cuda::simulated_runtime().enqueue(stream, [=] {
    if (from != nullptr) c->publish(absl::StrCat(call, "-", c->rank), static_cast<const char*>(from), bytes);
    if (!receives) return;
    std::vector<std::vector<char>> all;
    for (int r : senders) {
      std::optional<std::vector<char>> part = c->await(absl::StrCat(call, "-", r), bytes);
      if (!part) return;
      all.push_back(*std::move(part));
    }
    use(all);
  });
  c->polls = 2;
  return kInProgress;
}

std::vector<int> all_ranks(Comm comm) {
  std::vector<int> ranks;
  for (int r = 0; r < shared(comm)->size; ++r) ranks.push_back(r);
  return ranks;
}

// Reduces `count` items of all ranks, from item `begin`, into `to`.
void reduce_into(void* to, const std::vector<std::vector<char>>& all, size_t begin, size_t count, DataType type,
                 RedOp op) {
  const DType dtype = dtype_of(type);
  std::vector<const char*> inputs;
  for (const auto& part : all) inputs.push_back(part.data() + begin * tt::item_size(dtype));
  tt::distributed::reduce(op_of(op), dtype, static_cast<char*>(to), inputs, count);
  if (op == kAvg) tt::distributed::divide(dtype, static_cast<char*>(to), count, static_cast<double>(all.size()));
}

size_t size_of(DataType type) { return tt::item_size(dtype_of(type)); }

struct QueuedMessage {
  bool is_send;
  char* bytes;
  size_t size;
  int peer;
  Comm comm;
  Stream stream;
};
thread_local bool in_group = false;
thread_local std::vector<QueuedMessage> queued;

}  // namespace

TT_EXPORT Result ncclGetVersion(int* version) {
  *version = 22'703;
  return kSuccess;
}

TT_EXPORT const char* ncclGetErrorString(Result result) {
  return result == kRemoteError ? "simulated remote error" : "simulated error";
}

TT_EXPORT const char* ncclGetLastError(Comm) { return ""; }

TT_EXPORT Result ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> ids{0};
  const std::string name = absl::StrCat("group-", getpid(), "-", ids++);
  if (folder().empty() || mkdir(absl::StrCat(folder(), "/", name).c_str(), 0700) != 0) return kSystemError;
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->internal, name.data(), name.size());
  return kSuccess;
}

TT_EXPORT Result ncclCommInitRankConfig(Comm* comm, int size, UniqueId id, int rank, Config* config) {
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->blocking != 0) return kInvalidUsage;
  auto* c = new Shared(new Communicator{absl::StrCat(folder(), "/", id.internal), rank, size});
  (*c)->publish(absl::StrCat("rank-", rank), "", 0);
  log(absl::StrCat("init ", size));
  *comm = c;
  return kInProgress;
}

TT_EXPORT Result ncclCommGetAsyncError(Comm comm, Result* result) {
  const Shared& c = shared(comm);
  for (int r = 0; r < c->size && !c->joined; ++r) {
    *result = kInProgress;
    if (!std::filesystem::exists(absl::StrCat(c->folder, "/rank-", r))) return kSuccess;
  }
  c->joined = true;
  *result = c->polls.fetch_sub(1) > 0 ? kInProgress : static_cast<Result>(c->state.load());
  if (c->state != kSuccess) *result = static_cast<Result>(c->state.load());
  return kSuccess;
}

TT_EXPORT Result ncclCommFinalize(Comm comm) {
  log("finalize");
  shared(comm)->polls = 2;
  return kInProgress;
}

TT_EXPORT Result ncclCommDestroy(Comm comm) {
  log("destroy");
  delete static_cast<Shared*>(comm);
  return kSuccess;
}

TT_EXPORT Result ncclCommAbort(Comm comm) {
  log("abort");
  shared(comm)->aborted = true;
  delete static_cast<Shared*>(comm);
  return kSuccess;
}

TT_EXPORT Result ncclAllReduce(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm,
                               Stream stream) {
  return collective(comm, stream, "all_reduce", from, count * size_of(type), all_ranks(comm), true,
                    [=](const auto& all) { reduce_into(to, all, 0, count, type, op); });
}

TT_EXPORT Result ncclReduce(const void* from, void* to, size_t count, DataType type, RedOp op, int root, Comm comm,
                            Stream stream) {
  return collective(comm, stream, "reduce", from, count * size_of(type), all_ranks(comm), shared(comm)->rank == root,
                    [=](const auto& all) { reduce_into(to, all, 0, count, type, op); });
}

TT_EXPORT Result ncclReduceScatter(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm,
                                   Stream stream) {
  const Shared& c = shared(comm);
  const size_t begin = count * static_cast<size_t>(c->rank);
  return collective(comm, stream, "reduce_scatter", from, count * size_of(type) * static_cast<size_t>(c->size),
                    all_ranks(comm), true, [=](const auto& all) { reduce_into(to, all, begin, count, type, op); });
}

TT_EXPORT Result ncclBroadcast(const void* from, void* to, size_t count, DataType type, int root, Comm comm,
                               Stream stream) {
  const void* mine = shared(comm)->rank == root ? from : nullptr;
  return collective(comm, stream, "broadcast", mine, count * size_of(type), {root}, true,
                    [=](const auto& all) { std::memcpy(to, all[0].data(), all[0].size()); });
}

TT_EXPORT Result ncclAllGather(const void* from, void* to, size_t count, DataType type, Comm comm, Stream stream) {
  return collective(comm, stream, "all_gather", from, count * size_of(type), all_ranks(comm), true,
                    [=](const auto& all) {
                      char* next = static_cast<char*>(to);
                      for (const auto& part : all) next = std::copy(part.begin(), part.end(), next);
                    });
}

TT_EXPORT Result ncclGroupStart() {
  if (in_group) return kInvalidUsage;
  in_group = true;
  return kSuccess;
}

TT_EXPORT Result ncclSend(const void* from, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  if (!in_group) return kInvalidUsage;
  char* bytes = static_cast<char*>(const_cast<void*>(from));
  queued.push_back({true, bytes, count * size_of(type), peer, comm, stream});
  return kSuccess;
}

TT_EXPORT Result ncclRecv(void* to, size_t count, DataType type, int peer, Comm comm, Stream stream) {
  if (!in_group) return kInvalidUsage;
  queued.push_back({false, static_cast<char*>(to), count * size_of(type), peer, comm, stream});
  return kSuccess;
}

TT_EXPORT Result ncclGroupEnd() {
  in_group = false;
  if (queued.empty()) return kSuccess;
  const Shared c = shared(queued[0].comm);
  const Stream stream = queued[0].stream;
  std::vector<std::pair<std::string, QueuedMessage>> sends, receives;
  for (const QueuedMessage& m : queued) {
    if (m.is_send) {
      sends.emplace_back(absl::StrCat("message-", c->rank, "-", m.peer, "-", c->sent[m.peer]++), m);
    } else {
      receives.emplace_back(absl::StrCat("message-", m.peer, "-", c->rank, "-", c->received[m.peer]++), m);
    }
  }
  queued.clear();
  log(absl::StrCat("messages ", sends.size(), " ", receives.size(), " of ", c->size));
  tt::cuda::simulated_runtime().enqueue(stream, [=] {
    for (const auto& [name, m] : sends) c->publish(name, m.bytes, m.size);
    for (const auto& [name, m] : receives) {
      const std::optional<std::vector<char>> bytes = c->await(name, m.size);
      if (!bytes) return;
      std::copy(bytes->begin(), bytes->end(), m.bytes);
    }
  });
  c->polls = 2;
  return kInProgress;
}

// The driver. A simulated device belongs to its process, unless TELETENSOR_SIMULATED_UUID names one for all.
TT_EXPORT int cuInit(unsigned int) { return 0; }

TT_EXPORT int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

TT_EXPORT int cuDeviceGetUuid(Uuid* uuid, int device) {
  const char* named = std::getenv("TELETENSOR_SIMULATED_UUID");
  const std::string text = named != nullptr ? named : absl::StrCat(getpid(), "-", device);
  uuid->fill(0);
  std::copy_n(text.begin(), std::min(text.size(), uuid->size()), uuid->begin());
  return 0;
}
