// ProcessGroup: collectives of tensors on GPUs, by the DeviceBackend or through the host's memory.
#include <algorithm>
#include <memory>
#include <numeric>

#include "distributed/group/process_group.h"
#include "distributed/group/scale.h"
#include "engine/device/devices.h"

namespace tt::distributed {
namespace {

size_t total(const std::vector<size_t>& counts) { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }

// The items that a rank reads and writes; see Collective.
size_t input_items(const Collective& c, int rank, size_t ranks) {
  switch (c.kind) {
    case CollectiveKind::kBroadcast: return rank == c.root ? c.count : 0;
    case CollectiveKind::kScatter: return rank == c.root ? c.count * ranks : 0;
    case CollectiveKind::kReduceScatter: return c.count * ranks;
    case CollectiveKind::kAllToAll: return total(c.send_counts);
    default: return c.count;
  }
}

size_t output_items(const Collective& c, int rank, size_t ranks) {
  switch (c.kind) {
    case CollectiveKind::kReduce: return rank == c.root ? c.count : 0;
    case CollectiveKind::kGather: return rank == c.root ? c.count * ranks : 0;
    case CollectiveKind::kAllGather: return c.count * ranks;
    case CollectiveKind::kAllToAll: return total(c.receive_counts);
    default: return c.count;
  }
}

}  // namespace

uint8_t ProcessGroup::memory_of(const Request& request) const {
  if (!request.ready) return CollectiveFingerprint::kHostMemory;
  const bool is_other = device_state_ == DeviceState::kConnected && request.device != device_;
  return is_other ? CollectiveFingerprint::kOtherGPU : CollectiveFingerprint::kGPU;
}

bool ProcessGroup::run_on_devices(const Request& request, absl::Span<const CollectiveFingerprint> all) {
  const bool are_on_gpus = std::all_of(
      all.begin(), all.end(), [](const CollectiveFingerprint& a) { return a.memory == CollectiveFingerprint::kGPU; });
  if (!are_on_gpus || !device_backend_ || device_state_ == DeviceState::kUnavailable) return false;
  if (!device_backend_->supports(request.collective)) return false;
  if (device_state_ == DeviceState::kUnknown) {
    bool connected = false;
    on_backend([&] { connected = device_backend_->connect(*backend_, rank(), size(), request.device); });
    device_state_ = connected ? DeviceState::kConnected : DeviceState::kUnavailable;
    if (!connected) return false;
    device_ = request.device;
  }
  on_backend([&] {
    if (request.collective.kind == CollectiveKind::kAllToAll) check_counts(request.collective);
    device_backend_->run(request.collective, request.divisor != 1, *request.ready);
  });
  return true;
}

void ProcessGroup::run_through_host(const Request& request) {
  Collective c = request.collective;
  const auto ranks = static_cast<size_t>(size());
  const size_t item = item_size(c.dtype);
  const size_t in = input_items(c, rank(), ranks) * item, out = output_items(c, rank(), ranks) * item;
  const auto input = std::make_unique_for_overwrite<char[]>(in), output = std::make_unique_for_overwrite<char[]>(out);
  char* const result = c.output;
  c.input = input.get();
  c.output = output.get();
  if (!device_stream_ || device_stream_->device() != request.device) {
    device_stream_ = Devices::instance().backend(request.device).lease_stream();
  }
  on_backend([&] {  // also the copies: the other ranks wait for this one
    device_stream_->wait(*request.ready);
    device_stream_->copy(input.get(), request.collective.input, in);
    device_stream_->synchronize();
    run_on_backend(c);
    if (out == 0) return;
    if (request.divisor != 1) divide(c.dtype, c.output, c.count, request.divisor);
    device_stream_->copy(result, c.output, out);
    device_stream_->synchronize();
  });
}

}  // namespace tt::distributed
