#include "engine/memory/workspace_charge.h"

#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"

namespace tt {

WorkspaceCharge::WorkspaceCharge(uint64_t bytes) : bytes_(bytes) {
  constexpr uint64_t kNegligible = uint64_t{64} << 10;  // not worth the atomic operations of small calls
  const std::shared_ptr<Account>& account = AllocScope::current().account;
  if (!account || bytes < kNegligible) return;
  bool charged = account->charge(bytes);
  if (!charged) {  // what caches keep for the session makes room
    Devices::instance().forget(account->tenant());
    charged = account->charge(bytes);
  }
  check(ErrorKind::kOutOfMemory, charged, "out of memory on cpu: requested a workspace of ", bytes_text(bytes), "; ",
        account->refusal(bytes), "; try: smaller batches, or `del` tensors that are no longer needed");
  account_ = account;
}

WorkspaceCharge::~WorkspaceCharge() {
  if (account_) account_->refund(bytes_);
}

}  // namespace tt
