// Poison: the error stored in place of a failed instruction's results.
//
// Immutable after construction and shared; any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/dispatch/dispatcher.h"
#include "engine/memory/account.h"
#include "engine/schema/error.h"

namespace tt {

// A failed instruction's error, shared by all values that depend on its results.
struct Poison {
  ErrorKind kind;
  std::string message;  // "[matmul] inner sizes differ, got [2, 3] and [4, 5]"
  std::string op;
  uint32_t site = 0;
  bool retriable = false;  // the same call may succeed later (out of memory)
  // The call was not executed because values were not available (Executor::set_unavailable()). The tensors that it
  // should have written keep their values.
  bool keeps_targets = false;
  HostCharge charge = {};  // charge for the strings
};

using PoisonRef = std::shared_ptr<const Poison>;

// Creates a Poison charged to the current account. Truncates `message`, since any number of handles may share it.
PoisonRef make_poison(ErrorKind kind, std::string message, std::string_view op, uint32_t site);

// Thrown by a kernel whose argument is poisoned. The kernel's results get the same poison.
class Poisoned final : public Error {
 public:
  explicit Poisoned(PoisonRef root) : Error(root->kind, root->message), root_(std::move(root)) {}
  const PoisonRef& root() const { return root_; }

 private:
  PoisonRef root_;
};

// Dispatches `call` for the source line `site`. Returns the operator's error, or null. Throws FailedCheck and
// exceptions not derived from std::exception (Suspended).
PoisonRef try_dispatch(Call& call, uint32_t site);

}  // namespace tt
