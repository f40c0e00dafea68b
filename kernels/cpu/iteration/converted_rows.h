// ConvertedRows: reads and writes rows of 16-bit floats in the type they are computed in, one row at a time, which
// stays in the cache.
//
// Elements that are stored as T are read and written in place. Create one per share of a parallel loop, on its
// thread: each allocates a buffer of one row.
#pragma once

#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {

template <typename T>
class ConvertedRows {
 public:
  // For rows of at most `most` elements of a contiguous tensor, which must outlive this object.
  ConvertedRows(const Tensor& t, int64_t most)
      : data_(static_cast<char*>(t.data())),
        dtype_(t.dtype()),
        item_(static_cast<int64_t>(item_size(dtype_))),
        buffer_(stored_as<T>(dtype_) ? 0 : most) {}

  // Returns n elements, starting at `at`.
  const T* read(int64_t at, int64_t n) {
    if (buffer_.empty()) return reinterpret_cast<const T*>(data_) + at;
    load_block(buffer_.data(), data_ + at * item_, dtype_, 1, n);
    return buffer_.data();
  }
  // Returns the memory to compute a row into; write() then converts and stores it.
  T* place(int64_t at) { return buffer_.empty() ? reinterpret_cast<T*>(data_) + at : buffer_.data(); }
  void write(int64_t at, int64_t n) {
    if (!buffer_.empty()) store_block(data_ + at * item_, dtype_, 1, buffer_.data(), n);
  }

 private:
  char* data_;
  DType dtype_;
  int64_t item_;
  std::vector<T> buffer_;  // empty if elements are accessed in place
};

}  // namespace tt::cpu
