#include "engine/tensor/tensor.h"

#include "engine/schema/error.h"
#include "engine/schema/float8.h"
#include "engine/schema/op.h"

namespace tt {
namespace {

// Whether every element of `meta` is inside `bytes`. Sizes and strides may be hostile.
bool fits(const TensorMeta& meta, size_t bytes) {
  int64_t last = meta.offset;
  if (last < 0) return false;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == 0) return true;  // no elements
    int64_t reach = 0;
    if (meta.sizes[d] < 0 || meta.strides[d] < 0) return false;
    if (__builtin_mul_overflow(meta.sizes[d] - 1, meta.strides[d], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  int64_t capacity = static_cast<int64_t>(bytes / item_size(meta.dtype));
  return last < capacity;
}

// Whether the strides are those of a new contiguous tensor, as infer() computes for every result except a view.
bool has_contiguous_strides(const TensorMeta& meta) {
  int64_t step = 1;
  bool equal = meta.offset == 0 && meta.strides.size() == meta.sizes.size();
  for (size_t d = meta.sizes.size(); equal && d-- > 0;) {
    equal = meta.strides[d] == step;
    step *= meta.sizes[d] > 1 ? meta.sizes[d] : 1;
  }
  return equal;
}

template <typename T>
void write(const Tensor& t, T value) {
  *t.data_as<T>() = value;
}

}  // namespace

Tensor allocate(const TensorMeta& meta) {
  size_t bytes = static_cast<size_t>(meta.numel()) * item_size(meta.dtype);
  Tensor t(new TensorImpl(meta, make_ref<Storage>(meta.device, bytes)));
  if (!has_contiguous_strides(meta)) {
    t->strides = contiguous_strides(meta.sizes);
    t->offset = 0;
  }
  return t;
}

Tensor empty(SizesView sizes, DType dtype, Device device) {
  // infer() checks the sizes it infers; kernels may read sizes from clients' data.
  check(sizes.size() <= kMaxDims, "a tensor has at most ", kMaxDims, " dimensions, got ", sizes.size());
  int64_t bytes = static_cast<int64_t>(item_size(dtype));
  for (int64_t size : sizes) {
    check(!__builtin_mul_overflow(bytes, size > 1 ? size : 1, &bytes),
          "Storage size calculation overflowed with sizes=", to_string(sizes));
  }
  TensorMeta meta;
  meta.dtype = dtype;
  meta.device = device;
  meta.sizes.assign(sizes.begin(), sizes.end());
  meta.strides = contiguous_strides(sizes);
  return allocate(meta);
}

Tensor alias(const Tensor& base, const TensorMeta& meta) {
  check(fits(meta, base->storage->bytes()), "a view with sizes ", meta.sizes, ", strides ", meta.strides,
        " and offset ", meta.offset, " exceeds its storage of ", base->storage->bytes(), " bytes");
  return Tensor(new TensorImpl(meta, base->storage));
}

Tensor view_of(const Tensor& base, const Geometry& geometry) {
  TensorMeta meta;
  meta.dtype = base.dtype();
  meta.device = base.device();
  meta.sizes = geometry.sizes;
  meta.strides = geometry.strides;
  meta.offset = geometry.offset;
  return alias(base, meta);
}

Tensor detach(const Tensor& t) {
  TensorMeta meta = t.meta();
  meta.requires_grad = false;
  return Tensor(new TensorImpl(meta, t->storage));
}

Tensor scalar_tensor(const Scalar& value, DType dtype, Device device) {
  // Zero-dim CPU tensors can be used with tensors of any device.
  Tensor t = empty({}, dtype, device.type == DeviceType::kMeta ? device : Device{});
  if (device.type == DeviceType::kMeta) return t;
  switch (dtype) {
    case DType::kBool: write(t, value.to_bool()); break;
    case DType::kUInt8: write(t, static_cast<uint8_t>(value.to_int())); break;
    case DType::kInt8: write(t, static_cast<int8_t>(value.to_int())); break;
    case DType::kInt16: write(t, static_cast<int16_t>(value.to_int())); break;
    case DType::kInt32: write(t, static_cast<int32_t>(value.to_int())); break;
    case DType::kInt64: write(t, value.to_int()); break;
    case DType::kFloat16: write(t, Half(static_cast<float>(value.to_double()))); break;
    case DType::kBFloat16: write(t, BFloat16(static_cast<float>(value.to_double()))); break;
    case DType::kFloat32: write(t, static_cast<float>(value.to_double())); break;
    case DType::kFloat64: write(t, value.to_double()); break;
    case DType::kComplex64: write(t, std::complex<float>(value.to_complex())); break;
    case DType::kComplex128: write(t, value.to_complex()); break;
    case DType::kUInt16: write(t, static_cast<uint16_t>(value.to_int())); break;
    case DType::kUInt32: write(t, static_cast<uint32_t>(value.to_int())); break;
    case DType::kUInt64: write(t, static_cast<uint64_t>(value.to_int())); break;
    case DType::kFloat8E4m3fn: write(t, Float8E4m3fn(static_cast<float>(value.to_double()))); break;
    case DType::kFloat8E5m2: write(t, Float8E5m2(static_cast<float>(value.to_double()))); break;
  }
  return t;
}

}  // namespace tt
