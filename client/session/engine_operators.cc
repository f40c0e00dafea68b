#include "client/session/engine_operators.h"

#include "client/session/encode.h"
#include "engine/schema/custom_operator.h"
#include "engine/schema/error.h"

namespace tt::client {

EngineOperators::EngineOperators(const v1::HelloReply& engine)
    : same_(engine.schema_digest() == schema_digest()), version_(engine.engine_version()), max_id_(engine.max_op_id()) {
  if (same_ || !engine.has_operators()) return;
  const v1::OperatorTable& table = engine.operators();
  bool valid = table.ids_size() == table.parameters_size();
  parameters_.resize(UINT16_MAX + 1);
  for (int i = 0; valid && i < table.ids_size(); ++i) {
    valid = table.ids(i) <= UINT16_MAX && table.parameters(i) < UINT32_MAX;
    if (valid) parameters_[table.ids(i)] = table.parameters(i) + 1;
  }
  check(ErrorKind::kConnection, valid, "[connection] the engine's table of operators is malformed");
}

void EngineOperators::require_known(const Op& op, Args args) const {
  if (is_custom(op.id)) return;  // the engine has it: CustomCall has checked
  const bool known = parameters_.empty() ? op.id <= max_id_ : parameters_[op.id] != 0;
  check(ErrorKind::kNotImplemented, known, "[", op.name, "] the engine (version ", version_,
        ") is older than this client and does not have this operator");
  if (parameters_.empty()) return;
  const size_t parameters = parameters_[op.id] - 1, given = count_given(op, args);
  if (given <= parameters) return;
  fail(ErrorKind::kNotImplemented, "[", op.name, "] the engine (version ", version_,
       ") is older than this client and does not have the parameter ", op.params[given - 1].name);
}

}  // namespace tt::client
