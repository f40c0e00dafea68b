// Compiled with symbolic sizes: the entry to that schema.
#include <deque>

#include "engine/schema/custom_table.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/op_rules.h"
#include "engine/symbolic/plain_call.h"

namespace tt {

// The other schema has the custom operators, and rejects them before it calls this one.
void infer_custom(const Op&, Args, Inference*) {
  fail(ErrorKind::kNotImplemented, "a custom operator has no symbolic rules");
}
void check_custom_gradient(const Op&) {}

}  // namespace tt

namespace symbolic {
namespace {

using tt::SymInt;

// Owns what the Args of a call refer to.
class Arguments {
 public:
  explicit Arguments(const std::vector<PlainArg>& plain) {
    for (const PlainArg& arg : plain) args_.push_back(std::visit([this](const auto& v) { return keep(v); }, arg));
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  tt::Args args() const { return args_; }

 private:
  tt::Arg keep(std::monostate) { return {}; }
  tt::Arg keep(bool v) { return tt::Arg(v); }
  tt::Arg keep(int64_t v) { return tt::Arg(SymInt::of_number(v)); }
  tt::Arg keep(Unsigned v) { return tt::Arg(tt::Scalar::of_unsigned(v.value)); }
  tt::Arg keep(double v) { return tt::Arg(v); }
  tt::Arg keep(const std::complex<double>& v) { return tt::Arg(v); }
  tt::Arg keep(const std::string& v) { return tt::Arg(std::string_view(v)); }
  tt::Arg keep(const std::vector<double>& v) { return tt::Arg(absl::Span<const double>(v)); }
  tt::Arg keep(const std::vector<int64_t>& v) { return tt::Arg(tt::SizesView(ints_.emplace_back(dims(v)))); }
  tt::Arg keep(const PlainMeta& v) { return tt::Arg(meta(v)); }
  tt::Arg keep(const std::vector<std::optional<PlainMeta>>& list) {
    auto& kept = lists_.emplace_back();
    for (const auto& v : list) kept.push_back(v ? meta(*v) : nullptr);
    return tt::Arg(absl::Span<const tt::TensorMeta* const>(kept));
  }

  template <typename List>
  static tt::Sizes dims(const List& numbers) {
    tt::Sizes made;
    for (const int64_t number : numbers) made.push_back(SymInt::of_number(number));
    return made;
  }
  const tt::TensorMeta* meta(const PlainMeta& v) {
    tt::TensorMeta& made = metas_.emplace_back();
    made.dtype = static_cast<tt::DType>(v.dtype);
    made.device = tt::decode_device(v.device);
    made.requires_grad = v.requires_grad;
    made.is_number = v.is_number;
    made.sizes = dims(v.sizes);
    made.strides = dims(v.strides);
    made.offset = SymInt::of_number(v.offset);
    return &made;
  }

  std::vector<tt::Arg> args_;
  std::deque<tt::TensorMeta> metas_;
  std::deque<std::vector<const tt::TensorMeta*>> lists_;
  std::deque<tt::Sizes> ints_;
};

PlainMeta plain(const tt::TensorMeta& meta) {
  PlainMeta made;
  made.dtype = static_cast<uint8_t>(meta.dtype);
  made.device = meta.device.encode();
  made.requires_grad = meta.requires_grad;
  made.is_number = meta.is_number;
  for (const SymInt size : meta.sizes) made.sizes.push_back(size.number());
  for (const SymInt stride : meta.strides) made.strides.push_back(stride.number());
  made.offset = meta.offset.number();
  return made;
}

}  // namespace

PlainInference infer_symbolic(const PlainCall& call) {
  std::vector<tt::Param> params(call.params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].type = static_cast<tt::ParamType>(call.params[i].type);
    params[i].differentiable = call.params[i].differentiable;
  }
  tt::Op op{};
  op.id = call.op;
  op.params = params;
  op.is_pointwise = call.is_pointwise;
  op.is_view = call.is_view;
  op.any_devices = call.any_devices;
  op.takes_float8 = call.takes_float8;
  op.differentiable = call.differentiable;
  op.infer = tt::op_rules::find(call.op);
  try {
    const tt::DefaultFloat default_float(static_cast<tt::DType>(call.default_float));
    const Arguments arguments(call.args);
    tt::Inference inferred;
    tt::infer(op, arguments.args(), call.grad_enabled, &inferred);
    PlainInference made{{},
                        inferred.alias,
                        inferred.requires_grad,
                        static_cast<uint8_t>(inferred.compute),
                        static_cast<uint8_t>(inferred.backend),
                        inferred.device.encode()};
    for (const tt::TensorMeta& output : inferred.outputs) made.outputs.push_back(plain(output));
    return made;
  } catch (const tt::Error& error) {
    throw PlainError(static_cast<uint8_t>(error.kind()), error.message());
  }
}

}  // namespace symbolic
