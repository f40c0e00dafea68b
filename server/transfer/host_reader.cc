#include "server/transfer/host_reader.h"

#include <algorithm>
#include <cstring>

namespace tt::server {
namespace {

template <size_t Item>
void copy_strided(char* into, const char* from, int64_t step, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(into + i * Item, from, Item);
    from += step;
  }
}

// Copies `count` items that are `step` bytes apart.
void copy_row(char* into, const char* from, int64_t step, size_t count, size_t item) {
  if (step == static_cast<int64_t>(item)) {
    std::memcpy(into, from, count * item);
    return;
  }
  switch (item) {
    case 1: return copy_strided<1>(into, from, step, count);
    case 2: return copy_strided<2>(into, from, step, count);
    case 4: return copy_strided<4>(into, from, step, count);
    case 8: return copy_strided<8>(into, from, step, count);
    default: return copy_strided<16>(into, from, step, count);
  }
}

}  // namespace

HostReader::HostReader(const Tensor& tensor)
    : storage_(tensor->storage),
      data_(tensor.numel() == 0 ? nullptr : static_cast<const char*>(tensor.data())),
      item_(item_size(tensor.dtype())),
      bytes_(static_cast<size_t>(tensor.numel()) * item_),
      contiguous_(tensor.is_contiguous()),
      sizes_(tensor.sizes()),
      strides_(tensor.strides()),
      index_(tensor.sizes().size(), 0) {}

size_t HostReader::read(char* into, size_t size) {
  size = std::min(size, left());
  if (size == 0) return 0;
  if (contiguous_) {
    std::memcpy(into, data_ + done_, size);
  } else {
    gather(into, size / item_);
  }
  done_ += size;
  return size;
}

void HostReader::skip(size_t size) {
  done_ = size;
  if (contiguous_) return;
  auto item = static_cast<int64_t>(size / item_);
  for (size_t d = sizes_.size(); d-- > 0;) {
    // If everything is skipped, the first dimension's index is past its end.
    index_[d] = d == 0 ? item : item % sizes_[d];
    item /= sizes_[d];
  }
}

void HostReader::gather(char* into, size_t items) {
  auto item = static_cast<int64_t>(item_);
  size_t last = sizes_.size() - 1;  // a tensor that is not contiguous has dimensions
  while (items != 0) {
    int64_t offset = 0;
    for (size_t d = 0; d <= last; ++d) offset += index_[d] * strides_[d];
    size_t run = std::min(items, static_cast<size_t>(sizes_[last] - index_[last]));
    copy_row(into, data_ + offset * item, strides_[last] * item, run, item_);
    into += run * item_;
    items -= run;
    index_[last] += static_cast<int64_t>(run);
    for (size_t d = last; d > 0 && index_[d] == sizes_[d]; --d) {
      index_[d] = 0;
      ++index_[d - 1];
    }
  }
}

}  // namespace tt::server
