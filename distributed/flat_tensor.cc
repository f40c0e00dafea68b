#include "distributed/flat_tensor.h"

#include <numeric>

#include "distributed/group/device_copy.h"
#include "engine/dispatch/dispatcher.h"

namespace tt::distributed {
namespace {

constexpr Device kCPU{};

// Returns a one-dimensional view of all elements if the tensors are contiguous on the device and adjacent in one
// storage.
Tensor adjacent_view(const Tensors& parts, Device device) {
  int64_t items = 0;
  for (const Tensor& part : parts) {
    const bool follows = part->storage.get() == parts[0]->storage.get() && part->offset == parts[0]->offset + items;
    if (!follows || !part.is_contiguous() || part.device() != device) return Tensor();
    items += part.numel();
  }
  if (parts.empty()) return Tensor();
  Geometry geometry;
  geometry.sizes = {items};
  geometry.strides = {1};
  geometry.offset = parts[0]->offset;
  return view_of(parts[0], geometry);
}

}  // namespace

size_t items(const Tensors& list) {
  return std::accumulate(list.begin(), list.end(), size_t{0},
                         [](size_t sum, const Tensor& t) { return sum + static_cast<size_t>(t.numel()); });
}

DType common_dtype(const Tensors& a, const Tensors& b) {
  const Tensor* first = !a.empty() ? &a[0] : !b.empty() ? &b[0] : nullptr;
  if (first == nullptr) return DType::kFloat32;
  for (const Tensors* list : {&a, &b}) {
    for (const Tensor& t : *list) {
      check(ErrorKind::kType, t.dtype() == first->dtype(), "expected tensors of one dtype, got ", first->dtype(),
            " and ", t.dtype());
    }
  }
  return first->dtype();
}

Device common_gpu(const Tensors& a, const Tensors& b) {
  const Tensor* first = !a.empty() ? &a[0] : !b.empty() ? &b[0] : nullptr;
  if (first == nullptr || first->device().type != DeviceType::kCUDA) return kCPU;
  for (const Tensors* list : {&a, &b}) {
    for (const Tensor& t : *list) {
      if (t.device() != first->device()) return kCPU;
    }
  }
  return first->device();
}

Tensors parts_of(const Tensor& tensor, int64_t dim, int64_t count) {
  const auto d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(tensor.sizes().size()) : dim);
  Geometry geometry;
  geometry.sizes = tensor.sizes();
  geometry.strides = tensor->strides;
  geometry.offset = tensor->offset;
  geometry.sizes[d] /= count;
  Tensors parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(view_of(tensor, geometry));
    geometry.offset += geometry.sizes[d] * geometry.strides[d];
  }
  return parts;
}

FlatTensor::FlatTensor(Tensors parts, DType dtype, Device device)
    : parts_(std::move(parts)), flat_(adjacent_view(parts_, device)), is_copy_(!flat_) {
  if (is_copy_) flat_ = empty({static_cast<int64_t>(items(parts_))}, dtype, device);
}

void FlatTensor::separate() {
  if (is_copy_) return;
  flat_ = empty({flat_.numel()}, flat_.dtype(), kCPU);
  is_copy_ = true;
}

// Calls visit(part, the piece of the copy that holds its elements).
template <typename Visit>
void FlatTensor::for_each_piece(Visit visit) const {
  if (!is_copy_) return;
  int64_t offset = 0;
  for (const Tensor& part : parts_) {
    Geometry geometry;
    geometry.sizes = part.sizes();
    geometry.strides = contiguous_strides(part.sizes());
    geometry.offset = offset;
    visit(part, view_of(flat_, geometry));
    offset += part.numel();
  }
}

void FlatTensor::copy_from_parts() const {
  for_each_piece([](const Tensor& part, const Tensor& piece) { copy_into(piece, on_device(part, piece.device())); });
}

void FlatTensor::copy_to_parts() const {
  for_each_piece([](const Tensor& part, const Tensor& piece) { copy_into(part, on_device(piece, part.device())); });
}

}  // namespace tt::distributed
