#include "distributed/collective_call.h"

#include <algorithm>

#include "distributed/flat_tensor.h"
#include "distributed/group/device_copy.h"
#include "distributed/group/reduce.h"
#include "distributed/group/scale.h"
#include "engine/session/context.h"

namespace tt::distributed {
namespace {

constexpr Device kCPU{};

// A reduction, parsed from the client's name for it.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  double factor = 1;  // of the input
  bool average = false;
};

Reduction parse_reduction(std::string_view name, double factor, DType dtype) {
  constexpr std::pair<std::string_view, ReduceOp> kOps[] = {
      {"sum", ReduceOp::kSum},         {"avg", ReduceOp::kSum}, {"premul_sum", ReduceOp::kSum},
      {"product", ReduceOp::kProduct}, {"min", ReduceOp::kMin}, {"max", ReduceOp::kMax},
      {"band", ReduceOp::kBand},       {"bor", ReduceOp::kBor}, {"bxor", ReduceOp::kBxor},
  };
  const auto* found = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& op) { return op.first == name; });
  check(ErrorKind::kValue, found != std::end(kOps),
        "expected sum, avg, product, min, max, band, bor, bxor or premul_sum, got \"", name, "\"");
  Reduction reduction;
  reduction.op = found->second;
  reduction.average = name == "avg";
  if (name == "premul_sum") reduction.factor = factor;
  check_reduction(reduction.op, dtype);
  const bool scales = reduction.average || name == "premul_sum";
  check(ErrorKind::kRuntime, !scales || has_gradients(dtype), "\"", name, "\" requires a floating or complex dtype, got ",
        dtype);
  return reduction;
}

void check_count(bool ok, const CollectiveCall& call, std::string_view expected) {
  check(ErrorKind::kValue, ok, "expected ", expected, ", got ", items(call.inputs), " in the inputs and ",
        items(call.outputs), " in the outputs, for ", call.group->size(), " ranks");
}

}  // namespace

void check_rank(const ProcessGroup& group, int64_t rank) {
  check(ErrorKind::kValue, rank >= 0 && rank < group.size(), "expected a rank from 0 to ", group.size() - 1, ", got ",
        rank);
}

PendingCall start(const CollectiveCall& call, const std::string& site) {
  const ProcessGroup& group = *call.group;
  const auto ranks = static_cast<size_t>(group.size());
  const bool is_root = call.root == group.rank();
  check_rank(group, call.root);
  const DType dtype = common_dtype(call.outputs, call.inputs);
  ProcessGroup::Request request;
  Collective& c = request.collective;
  c.kind = call.kind;
  c.dtype = dtype;
  c.root = static_cast<int>(call.root);
  const bool scales = call.reduction && call.reduction->first == "premul_sum";  // on the host
  const Device device = scales ? kCPU : common_gpu(call.outputs, call.inputs);
  FlatTensor input, output;
  const bool in_place = call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kReduce ||
                        call.kind == CollectiveKind::kBroadcast;
  if (in_place || !call.outputs.empty()) output = FlatTensor(call.outputs, dtype, device);
  if (!in_place && !call.inputs.empty()) input = FlatTensor(call.inputs, dtype, device);
  const size_t in = items(call.inputs);
  const size_t out = items(call.outputs);
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
      c.count = out;
      input = output;
      break;
    case CollectiveKind::kAllGather:
      check_count(out == in * ranks, call, "outputs with the elements of all ranks' inputs");
      c.count = in;
      break;
    case CollectiveKind::kGather:
      check_count(out == (is_root ? in * ranks : 0), call,
                  "outputs with the elements of all ranks' inputs at the root only");
      c.count = in;
      break;
    case CollectiveKind::kScatter:
      check_count(in == (is_root ? out * ranks : 0), call,
                  "inputs with the elements of all ranks' outputs at the root only");
      c.count = out;
      break;
    case CollectiveKind::kReduceScatter:
      check_count(in == out * ranks, call, "inputs with the elements of all ranks' outputs");
      c.count = out;
      break;
    case CollectiveKind::kAllToAll:
      check(ErrorKind::kValue, call.inputs.size() == ranks && call.outputs.size() == ranks, "expected ", ranks,
            " inputs and outputs, one per rank, got ", call.inputs.size(), " and ", call.outputs.size());
      for (const Tensor& t : call.inputs) c.send_counts.push_back(static_cast<size_t>(t.numel()));
      for (const Tensor& t : call.outputs) c.receive_counts.push_back(static_cast<size_t>(t.numel()));
      break;
    case CollectiveKind::kBarrier: break;
  }
  Reduction reduction;
  if (call.reduction) {
    reduction = parse_reduction(call.reduction->first, call.reduction->second, dtype);
    c.op = reduction.op;
    if (reduction.average) request.divisor = group.size();
  }
  if (reduction.factor != 1 && input.tensor()) {
    input.separate();
    if (in_place) output = input;
  }
  const bool reads = !in_place || call.kind != CollectiveKind::kBroadcast || is_root;
  try {
    if (reads && device != kCPU) check_values(in_place ? call.outputs : call.inputs, device);
    if (reads && input.tensor()) input.copy_from_parts();
  } catch (const Error& error) {
    ProcessGroup::Request failed;
    failed.collective.kind = call.kind;
    failed.site = site;
    failed.failure = error.message();
    call.group->start(std::move(failed));
    throw;
  }
  if (reduction.factor != 1 && input.tensor()) {
    multiply(dtype, input.data(), static_cast<size_t>(input.tensor().numel()), reduction.factor);
  }
  c.input = input.data();
  const bool writes = is_root || (call.kind != CollectiveKind::kReduce && call.kind != CollectiveKind::kGather);
  c.output = writes ? output.data() : nullptr;
  request.site = site;
  if (device != kCPU) {
    request.device = device;
    request.ready = Context::current().stream(device).record();
  }
  for (const Tensor& t : {input.tensor(), output.tensor()}) {
    if (t) request.tensors.push_back(t);
  }
  PendingCall pending{call.group, call.group->start(std::move(request))};
  if (writes && output.is_copy()) pending.complete = [output] { output.copy_to_parts(); };
  return pending;
}

}  // namespace tt::distributed
