// MemoryFormat: torch.memory_format, the layouts of new tensors that a program can request.
#pragma once

#include <Python.h>

#include <cstdint>

#include "client/session/program_trace.h"
#include "client/session/tensor.h"

namespace tt::python {

enum class MemoryFormat : uint8_t { kNone, kPreserve, kContiguous, kChannelsLast, kChannelsLast3d };

// Converts None (kNone) or one of PyTorch's formats; returns false for other objects.
bool memory_format_from(PyObject* value, MemoryFormat* format);
// Whether the tensor has the format. True for kNone; kPreserve means kContiguous here, as in PyTorch; false with
// another number of dimensions than the format's.
bool has_format(const TensorMeta& tensor, MemoryFormat format);
// Requires of runs of the traced Program that has_format() has the same result as now.
void require_format(client::ProgramTrace& trace, const client::Handle& tensor, MemoryFormat format);
// Returns the tensor if it has the format, otherwise a copy in that format, whose gradient is recorded. Throws Error
// (RuntimeError) if the tensor has another number of dimensions, and for kPreserve, which says nothing about the copy.
client::Tensor in_format(const client::Tensor& tensor, MemoryFormat format);
// Returns the same with the strides of the format, also where sizes of 1 leave these open. `is_new`: no other tensor
// shares the memory.
client::Tensor laid_out(client::Tensor tensor, MemoryFormat format, bool is_new);

}  // namespace tt::python
