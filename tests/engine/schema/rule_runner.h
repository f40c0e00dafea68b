// Runs the inference rules of operators for tests: arguments by shape, results as text.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt {

// Owns the arguments of calls.
class RuleRunner {
 public:
  Arg tensor(SizesView sizes, DType dtype = DType::kFloat32) {
    TensorMeta& meta = metas_.emplace_back();
    meta.dtype = dtype;
    meta.sizes.assign(sizes.begin(), sizes.end());
    meta.strides = contiguous_strides(sizes);
    return Arg(&meta);
  }
  Arg tensors(std::initializer_list<Arg> list) {
    std::vector<const TensorMeta*>& owned = lists_.emplace_back();
    for (const Arg& a : list) owned.push_back(a.tensor);
    return Arg(absl::Span<const TensorMeta* const>(owned));
  }
  Arg ints(std::initializer_list<int64_t> list) {
    ints_.emplace_back(list);
    return Arg(absl::Span<const int64_t>(ints_.back()));
  }

  // Returns "float32[3, 4]" for each result; omitted arguments have their defaults. An error reads "IndexError: ...".
  std::string operator()(std::string_view name, std::initializer_list<Arg> given) {
    const Op* op = find_op(name);
    if (!op) return "no such operator";
    std::vector<Arg> args(given);
    for (size_t i = args.size(); i < op->params.size(); ++i) args.push_back(op->params[i].default_value);
    Inference inference;
    try {
      op->check_args(args);
      infer(*op, args, true, &inference);
    } catch (const Error& e) {
      return absl::StrCat(kind_name(e.kind()), ": ", e.message());
    }
    std::string text;
    for (const TensorMeta& meta : inference.outputs) absl::StrAppend(&text, text.empty() ? "" : " ", describe(meta));
    return text;
  }

 private:
  static const char* kind_name(ErrorKind kind) {
    switch (kind) {
      case ErrorKind::kRuntime: return "RuntimeError";
      case ErrorKind::kIndex: return "IndexError";
      case ErrorKind::kType: return "TypeError";
      case ErrorKind::kValue: return "ValueError";
      case ErrorKind::kNotImplemented: return "NotImplementedError";
      default: return "another error";
    }
  }

  std::deque<TensorMeta> metas_;
  std::deque<std::vector<const TensorMeta*>> lists_;
  std::deque<std::vector<int64_t>> ints_;
};

}  // namespace tt
