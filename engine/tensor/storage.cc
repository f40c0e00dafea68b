#include "engine/tensor/storage.h"

#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

[[noreturn]] void over_budget(const Account& account, Device device, size_t bytes) {
  const std::string bookkeeping = account.host_bytes() <= Account::kHostAllowance
                                      ? ""
                                      : absl::StrCat(" and ", bytes_text(account.host_bytes()), " of bookkeeping");
  Error error(ErrorKind::kOutOfMemory,
              absl::StrCat("out of memory on ", to_string(device), ": requested ", bytes_text(bytes), "; ",
                           account.owner(), " holds ", bytes_text(account.held()), bookkeeping, " of its ",
                           bytes_text(account.limit()), " limit"));
  error.set_op("allocate");
  throw error;
}

}  // namespace

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
    if (history) history->out_of_memory(bytes_, device_, scope.site);
    over_budget(*account, device_, bytes_);
  }
  try {
    data_ = allocator.allocate(bytes_, {stream, account ? account->tenant() : kNoTenant, &account, scope.site});
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

Storage::Storage(Ref<Storage> owner)
    : data_(owner->data_), bytes_(owner->bytes_), device_(owner->device_), shared_(true), owner_(std::move(owner)) {}

Ref<Storage> Storage::over(const Ref<Storage>& shared, const std::shared_ptr<Account>& account) {
  if (shared->account_ && shared->account_ == account) return shared;
  return Ref<Storage>(new Storage(shared->owner_ ? shared->owner_ : shared));
}

Storage::~Storage() {
  delete packed_weights_.load(std::memory_order_acquire);
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
