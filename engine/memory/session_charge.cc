#include "engine/memory/session_charge.h"

#include "engine/memory/alloc_scope.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"

namespace tt {

HostCharge charge_session(std::string_view what, uint64_t bytes) {
  const std::shared_ptr<Account>& account = AllocScope::current().account;
  if (!account) return {};
  check(ErrorKind::kOutOfMemory, account->has_host_room(bytes), "out of memory: ", what, " requires ",
        bytes_text(bytes), "; ", account->bookkeeping_refusal(bytes));
  return {account, bytes};
}

}  // namespace tt
