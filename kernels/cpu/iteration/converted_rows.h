// ConvertedRows: reads and writes rows of a tensor in the type T that a kernel computes in.
//
// 16-bit floats are converted one row at a time, so that the converted row stays in the cache. Elements that are stored
// as T are read and written in place. Each thread of a parallel loop creates its own object, which allocates a buffer
// of one row.
#pragma once

#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {

template <typename T>
class ConvertedRows {
 public:
  // Requires that `t` is contiguous and outlives this object. read() returns at most `most` elements at a time.
  ConvertedRows(const Tensor& t, int64_t most)
      : data_(static_cast<char*>(t.data())),
        dtype_(t.dtype()),
        item_(static_cast<int64_t>(item_size(dtype_))),
        buffer_(is_stored_as<T>(dtype_) ? 0 : most) {}

  // Returns the tensor's elements [at, at + n).
  const T* read(int64_t at, int64_t n) {
    if (buffer_.empty()) return reinterpret_cast<const T*>(data_) + at;
    load_block(buffer_.data(), data_ + at * item_, dtype_, 1, n);
    return buffer_.data();
  }
  // Returns the memory into which to compute the row at offset `at`; write() then converts and stores this row.
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
