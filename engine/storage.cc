#include "engine/storage.h"

#include "engine/bytes.h"
#include "engine/context.h"
#include "engine/devices.h"
#include "engine/rules/error.h"

namespace tt {
namespace {

[[noreturn]] void over_budget(const Account& account, Device device, size_t bytes) {
  Error error(ErrorKind::kOutOfMemory,
              absl::StrCat("out of memory on ", to_string(device), ": asked ", bytes_text(bytes), ", ", account.owner(),
                           " holds ", bytes_text(account.held()), " of the ", bytes_text(account.limit()),
                           " it is limited to"));
  error.set_op("allocate");
  throw error;
}

}  // namespace

Storage::Storage(Device device, size_t bytes) : bytes_(bytes), device_(device) {
  if (device.type == DeviceType::kMeta || bytes == 0) return;
  const std::shared_ptr<Account>& account = Context::current().account;
  if (account && !account->charge(bytes)) [[unlikely]]
    over_budget(*account, device, bytes);
  try {
    Devices& devices = Devices::instance();
    data_ = devices.allocator(device).allocate(bytes, &devices.stream(device));
  } catch (Error& e) {
    if (!account) throw;
    account->refund(bytes);
    e.append(absl::StrCat("; held by: ", account->owner(), " ", bytes_text(account->held())));
    throw;
  }
  account_ = account;
}

Storage::~Storage() {
  delete companion_.load(std::memory_order_acquire);
  if (data_) Devices::instance().allocator(device_).deallocate(data_, bytes_);
  if (account_) account_->refund(bytes_);
}

Companion& Storage::companion(absl::FunctionRef<std::unique_ptr<Companion>()> make) {
  if (Companion* there = companion_.load(std::memory_order_acquire)) return *there;
  std::unique_ptr<Companion> made = make();
  Companion* expected = nullptr;
  if (!companion_.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return *expected;
  return *made.release();
}

}  // namespace tt
