// LibraryCall: one call of a library's rule or kernel, and the functions of the daemon that it may use.
//
// Lives on the caller's stack. Exceptions of the daemon's functions are kept until the library's function has returned,
// because they must not pass through a library's frames of another language; exceptions of the library become Error.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/extension/teletensor_operator.h"

namespace tt::extension {

// The table that libraries receive. Constant.
const teletensor_host& host();

class LibraryCall {
 public:
  // A rule's: only metadata. `args` must outlive this object.
  LibraryCall(const Op& op, Args args) : op_(op), args_(args) {}
  // A kernel's. Unless `any_strides`, the library sees contiguous copies of other tensors.
  LibraryCall(Call& call, bool any_strides)
      : op_(*call.op), args_(call.args), call_(&call), any_strides_(any_strides) {}
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;

  // Calls the function. Throws Error if it fails, throws, or used the daemon's functions wrongly.
  void run(teletensor_function function);
  // The results that a rule has set. Throws Error if one is missing.
  std::vector<TensorMeta> take_results();

 private:
  friend struct HostFunctions;

  // Metadata and, in a kernel, the memory of a tensor; null if it is undefined.
  const teletensor_tensor* describe(const TensorMeta* meta);
  const teletensor_tensor* describe(const Tensor& tensor);
  // The argument, or the list's entry, of which `key` is the address. Once described, it stays so.
  const teletensor_tensor* describe_once(const void* key, const Arg& tensor);
  const teletensor_tensor* add(const TensorMeta& meta, void* data);
  const Arg* argument(int index) const;

  const Op& op_;
  const Args args_;
  Call* const call_ = nullptr;  // null in a rule
  const bool any_strides_ = true;
  std::vector<std::optional<TensorMeta>> results_;  // of a rule
  std::deque<teletensor_tensor> tensors_;
  absl::flat_hash_map<const void*, const teletensor_tensor*> described_;  // by Arg, or TensorMeta of lists and results
  std::deque<TensorMeta> metas_;                                          // what tensors_ point to
  std::vector<Tensor> kept_;                                              // copies of arguments, and temporary memory
  std::string message_;
  std::exception_ptr failure_;  // of a function of the daemon
};

}  // namespace tt::extension
