#include "python/bindings/tensor/unchanged.h"

#include "client/session/program_trace.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/memory_format.h"
#include "python/bindings/tensor/object.h"

namespace tt::python {

bool returns_input(const Op& op, const ParsedArgs& parsed) {
  if (op.id != op_id::kContiguous && op.id != op_id::kFlatten && op.id != op_id::kReal) [[likely]]
    return false;
  if (!parsed.into.empty() || !parsed.args[0].tensor) return false;
  const client::Handle& input = *first_tensor(parsed);
  if (op.id == op_id::kReal) return !is_complex(input.dtype);
  if (op.id == op_id::kContiguous) {
    const bool is_given = parsed.memory_format != MemoryFormat::kNone;
    const MemoryFormat format = is_given ? parsed.memory_format : MemoryFormat::kContiguous;
    if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(input)) [[unlikely]]
      require_format(*trace, input, format);
    return has_format(input, format);
  }
  const int64_t rank = input.dim(), start = parsed.args[1].integer, end = parsed.args[2].integer;
  if (rank == 0 || start < -rank || start >= rank || end < -rank || end >= rank) return false;
  return (start < 0 ? start + rank : start) == (end < 0 ? end + rank : end);
}

client::Tensor first_tensor(const ParsedArgs& parsed) {
  return client::Tensor(const_cast<client::Handle*>(static_cast<const client::Handle*>(parsed.args[0].tensor)));
}

PyObject* given_input(const PythonCall& call, const ParsedArgs& parsed) {
  return call.self ? Py_NewRef(call.self) : object_of(first_tensor(parsed));
}

}  // namespace tt::python
