// FlatTensor: the tensors of one collective or message as one contiguous block of memory.
//
// Owned by the call and by its completion. Used on the session's thread, except that the group's thread reads and
// writes data(). Functions throw Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Returns the number of elements of all tensors.
size_t items(const Tensors& list);
// Returns the dtype of all tensors of both lists; float32 if there are none.
DType common_dtype(const Tensors& a, const Tensors& b);
// Returns the GPU on which all tensors of both lists are stored; the CPU if there is none.
Device common_gpu(const Tensors& a, const Tensors& b);
// Returns views of the equal parts of a tensor along a dimension, which must be divisible.
Tensors parts_of(const Tensor& tensor, int64_t dim, int64_t parts);

// The elements of several tensors, in order, in one contiguous tensor on a device: a view of the tensors if they are
// adjacent, otherwise a copy. Collectives read and write it on the group's thread, and the session's thread copies the
// results to the tensors afterwards.
class FlatTensor {
 public:
  FlatTensor() = default;
  FlatTensor(Tensors parts, DType dtype, Device device = {});
  char* data() const { return flat_ ? static_cast<char*>(flat_.data()) : nullptr; }
  const Tensor& tensor() const { return flat_; }
  bool is_copy() const { return is_copy_; }
  // Makes a copy even of a single contiguous tensor, on the CPU.
  void separate();
  void copy_from_parts() const;
  void copy_to_parts() const;

 private:
  template <typename Visit>
  void for_each_piece(Visit visit) const;

  Tensors parts_;
  Tensor flat_;
  bool is_copy_ = false;
};

}  // namespace tt::distributed
