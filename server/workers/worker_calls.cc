#include "server/workers/worker_calls.h"

#include <algorithm>
#include <utility>

namespace tt::server {
namespace {

void add(const v1::Level& from, v1::Level* to) {
  to->set_now(to->now() + from.now());
  to->set_peak(to->peak() + from.peak());
}

void add(const v1::PoolStats& from, v1::PoolStats* to) {
  add(from.requested(), to->mutable_requested());
  add(from.allocated(), to->mutable_allocated());
  add(from.active(), to->mutable_active());
  add(from.inactive_split(), to->mutable_inactive_split());
  add(from.reserved(), to->mutable_reserved());
}

void add(const v1::MemoryStats& from, v1::MemoryStats* to) {
  to->set_allocated(to->allocated() + from.allocated());
  to->set_active(to->active() + from.active());
  to->set_reserved(to->reserved() + from.reserved());
  to->set_peak_allocated(to->peak_allocated() + from.peak_allocated());
  to->set_peak_reserved(to->peak_reserved() + from.peak_reserved());
  to->set_allocations(to->allocations() + from.allocations());
  to->set_retries(to->retries() + from.retries());
  to->set_out_of_memory(to->out_of_memory() + from.out_of_memory());
  to->set_system_allocations(to->system_allocations() + from.system_allocations());
  to->set_system_frees(to->system_frees() + from.system_frees());
  add(from.all(), to->mutable_all());
  add(from.small(), to->mutable_small());
  add(from.large(), to->mutable_large());
  to->set_limit(std::max(to->limit(), from.limit()));
}

// The limit is each worker's.
void add(const v1::OffloadStatus& from, v1::OffloadStatus* to) {
  to->set_bytes(to->bytes() + from.bytes());
  to->set_file_bytes(to->file_bytes() + from.file_bytes());
  to->set_limit(std::max(to->limit(), from.limit()));
  to->set_left(to->left() + from.left());
  to->set_returned(to->returned() + from.returned());
  to->set_failures(to->failures() + from.failures());
}

void add_calls(const v1::OperatorCalls& from, v1::DeviceStatus* to) {
  auto& known = *to->mutable_fallbacks();
  const auto same = std::find_if(known.begin(), known.end(),
                                 [&](const v1::OperatorCalls& each) { return each.name() == from.name(); });
  if (same == known.end()) {
    *to->add_fallbacks() = from;
  } else {
    same->set_calls(same->calls() + from.calls());
  }
}

using DeviceStatuses = google::protobuf::RepeatedPtrField<v1::DeviceStatus>;

void add_device(v1::DeviceStatus&& from, DeviceStatuses* all) {
  for (v1::DeviceStatus& to : *all) {
    if (to.device().device() != from.device().device()) continue;
    add(from.memory(), to.mutable_memory());
    to.set_kernel_calls(to.kernel_calls() + from.kernel_calls());
    to.set_fallback_calls(to.fallback_calls() + from.fallback_calls());
    for (const v1::OperatorCalls& calls : from.fallbacks()) add_calls(calls, &to);
    std::stable_sort(to.mutable_fallbacks()->begin(), to.mutable_fallbacks()->end(),
                     [](const v1::OperatorCalls& a, const v1::OperatorCalls& b) { return a.calls() > b.calls(); });
    for (v1::LibraryStatus& library : *from.mutable_libraries()) {
      auto& known = *to.mutable_libraries();
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const v1::LibraryStatus& each) { return each.name() == library.name(); });
      if (same == known.end()) *to.add_libraries() = std::move(library);
    }
    return;
  }
  *all->Add() = std::move(from);
}

}  // namespace

v1::StatusReply status_of(const Workers& workers) {
  v1::StatusReply all;
  for (auto& answer : call_workers(workers, &v1::Admin::Stub::AsyncStatus, v1::StatusRequest())) {
    v1::StatusReply& reply = answer.reply;
    v1::WorkerStatus* worker = all.add_workers();
    worker->set_principal(answer.worker.principal);
    worker->set_pid(answer.worker.process->pid());
    worker->set_answers(answer.status.ok());
    if (!answer.status.ok()) continue;
    worker->set_resident_bytes(reply.resident_bytes());
    worker->set_sessions(static_cast<uint64_t>(reply.sessions_size()));
    worker->set_uptime_seconds(reply.uptime_seconds());
    for (v1::SessionStatus& session : *reply.mutable_sessions()) {
      session.set_principal(answer.worker.principal);  // whatever the worker says
      *all.add_sessions() = std::move(session);
    }
    for (v1::PrincipalStatus& principal : *reply.mutable_principals()) {
      if (principal.name() == answer.worker.principal) *all.add_principals() = std::move(principal);
    }
    if (reply.has_offload()) add(reply.offload(), all.mutable_offload());
    for (v1::DeviceStatus& device : *reply.mutable_devices()) add_device(std::move(device), all.mutable_devices());
    for (v1::DeviceStatus& device : *reply.mutable_plugin_devices()) {
      add_device(std::move(device), all.mutable_plugin_devices());
    }
  }
  std::sort(all.mutable_sessions()->begin(), all.mutable_sessions()->end(),
            [](const v1::SessionStatus& a, const v1::SessionStatus& b) { return a.id() < b.id(); });
  return all;
}

absl::StatusOr<v1::ProfileReply> profile_of(const Workers& workers) {
  v1::ProfileReply all;
  for (auto& answer : call_workers(workers, &v1::Admin::Stub::AsyncProfile, v1::ProfileRequest())) {
    if (!answer.status.ok()) {
      return absl::Status(static_cast<absl::StatusCode>(answer.status.error_code()), answer.status.error_message());
    }
    const v1::ProfileReply& one = answer.reply;
    all.mutable_entries()->MergeFrom(one.entries());
    all.set_rate(one.rate());
    all.set_seconds(std::max(all.seconds(), one.seconds()));
    all.set_samples(std::max(all.samples(), one.samples()));
    all.set_cpu_seconds(all.cpu_seconds() + one.cpu_seconds());
  }
  return all;
}

}  // namespace tt::server
