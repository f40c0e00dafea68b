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

constexpr uint64_t kMagic = 0x32464f5250545454;  // "TTTPROF2"
constexpr uint64_t kMaxEvents = uint64_t{1} << 24;
static_assert(sizeof(Profiler::Event) == 48 && sizeof(Profiler::Frame) == 48);

int64_t allocated() {
  const Account* account = Context::current().account.get();
  return account == nullptr ? 0 : static_cast<int64_t>(account->held());
}

void append(std::string* out, const void* data, size_t size) { out->append(static_cast<const char*>(data), size); }

}  // namespace

uint64_t Profiler::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

void Profiler::add(Event event) {
  if (events_.size() < options_.max_events) {
    event.allocated = allocated();
    events_.push_back(event);
  } else {
    ++dropped_;
  }
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
}

void Profiler::end_instruction(bool suspended) {
  if (!std::exchange(in_instruction_, false)) return;
  if (suspended) next_instruction_ = instruction_.instruction;
  instruction_.duration = now() - instruction_.start;
  add(instruction_);
}

void Profiler::begin_kernel(const Call& call) {
  if (call.chain_length == 1) return open_.push_back(now());
  if (chain_start_ == 0) chain_start_ = now(), chain_position_ = 0;
}

void Profiler::end_kernel(const Call& call) {
  Event event;
  event.kind = Event::kKernel;
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
  if (options_.shapes) event.shapes = add_shapes(call);
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
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor) add_tensor(arg.tensor);
    if (arg.kind == Arg::Kind::kTensors) {
      for (const TensorMeta* tensor : arg.list()) add_tensor(tensor);
    }
  }
  begin_list();
  for (const Tensor& result : call.outputs) add_tensor(result.get());
  return static_cast<uint32_t>(at);
}

uint64_t Profiler::host_bytes() const {
  return events_.capacity() * sizeof(Event) + frames_.capacity() * sizeof(Frame) + shapes_.capacity() * sizeof(int64_t);
}

std::string Profiler::bytes() const {
  absl::btree_set<uint16_t> ops;
  for (const Event& event : events_) ops.insert(event.op);
  std::string names = "{";
  for (const uint16_t op : ops) {
    absl::StrAppend(&names, names.size() == 1 ? "" : ",", "\"", op, "\":\"", message_part(find_op(op)->name), "\"");
  }
  names += "}";
  std::vector<Frame> frames = frames_;
  if (in_frame_) {
    frames.push_back(frame_);
    frames.back().ended = now();
  }
  const uint64_t header[] = {kMagic,         sizeof(Event), events_.size(), dropped_,
                             shapes_.size(), names.size(),  frames.size()};
  std::string out;
  out.reserve(sizeof(header) + events_.size() * sizeof(Event) + frames.size() * sizeof(Frame) +
              shapes_.size() * sizeof(int64_t) + names.size());
  append(&out, header, sizeof(header));
  append(&out, events_.data(), events_.size() * sizeof(Event));
  append(&out, frames.data(), frames.size() * sizeof(Frame));
  append(&out, shapes_.data(), shapes_.size() * sizeof(int64_t));
  return out + names;
}

namespace {

void start(Call& call) {
  const int64_t max_events = call.args[1].integer;
  check(ErrorKind::kValue, max_events > 0 && static_cast<uint64_t>(max_events) <= kMaxEvents,
        "[profiler_start] expected 1 to ", kMaxEvents, " events, got ", max_events);
  Context::current().start_profiler({call.args[0].to_bool(), static_cast<uint64_t>(max_events)});
}

void stop(Call& call) {
  Context& context = Context::current();
  check(ErrorKind::kRuntime, context.profiler() != nullptr, "[profiler_stop] no profile is being recorded");
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
