// TensorMeta: a tensor's description without its data.
//
// Base class of the engine's TensorImpl and the client's Handle, so rules run unchanged on both sides.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/schema/device.h"
#include "engine/schema/dtype.h"
#include "engine/schema/sym_int.h"

namespace tt {

using Sizes = absl::InlinedVector<SymInt, 5>;
using SizesView = absl::Span<const SymInt>;

struct TensorMeta {
  DType dtype = DType::kFloat32;
  Device device;
  bool requires_grad = false;
  // Whether this describes a number passed for a tensor, which has the lowest rank in promotion and no handle.
  bool is_number = false;
  Sizes sizes;
  Sizes strides;      // in elements; never negative
  SymInt offset = 0;  // in elements, from the start of the storage

  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  SymInt numel() const {
    SymInt n = 1;
    for (SymInt size : sizes) n *= size;
    return n;
  }
  bool is_contiguous() const;
};

Sizes contiguous_strides(SizesView sizes);
bool surely_equal(SizesView a, SizesView b);  // of each dimension, see sym_int.h
std::string to_string(SizesView sizes);       // "[3, 4]"
// "float32[3, 4]", for messages.
std::string describe(const TensorMeta& meta);

// The layout of a view in its base's storage, or (alias false) the shape of a new contiguous tensor.
struct Geometry {
  Sizes sizes;
  Sizes strides;
  SymInt offset = 0;
  bool alias = true;
};

}  // namespace tt
