#include "distributed/pull_operators.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/pull_service.h"
#include "engine/dispatch/new_results.h"
#include "engine/dispatch/ops.h"
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

// Waits for the device.
Tensor contiguous_on_cpu(const Tensor& input) {
  const Tensor copy = ops::to_device(detach(input), Device{});
  if (copy.is_contiguous()) return copy;
  Tensor packed = empty(copy.sizes(), copy.dtype(), Device{});
  copy_into(packed, copy);
  return packed;
}

// Returns a copy on the CPU, or the error that a device has reported after the tensor's computation.
OfferedValue snapshot(const Tensor& input) {
  Context& context = Context::current();
  OfferedValue value;
  if (input.device().type == DeviceType::kCPU) {
    value.tensor = empty(input.sizes(), input.dtype(), Device{});
    copy_into(value.tensor, input);
  } else {
    value.tensor = contiguous_on_cpu(input);
  }
  if (context.has_async_errors()) {
    if (const auto poison = context.async_errors().find_error(input->storage->pending_errors)) {
      value.error = Error(poison->kind, poison->message);
    }
  }
  return value;
}

void pull_offer(Call& call) {
  const std::string capability = text(call, 1);
  const double timeout = call.args[2].to_double();
  OfferedValue value;
  try {
    value = snapshot(call.tensor(0));
  } catch (const Error& error) {  // there is no memory for the copy
    service().offer(capability, {Tensor(), error}, timeout);
    throw;
  }
  service().offer(capability, std::move(value), timeout);
  allocate_outputs(call);
  *call.outputs[0].data_as<int64_t>() = 0;
}

void pull_withdraw(Call& call) { service().withdraw(text(call, 0)); }

void pull(Call& call) {
  PullCall::Source source;
  source.address = text(call, 0);
  source.token = text(call, 1);
  source.capability = text(call, 2);
  source.timeout = checked_timeout(call.args[6].to_double());
  const TensorMeta& meta = call.inferred.outputs[0];
  Tensor value = service().pull(source, meta.sizes, meta.dtype);
  call.outputs.resize(1);
  call.outputs[0] = meta.device.type == DeviceType::kCPU ? std::move(value) : ops::to_device(value, meta.device);
}

}  // namespace

void register_pull(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kPullServe, key, &with_new_results<&pull_serve>);
    dispatcher.set(op_id::kPullOffer, key, &with_new_results<&pull_offer>);
    dispatcher.set(op_id::kPullWithdraw, key, &with_new_results<&pull_withdraw>);
    dispatcher.set(op_id::kPull, key, &with_new_results<&pull>);
  }
  dispatcher.set_suspending(op_id::kPull);
}

}  // namespace tt::distributed
