#include "engine/schema/error.h"

namespace tt {

void Error::set_op(std::string_view op) {
  if (has_op_) return;
  const std::string prefix = absl::StrCat("[", message_part(op), "] ");
  if (!message_.starts_with(prefix)) message_ = prefix + message_;
  has_op_ = true;
}

}  // namespace tt
