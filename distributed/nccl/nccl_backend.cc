#include "distributed/nccl/nccl_backend.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/devices.h"
#include "engine/device/native_stream.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

// The data that ranks exchange before the communicator is created.
struct Offer {
  int32_t version = 0;  // of NCCL; 0: the rank cannot use it
  nccl::Uuid device{};
  nccl::UniqueId id{};  // rank 0's is used
};
static_assert(sizeof(Offer) <= Backend::kMaxExchange);

template <typename T>
std::vector<T> exchange(Backend& host, const T& mine, int size) {
  std::vector<T> all(static_cast<size_t>(size));
  host.exchange({reinterpret_cast<const char*>(&mine), sizeof(T)},
                {reinterpret_cast<char*>(all.data()), all.size() * sizeof(T)});
  return all;
}

bool is_reduction(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

std::optional<nccl::DataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return nccl::kInt8;
    case DType::kUInt8: return nccl::kUint8;
    case DType::kInt32: return nccl::kInt32;
    case DType::kUInt32: return nccl::kUint32;
    case DType::kInt64: return nccl::kInt64;
    case DType::kUInt64: return nccl::kUint64;
    case DType::kFloat16: return nccl::kFloat16;
    case DType::kBFloat16: return nccl::kBfloat16;
    case DType::kFloat32: return nccl::kFloat32;
    case DType::kFloat64: return nccl::kFloat64;
    default: return std::nullopt;
  }
}

std::optional<nccl::RedOp> reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return nccl::kSum;
    case ReduceOp::kProduct: return nccl::kProd;
    case ReduceOp::kMin: return nccl::kMin;
    case ReduceOp::kMax: return nccl::kMax;
    default: return std::nullopt;
  }
}

bool is_disabled() {
  const char* value = std::getenv("TELETENSOR_GROUP_NCCL");
  return value != nullptr && std::string_view(value) == "off";
}

}  // namespace

NcclBackend::~NcclBackend() { release(); }

bool NcclBackend::connect(Backend& host, int rank, int size, Device device) {
  rank_ = rank;
  size_ = size;
  std::string why;
  const nccl::Library* library = is_disabled() ? nullptr : nccl::library(&why);
  Offer mine;
  if (library != nullptr && nccl::device_uuid(device.index, &mine.device)) mine.version = library->version;
  if (mine.version != 0 && rank == 0 && library->get_unique_id(&mine.id) != nccl::kSuccess) mine.version = 0;
  const std::vector<Offer> all = exchange(host, mine, size);
  std::vector<nccl::Uuid> devices;
  for (const Offer& offer : all) {
    if (offer.version == 0 || offer.version != all[0].version) return false;
    devices.push_back(offer.device);
  }
  std::sort(devices.begin(), devices.end());
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) return false;  // NCCL needs a GPU per rank
  library_ = library;
  stream_ = Devices::instance().backend(device).lease_stream();
  // All ranks use the communicator, or none.
  const uint8_t created = create_communicator(all[0].id) ? 1 : 0;
  const std::vector<uint8_t> outcomes = exchange(host, created, size);
  if (std::find(outcomes.begin(), outcomes.end(), 0) == outcomes.end()) return true;
  is_failed_ = true;
  release();
  return false;
}

bool NcclBackend::create_communicator(const nccl::UniqueId& id) {
  try {
    handle_ = native_stream(*stream_);
    check(handle_ != nullptr, "the device has no CUDA streams");
    nccl::Config config;
    settle(library_->comm_init_rank_config(&comm_, size_, id, rank_, &config));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void NcclBackend::release() noexcept {
  if (comm_ == nullptr) return;
  try {
    native_stream(*stream_);  // makes the device current
    if (!is_failed_ && !aborted_) {
      settle(library_->comm_finalize(comm_));  // completes the sends in progress
      if (library_->comm_destroy(comm_) == nccl::kSuccess) comm_ = nullptr;
    }
  } catch (const Error&) {  // ends below
  }
  if (comm_ != nullptr) library_->comm_abort(comm_);
  comm_ = nullptr;
}

void NcclBackend::check_result(nccl::Result result) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const char* detail = comm_ == nullptr ? nullptr : library_->get_last_error(comm_);
  fail(ErrorKind::kRuntime, "NCCL error: ", library_->get_error_string(result), detail == nullptr ? "" : ": ",
       detail == nullptr ? "" : detail);
}

void NcclBackend::wait_until(absl::FunctionRef<bool()> is_complete, std::string_view what) {
  // spins first, so that short collectives do not pay for a sleep
  constexpr auto kBusy = std::chrono::microseconds(200);
  constexpr auto kSleep = std::chrono::microseconds(50);
  const auto begin = Clock::now();
  while (!is_complete()) {
    const auto elapsed = Clock::now() - begin;
    check(!aborted_, "the collective was aborted");
    check(elapsed < timeout_, "timed out after ", timeout_.count(), " ms: NCCL did not complete ", what);
    if (elapsed > kBusy) std::this_thread::sleep_for(kSleep);
  }
}

void NcclBackend::settle(nccl::Result result) {
  check_result(result);
  if (result == nccl::kSuccess) return;
  const auto is_complete = [&] {
    nccl::Result state = nccl::kInProgress;
    check_result(library_->comm_get_async_error(comm_, &state));
    check_result(state);
    return state == nccl::kSuccess;
  };
  wait_until(is_complete, "a call");
}

bool NcclBackend::supports(const Collective& c) const {
  if (!is_reduction(c.kind)) return true;
  const bool sums_complex = is_complex(c.dtype) && c.op == ReduceOp::kSum;
  return sums_complex || (data_type(c.dtype) && reduction(c.op));
}

void NcclBackend::run(const Collective& c, bool averages, const Event& ready) {
  try {
    check(!aborted_, "the collective was aborted");
    stream_->wait(ready);
    handle_ = native_stream(*stream_);
    issue(c, averages);
    const std::unique_ptr<Event> done = stream_->record();
    const auto is_complete = [&] {
      nccl::Result state = nccl::kSuccess;
      check_result(library_->comm_get_async_error(comm_, &state));
      check_result(state);
      return done->done();
    };
    wait_until(is_complete, name(c.kind));
    done->synchronize();  // throws if the work failed
  } catch (...) {
    is_failed_ = true;
    release();  // ends the work, so that the caller may free the memory
    throw;
  }
}

void NcclBackend::issue(const Collective& c, bool averages) {
  // Complex numbers are summed as pairs of real ones. Data that is only moved is moved as bytes.
  const bool reduces = is_reduction(c.kind);
  const bool is_pair = is_complex(c.dtype);
  const DType real = c.dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  const nccl::DataType type = reduces ? *data_type(is_pair ? real : c.dtype) : nccl::kUint8;
  const size_t count = reduces ? c.count * (is_pair ? 2 : 1) : c.count * item_size(c.dtype);
  const nccl::RedOp op = averages ? nccl::kAvg : reduction(c.op).value_or(nccl::kSum);
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return settle(library_->all_reduce(c.input, c.output, count, type, op, comm_, handle_));
    case CollectiveKind::kReduce:
      return settle(library_->reduce(c.input, c.output, count, type, op, c.root, comm_, handle_));
    case CollectiveKind::kReduceScatter:
      return settle(library_->reduce_scatter(c.input, c.output, count, type, op, comm_, handle_));
    case CollectiveKind::kBroadcast:
      return settle(library_->broadcast(c.input, c.output, count, type, c.root, comm_, handle_));
    case CollectiveKind::kAllGather:
      return settle(library_->all_gather(c.input, c.output, count, type, comm_, handle_));
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAllToAll: return issue_messages(c);
    case CollectiveKind::kBarrier: return;
  }
}

// Sends and receives the pieces of all ranks at once.
void NcclBackend::issue_messages(const Collective& c) {
  const size_t item = item_size(c.dtype);
  const bool is_root = rank_ == c.root;
  const auto bytes_to = [&](int peer) {
    if (c.kind == CollectiveKind::kAllToAll) return c.send_counts[static_cast<size_t>(peer)] * item;
    return (c.kind == CollectiveKind::kScatter ? is_root : peer == c.root) ? c.count * item : 0;
  };
  const auto bytes_from = [&](int peer) {
    if (c.kind == CollectiveKind::kAllToAll) return c.receive_counts[static_cast<size_t>(peer)] * item;
    return (c.kind == CollectiveKind::kGather ? is_root : peer == c.root) ? c.count * item : 0;
  };
  check_result(library_->group_start());
  const char* from = c.input;
  char* to = c.output;
  for (int peer = 0; peer < size_; ++peer) {
    if (const size_t bytes = bytes_to(peer); bytes > 0) {
      check_result(library_->send(from, bytes, nccl::kUint8, peer, comm_, handle_));
      from += bytes;
    }
    if (const size_t bytes = bytes_from(peer); bytes > 0) {
      check_result(library_->recv(to, bytes, nccl::kUint8, peer, comm_, handle_));
      to += bytes;
    }
  }
  settle(library_->group_end());
}

}  // namespace tt::distributed
