#include "python/bindings/tensor/arguments.h"

#include "client/session/tensor.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/types.h"

namespace py = pybind11;

namespace tt::python {
namespace {

py::object steal(PyObject* o) { return py::reinterpret_steal<py::object>(throw_if_null(o)); }

template <typename T>
py::list list_of(absl::Span<const T> values) {
  py::list list;
  for (const T& value : values) list.append(value);
  return list;
}

py::object number(const Arg& arg) {
  if (arg.kind == Arg::Kind::kBool) return py::bool_(arg.to_bool());
  if (arg.kind == Arg::Kind::kFloat) return py::float_(arg.real);
  if (arg.kind == Arg::Kind::kComplex) return steal(PyComplex_FromDoubles(arg.real, arg.imaginary));
  return arg.size == 1 ? py::int_(static_cast<uint64_t>(arg.integer)) : py::int_(arg.integer);
}

}  // namespace

py::object tensor_object(const TensorMeta* tensor) {
  if (!tensor) return py::none();
  auto* handle = const_cast<client::Handle*>(static_cast<const client::Handle*>(tensor));
  return steal(wrap(client::Tensor(handle)));
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
    case Arg::Kind::kInts: return list_of(arg.ints());
    case Arg::Kind::kFloats: return list_of(arg.floats());
    case Arg::Kind::kString: return py::str(arg.characters, arg.size);
    default: break;
  }
  if (param.type == ParamType::kDType) return py::reinterpret_borrow<py::object>(dtype_object(arg.dtype()));
  if (param.type == ParamType::kDevice) return steal(device_object(decode_device(arg.integer)));
  return number(arg);
}

}  // namespace tt::python
