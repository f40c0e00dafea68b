// Pickles as PyTorch writes them, of tensors, numbers, strings, lists and dicts. No code of a file is run: the reader
// accepts few opcodes and names, and bounds memory and recursion. Files are untrusted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "client/serialize/value.h"

namespace teletensor::internal {

// Describes a tensor of a file as a view of one of the file's storages.
struct StoredView {
  std::string key;  // of the storage
  Dtype dtype = kFloat;
  int64_t numel = 0;  // of the storage
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  bool requires_grad = false;
};

// Reads a value. `make` makes a tensor of a view, whose elements are within its storage. Throws RuntimeError for a
// damaged file, and NotImplementedError for a file with objects of other types.
Value read_pickle(std::string_view bytes, const std::function<Tensor(const StoredView&)>& make);

// Writes a value. `place` returns a tensor's place in a storage. Throws ValueError for a value nested too deep.
std::string write_pickle(const Value& value, const std::function<StoredView(const Tensor&)>& place);

}  // namespace teletensor::internal
