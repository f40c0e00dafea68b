#include "engine/tensor/storage.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/mutex.h"
#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

[[noreturn]] void over_budget(const Account& account, Device device, size_t bytes) {
  Error error(ErrorKind::kOutOfMemory, absl::StrCat("out of memory on ", to_string(device), ": requested ",
                                                    bytes_text(bytes), "; ", account.refusal(bytes, device)));
  error.set_op("allocate");
  throw error;
}

}  // namespace

// Bytes that storages of several sessions refer to, and the accounts that are charged for them. Thread-safe.
class SharedBytes final : public RefCounted {
 public:
  // Takes over bytes for which `account` is charged.
  SharedBytes(void* data, size_t bytes, Device device, Allocator& allocator, std::shared_ptr<Account> account)
      : data_(data), bytes_(bytes), device_(device), allocator_(allocator) {
    tenant_ = account ? account->tenant() : kNoTenant;
    holders_.push_back({std::move(account), 1});
  }
  ~SharedBytes() override { allocator_.deallocate(data_, bytes_, tenant_); }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  // Charges the account if it has no other storage over the bytes. Throws Error(kOutOfMemory).
  void add_holder(const std::shared_ptr<Account>& account) {
    MutexLock lock(mutex_);
    for (Holder& holder : holders_) {
      if (holder.account != account) continue;
      ++holder.storages;
      return;
    }
    if (account) {
      const uint32_t site = AllocScope::current().site;
      MemoryHistory* const history = account->history();
      if (!account->charge(bytes_, device_, part_of(*account))) {
        if (history) history->out_of_memory(bytes_, device_, site);
        over_budget(*account, device_, bytes_);
      }
      if (history) history->allocated(data_, bytes_, device_, site);
    }
    // Bytes that several tenants can write are zeroed before any of them gets the memory again.
    if (!account || account->tenant() != tenant_) tenant_ = kNoTenant;
    holders_.push_back({account, 1});
  }

  void remove_holder(const std::shared_ptr<Account>& account) {
    MutexLock lock(mutex_);
    const auto holder =
        std::find_if(holders_.begin(), holders_.end(), [&](const Holder& each) { return each.account == account; });
    if (--holder->storages > 0) return;
    holders_.erase(holder);
    if (account) {
      if (account->history()) account->history()->freed(data_, bytes_, device_);
      account->refund(bytes_, device_, part_of(*account));
    }
    if (!holders_.empty() && holders_.front().account) allocator_.set_owner(data_, holders_.front().account);
  }
  size_t num_holders() {
    MutexLock lock(mutex_);
    return holders_.size();
  }

  bool is_read_only() const { return read_only_.load(std::memory_order_acquire); }
  void freeze() { read_only_.store(true, std::memory_order_release); }

 private:
  struct Holder {
    std::shared_ptr<Account> account;
    size_t storages;
  };

  // Whether the account's quota pays for the bytes through another holder. `account` is not a holder.
  Account::QuotaPart part_of(const Account& account) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool is_paid = account.quota() && std::any_of(holders_.begin(), holders_.end(), [&](const Holder& each) {
                           return each.account && each.account->quota() == account.quota();
                         });
    return is_paid ? Account::QuotaPart::kPaid : Account::QuotaPart::kCharged;
  }

  void* const data_;
  const size_t bytes_;
  const Device device_;
  Allocator& allocator_;
  std::atomic<bool> read_only_{false};
  Mutex mutex_;
  Tenant tenant_ = kNoTenant;  // written under the mutex
  absl::InlinedVector<Holder, 2> holders_ ABSL_GUARDED_BY(mutex_);
};

Storage::Storage(Device device, size_t bytes) : bytes_(bytes), device_(device) {
  if (device.type == DeviceType::kMeta || bytes == 0) return;
  Stream* stream = device.type == DeviceType::kCPU ? nullptr : &AllocScope::current().stream(device);
  allocate(Devices::instance().allocator(device), stream);
}

Storage::Storage(Allocator& staging, size_t bytes) : bytes_(bytes) {
  if (bytes > 0) allocate(staging, nullptr);
}

void Storage::allocate(Allocator& allocator, Stream* stream) {
  const AllocScope& scope = AllocScope::current();
  const std::shared_ptr<Account>& account = scope.account;
  MemoryHistory* const history = account ? account->history() : nullptr;
  if (account && !account->charge(bytes_, device_)) [[unlikely]] {
    Devices::instance().forget(account->tenant());  // what caches keep for the session makes room
    if (!account->charge(bytes_, device_)) {
      if (history) history->out_of_memory(bytes_, device_, scope.site);
      over_budget(*account, device_, bytes_);
    }
  }
  const auto allocate = [&] {
    data_ = allocator.allocate(bytes_, {stream, account ? account->tenant() : kNoTenant, &account, scope.site});
  };
  try {
    try {
      allocate();
    } catch (const Error& e) {
      if (!account || e.kind() != ErrorKind::kOutOfMemory) throw;
      const uint64_t before = allocator.stats().all.allocated.now;
      Devices::instance().forget(account->tenant());
      if (allocator.stats().all.allocated.now >= before) throw;
      allocate();
    }
  } catch (Error& e) {
    if (!account) throw;
    if (history) history->out_of_memory(bytes_, device_, scope.site);
    account->refund(bytes_, device_);
    e.append(absl::StrCat("; ", account->owner(), " holds ", bytes_text(account->held()), " in total"));
    throw;
  }
  allocator_ = &allocator;
  account_ = account;
  if (history) [[unlikely]]
    history->allocated(data_, bytes_, device_, scope.site);
}

void Storage::release_bytes() {
  delete packed_weights_.exchange(nullptr, std::memory_order_acq_rel);
  allocator_->deallocate(std::exchange(data_, nullptr), bytes_, account_ ? account_->tenant() : kNoTenant);
}

void Storage::allocate_bytes() {
  const AllocScope& scope = AllocScope::current();
  Stream* stream = device_.type == DeviceType::kCPU ? nullptr : &AllocScope::current().stream(device_);
  data_ = allocator_->allocate(bytes_, {stream, account_ ? account_->tenant() : kNoTenant, &account_, scope.site});
}

Storage::Storage(Ref<SharedBytes> bytes, const std::shared_ptr<Account>& account)
    : data_(bytes->data()),
      bytes_(bytes->bytes()),
      device_(bytes->device()),
      shared_(!bytes->is_read_only()),
      read_only_(bytes->is_read_only()),
      account_(account) {
  bytes->add_holder(account);
  shared_bytes_ = std::move(bytes);
}

void Storage::share() {
  make_shareable();
  if (!read_only_) shared_.store(true, std::memory_order_release);
}

void Storage::freeze() {
  make_shareable();
  read_only_ = true;
  if (shared_bytes_) shared_bytes_->freeze();
}

void Storage::make_shareable() {
  if (!allocator_) return;
  shared_bytes_ = make_ref<SharedBytes>(data_, bytes_, device_, *allocator_, account_);
  allocator_ = nullptr;
}

size_t Storage::num_holders() const { return shared_bytes_ ? shared_bytes_->num_holders() : 0; }

Ref<Storage> Storage::over(const Ref<Storage>& shared, const std::shared_ptr<Account>& account) {
  if (shared->account_ && shared->account_ == account) return shared;
  if (shared->bytes_ == 0) return Ref<Storage>(new Storage(shared->device_, 0));
  check(bool(shared->shared_bytes_), "[storage] expected a storage that its session has shared");
  return Ref<Storage>(new Storage(shared->shared_bytes_, account));
}

Storage::~Storage() {
  delete packed_weights_.load(std::memory_order_acquire);
  if (shared_bytes_) {
    shared_bytes_->remove_holder(account_);
    return;
  }
  // Recorded before another thread can get the memory.
  if (account_ && account_->history() && allocator_) [[unlikely]]
    account_->history()->freed(data_, bytes_, device_);
  if (allocator_) allocator_->deallocate(data_, bytes_, account_ ? account_->tenant() : kNoTenant);
  if (account_) account_->refund(bytes_, device_);
}

PackedWeights& Storage::packed_weights(absl::FunctionRef<std::unique_ptr<PackedWeights>()> make) {
  if (PackedWeights* there = packed_weights_.load(std::memory_order_acquire)) return *there;
  std::unique_ptr<PackedWeights> made = make();
  PackedWeights* expected = nullptr;
  if (!packed_weights_.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return *expected;
  return *made.release();
}

}  // namespace tt
