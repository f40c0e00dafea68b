// Poison: the error that stands in the place of a failed instruction's results.
//
// Values are shared and constant once made; any thread may read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/dispatch/dispatcher.h"
#include "engine/memory/account.h"
#include "engine/schema/error.h"

namespace tt {

// A failed instruction's error. Shared by all values that depend on the instruction's results.
struct Poison {
  ErrorKind kind;
  std::string message;  // "[matmul] inner sizes differ, got [2, 3] and [4, 5]"
  std::string op;
  uint32_t site = 0;
  bool retriable = false;  // the same call may succeed later (out of memory)
  HostCharge charge = {};  // for the texts
};

using PoisonRef = std::shared_ptr<const Poison>;

// An error as it is kept: `message` cut to a length that any number of handles may share, charged to the current
// account.
PoisonRef make_poison(ErrorKind kind, std::string message, std::string_view op, uint32_t site);

// Thrown by a kernel that finds one of its arguments poisoned: its results get the same root.
class Poisoned final : public Error {
 public:
  explicit Poisoned(PoisonRef root) : Error(root->kind, root->message), root_(std::move(root)) {}
  const PoisonRef& root() const { return root_; }

 private:
  PoisonRef root_;
};

// Dispatches `call` for the source line `site`. Returns the error that the operator failed with, or null. Throws
// FailedCheck, and whatever is no std::exception (Suspended).
PoisonRef try_dispatch(Call& call, uint32_t site);

}  // namespace tt
