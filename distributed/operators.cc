#include "distributed/operators.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "distributed/collective_call.h"
#include "distributed/flat_tensor.h"
#include "distributed/group_formation.h"
#include "distributed/group_service.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/new_results.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt::distributed {
namespace {

constexpr Device kCPU{};

GroupService& service() {
  auto* found = Context::current().services.find<GroupService>();
  check(found != nullptr, "process groups require a session");
  return *found;
}

std::string describe(uint32_t site) {
  const Context& context = Context::current();
  return context.describe_site ? context.describe_site(site) : "";
}

std::string site() { return describe(Context::current().site); }

Tensors tensors(const Call& call, size_t i) {
  Tensors list;
  for (const TensorMeta* t : call.args[i].list()) {
    check(ErrorKind::kNotImplemented, t == nullptr || !is_plugin(t->device.type), "[", call.op->name,
          "] process groups communicate from the CPU or a GPU, not from ", t == nullptr ? Device{} : t->device,
          "; copy the tensor with .cpu()");
    list.push_back(Tensor::from(t));
  }
  return list;
}

std::string text(const Call& call, size_t i) { return std::string(call.args[i].string()); }

// Returns the number in the result of group_create or store_serve.
int64_t group_number(const Tensor& tensor) {
  check(ErrorKind::kValue,
        tensor.device().type == DeviceType::kCPU && tensor.dtype() == DType::kInt64 && tensor.numel() == 1,
        "expected the tensor that group_create or store_serve returned");
  return *tensor.data_as<int64_t>();
}

std::shared_ptr<ProcessGroup> group(const Call& call, int i) { return service().group(group_number(call.tensor(i))); }

// Sets the operator's result, a tensor with one number.
template <typename T>
void set_result(Call& call, T value) {
  allocate_outputs(call);
  *call.outputs[0].data_as<T>() = value;
}

// Runs or starts a collective, depending on `work`.
template <typename Make>
void run(Call& call, int64_t work, Make make) {
  if (work != 0) {
    service().start(work, [&] { return start(make(), site()); });
  } else {
    service().run([&] { return start(make(), site()); });
  }
  set_result<int64_t>(call, 0);
}

// Runs a collective whose output is the operator's result. The result is allocated once, although the instruction runs
// again after its suspension.
template <typename Make>
void run_into_result(Call& call, Make make) {
  call.outputs = service().run([&] {
    allocate_outputs(call);
    const Tensor result = call.outputs[0];
    PendingCall pending = start(make(result), site());
    pending.results = {result};
    return pending;
  });
}

void check_ranks(const ProcessGroup& group, int64_t ranks) {
  check(ErrorKind::kValue, ranks == group.size(), "expected the number of the group's ranks (", group.size(), "), got ",
        ranks);
}

void store_serve(Call& call) { set_result<int64_t>(call, service().serve_store(text(call, 0), text(call, 1))); }

void store_release(Call& call) { service().release_store(group_number(call.tensor(0))); }

void group_records(Call& call) {
  const std::shared_ptr<ProcessGroup> group = distributed::group(call, 0);
  check_rank(*group, call.args[1].integer);
  const std::string text = group->records(static_cast<int>(call.args[1].integer));
  call.outputs.assign(1, empty({static_cast<int64_t>(text.size())}, DType::kUInt8, kCPU));
  std::memcpy(call.outputs[0].data(), text.data(), text.size());
}

void group_create(Call& call) {
  const int64_t number = call.args[0].integer;
  const auto create = [&] {
    const std::string address = text(call, 1);
    const std::string token = text(call, 2);
    ProcessGroup::Options options;
    options.name = text(call, 3);
    const int64_t rank = call.args[4].integer;
    const int64_t size = call.args[5].integer;
    const double timeout = call.args[6].to_double();
    const std::string backend = text(call, 7);
    constexpr int64_t kMaxSize = 65'536;
    check(ErrorKind::kValue, size >= 1 && size <= kMaxSize && rank >= 0 && rank < size,
          "expected a rank below the size, "
          "and a size from 1 to ",
          kMaxSize, ", got rank ", rank, " and size ", size);
    check(ErrorKind::kValue, timeout > 0 && timeout <= 1e7, "expected a timeout of at most 1e7 seconds, got ", timeout);
    check(ErrorKind::kValue, backend.empty() || backend == "gloo" || backend == "shm",
          "expected backend \"gloo\", \"shm\" or \"\", got \"", backend, "\"");
    options.rank = static_cast<int>(rank);
    options.size = static_cast<int>(size);
    options.timeout = std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(timeout * 1000)));
    options.threads = service().threads();
    auto group = make_group(options, service().notifier());
    const GroupPlace place{address, token, backend};
    service().add_group(number, group, place);
    auto work = form_group(*group, place, service().peers());
    return PendingCall{std::move(group), std::move(work), {}, [number] { service().destroy_group(number); }};
  };
  service().run(create);
  set_result<int64_t>(call, number);
}

void group_destroy(Call& call) { service().destroy_group(group_number(call.tensor(0))); }

void group_abort(Call& call) { group(call, 0)->abort(text(call, 1)); }

void group_all_reduce(Call& call) {
  run(call, call.args[4].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kAllReduce,
                          .outputs = tensors(call, 0),
                          .inputs = {},
                          .group = group(call, 1),
                          .reduction = {{call.args[2].string(), call.args[3].to_double()}}};
  });
}

void group_reduce(Call& call) {
  run(call, call.args[5].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kReduce,
                          .outputs = tensors(call, 0),
                          .inputs = {},
                          .group = group(call, 1),
                          .root = call.args[4].integer,
                          .reduction = {{call.args[2].string(), call.args[3].to_double()}}};
  });
}

void group_broadcast(Call& call) {
  run(call, call.args[3].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kBroadcast,
                          .outputs = tensors(call, 0),
                          .inputs = {},
                          .group = group(call, 1),
                          .root = call.args[2].integer,
                          .reduction = {}};
  });
}

void group_all_gather(Call& call) {
  run(call, call.args[3].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kAllGather,
                          .outputs = tensors(call, 0),
                          .inputs = tensors(call, 1),
                          .group = group(call, 2),
                          .reduction = {}};
  });
}

void group_gather(Call& call) {
  run(call, call.args[4].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kGather,
                          .outputs = tensors(call, 0),
                          .inputs = tensors(call, 1),
                          .group = group(call, 2),
                          .root = call.args[3].integer,
                          .reduction = {}};
  });
}

void group_scatter(Call& call) {
  run(call, call.args[4].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kScatter,
                          .outputs = tensors(call, 0),
                          .inputs = tensors(call, 1),
                          .group = group(call, 2),
                          .root = call.args[3].integer,
                          .reduction = {}};
  });
}

void group_reduce_scatter(Call& call) {
  run(call, call.args[5].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kReduceScatter,
                          .outputs = tensors(call, 0),
                          .inputs = tensors(call, 1),
                          .group = group(call, 2),
                          .reduction = {{call.args[3].string(), call.args[4].to_double()}}};
  });
}

void group_all_to_all(Call& call) {
  run(call, call.args[3].integer, [&] {
    return CollectiveCall{.kind = CollectiveKind::kAllToAll,
                          .outputs = tensors(call, 0),
                          .inputs = tensors(call, 1),
                          .group = group(call, 2),
                          .reduction = {}};
  });
}

void group_barrier(Call& call) {
  run(call, call.args[1].integer, [&] {
    return CollectiveCall{
        .kind = CollectiveKind::kBarrier, .outputs = {}, .inputs = {}, .group = group(call, 0), .reduction = {}};
  });
}

void group_reduced(Call& call) {
  run_into_result(call, [&](const Tensor& result) {
    copy_into(result, call.tensor(0));
    return CollectiveCall{.kind = CollectiveKind::kAllReduce,
                          .outputs = {result},
                          .inputs = {},
                          .group = group(call, 1),
                          .reduction = {{call.args[2].string(), 1}}};
  });
}

void group_gathered(Call& call) {
  run_into_result(call, [&](const Tensor& result) {
    CollectiveCall collective{.kind = CollectiveKind::kAllGather,
                              .outputs = {},
                              .inputs = {call.tensor(0)},
                              .group = group(call, 1),
                              .reduction = {}};
    check_ranks(*collective.group, call.args[3].integer);
    collective.outputs = parts_of(result, call.args[2].integer, call.args[3].integer);
    return collective;
  });
}

void group_scattered(Call& call) {
  const std::shared_ptr<ProcessGroup> group = distributed::group(call, 1);
  const int64_t ranks = call.args[3].integer;
  check_ranks(*group, ranks);
  const Tensors parts = parts_of(call.tensor(0), call.args[2].integer, ranks);
  if (!call.args[4].to_bool()) {
    allocate_outputs(call);
    return copy_into(call.outputs[0], parts[static_cast<size_t>(group->rank())]);
  }
  run_into_result(call, [&](const Tensor& result) {
    return CollectiveCall{.kind = CollectiveKind::kReduceScatter,
                          .outputs = {result},
                          .inputs = parts,
                          .group = group,
                          .reduction = {{"sum", 1}}};
  });
}

void group_exchanged(Call& call) {
  run_into_result(call, [&](const Tensor& result) {
    const int64_t ranks = call.args[4].integer;
    CollectiveCall collective{
        .kind = CollectiveKind::kAllToAll, .outputs = {}, .inputs = {}, .group = group(call, 1), .reduction = {}};
    check_ranks(*collective.group, ranks);
    collective.inputs = parts_of(call.tensor(0), call.args[2].integer, ranks);
    collective.outputs = parts_of(result, call.args[3].integer, ranks);
    return collective;
  });
}

int checked_peer(const ProcessGroup& group, int64_t peer) {
  check_rank(group, peer);
  check(ErrorKind::kValue, peer != group.rank(), "expected another rank than this one, got ", peer);
  return static_cast<int>(peer);
}

uint32_t checked_tag(int64_t tag) {
  check(ErrorKind::kValue, tag >= 0 && tag <= UINT32_MAX, "expected a tag from 0 to 2^32 - 1, got ", tag);
  return static_cast<uint32_t>(tag);
}

// Returns the text that a receiver gets instead of a failed tensor.
std::string failed_message(const ProcessGroup& group, std::string_view message, const std::string& site) {
  return absl::StrCat("rank ", group.rank(), " sent a failed tensor (", site, "): ", message_part(message));
}

constexpr int64_t kAnyRank = -1;  // the peer of a receive from any rank

// Starts to send or receive tensors.
PendingCall start_message(Call& call, bool receives) {
  std::shared_ptr<ProcessGroup> group = distributed::group(call, 1);
  const bool from_any = receives && call.args[2].integer == kAnyRank;
  const int peer = from_any ? 0 : checked_peer(*group, call.args[2].integer);
  const uint32_t tag = checked_tag(call.args[3].integer);
  const Tensors list = tensors(call, 0);
  const FlatTensor flat(list, common_dtype(list, {}));
  ProcessGroup::Message message;
  message.peer = peer;
  message.tag = tag;
  try {
    if (!receives) flat.copy_from_parts();
  } catch (const Error& error) {
    message.failure = failed_message(*group, error.message(), site());
    group->send(std::move(message));
    throw;
  }
  message.dtype = flat.tensor().dtype();
  message.bytes = flat.data();
  message.size = static_cast<size_t>(flat.tensor().numel()) * item_size(message.dtype);
  message.site = site();
  message.tensors = {flat.tensor()};
  auto work = from_any   ? group->receive_any(std::move(message))
              : receives ? group->receive(std::move(message))
                         : group->send(std::move(message));
  PendingCall pending{std::move(group), std::move(work)};
  if (receives && flat.is_copy()) pending.complete = [flat] { flat.copy_to_parts(); };
  return pending;
}

void run_message(Call& call, bool receives) {
  const int64_t work = call.args[4].integer;
  if (work != 0) {
    service().start(work, [&] { return start_message(call, receives); });
  } else {
    service().run([&] { return start_message(call, receives); });
  }
  const int64_t peer = call.args[2].integer;
  set_result<int64_t>(call, peer == kAnyRank && work == 0 ? service().value() : peer);
}

void group_send(Call& call) { run_message(call, false); }

void group_receive(Call& call) { run_message(call, true); }

void group_wait(Call& call) {
  service().wait(call.args[1].integer);
  set_result<int64_t>(call, service().value());  // the sender's rank after a receive from any rank, otherwise 0
}

void group_is_completed(Call& call) { set_result<bool>(call, service().is_completed(call.args[0].integer)); }

void reducer_create(Call& call) {
  const Tensors parameters = tensors(call, 1);
  for (const Tensor& p : parameters) {
    check(p.requires_grad() && p->is_leaf(), "expected leaf tensors that require grad");
  }
  Reducer::Options options;
  const int64_t first = call.args[3].integer;
  const int64_t others = call.args[4].integer;
  check(ErrorKind::kValue, first > 0 && others > 0, "expected positive bucket sizes, got ", first, " and ", others);
  options.first_bucket_bytes = static_cast<size_t>(first);
  options.bucket_bytes = static_cast<size_t>(others);
  if (!call.args[5].is_none()) options.wire_dtype = call.args[5].dtype();
  service().add_reducer(
      call.args[0].integer,
      std::make_shared<Reducer>(group(call, 2), std::vector<Tensor>(parameters.begin(), parameters.end()), options));
  set_result<int64_t>(call, call.args[0].integer);
}

void reducer_prepare(Call& call) { service().reducer(call.args[0].integer)->prepare(call.args[1].to_bool()); }

void reducer_finish(Call& call) {
  const std::shared_ptr<Reducer>& reducer = service().reducer(call.args[1].integer);
  const int64_t count = call.args[2].integer;
  const Tensors gradients = tensors(call, 0);
  check(ErrorKind::kValue,
        count == 0 ||
            (count == static_cast<int64_t>(reducer->num_parameters()) && gradients.size() == reducer->num_parameters()),
        "expected the gradients of ", reducer->num_parameters(), " parameters, got ", gradients.size(), " and count ",
        count);
  if (const std::shared_ptr<Work> work = reducer->finish(count == 0 ? Tensors() : gradients)) {
    if (!cancel_requested()) throw Suspended{work};
    reducer->group().abort("the backward pass was cancelled");
    check_cancelled();
  }
  allocate_outputs(call);
  if (count != 0) copy_into(call.outputs[0], reducer->num_used());
}

void reducer_destroy(Call& call) { service().destroy_reducer(call.args[0].integer); }

struct Entry {
  uint16_t op;
  Kernel kernel;
  std::optional<CollectiveKind> kind;  // of a collective that all ranks enter
};

constexpr Entry kOperators[] = {
    {op_id::kStoreServe, &with_new_results<&store_serve>, std::nullopt},
    {op_id::kStoreRelease, &with_new_results<&store_release>, std::nullopt},
    {op_id::kGroupRecords, &with_new_results<&group_records>, std::nullopt},
    {op_id::kGroupCreate, &with_new_results<&group_create>, std::nullopt},
    {op_id::kGroupDestroy, &with_new_results<&group_destroy>, std::nullopt},
    {op_id::kGroupAbort, &with_new_results<&group_abort>, std::nullopt},
    {op_id::kGroupAllReduce, &with_new_results<&group_all_reduce>, CollectiveKind::kAllReduce},
    {op_id::kGroupReduce, &with_new_results<&group_reduce>, CollectiveKind::kReduce},
    {op_id::kGroupBroadcast, &with_new_results<&group_broadcast>, CollectiveKind::kBroadcast},
    {op_id::kGroupAllGather, &with_new_results<&group_all_gather>, CollectiveKind::kAllGather},
    {op_id::kGroupGather, &with_new_results<&group_gather>, CollectiveKind::kGather},
    {op_id::kGroupScatter, &with_new_results<&group_scatter>, CollectiveKind::kScatter},
    {op_id::kGroupReduceScatter, &with_new_results<&group_reduce_scatter>, CollectiveKind::kReduceScatter},
    {op_id::kGroupAllToAll, &with_new_results<&group_all_to_all>, CollectiveKind::kAllToAll},
    {op_id::kGroupReduced, &with_new_results<&group_reduced>, CollectiveKind::kAllReduce},
    {op_id::kGroupGathered, &with_new_results<&group_gathered>, CollectiveKind::kAllGather},
    {op_id::kGroupScattered, &with_new_results<&group_scattered>, CollectiveKind::kReduceScatter},
    {op_id::kGroupExchanged, &with_new_results<&group_exchanged>, CollectiveKind::kAllToAll},
    {op_id::kGroupSend, &with_new_results<&group_send>, std::nullopt},
    {op_id::kGroupReceive, &with_new_results<&group_receive>, std::nullopt},
    {op_id::kGroupBarrier, &with_new_results<&group_barrier>, CollectiveKind::kBarrier},
    {op_id::kGroupWait, &with_new_results<&group_wait>, std::nullopt},
    {op_id::kGroupIsCompleted, &with_new_results<&group_is_completed>, std::nullopt},
    {op_id::kReducerCreate, &with_new_results<&reducer_create>, std::nullopt},
    {op_id::kReducerPrepare, &with_new_results<&reducer_prepare>, std::nullopt},
    {op_id::kReducerFinish, &with_new_results<&reducer_finish>, std::nullopt},
    {op_id::kReducerDestroy, &with_new_results<&reducer_destroy>, std::nullopt},
};

}  // namespace

void register_distributed(Dispatcher& dispatcher) {
  for (const Entry& entry : kOperators) {
    dispatcher.set(entry.op, Key::kCPU, entry.kernel);
    dispatcher.set(entry.op, Key::kCUDA, entry.kernel);
    dispatcher.set_suspending(entry.op);
  }
}

namespace {

// Sends an error instead of a failed tensor, so that the receiver does not wait for it.
void send_error(GroupService& service, Args args, const Error& error, uint32_t site) {
  const bool is_complete = args.size() == 5 && args[1].kind == Arg::Kind::kTensor && args[1].tensor != nullptr &&
                           args[2].kind == Arg::Kind::kInt && args[3].kind == Arg::Kind::kInt;
  if (!is_complete) return;
  const std::shared_ptr<ProcessGroup> group = service.group(group_number(Tensor::from(args[1].tensor)));
  ProcessGroup::Message message;
  message.peer = checked_peer(*group, args[2].integer);
  message.tag = checked_tag(args[3].integer);
  message.failure = failed_message(*group, error.message(), describe(site));
  group->send(std::move(message));
}

}  // namespace

void enter_with_error(GroupService& service, const Op& op, Args args, const Error& error, uint32_t site) {
  if (op.id == op_id::kGroupWait) {
    if (args.size() > 1 && args[1].kind == Arg::Kind::kInt) service.drop(args[1].integer);
    return;
  }
  if (op.id == op_id::kReducerFinish) {
    if (args.size() != 3 || args[1].kind != Arg::Kind::kInt || args[2].kind != Arg::Kind::kInt) return;
    return service.reducer(args[1].integer)->skip(error, describe(site), args[2].integer != 0);
  }
  if (op.id == op_id::kGroupSend) return send_error(service, args, error, site);
  const auto* entry =
      std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Entry& e) { return e.op == op.id; });
  if (entry == std::end(kOperators) || !entry->kind) return;
  if (op.id == op_id::kGroupScattered && !(args.size() == 5 && args[4].to_bool())) return;  // not a collective
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].name != std::string_view("group") || args[i].kind != Arg::Kind::kTensor) continue;
    if (args[i].tensor == nullptr) return;
    ProcessGroup::Request request;
    request.collective.kind = *entry->kind;
    request.site = describe(site);
    request.failure = error.message();
    service.group(group_number(Tensor::from(args[i].tensor)))->start(std::move(request));
  }
}

}  // namespace tt::distributed
