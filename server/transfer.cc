#include "server/transfer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/cancellation.h"
#include "engine/context.h"
#include "engine/devices.h"
#include "server/convert.h"

namespace tt::server {
namespace {

// A taken transfer may be sent again by a client that lost the answer; only the last few can be.
constexpr size_t kRemembered = 1024;
// How often an instruction that waits looks whether its frame was cancelled.
constexpr std::chrono::milliseconds kGlance{20};

thread_local Transfers* current_transfers = nullptr;

}  // namespace

absl::StatusOr<std::unique_ptr<Upload>> Transfers::begin(uint64_t transfer, uint64_t bytes, Device device) {
  if (transfer == 0) return absl::InvalidArgumentError("a transfer's number is not 0");
  const bool exists = device.type != DeviceType::kMeta && Devices::instance().has(device);
  if (!exists) return absl::InvalidArgumentError(absl::StrCat("this engine has no device ", to_string(device)));
  if (bytes > INT64_MAX) return absl::InvalidArgumentError(absl::StrCat("absurd size, got ", bytes, " bytes"));
  std::unique_lock lock(mutex_);
  if (closed_) return absl::FailedPreconditionError("the session has ended");
  auto found = entries_.find(transfer);
  bool known = found != entries_.end();
  if (was_taken(transfer) || (known && found->second.state == State::kComplete)) {
    return std::unique_ptr<Upload>(new Upload(shared_from_this(), transfer, nullptr, bytes));
  }
  if (known && found->second.state == State::kArriving) {
    return absl::AlreadyExistsError(absl::StrCat("transfer ", transfer, " is under way"));
  }
  if (!known && entries_.size() >= max_transfers_) {
    return absl::ResourceExhaustedError(absl::StrCat("at most ", max_transfers_, " transfers wait at a time"));
  }
  entries_[transfer] = Entry{State::kArriving, {}, Clock::now(), std::nullopt};
  lock.unlock();  // allocating may take the kernel a while
  Ref<Storage> storage;
  std::optional<Error> refusal;
  try {
    storage = lane_->allocate(device, bytes);
  } catch (const Error& error) {
    refusal = error;
  }
  lock.lock();
  if (closed_) return absl::FailedPreconditionError("the session has ended");
  if (refusal) return refuse(transfer, *refusal);
  entries_[transfer].arrival.storage = storage;
  if (bytes == 0) entries_[transfer].state = State::kComplete;
  changed_.notify_all();
  return std::unique_ptr<Upload>(new Upload(shared_from_this(), transfer, std::move(storage), bytes));
}

absl::Status Transfers::refuse(uint64_t transfer, const Error& error) {
  entries_[transfer] = Entry{State::kRefused, {}, Clock::now(), error};
  changed_.notify_all();
  return to_status(error);
}

absl::Status Transfers::failed(uint64_t transfer, const Error& error) {
  std::lock_guard lock(mutex_);
  return entries_.contains(transfer) ? refuse(transfer, error) : to_status(error);
}

Transfers::Arrival Transfers::take(uint64_t transfer, uint64_t bytes, Device device) {
  auto began = Clock::now();
  const Cancellation::Pause pause;  // the client's time, not the frame's
  std::unique_lock lock(mutex_);
  for (;;) {
    if (cancel_requested()) {  // bytes that come later are of no use
      entries_.erase(transfer);
      remember_taken(transfer);
      check_cancelled();
    }
    check(!closed_, "the session ended while its transfer ", transfer, " was awaited");
    auto found = entries_.find(transfer);
    Entry* entry = found == entries_.end() ? nullptr : &found->second;
    if (entry != nullptr && entry->state == State::kComplete) {
      Arrival arrival = std::move(entry->arrival);
      entries_.erase(found);
      remember_taken(transfer);
      check_as(ErrorKind::kValue, arrival.storage->bytes() == bytes, "transfer ", transfer, " has ",
               arrival.storage->bytes(), " bytes, the tensor takes ", bytes);
      check_as(ErrorKind::kValue, arrival.storage->device() == device, "transfer ", transfer, " was sent to ",
               arrival.storage->device(), ", the tensor is on ", device);
      return arrival;
    }
    check(!was_taken(transfer), "transfer ", transfer, " was taken already");
    if (entry != nullptr && entry->state == State::kRefused) {
      Error refusal = *entry->refusal;
      entries_.erase(found);
      throw refusal;
    }
    auto until = deadline(entry, began);
    if (Clock::now() >= until) {
      entries_.erase(transfer);
      fail(ErrorKind::kRuntime, "transfer ", transfer, " did not arrive");
    }
    changed_.wait_until(lock, std::min(until, Clock::now() + kGlance));
  }
}

void Transfers::close() {
  absl::flat_hash_map<uint64_t, Entry> dropped;
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(entries_);
  changed_.notify_all();
}

bool Transfers::moved(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(transfer);
  if (closed_ || found == entries_.end()) return false;
  found->second.moved = Clock::now();
  return true;
}

bool Transfers::completed(uint64_t transfer, std::shared_ptr<Event> landed) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(transfer);
  if (closed_ || found == entries_.end()) return false;
  found->second.state = State::kComplete;
  found->second.arrival.landed = std::move(landed);
  changed_.notify_all();
  return true;
}

void Transfers::broke_off(uint64_t transfer) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(transfer);
  if (found == entries_.end() || found->second.state != State::kArriving) return;
  found->second = Entry{State::kBroken, {}, Clock::now(), std::nullopt};
  changed_.notify_all();
}

bool Transfers::was_taken(uint64_t transfer) const {
  return std::find(taken_.begin(), taken_.end(), transfer) != taken_.end();
}

void Transfers::remember_taken(uint64_t transfer) {
  taken_.push_back(transfer);
  if (taken_.size() > kRemembered) taken_.pop_front();
}

Transfers::Clock::time_point Transfers::deadline(const Entry* entry, Clock::time_point began) const {
  if (entry == nullptr) return began + patience_.progress;
  return std::max(began, entry->moved) + (entry->state == State::kBroken ? patience_.again : patience_.progress);
}

Upload::~Upload() {
  if (storage_ && left() != 0) {
    writer_ = nullptr;
    storage_ = nullptr;  // first: who waits for it to be gone sees it gone
    owner_->broke_off(transfer_);
  }
}

absl::Status Upload::check_room(absl::Span<const char> bytes) const {
  if (bytes.size() <= left()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the transfer has ", bytes_, " bytes, got more"));
}

absl::Status Upload::append(absl::Span<const char> bytes) {
  if (absl::Status status = check_room(bytes); !status.ok()) return status;
  if (!storage_) {
    done_ += bytes.size();
    return absl::OkStatus();
  }
  try {
    write(bytes);
    return moved(bytes.size(), writer_ && bytes.size() == left() ? writer_->finish() : nullptr);
  } catch (const Error& error) {
    return fail(error);
  }
}

std::optional<Device> Upload::device() const {
  const bool elsewhere = storage_ && storage_->device().type != DeviceType::kCPU;
  return elsewhere ? std::optional(storage_->device()) : std::nullopt;
}

absl::StatusOr<std::shared_ptr<Event>> Upload::append_in_place(absl::Span<const char> bytes) {
  if (absl::Status status = check_room(bytes); !status.ok()) return status;
  std::shared_ptr<Event> landed;
  try {
    owner_->lane_->with_stream(storage_->device(), [&](Stream& stream) {
      stream.copy(static_cast<char*>(storage_->data()) + done_, bytes.data(), bytes.size());
      landed = stream.record();
    });
    absl::Status status = moved(bytes.size(), landed);
    if (status.ok()) return landed;
    landed->synchronize();  // the caller learns of no event
    return status;
  } catch (const Error& error) {
    return fail(error);
  }
}

// Requires that no more of them come than there is room for.
absl::Status Upload::moved(size_t bytes, std::shared_ptr<Event> landed) {
  done_ += bytes;
  const bool wanted = left() == 0 ? owner_->completed(transfer_, std::move(landed)) : owner_->moved(transfer_);
  return wanted ? absl::OkStatus() : absl::CancelledError("nobody waits for the transfer");
}

void Upload::write(absl::Span<const char> bytes) {
  if (bytes.empty()) return;
  if (storage_->device().type == DeviceType::kCPU) {
    std::memcpy(static_cast<char*>(storage_->data()) + done_, bytes.data(), bytes.size());
    return;
  }
  if (!writer_) writer_ = std::make_unique<DeviceWriter>(owner_->lane_, storage_);
  writer_->write(bytes);
}

TransfersScope::TransfersScope(Transfers* transfers) : saved_(std::exchange(current_transfers, transfers)) {}
TransfersScope::~TransfersScope() { current_transfers = saved_; }

void uploaded(Call& call) {
  check(current_transfers != nullptr, "there is no session to upload through");
  check_as(ErrorKind::kNotImplemented, !call.into, "an upload makes a new tensor");
  TensorMeta meta = call.inferred.outputs[0];
  meta.strides = contiguous_strides(meta.sizes);
  uint64_t bytes = item_size(meta.dtype);
  for (int64_t size : meta.sizes) {
    check_as(ErrorKind::kValue, size >= 0 && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes),
             "absurd sizes, got ", to_string(meta.sizes));
  }
  auto [storage, landed] = current_transfers->take(static_cast<uint64_t>(call.args[0].integer), bytes, meta.device);
  if (landed) {
    Stream& stream = Context::current().stream(meta.device);
    stream.wait(*landed);
    Devices::instance().allocator(meta.device).record_stream(storage->data(), stream);
  }
  call.outputs.resize(1);
  call.outputs[0] = Tensor(new TensorImpl(std::move(meta), std::move(storage)));
}

}  // namespace tt::server
