#include "server/admin/status.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/device/devices.h"
#include "engine/extension/library.h"
#include "server/convert.h"
#include "server/resident_bytes.h"
#include "server/version.h"
#include "server/workers/worker_calls.h"

namespace tt::server {
namespace {

void describe(const Level& level, v1::Level* wire) {
  wire->set_now(level.now);
  wire->set_peak(level.peak);
}

void describe(const PoolStats& stats, v1::PoolStats* wire) {
  describe(stats.requested, wire->mutable_requested());
  describe(stats.allocated, wire->mutable_allocated());
  describe(stats.active, wire->mutable_active());
  describe(stats.inactive_split, wire->mutable_inactive_split());
  describe(stats.reserved, wire->mutable_reserved());
}

void describe(const AllocatorStats& stats, v1::MemoryStats* wire) {
  wire->set_allocated(stats.all.requested.now);
  wire->set_active(stats.all.active.now);
  wire->set_reserved(stats.all.reserved.now);
  wire->set_peak_allocated(stats.all.requested.peak);
  wire->set_peak_reserved(stats.all.reserved.peak);
  wire->set_allocations(stats.allocations);
  wire->set_retries(stats.retries);
  wire->set_out_of_memory(stats.out_of_memory);
  wire->set_system_allocations(stats.system_allocations);
  wire->set_system_frees(stats.system_frees);
  wire->set_limit(stats.limit);
  describe(stats.all, wire->mutable_all());
  describe(stats.small, wire->mutable_small());
  describe(stats.large, wire->mutable_large());
}

void describe(const BackendCalls& calls, v1::DeviceStatus* wire) {
  wire->set_kernel_calls(calls.kernels);
  wire->set_fallback_calls(calls.fallbacks);
  for (const auto& [name, count] : calls.operators) {
    v1::OperatorCalls* each = wire->add_fallbacks();
    each->set_name(name);
    each->set_calls(count);
  }
}

void describe(const std::string& name, const Sessions::Usage& usage, v1::PrincipalStatus* wire) {
  wire->set_name(name);
  wire->set_sessions(usage.sessions);
  wire->set_held_bytes(usage.bytes);
  wire->set_offloaded_bytes(usage.offloaded);
  wire->set_handles(usage.handles);
  wire->set_weight(usage.share->weight());
  wire->set_priority(usage.share->priority() == Share::Priority::kBatch ? "batch" : "interactive");
  wire->set_cpu_seconds(std::chrono::duration<double>(usage.share->used()).count());
  wire->set_sessions_opened(usage.opened);
  wire->set_frames(usage.frames);
  wire->set_instructions(usage.instructions);
  wire->set_failed(usage.failed);
  if (!usage.quota) return;
  const QuotaLimits limits = usage.quota->limits();
  if (usage.quota->counts_tensors()) wire->set_held_bytes(usage.quota->held());  // with what outlives its session
  wire->set_bookkeeping_bytes(usage.quota->bookkeeping());
  wire->set_transfers(usage.quota->transfers());
  wire->set_memory_limit(limits.memory);
  wire->set_host_memory_limit(limits.host_memory);
  wire->set_gpu_memory_limit(limits.gpu_memory);
  wire->set_handle_limit(limits.handles);
  wire->set_transfer_limit(limits.transfers);
  wire->set_checkpoint_limit(limits.checkpoint_bytes);
}

void describe(const ModelRepository& models, v1::StatusReply* reply) {
  for (const ModelRepository::Entry& entry : models.index()) {
    v1::ModelStatus* wire = reply->add_models();
    wire->set_name(entry.name);
    wire->set_version(entry.version);
    wire->set_ready(entry.ready);
    wire->set_reason(entry.reason);
    const auto version = entry.ready ? models.find(entry.name, entry.version) : absl::NotFoundError("");
    if (!version.ok()) continue;
    const ModelStatistics::Totals totals = (*version)->statistics().totals();
    wire->set_device(to_string((*version)->model().options().device));
    wire->set_requests(totals.succeeded);
    wire->set_failures(totals.failed);
    wire->set_batches(totals.batches);
    wire->set_rows(totals.rows);
    wire->set_queued((*version)->queued());
    wire->set_memory_bytes((*version)->held_bytes());
    const auto seconds = [](const FrameTimes::Histogram& times) {
      return 1e-9 * static_cast<double>(times.nanoseconds.load(std::memory_order_relaxed));
    };
    wire->set_queue_seconds(seconds((*version)->statistics().queue_times()));
    wire->set_compute_seconds(seconds((*version)->statistics().compute_times()));
  }
}

// The shared objects of --operators: the file's name, and what the library calls itself with its operators.
void describe_operator_libraries(v1::DeviceStatus* cpu) {
  for (const extension::OperatorLibrary& library : extension::loaded_libraries()) {
    v1::LibraryStatus* status = cpu->add_libraries();
    status->set_name(library.path.substr(library.path.rfind('/') + 1));
    status->set_version(absl::StrCat(library.name, ": ", absl::StrJoin(library.operators, ", ")));
  }
}

// Removes the fields that reveal another principal and its program.
void hide_program(v1::SessionStatus* session) {
  session->clear_client();
  session->clear_principal();
  session->clear_replay_refusal();
}

}  // namespace

v1::StatusReply EngineStatus::complete() const {
  v1::StatusReply reply = workers_ != nullptr ? status_of(*workers_) : v1::StatusReply();
  reply.set_engine_version(kVersion);
  reply.set_uptime_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count());
  reply.set_pid(getpid());
  reply.set_resident_bytes(resident_bytes());
  if (engines_ != nullptr) engines_->describe(&reply);
  if (models_ != nullptr) describe(*models_, &reply);
  // An engine with workers uses no devices itself; one that places sessions elsewhere has none.
  const bool has_devices = workers_ == nullptr && engines_ == nullptr;
  for (const DeviceInfo& info : has_devices ? Devices::instance().list() : std::vector<DeviceInfo>()) {
    v1::DeviceStatus* device = is_plugin(info.device.type) ? reply.add_plugin_devices() : reply.add_devices();
    *device->mutable_device() = to_wire(info);
    describe(Devices::instance().allocator(info.device).stats(), device->mutable_memory());
    for (LibraryInfo& library : Devices::instance().backend(info.device).libraries()) {
      v1::LibraryStatus* status = device->add_libraries();
      status->set_name(std::move(library.name));
      status->set_version(std::move(library.version));
      status->set_missing(std::move(library.missing));
    }
    if (info.device.type == DeviceType::kCPU) describe_operator_libraries(device);
    if (is_plugin(info.device.type)) describe(Devices::instance().backend(info.device).calls(), device);
  }
  if (const OffloadPlace* place = sessions_.offload(); place != nullptr && has_devices) {
    v1::OffloadStatus* offload = reply.mutable_offload();
    offload->set_bytes(place->bytes.load(std::memory_order_relaxed));
    if (place->folder) offload->set_file_bytes(place->folder->bytes());
    if (place->folder) offload->set_limit(place->folder->limits().total);
    offload->set_left(place->left.load(std::memory_order_relaxed));
    offload->set_returned(place->returned.load(std::memory_order_relaxed));
    offload->set_failures(place->failures.load(std::memory_order_relaxed));
  }
  for (v1::SessionStatus& session : sessions_.list()) *reply.add_sessions() = std::move(session);
  for (const auto& [name, usage] : sessions_.usage()) describe(name, usage, reply.add_principals());
  return reply;
}

v1::StatusReply EngineStatus::reply_to(const Principal& caller) const {
  v1::StatusReply reply = complete();
  const bool sees_all = caller.role != Role::kUser;
  for (v1::SessionStatus& session : *reply.mutable_sessions()) {
    const bool is_own = session.principal() == caller.name;
    // Programs that share the user token need not be the same person's.
    if (!sees_all && (!is_own || caller.name == "user")) hide_program(&session);
  }
  const auto keep = [](auto* all, auto may_see) {
    all->erase(std::stable_partition(all->begin(), all->end(), may_see), all->end());
  };
  keep(reply.mutable_principals(), [&](const v1::PrincipalStatus& each) {
    return !each.name().empty() && (sees_all || each.name() == caller.name);
  });
  keep(reply.mutable_workers(),
       [&](const v1::WorkerStatus& each) { return sees_all || each.principal() == caller.name; });
  if (!sees_all) reply.clear_engines();
  const auto uses = [&](const v1::ModelStatus& each) {
    const auto version = models_->find(each.name(), each.version());
    return version.ok() && (*version)->allows(caller.name);
  };
  keep(reply.mutable_models(), [&](const v1::ModelStatus& each) { return sees_all || uses(each); });
  return reply;
}

absl::StatusOr<v1::ProfileReply> EngineStatus::profile() const {
  if (workers_ != nullptr) return profile_of(*workers_);
  if (!sampler_.active()) return absl::FailedPreconditionError("the engine was started with --profile-rate=0");
  return sampler_.profile();
}

}  // namespace tt::server
