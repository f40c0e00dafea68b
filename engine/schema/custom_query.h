// The question of a client about the results of a custom operator whose rule is a library's function, and the reply.
//
// The question is the argument of the operator custom_operators, the reply its result. Both are validated when read.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/op.h"

namespace tt {

// The operator's id and the arguments as numbers: of tensors, the metadata. Equal for calls with equal results, so it
// is the key of a reply, too.
std::vector<int64_t> encode_query(const Op& op, Args args);

// A question's arguments, with what they point to.
class Query {
 public:
  // Throws Error (ValueError) if the numbers are malformed, or do not fit the operator's parameters.
  explicit Query(absl::Span<const int64_t> numbers);
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  const Op& op() const { return *op_; }
  Args args() const { return args_; }

 private:
  const Op* op_ = nullptr;
  std::deque<TensorMeta> metas_;
  std::deque<std::vector<const TensorMeta*>> lists_;
  std::deque<std::vector<int64_t>> integers_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::string> texts_;
  std::vector<Arg> args_;
};

// Only sizes and dtypes. decode_results throws Error (ValueError) if the bytes are malformed.
std::string encode_results(absl::Span<const TensorMeta> results);
std::vector<TensorMeta> decode_results(std::string_view bytes);

}  // namespace tt
