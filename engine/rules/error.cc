#include "engine/rules/error.h"

namespace tt {

void Error::set_op(std::string_view op) {
  if (has_op_) return;
  message_ = absl::StrCat("[", message_part(op), "] ", message_);
  has_op_ = true;
}

}  // namespace tt
