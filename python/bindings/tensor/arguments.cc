#include "python/bindings/tensor/arguments.h"

#include "client/session/program_trace.h"
#include "client/session/tensor.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/symbolic_int.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {
namespace {

py::object steal(PyObject* o) { return py::reinterpret_steal<py::object>(throw_if_null(o)); }

// Of a traced function's call, perhaps a SymInt.
py::object integer(int64_t value) {
  client::ProgramTrace* const trace = client::ProgramTrace::active();
  return trace == nullptr ? py::int_(value) : steal(number_object(trace->number_of(value)));
}

py::object number(const Arg& arg) {
  if (arg.kind == Arg::Kind::kBool) return py::bool_(arg.to_bool());
  if (arg.kind == Arg::Kind::kFloat) return py::float_(arg.real);
  if (arg.kind == Arg::Kind::kComplex) return steal(PyComplex_FromDoubles(arg.real, arg.imaginary));
  if (arg.size == 1) return py::int_(static_cast<uint64_t>(arg.integer));
  return integer(arg.integer);
}

}  // namespace

py::object tensor_object(const TensorMeta* tensor) {
  if (!tensor) return py::none();
  auto* handle = const_cast<client::Handle*>(static_cast<const client::Handle*>(tensor));
  return steal(object_of(client::Tensor(handle)));
}

py::object to_python(const Param& param, const Arg& arg, const TensorObjects& tensor) {
  switch (arg.kind) {
    case Arg::Kind::kNone: return py::none();
    case Arg::Kind::kTensor: return tensor(arg.tensor);
    case Arg::Kind::kTensors: {
      py::list list;
      for (const TensorMeta* t : arg.list()) list.append(tensor(t));
      return list;
    }
    case Arg::Kind::kInts: {
      py::list list;
      for (int64_t value : arg.ints()) list.append(integer(value));
      return list;
    }
    case Arg::Kind::kFloats: {
      py::list list;
      for (double value : arg.floats()) list.append(value);
      return list;
    }
    case Arg::Kind::kString: return py::str(arg.characters, arg.size);
    default: break;
  }
  if (param.type == ParamType::kDType) return py::reinterpret_borrow<py::object>(dtype_object(arg.dtype()));
  if (param.type == ParamType::kDevice) return steal(device_object(decode_device(arg.integer)));
  return number(arg);
}

}  // namespace tt::python
