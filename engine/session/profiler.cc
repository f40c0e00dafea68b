#include "engine/session/profiler.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "engine/dispatch/new_results.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt {
namespace {

constexpr uint64_t kMagic = 0x34464f5250545454;  // "TTTPROF4"
constexpr uint64_t kMaxEvents = uint64_t{1} << 24;
static_assert(sizeof(Profiler::Event) == 48 && sizeof(Profiler::Frame) == 48);

int64_t allocated() {
  const Account* account = Context::current().account.get();
  return account == nullptr ? 0 : static_cast<int64_t>(account->held());
}

void append(std::string* out, const void* data, size_t size) { out->append(static_cast<const char*>(data), size); }

template <typename T>
void append(std::string* out, const std::vector<T>& values) {
  append(out, values.data(), values.size() * sizeof(T));
}

bool is_in_place(const Call& call) {
  return call.into && !call.outputs.empty() && !call.args.empty() && call.args[0].kind == Arg::Kind::kTensor &&
         call.args[0].tensor == call.outputs[0].get();
}

// Calls `visit` with each tensor argument, which may be null.
template <typename F>
void for_each_tensor(const Call& call, const F& visit) {
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor) visit(arg.tensor);
    if (arg.kind == Arg::Kind::kTensors) {
      for (const TensorMeta* tensor : arg.list()) visit(tensor);
    }
  }
}

uint32_t ranks(const Call& call) {
  constexpr size_t kMost = 15;
  size_t count = 0, dims[2] = {0, 0};
  for_each_tensor(call, [&](const TensorMeta* tensor) {
    if (tensor == nullptr) return;
    if (count < 2) dims[count] = std::min(tensor->sizes.size(), kMost);
    ++count;
  });
  return Profiler::kRanks | static_cast<uint32_t>(std::min(count, kMost) << 8 | dims[0] << 4 | dims[1]);
}

// As a JSON string. Names of kernels and messages are ASCII.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out + "\"";
}

}  // namespace

uint64_t Profiler::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Profiler::Profiler(Options options) : options_(options) {
  if (!options.devices) return;
  if (device_tracer() == nullptr) {
    devices_.notice = "the engine's devices record no events";
    return;
  }
  try {
    trace_ = device_tracer()->start(options.max_events);
    owner_ = Context::current().account.get();
    set_trace_of(owner_, trace_);
  } catch (const Error& error) {
    devices_.notice = error.message();
  }
}

Profiler::~Profiler() { stop_devices(); }

void Profiler::stop_devices() {
  if (trace_ == 0) return;
  while (!open_launches_.empty()) end_launches(kNoEvent);
  set_trace_of(owner_, 0);
  devices_ = device_tracer()->stop(std::exchange(trace_, 0));
  for (DeviceActivity& activity : devices_.activities) {
    activity.launch = activity.launch < launches_.size() ? launches_[activity.launch] : kNoEvent;
  }
}

void Profiler::begin_launches() {
  if (trace_ == 0) return;
  if (launches_.size() < 2 * options_.max_events) launches_.push_back(kNoEvent);  // further launches share the last one
  open_launches_.push_back(static_cast<uint32_t>(launches_.size() - 1));
  device_tracer()->begin_launches(trace_, open_launches_.back());
}

void Profiler::end_launches(uint32_t event) {
  if (open_launches_.empty()) return;
  if (launches_[open_launches_.back()] == kNoEvent) launches_[open_launches_.back()] = event;
  open_launches_.pop_back();
  device_tracer()->end_launches();
}

uint32_t Profiler::add(Event event) {
  if (events_.size() >= options_.max_events) {
    ++dropped_;
    return kNoEvent;
  }
  event.allocated = allocated();
  events_.push_back(event);
  return static_cast<uint32_t>(events_.size() - 1);
}

void Profiler::begin_frame(Frame frame) {
  in_frame_ = true;
  frame_ = frame;
  frame_.started = now();
  if (frame_.received == 0) frame_.received = frame_.started;
  frame_.first_instruction = next_instruction_;
}

void Profiler::end_frame() {
  if (!std::exchange(in_frame_, false) || frames_.size() >= options_.max_events) return;
  frame_.ended = now();
  frames_.push_back(frame_);
}

void Profiler::begin_instruction(const Op& op, uint32_t count, uint32_t site) {
  end_instruction();
  open_.clear();
  chain_start_ = 0;
  in_instruction_ = true;
  instruction_ = {};
  instruction_.start = now();
  instruction_.instruction = next_instruction_;
  instruction_.op = op.id;
  instruction_.site = site;
  instruction_.merged = static_cast<uint16_t>(std::min<uint32_t>(count - 1, UINT16_MAX));
  next_instruction_ += count;
  begin_launches();
}

void Profiler::end_instruction(bool suspended) {
  if (!std::exchange(in_instruction_, false)) return;
  if (suspended) next_instruction_ = instruction_.instruction;
  instruction_.duration = now() - instruction_.start;
  const uint32_t event = add(instruction_);
  while (open_launches_.size() > 1) end_launches(event);  // kernels that failed
  end_launches(event);
}

void Profiler::begin_kernel(const Call& call) {
  if (call.chain_length > 1 && chain_start_ != 0) return;
  begin_launches();
  if (call.chain_length == 1) return open_.push_back(now());
  chain_start_ = now();
  chain_position_ = 0;
}

void Profiler::end_kernel(const Call& call) {
  Event event;
  event.kind = is_in_place(call) ? Event::kKernel | Event::kInPlace : Event::kKernel;
  event.op = call.op->id;
  event.instruction = instruction_.instruction;
  event.site = Context::current().site;
  if (call.chain_length == 1) {
    if (open_.empty()) return;
    event.start = open_.back();
    event.duration = now() - event.start;
    open_.pop_back();
  } else {
    // One loop ran all operators of the chain: each is attributed an equal part of the loop's time.
    if (chain_start_ == 0) return;
    const uint64_t part = (now() - chain_start_) / (call.chain_length - chain_position_);
    event.start = chain_start_;
    event.duration = part;
    event.merged = static_cast<uint16_t>(call.chain_length - 1);
    chain_start_ = ++chain_position_ == call.chain_length ? 0 : chain_start_ + part;
  }
  event.depth = static_cast<uint16_t>(open_.size());
  event.shapes = options_.shapes ? add_shapes(call) : ranks(call);
  const bool is_first = call.chain_length == 1 || chain_position_ == 1;
  const uint32_t position = add(event);
  if (is_first) end_launches(position);  // a chain's launches belong to its first operator
}

size_t Profiler::begin_node() {
  open_.push_back(now());
  return open_.size();
}

void Profiler::end_node(size_t begun, Event::Kind kind, const std::string& form, uint32_t site) {
  if (open_.size() < begun) return;
  Event event;
  event.kind = kind;
  event.start = open_[begun - 1];
  event.duration = now() - event.start;
  event.instruction = instruction_.instruction;
  event.site = site;
  open_.resize(begun - 1);
  event.depth = static_cast<uint16_t>(open_.size());
  const auto next = static_cast<uint16_t>(std::min<size_t>(node_forms_.size(), UINT16_MAX));
  const auto [known, is_new] = node_form_positions_.try_emplace(form, next);
  if (is_new && node_forms_.size() <= UINT16_MAX) node_forms_.push_back(form);
  event.op = known->second;
  add(event);
}

uint32_t Profiler::add_shapes(const Call& call) {
  if (shapes_.size() > kMaxEvents || events_.size() >= options_.max_events) return 0;
  const size_t at = shapes_.size();
  size_t count_at = at;
  const auto begin_list = [&] {
    count_at = shapes_.size();
    shapes_.push_back(0);
  };
  const auto add_tensor = [&](const TensorMeta* tensor) {
    if (tensor == nullptr) return;
    ++shapes_[count_at];
    shapes_.push_back(static_cast<int64_t>(tensor->sizes.size()));
    shapes_.insert(shapes_.end(), tensor->sizes.begin(), tensor->sizes.end());
  };
  begin_list();
  for_each_tensor(call, add_tensor);
  begin_list();
  for (const Tensor& result : call.outputs) add_tensor(result.get());
  return static_cast<uint32_t>(at);
}

uint64_t Profiler::host_bytes() const {
  return events_.capacity() * sizeof(Event) + frames_.capacity() * sizeof(Frame) +
         shapes_.capacity() * sizeof(int64_t) + launches_.capacity() * sizeof(uint32_t) +
         (trace_ == 0 ? 0 : device_tracer()->host_bytes());
}

std::string Profiler::bytes() const {
  absl::btree_set<uint16_t> ops;
  for (const Event& event : events_) {
    if (event.kind != Event::kNode && event.kind != Event::kEvaluation) ops.insert(event.op);
  }
  std::string operators, nodes, activities;
  for (const uint16_t op : ops) {
    absl::StrAppend(&operators, operators.empty() ? "" : ",", "\"", op, "\":\"", message_part(find_op(op)->name), "\"");
  }
  for (const std::string& form : node_forms_) absl::StrAppend(&nodes, nodes.empty() ? "" : ",", quoted(form));
  for (const std::string& name : devices_.names) {
    absl::StrAppend(&activities, activities.empty() ? "" : ",", quoted(name));
  }
  const std::string names = absl::StrCat("{\"operators\":{", operators, "},\"nodes\":[", nodes, "],\"activities\":[",
                                         activities, "],\"notice\":", quoted(devices_.notice), "}");
  std::vector<Frame> frames = frames_;
  if (in_frame_) {
    frames.push_back(frame_);
    frames.back().ended = now();
  }
  const uint64_t header[] = {kMagic,          sizeof(Event), events_.size(), dropped_,
                             shapes_.size(),  names.size(),  frames.size(),  devices_.activities.size(),
                             devices_.dropped};
  std::string out;
  append(&out, header, sizeof(header));
  append(&out, events_);
  append(&out, frames);
  append(&out, devices_.activities);
  append(&out, shapes_);
  return out + names;
}

namespace {

void start(Call& call) {
  const int64_t max_events = call.args[1].integer;
  check(ErrorKind::kValue, max_events > 0 && static_cast<uint64_t>(max_events) <= kMaxEvents,
        "[profiler_start] expected 1 to ", kMaxEvents, " events, got ", max_events);
  Context::current().start_profiler(
      {call.args[0].to_bool(), static_cast<uint64_t>(max_events), call.args[2].to_bool()});
}

void stop(Call& call) {
  Context& context = Context::current();
  check(ErrorKind::kRuntime, context.profiler() != nullptr, "[profiler_stop] no profile is being recorded");
  if (context.profiler()->records_devices()) context.finish_device_work();
  context.profiler()->stop_devices();
  const std::string bytes = context.profiler()->bytes();
  call.outputs.assign(1, empty({static_cast<int64_t>(bytes.size())}, DType::kUInt8, Device{}));
  std::memcpy(call.outputs[0].data(), bytes.data(), bytes.size());
  context.stop_profiler();
}

void clock(Call& call) {
  allocate_outputs(call);
  call.outputs[0].data_as<int64_t>()[0] = static_cast<int64_t>(Profiler::now());
}

}  // namespace

void register_profiler_operators(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kProfilerStart, key, &start);
    dispatcher.set(op_id::kProfilerStop, key, &with_new_results<&stop>);
    dispatcher.set(op_id::kProfilerClock, key, &clock);
  }
}

}  // namespace tt
