#include "python/bindings/tensor/memory_format.h"

#include <string_view>
#include <utility>

#include "engine/schema/error.h"
#include "engine/schema/layout.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/operators.h"

namespace tt::python {
namespace {

constexpr std::pair<const char*, MemoryFormat> kFormats[] = {
    {"torch.contiguous_format", MemoryFormat::kContiguous},
    {"torch.channels_last", MemoryFormat::kChannelsLast},
    {"torch.channels_last_3d", MemoryFormat::kChannelsLast3d},
    {"torch.preserve_format", MemoryFormat::kPreserve},
};

int64_t dims_of(MemoryFormat format) { return format == MemoryFormat::kChannelsLast ? 4 : 5; }

client::Tensor permuted(const client::Tensor& tensor, SizesView dims) {
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor.get())), Arg(dims)};
  return call_op(op_id::kPermute, args, *tensor->session)[0];
}

client::Tensor contiguous(const client::Tensor& tensor) {
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor.get()))};
  return call_op(op_id::kContiguous, args, *tensor->session)[0];
}

}  // namespace

bool memory_format_from(PyObject* value, MemoryFormat* format) {
  *format = MemoryFormat::kNone;
  if (value == Py_None) return true;
  if (!PyUnicode_Check(value)) return false;
  for (const auto& [name, named] : kFormats) {
    if (PyUnicode_CompareWithASCIIString(value, name) == 0) return *format = named, true;
  }
  return false;
}

bool has_format(const TensorMeta& tensor, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::kNone: return true;
    case MemoryFormat::kPreserve:
    case MemoryFormat::kContiguous: return tensor.is_contiguous();
    default: return tensor.dim() == dims_of(format) && is_channels_last(tensor.sizes, tensor.strides);
  }
}

void require_format(client::ProgramTrace& trace, const client::Handle& tensor, MemoryFormat format) {
  if (format == MemoryFormat::kNone) return;
  const bool is_plain = format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve;
  is_plain ? trace.require_contiguity(tensor) : trace.require_sizes(tensor);
}

client::Tensor in_format(const client::Tensor& tensor, MemoryFormat format) {
  if (client::ProgramTrace* trace = client::ProgramTrace::of_tensor(*tensor)) [[unlikely]]
    require_format(*trace, *tensor, format);
  if (has_format(*tensor, format)) return tensor;
  check(format != MemoryFormat::kPreserve, "preserve memory format is unsupported by the contiguous operator");
  if (format == MemoryFormat::kContiguous) return contiguous(tensor);
  const int64_t dims = dims_of(format);
  check(tensor->dim() == dims, "required rank ", dims, " tensor to use channels_last", dims == 4 ? "" : "_3d",
        " format");
  const int64_t to_last[] = {0, 2, 3, 4, 1}, from_last[] = {0, 4, 1, 2, 3};
  const int64_t to_last_2d[] = {0, 2, 3, 1}, from_last_2d[] = {0, 3, 1, 2};
  if (dims == 4) return permuted(contiguous(permuted(tensor, to_last_2d)), from_last_2d);
  return permuted(contiguous(permuted(tensor, to_last)), from_last);
}

client::Tensor laid_out(client::Tensor tensor, MemoryFormat format, bool is_new) {
  tensor = in_format(tensor, format);
  if (format != MemoryFormat::kChannelsLast && format != MemoryFormat::kChannelsLast3d) return tensor;
  if (tensor->numel() == 0) return tensor;
  const Sizes strides = channels_last_strides(tensor->sizes);
  if (SizesView(tensor->strides) == SizesView(strides)) return tensor;
  // Sizes of 1 leave the order of dimensions open. As in PyTorch, the strides are those of the format, and the tensor
  // is no view of one with others.
  if (!is_new) {
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor.get()))};
    tensor = call_op(op_id::kClone, args, *tensor->session)[0];
  }
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(tensor.get())), Arg(SizesView(tensor->sizes)),
                      Arg(SizesView(strides)), Arg(tensor->offset)};
  return call_op(op_id::kAsStrided, args, *tensor->session)[0];
}

}  // namespace tt::python
