// NarrowRows: rows of 16-bit floats as the type they are computed in, one at a time while they lie in the cache.
//
// Where elements lie in memory as T they are read and written in place. Made for one share of a loop, on its thread; a
// buffer of one row is allocated for each, which a share's rows take far longer to compute than.
#pragma once

#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {

template <typename T>
class NarrowRows {
 public:
  // Rows of at most `most` elements of a contiguous tensor, which outlives this.
  NarrowRows(const Tensor& t, int64_t most)
      : data_(static_cast<char*>(t.data())),
        dtype_(t.dtype()),
        item_(static_cast<int64_t>(item_size(dtype_))),
        buffer_(lies_as<T>(dtype_) ? 0 : most) {}

  // n elements from `at` on.
  const T* read(int64_t at, int64_t n) {
    if (buffer_.empty()) return reinterpret_cast<const T*>(data_) + at;
    load_block(buffer_.data(), data_ + at * item_, dtype_, 1, n);
    return buffer_.data();
  }
  // Where what write() rounds is to be put.
  T* place(int64_t at) { return buffer_.empty() ? reinterpret_cast<T*>(data_) + at : buffer_.data(); }
  void write(int64_t at, int64_t n) {
    if (!buffer_.empty()) store_block(data_ + at * item_, dtype_, 1, buffer_.data(), n);
  }

 private:
  char* data_;
  DType dtype_;
  int64_t item_;
  std::vector<T> buffer_;  // empty: in place
};

}  // namespace tt::cpu
