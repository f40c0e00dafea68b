#include "client/api/dispatch.h"

#include "client/api/errors.h"
#include "client/api/session.h"
#include "client/session/autocast.h"
#include "client/session/call_mode.h"
#include "client/session/session.h"
#include "engine/schema/op.h"

namespace teletensor::internal {
namespace {

tt::client::Session& session_for(tt::Args args) {
  for (const tt::Arg& arg : args) {
    if (arg.kind == tt::Arg::Kind::kTensor) return *static_cast<const tt::client::Handle*>(arg.tensor)->session;
    if (arg.kind != tt::Arg::Kind::kTensors) continue;
    for (const tt::TensorMeta* tensor : arg.list()) {
      if (tensor) return *static_cast<const tt::client::Handle*>(tensor)->session;
    }
  }
  return current_session();
}

tt::client::Tensors call_in(tt::client::Session& session, uint16_t op, tt::Args args,
                            absl::Span<const tt::client::Tensor> into = {}) {
  try {
    return session.call(*tt::find_op(op), args,
                        {.grad = tt::client::call_mode.grad,
                         .inference = tt::client::call_mode.inference,
                         .site = current_site(session),
                         .into = into,
                         .autocast = tt::client::autocast_settings().state()});
  } catch (const tt::Error& error) {
    throw_translated(error);
  }
}

}  // namespace

tt::client::Tensors call_all(uint16_t op, tt::Args args) { return call_in(session_for(args), op, args); }

Tensor call(uint16_t op, tt::Args args) { return Tensor(std::move(call_in(session_for(args), op, args)[0])); }

std::vector<Tensor> call_list(uint16_t op, tt::Args args) {
  tt::client::Tensors results = call_all(op, args);
  std::vector<Tensor> tensors;
  tensors.reserve(results.size());
  for (tt::client::Tensor& result : results) tensors.emplace_back(std::move(result));
  return tensors;
}

void call_to(uint16_t op, tt::Args args, Tensor* results, size_t count) {
  tt::client::Tensors called = call_all(op, args);
  for (size_t i = 0; i < count; ++i) results[i] = Tensor(std::move(called[i]));
}

Tensor call_into(uint16_t op, tt::Args args, const tt::client::Tensor& into) {
  if (!into) throw RuntimeError("expected a tensor to write to, got an undefined Tensor");
  call_in(*into->session, op, args, {&into, 1});
  return Tensor(into);
}

}  // namespace teletensor::internal
