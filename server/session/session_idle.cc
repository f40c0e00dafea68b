// Session: the tensors of an idle session leave their device, and return when the session is used.
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "autograd/image.h"
#include "engine/device/cancellation.h"
#include "engine/memory/bytes.h"
#include "engine/session/image.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/session/session.h"

namespace tt::server {
namespace {

// Smaller storages stay: they take little memory, and blocks of this size are cached by the pool.
constexpr size_t kMinMovedBytes = size_t{4} << 10;

constexpr std::chrono::seconds kRetryInterval{1};

LogLimit& log_failures() {
  static LogLimit limit;
  return limit;
}

}  // namespace

std::optional<std::chrono::steady_clock::time_point> Session::idle_since() const {
  if (!offload_ || busy() || has_ended()) return std::nullopt;
  return last_use_.load(std::memory_order_relaxed);
}

// A storage that anything but the session's tensors refers to stays where it is: a transfer in progress, a content that
// another session copies, a share, a publication. Every tensor of the session is found as for an image.
std::vector<Ref<Storage>> Session::movable(Device device, bool* in_use) {
  ImageTensors tensors;
  ImageOutput unused;
  write_context(context_, &tensors, &unused);
  write_slots(slots_, &tensors, &unused);
  autograd::write_tape(&tensors, &unused);
  absl::flat_hash_map<const Storage*, uint32_t> references;
  for (const Tensor& tensor : tensors.tensors()) ++references[tensor->storage.get()];
  contents_->clear();  // before the references are counted: no other session can find them from now on
  std::vector<Ref<Storage>> movable;
  for (const Ref<Storage>& storage : tensors.storages()) {
    if (storage->device() != device || storage->bytes() < kMinMovedBytes || !storage->can_release_bytes()) continue;
    const uint32_t known = references[storage.get()] + 1 + download_states_->references(*storage);
    if (storage->ref_count() == known) {
      movable.push_back(storage);
    } else {
      *in_use = true;
    }
  }
  // What other threads did before they dropped their references happens before the bytes are freed.
  std::atomic_thread_fence(std::memory_order_acquire);
  return movable;
}

uint64_t Session::offload(Device device, uint64_t wanted, bool* in_use) {
  if (!offload_ || !offload_->accepts(device)) return 0;
  *in_use = true;
  if (!execution_mutex_.try_lock()) return 0;
  const MutexLock execution(execution_mutex_, std::adopt_lock);
  if (!mutex_.try_lock()) return 0;
  const MutexLock lock(mutex_, std::adopt_lock);
  *in_use = false;
  // While the session is held, an image is being written.
  if (has_ended() || is_held_.load(std::memory_order_acquire) || is_parked()) return 0;
  const auto now = std::chrono::steady_clock::now();
  if (now < failed_offload_.until && executed() == failed_offload_.executed) return 0;
  failed_offload_ = {executed(), now + kRetryInterval};
  const CancellationScope no_cancellation(nullptr);  // the thread's is that of another session
  const ContextScope context(&context_);
  try {
    context_.finish_device_work();
    store_async_errors();
    if (!unsaved(context_).empty()) return 0;
    const uint64_t freed = offload_->move_out(movable(device, in_use), wanted);
    if (freed != 0 || *in_use) failed_offload_ = {};
    return freed;
  } catch (const std::exception& error) {
    options_.offload->failures.fetch_add(1, std::memory_order_relaxed);
    log_failures().warn(absl::StrCat("session ", id(), " is idle, but its tensors cannot leave ", to_string(device),
                                     ": ", error.what()),
                        {id(), principal()});
    return 0;
  }
}

void Session::bring_back() {
  const Cancellation::Pause pause;  // the time does not count towards the frame's limit
  const ContextScope context(&context_);
  const uint64_t bytes = offloaded_bytes();
  unreturned_ = nullptr;
  failed_offload_ = {};
  ErrorKind kind = ErrorKind::kOutOfMemory;
  std::string reason;
  try {
    check(!context_.capturing(), "a graph is being captured");
    offload_->bring_back();
  } catch (const Error& error) {
    kind = error.kind();
    reason = error.message();
  } catch (const std::bad_alloc&) {
    reason = "out of memory on the host";
  }
  if (!reason.empty()) {
    const auto error = std::const_pointer_cast<Poison>(
        make_poison(kind,
                    absl::StrCat("[offload] the tensors of this session were offloaded (", bytes_text(bytes),
                                 ") while it was idle, and cannot return now: ", reason),
                    "offload", 0));
    error->keeps_targets = true;
    unreturned_ = error;
    log_failures().warn(absl::StrCat("session ", id(), ": offloaded tensors cannot return: ", reason),
                        {id(), principal()});
  }
  executor_.set_unavailable(unreturned_);
}

void Session::drop_released() {
  offload_->drop_unused();
  if (offload_->any()) return;
  unreturned_ = nullptr;
  executor_.set_unavailable(nullptr);
}

// Returns the error that makes `value` unreadable; nothing if it is readable.
std::optional<v1::Error> Session::error_of(const SlotValue& value, bool meta_only) {
  if (value.poison) return to_wire(*value.poison);
  if (!value.tensor) return to_wire(Error(ErrorKind::kRuntime, "the operator returned no tensor for this result"));
  const Device device = value.tensor.device();
  if (meta_only) return std::nullopt;
  if (device.type == DeviceType::kMeta) {
    return to_wire(Error(ErrorKind::kNotImplemented,
                         absl::StrCat("cannot read a tensor on ", to_string(device), ": it has no data")));
  }
  const Storage& storage = *value.tensor->storage;
  if (storage.data() != nullptr || storage.bytes() == 0 || !unreturned_) [[likely]]
    return std::nullopt;
  return to_wire(*unreturned_);
}

}  // namespace tt::server
