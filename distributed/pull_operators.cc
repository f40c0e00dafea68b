#include "distributed/pull_operators.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/pull_service.h"
#include "engine/program/poison.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt::distributed {
namespace {

PullService& service() {
  auto* found = Context::current().services.find<PullService>();
  check(found != nullptr, "copies between engines require a session");
  return *found;
}

std::string text(const Call& call, size_t i) { return std::string(call.args[i].string()); }

void pull_serve(Call& call) {
  const PullServer& server = service().serve(text(call, 0));
  const std::string result = absl::StrCat(server.address(), " ", server.token());
  allocate_outputs(call);
  const auto room = static_cast<size_t>(call.outputs[0].numel());
  check(result.size() < room, "the address of this engine is too long: ", server.address());
  std::memset(call.outputs[0].data(), 0, room);
  std::memcpy(call.outputs[0].data(), result.data(), result.size());
}

// Returns a copy on the CPU, or the error that a device has reported after the tensor's computation.
OfferedValue snapshot(const Tensor& input) {
  Context& context = Context::current();
  OfferedValue value;
  value.tensor = empty(input.sizes(), input.dtype(), Device{});
  copy_into(value.tensor, input);
  if (context.has_async_errors()) {
    if (const auto poison = context.async_errors().find_error(input->storage->pending_errors)) {
      value.error = Error(poison->kind, poison->message);
    }
  }
  return value;
}

void pull_offer(Call& call) {
  service().offer(text(call, 1), snapshot(call.tensor(0)), call.args[2].to_double());
  allocate_outputs(call);
  *call.outputs[0].data_as<int64_t>() = 0;
}

void pull_withdraw(Call& call) { service().withdraw(text(call, 0)); }

void pull(Call& call) {
  PullCall::Source source;
  source.address = text(call, 0);
  source.token = text(call, 1);
  source.capability = text(call, 2);
  source.timeout = PullService::checked_timeout(call.args[6].to_double());
  const TensorMeta& meta = call.inferred.outputs[0];
  Tensor value = service().pull(source, meta.sizes, meta.dtype);
  if (meta.device.type == DeviceType::kCPU) {
    call.outputs.resize(1);
    call.outputs[0] = std::move(value);
  } else {
    allocate_outputs(call);
    copy_into(call.outputs[0], value);
  }
}

// Rejects out tensors before the kernel has an effect.
template <Kernel kKernel>
void with_new_results(Call& call) {
  check(ErrorKind::kNotImplemented, !call.into, "this operator does not accept existing results");
  kKernel(call);
}

}  // namespace

void register_pull(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kPullServe, key, &with_new_results<&pull_serve>);
    dispatcher.set(op_id::kPullOffer, key, &with_new_results<&pull_offer>);
    dispatcher.set(op_id::kPullWithdraw, key, &with_new_results<&pull_withdraw>);
    dispatcher.set(op_id::kPull, key, &with_new_results<&pull>);
  }
}

}  // namespace tt::distributed
