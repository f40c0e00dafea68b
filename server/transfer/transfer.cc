#include "server/transfer/transfer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cancellation.h"
#include "engine/device/devices.h"
#include "engine/session/context.h"
#include "engine/session/image.h"
#include "server/convert.h"

namespace tt::server {
namespace {

// Number of taken transfers that are remembered. A client that lost the reply may send such a transfer again.
constexpr size_t kRemembered = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<Upload>> Transfers::begin(uint64_t transfer, uint64_t bytes, Device device, bool resume,
                                                         std::string digest,
                                                         absl::FunctionRef<MemoryWait()> wait_for_memory) {
  if (transfer == 0) return absl::InvalidArgumentError("expected a nonzero transfer number, got 0");
  auto upload_into = [&](EntryPtr entry, Ref<Storage> storage, uint64_t received,
                         std::unique_ptr<Sha256> hash = nullptr) {
    if (!digest.empty() && received == 0) hash = std::make_unique<Sha256>();
    return std::unique_ptr<Upload>(new Upload(shared_from_this(), std::move(entry), std::move(storage), bytes, received,
                                              std::move(digest), std::move(hash)));
  };
  const auto entry = std::make_shared<Entry>(transfer);
  MutexLock lock(mutex_);
  if (closed_) return absl::FailedPreconditionError("the session has ended");
  drop_expired_locked();
  const bool exists = device.type != DeviceType::kMeta && Devices::instance().has(device);
  if (!exists) return reject(transfer, absl::StrCat("this engine has no device ", to_string(device)));
  if (bytes > INT64_MAX) return reject(transfer, absl::StrCat("expected a size below 2^63, got ", bytes, " bytes"));
  auto found = entries_.find(transfer);
  const EntryPtr known = found == entries_.end() ? nullptr : found->second;
  if (was_taken(transfer) || (known && known->state == State::kComplete)) {
    return upload_into(nullptr, nullptr, resume ? bytes : 0);
  }
  if (known && known->state == State::kArriving) {
    return absl::AlreadyExistsError(absl::StrCat("transfer ", transfer, " is in progress"));
  }
  // The transfer for which the session waits is always accepted: the others may all come after it.
  if (!known && transfer != awaited_ && entries_.size() >= max_transfers_) {
    return absl::AbortedError(absl::StrCat("the session already has ", max_transfers_, " pending transfers"));
  }
  entries_[transfer] = entry;
  if (known && known->upload.storage) {
    Ref<Storage> kept = std::move(known->upload.storage);
    if (kept->bytes() == bytes && kept->device() == device) {
      entry->upload.storage = kept;
      wake_up_->notify();
      std::unique_ptr<Sha256> hash = digest.empty() ? nullptr : std::move(known->hash);
      if (!digest.empty() && !hash) resume = false;  // the earlier call had no digest
      return upload_into(entry, std::move(kept), resume ? known->received : 0, std::move(hash));
    }
  }
  Ref<Storage> storage;
  std::optional<Error> refusal;
  bool is_cancelled = false;
  for (bool is_last = transfer == awaited_;; is_last = is_last || transfer == awaited_) {
    refusal.reset();
    MutexUnlock unlocked(mutex_);  // the kernel may take long to allocate
    try {
      storage = copy_stream_->allocate(device, bytes);
    } catch (const Error& error) {
      refusal = error;
    }
    // Frames before the transfer's instruction may release memory, so only the refusal at its turn is final.
    if (!refusal || refusal->kind() != ErrorKind::kOutOfMemory || is_last) break;
    const MemoryWait waited = wait_for_memory();
    is_last = waited == MemoryWait::kNoMore;
    is_cancelled = waited == MemoryWait::kCancelled;
    if (is_cancelled) break;
  }
  if (closed_) return absl::FailedPreconditionError("the session has ended");
  // The instruction failed or was cancelled meanwhile. The bytes are received and dropped, as if it had been before.
  if (!is_current(entry)) return upload_into(nullptr, nullptr, resume ? bytes : 0);
  if (is_cancelled) {
    entries_.erase(transfer);
    return absl::CancelledError("the upload was cancelled");
  }
  if (refusal) return refuse(entry, *refusal);
  entry->upload.storage = storage;
  if (bytes == 0) entry->state = State::kComplete;
  wake_up_->notify();
  return upload_into(entry, std::move(storage), 0);
}

bool Transfers::is_current(const EntryPtr& entry) const {
  auto found = entries_.find(entry->transfer);
  return found != entries_.end() && found->second == entry;
}

absl::Status Transfers::reject(uint64_t transfer, const std::string& message) {
  const bool has_room = transfer == awaited_ || entries_.size() < max_transfers_;
  if (!entries_.contains(transfer) && !was_taken(transfer) && has_room) {
    const auto entry = entries_[transfer] = std::make_shared<Entry>(transfer);
    refuse(entry, Error(ErrorKind::kValue, message)).IgnoreError();
  }
  return absl::InvalidArgumentError(message);
}

absl::Status Transfers::refuse(const EntryPtr& entry, const Error& error) {
  entry->state = State::kRefused;
  entry->upload = {};
  entry->refusal = error;
  wake_up_->notify();
  return to_status(error);
}

absl::Status Transfers::failed(const EntryPtr& entry, const Error& error) {
  MutexLock lock(mutex_);
  return entry && is_current(entry) ? refuse(entry, error) : to_status(error);
}

class Transfers::AwaitedTransfer final : public Suspension {
 public:
  AwaitedTransfer(std::shared_ptr<Transfers> owner, uint64_t transfer)
      : owner_(std::move(owner)), transfer_(transfer) {}
  bool ready() override {
    MutexLock lock(owner_->mutex_);
    return owner_->can_be_taken(transfer_);
  }
  TimePoint deadline() override {
    MutexLock lock(owner_->mutex_);
    return owner_->deadline(transfer_);
  }

 private:
  const std::shared_ptr<Transfers> owner_;
  const uint64_t transfer_;
};

bool Transfers::can_be_taken(uint64_t transfer) const {
  if (closed_ || was_taken(transfer) || Clock::now() >= deadline(transfer)) return true;
  auto found = entries_.find(transfer);
  return found != entries_.end() &&
         (found->second->state == State::kComplete || found->second->state == State::kRefused);
}

// Removes the transfer. Its bytes that arrive later are dropped.
void Transfers::abandon(uint64_t transfer) {
  entries_.erase(transfer);
  remember_taken(transfer);
}

Transfers::CompletedUpload Transfers::take(uint64_t transfer, uint64_t bytes, Device device) {
  MutexLock lock(mutex_);
  if (awaited_ != transfer) {
    awaited_ = transfer;
    awaited_since_ = Clock::now();
  }
  if (cancel_requested()) {
    abandon(transfer);
    check_cancelled();
  }
  if (!can_be_taken(transfer)) throw Suspended{std::make_shared<AwaitedTransfer>(shared_from_this(), transfer)};
  awaited_ = 0;
  check(ErrorKind::kConnection, !closed_, "the session ended while transfer ", transfer, " was pending");
  auto found = entries_.find(transfer);
  const EntryPtr entry = found == entries_.end() ? nullptr : found->second;
  if (entry && entry->state == State::kComplete) {
    CompletedUpload upload = std::move(entry->upload);
    abandon(transfer);
    check(ErrorKind::kValue, upload.storage->bytes() == bytes, "transfer ", transfer, " has ", upload.storage->bytes(),
          " bytes, but the tensor has ", bytes);
    check(ErrorKind::kValue, upload.storage->device() == device, "transfer ", transfer, " was sent to ",
          upload.storage->device(), ", but the tensor is on ", device);
    return upload;
  }
  check(!was_taken(transfer), "transfer ", transfer, " was already taken");
  if (entry && entry->state == State::kRefused) {
    entries_.erase(transfer);
    throw Error(*entry->refusal);
  }
  abandon(transfer);
  fail(ErrorKind::kRuntime, "transfer ", transfer, " did not arrive");
}

void Transfers::close() {
  absl::flat_hash_map<uint64_t, EntryPtr> dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  released_.notify_all();
  dropped.swap(entries_);
  wake_up_->notify();
}

bool Transfers::on_progress(const EntryPtr& entry) {
  MutexLock lock(mutex_);
  if (closed_ || !is_current(entry)) return false;
  entry->last_progress = Clock::now();
  return true;
}

void Transfers::hold(bool held) {
  MutexLock lock(mutex_);
  held_ = held;
  if (!held) released_.notify_all();
}

void Transfers::write_image(ImageTensors* tensors, ImageOutput* out) {
  MutexLock lock(mutex_);
  std::vector<const Entry*> waiting;
  for (const auto& [transfer, entry] : entries_) {
    if (entry->state == State::kComplete || entry->state == State::kRefused) waiting.push_back(entry.get());
  }
  out->number(waiting.size());
  for (const Entry* entry : waiting) {
    out->number(entry->transfer);
    out->flag(entry->state == State::kRefused);
    if (entry->state == State::kRefused) {
      out->number(static_cast<uint64_t>(entry->refusal->kind()));
      out->text(entry->refusal->message());
      continue;
    }
    if (entry->upload.copied) entry->upload.copied->synchronize();
    TensorMeta bytes;
    bytes.dtype = DType::kUInt8;
    bytes.device = entry->upload.storage->device();
    bytes.sizes = {static_cast<int64_t>(entry->upload.storage->bytes())};
    bytes.strides = {1};
    out->number(tensors->number(Tensor(new TensorImpl(bytes, entry->upload.storage))));
  }
  out->number(taken_.size());
  for (uint64_t transfer : taken_) out->number(transfer);
}

void Transfers::read_image(ImageInput* in, const ImageObjects& objects) {
  MutexLock lock(mutex_);
  for (size_t count = in->count(); count > 0; --count) {
    const uint64_t transfer = in->number();
    const auto entry = entries_[transfer] = std::make_shared<Entry>(transfer);
    if (in->flag()) {
      const auto kind = static_cast<ErrorKind>(in->number(static_cast<uint64_t>(ErrorKind::kPermission)));
      entry->state = State::kRefused;
      entry->refusal = Error(kind, in->text());
    } else {
      entry->state = State::kComplete;
      entry->upload.storage = objects.defined_tensor(in)->storage;
    }
  }
  for (size_t count = in->count(); count > 0; --count) remember_taken(in->number());
}

bool Transfers::on_complete(const EntryPtr& entry, std::shared_ptr<Event> copied) {
  MutexLock lock(mutex_);
  released_.wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_ || closed_; });
  if (closed_ || !is_current(entry)) return false;
  entry->state = State::kComplete;
  entry->upload.copied = std::move(copied);
  wake_up_->notify();
  return true;
}

void Transfers::on_broken(const EntryPtr& entry, Ref<Storage> storage, uint64_t received,
                          std::unique_ptr<Sha256> hash) {
  {
    MutexLock lock(mutex_);
    if (closed_ || !is_current(entry) || entry->state != State::kArriving) return;
    entry->state = State::kBroken;
    entry->upload.storage = std::move(storage);
    entry->received = received;
    entry->hash = std::move(hash);
    entry->last_progress = Clock::now();
    wake_up_->notify();
  }
  if (auto monitor = monitor_.lock()) monitor->expire_at(Clock::now() + timeouts_.resume, weak_from_this());
}

void Transfers::drop_expired() {
  MutexLock lock(mutex_);
  drop_expired_locked();
}

// The entry is kept longer than its bytes, so that a late `uploaded` instruction fails without waiting.
void Transfers::drop_expired_locked() {
  const Clock::time_point now = Clock::now();
  absl::erase_if(entries_, [&](const auto& item) {
    Entry& entry = *item.second;
    if (entry.state != State::kBroken || now - entry.last_progress < timeouts_.resume) return false;
    entry.upload.storage = nullptr;
    entry.received = 0;
    return now - entry.last_progress >= timeouts_.resume + timeouts_.progress;
  });
}

void Transfers::remember_taken(uint64_t transfer) {
  taken_.push_back(transfer);
  if (taken_.size() > kRemembered) taken_.pop_front();
}

bool Transfers::was_taken(uint64_t transfer) const {
  return std::find(taken_.begin(), taken_.end(), transfer) != taken_.end();
}

Transfers::Clock::time_point Transfers::deadline(uint64_t transfer) const {
  auto found = entries_.find(transfer);
  const Entry* entry = found == entries_.end() ? nullptr : found->second.get();
  if (entry == nullptr) return awaited_since_ + timeouts_.progress;
  return std::max(awaited_since_, entry->last_progress) +
         (entry->state == State::kBroken ? timeouts_.resume : timeouts_.progress);
}

Upload::~Upload() {
  if (!storage_ || left() == 0) return;
  bool keep = !discarded_ && done_ != 0;
  if (writer_ && keep) {
    try {
      writer_->finish();
    } catch (const Error&) {  // the device is lost
      keep = false;
    }
  }
  writer_ = nullptr;
  if (!keep) storage_ = nullptr;  // before on_broken(), which wakes a thread that expects the memory to be free
  owner_->on_broken(entry_, std::move(storage_), keep ? done_ : 0, keep ? std::move(hash_) : nullptr);
}

absl::Status Upload::check_size(absl::Span<const char> bytes) const {
  if (bytes.size() <= left()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the transfer has ", bytes_, " bytes, got more"));
}

absl::Status Upload::append(absl::Span<const char> bytes) {
  if (absl::Status status = check_size(bytes); !status.ok()) return status;
  if (!storage_) {
    done_ += bytes.size();
    return absl::OkStatus();
  }
  if (bytes.empty()) return absl::OkStatus();
  try {
    write(bytes, done_);
    if (absl::Status status = check_digest(bytes); !status.ok()) return status;
    return advance(bytes.size(), writer_ && bytes.size() == left() ? writer_->finish() : nullptr);
  } catch (const Error& error) {
    return fail(error);
  }
}

// Hashes the next bytes. If they are the last ones, checks the digest and adds the content.
absl::Status Upload::check_digest(absl::Span<const char> bytes) {
  if (!hash_) return absl::OkStatus();
  hash_->update(bytes);
  if (bytes.size() != left()) return absl::OkStatus();
  const bool matches = hash_->finish() == digest_;
  hash_ = nullptr;
  if (!matches) return absl::InvalidArgumentError("the bytes of the transfer do not have the announced SHA-256");
  add_content();
  return absl::OkStatus();
}

// Called before the upload is complete, when no instruction can have written to the storage.
void Upload::add_content() {
  if (storage_->device().type == DeviceType::kCPU) owner_->contents_->add(digest_, storage_);
}

bool Upload::copy_from(const Storage& source) {
  if (!storage_ || !hash_ || done_ != 0 || source.bytes() != bytes_ || bytes_ == 0) return false;
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  std::string piece;  // hashed and written, so that both see the same bytes
  Sha256 hash;
  try {
    for (uint64_t at = 0; at < bytes_; at += piece.size()) {
      piece.assign(static_cast<const char*>(source.data()) + at, std::min(kPieceBytes, bytes_ - at));
      hash.update(piece);
      write(piece, at);
      if (!owner_->on_progress(entry_)) return false;
    }
    if (hash.finish() == digest_) {
      add_content();
      return advance(bytes_, writer_ ? writer_->finish() : nullptr).ok();
    }
  } catch (const Error& error) {
    fail(error).IgnoreError();
    return false;
  }
  writer_ = nullptr;  // the bytes are written again from the start
  return false;
}

std::optional<Device> Upload::device() const {
  const bool on_device = storage_ && storage_->device().type != DeviceType::kCPU;
  return on_device ? std::optional(storage_->device()) : std::nullopt;
}

absl::StatusOr<std::shared_ptr<Event>> Upload::append_in_place(absl::Span<const char> bytes) {
  if (absl::Status status = check_size(bytes); !status.ok()) return status;
  std::shared_ptr<Event> copied;
  try {
    owner_->copy_stream_->with_stream(storage_->device(), [&](Stream& stream) {
      stream.copy(static_cast<char*>(storage_->data()) + done_, bytes.data(), bytes.size());
      copied = stream.record();
    });
    absl::Status status = advance(bytes.size(), copied);
    if (status.ok()) return copied;
    copied->synchronize();  // the caller does not receive the event
    return status;
  } catch (const Error& error) {
    return fail(error);
  }
}

// Requires that `bytes` is at most left().
absl::Status Upload::advance(size_t bytes, std::shared_ptr<Event> copied) {
  done_ += bytes;
  const bool needed = left() == 0 ? owner_->on_complete(entry_, std::move(copied)) : owner_->on_progress(entry_);
  return needed ? absl::OkStatus() : absl::CancelledError("the transfer is no longer needed");
}

void Upload::write(absl::Span<const char> bytes, uint64_t at) {
  if (storage_->device().type == DeviceType::kCPU) {
    std::memcpy(static_cast<char*>(storage_->data()) + at, bytes.data(), bytes.size());
    return;
  }
  if (!writer_) writer_ = std::make_unique<DeviceWriter>(owner_->copy_stream_, storage_, at);
  writer_->write(bytes);
}

void uploaded(Call& call) {
  auto* service = Context::current().services.find<TransferService>();
  check(service != nullptr, "an upload requires a session");
  check(ErrorKind::kNotImplemented, !call.into, "an upload creates a new tensor and does not accept existing results");
  TensorMeta meta = call.inferred.outputs[0];
  meta.strides = contiguous_strides(meta.sizes);
  uint64_t bytes = item_size(meta.dtype);
  for (int64_t size : meta.sizes) {
    check(ErrorKind::kValue, size >= 0 && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes),
          "expected sizes of at least 0 whose bytes fit in 64 bits, got ", to_string(meta.sizes));
  }
  auto [storage, copied] = service->transfers().take(static_cast<uint64_t>(call.args[0].integer), bytes, meta.device);
  if (copied) {
    Stream& stream = Context::current().stream(meta.device);
    stream.wait(*copied);
    Devices::instance().allocator(meta.device).record_stream(storage->data(), stream);
  }
  call.outputs.resize(1);
  call.outputs[0] = Tensor(new TensorImpl(meta, std::move(storage)));
}

}  // namespace tt::server
