#include "kernels/plugin/call.h"

#include <deque>
#include <string>
#include <vector>

#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/plugin/copy.h"
#include "kernels/plugin/plugin.h"
#include "kernels/plugin/stream.h"

namespace tt::plugin {
namespace {

bool is_host_number(const TensorMeta& t) { return t.dim() == 0 && t.device.type == DeviceType::kCPU; }

bool is_elementwise(const TeletensorDeviceOperator& kernel) {
  return (kernel.flags & TELETENSOR_DEVICE_ELEMENTWISE) != 0;
}
bool is_strided(const TeletensorDeviceOperator& kernel) { return (kernel.flags & TELETENSOR_DEVICE_STRIDED) != 0; }

// Checks the tensors of one call.
class Acceptance {
 public:
  Acceptance(const TeletensorDeviceOperator& kernel, const Call& call) : kernel_(kernel), call_(call) {}

  bool tensor(const TensorMeta& t) const {
    // Numbers are passed as int64 or double.
    if (is_host_number(t)) return !is_complex(t.dtype) && t.dtype != DType::kUInt64;
    if (t.device != call_.inferred.device || !dtype(t.dtype)) return false;
    return !is_elementwise(kernel_) || t.dtype == call_.inferred.compute;
  }
  bool argument(const Arg& arg) const {
    if (arg.kind == Arg::Kind::kTensor) return tensor(*arg.tensor);
    if (arg.kind == Arg::Kind::kComplex) return false;
    if (arg.kind != Arg::Kind::kTensors) return true;
    for (const TensorMeta* t : arg.list()) {
      // A number has no place in a list.
      if (t != nullptr && (is_host_number(*t) || !tensor(*t))) return false;
    }
    return true;
  }
  bool dtype(DType t) const { return (kernel_.dtypes >> static_cast<unsigned>(t) & 1) != 0; }

 private:
  const TeletensorDeviceOperator& kernel_;
  const Call& call_;
};

// The description of a call for a kernel, and what it points to. Tensors that the kernel cannot access directly are
// replaced by contiguous copies; finish() copies such outputs back.
class Description {
 public:
  Description(DeviceLibrary& library, const TeletensorDeviceOperator& kernel, const Call& call)
      : library_(library), kernel_(kernel), call_(call) {
    for (const Arg& arg : call.args) arguments_.push_back(describe(arg));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const Tensor& output = call.outputs[i];
      const bool is_inferred = i < call.inferred.outputs.size();  // not for run_assign()
      const DType dtype = is_inferred ? call.inferred.outputs[i].dtype : output.dtype();
      const bool is_direct = dtype == output.dtype() && (is_strided(kernel_) || output.is_contiguous());
      written_.push_back(is_direct ? output : empty(output.sizes(), dtype, output.device()));
      outputs_.push_back(describe(written_.back()));
    }
  }

  int32_t run(std::string* message) {
    const Device device = call_.outputs[0].device();
    auto& stream = static_cast<LibraryStream&>(Context::current().stream(device));
    const std::string name(call_.op->name);
    TeletensorDeviceCall described{};
    described.size = sizeof described;
    described.device = device.index;
    described.stream = stream.handle();
    described.name = name.c_str();
    described.num_arguments = static_cast<uint32_t>(arguments_.size());
    described.num_outputs = static_cast<uint32_t>(outputs_.size());
    described.arguments = arguments_.data();
    described.outputs = outputs_.data();
    described.compute_dtype = static_cast<int32_t>(call_.inferred.compute);
    return library_.try_call("kernel", message, kernel_.kernel, &described);
  }

  void finish() {
    for (size_t i = 0; i < written_.size(); ++i) {
      if (!written_[i].same(call_.outputs[i])) copy(written_[i], call_.outputs[i]);
    }
  }

 private:
  // Returns the tensor with the sizes and the layout that the kernel expects.
  Tensor prepared(const Tensor& t) {
    Tensor ready = t;
    if (is_elementwise(kernel_) && t.sizes() != call_.outputs[0].sizes()) ready = broadcast(t);
    if (!is_strided(kernel_)) ready = contiguous(ready);
    kept_.push_back(ready);
    return ready;
  }
  Tensor broadcast(const Tensor& t) const {
    const Sizes& sizes = call_.outputs[0].sizes();
    Geometry geometry{sizes, Sizes(sizes.size(), 0), t->offset, true};
    const auto skipped = static_cast<int64_t>(sizes.size()) - t.dim();
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (t.size(d) != 1) geometry.strides[static_cast<size_t>(d + skipped)] = t.stride(d);
    }
    return view_of(t, geometry);
  }
  TeletensorDeviceTensor describe(const Tensor& t) {
    TeletensorDeviceTensor described{};
    described.data = t.data();
    described.dtype = static_cast<int32_t>(t.dtype());
    described.dims = static_cast<int32_t>(t.dim());
    described.sizes = t.sizes().data();
    described.strides = t.strides().data();
    return described;
  }
  void describe_number(const Scalar& value, TeletensorDeviceArgument* described) {
    const bool is_real = value.category() >= Category::kFloating;
    described->kind = is_real ? TELETENSOR_DEVICE_REAL : TELETENSOR_DEVICE_INTEGER;
    described->real = value.to_double();
    if (!is_real) described->integer = value.to_int();
  }
  TeletensorDeviceArgument describe(const Arg& arg) {
    TeletensorDeviceArgument described{};
    switch (arg.kind) {
      case Arg::Kind::kNone: break;
      case Arg::Kind::kTensor: describe_tensor(Tensor::from(arg.tensor), &described); break;
      case Arg::Kind::kTensors: describe_list(arg, &described); break;
      case Arg::Kind::kBool:
      case Arg::Kind::kInt:
      case Arg::Kind::kFloat:
        described.kind = arg.kind == Arg::Kind::kFloat ? TELETENSOR_DEVICE_REAL : TELETENSOR_DEVICE_INTEGER;
        described.integer = arg.kind == Arg::Kind::kFloat ? 0 : arg.integer;
        described.real = arg.to_double();
        break;
      case Arg::Kind::kInts:
        described.kind = TELETENSOR_DEVICE_INTEGERS;
        described.count = arg.size;
        described.integers = arg.integers;
        break;
      case Arg::Kind::kFloats:
        described.kind = TELETENSOR_DEVICE_REALS;
        described.count = arg.size;
        described.reals = arg.reals;
        break;
      case Arg::Kind::kString:
        described.kind = TELETENSOR_DEVICE_STRING;
        described.count = arg.size;
        described.string = arg.characters;
        break;
      case Arg::Kind::kComplex:
      case Arg::Kind::kSlot:
      case Arg::Kind::kSlots: fail(ErrorKind::kRuntime, "a kernel of a device library accepts no such argument");
    }
    return described;
  }
  void describe_tensor(const Tensor& t, TeletensorDeviceArgument* described) {
    if (is_host_number(t.meta())) return describe_number(number_in(t), described);
    std::vector<TeletensorDeviceTensor>& list = lists_.emplace_back();
    list.push_back(describe(prepared(t)));
    described->kind = TELETENSOR_DEVICE_TENSOR;
    described->count = 1;
    described->tensors = list.data();
  }
  void describe_list(const Arg& arg, TeletensorDeviceArgument* described) {
    std::vector<TeletensorDeviceTensor>& list = lists_.emplace_back();
    for (const TensorMeta* t : arg.list()) {
      if (t != nullptr) {
        list.push_back(describe(prepared(Tensor::from(t))));
      } else {
        list.push_back(TeletensorDeviceTensor{nullptr, -1, 0, nullptr, nullptr});
      }
    }
    described->kind = TELETENSOR_DEVICE_TENSORS;
    described->count = arg.size;
    described->tensors = list.data();
  }
  // The element of a zero-dim tensor on the CPU.
  static Scalar number_in(const Tensor& t) {
    const Tensor wide = empty({}, is_floating(t.dtype()) ? DType::kFloat64 : DType::kInt64, Device{});
    copy_into(wide, t);
    if (is_floating(t.dtype())) return Scalar(*wide.data_as<double>());
    return Scalar(*wide.data_as<int64_t>());
  }

  DeviceLibrary& library_;
  const TeletensorDeviceOperator& kernel_;
  const Call& call_;
  std::vector<TeletensorDeviceArgument> arguments_;
  std::vector<TeletensorDeviceTensor> outputs_;
  std::vector<Tensor> written_, kept_;
  std::deque<std::vector<TeletensorDeviceTensor>> lists_;
};

}  // namespace

bool accepts(const TeletensorDeviceOperator& kernel, const Call& call) {
  const Acceptance accepted(kernel, call);
  if (!is_plugin(call.inferred.device.type) || call.inferred.outputs.empty()) return false;
  if (is_elementwise(kernel) && (!call.op->is_pointwise || call.inferred.outputs.size() != 1)) return false;
  for (const TensorMeta& output : call.inferred.outputs) {
    if (!accepted.dtype(output.dtype)) return false;
  }
  for (const Arg& arg : call.args) {
    if (!accepted.argument(arg)) return false;
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.op->params[i].written) return false;  // the kernel would get copies of some
  }
  return true;
}

bool run_kernel(DeviceLibrary& library, const TeletensorDeviceOperator& kernel, const Call& call) {
  Description description(library, kernel, call);
  std::string message;
  const int32_t status = description.run(&message);
  if (status == TELETENSOR_DEVICE_UNSUPPORTED) return false;
  if (status != TELETENSOR_DEVICE_OK) {
    throw Error(status == TELETENSOR_DEVICE_NO_MEMORY ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime, message);
  }
  description.finish();
  library.count_kernel(call.outputs[0].device().index);
  return true;
}

bool run_assign(const Tensor& target, const Tensor& source) {
  static const Op* const assign = find_op(op_id::kAssign);
  DeviceLibrary& library = library_of(target.device().type);
  TeletensorDeviceOperator kernel = *library.find(op_id::kAssign);
  const auto takes = [&](DType t) { return (kernel.dtypes >> static_cast<unsigned>(t) & 1) != 0; };
  if (!is_strided(kernel) || !takes(target.dtype()) || !takes(source.dtype())) return false;
  kernel.flags |= TELETENSOR_DEVICE_ELEMENTWISE;  // broadcasts
  const Arg args[] = {target.get(), source.get()};
  Call call;
  call.op = assign;
  call.args = args;
  call.outputs.push_back(target);
  call.inferred.compute = target.dtype();
  return run_kernel(library, kernel, call);
}

}  // namespace tt::plugin
