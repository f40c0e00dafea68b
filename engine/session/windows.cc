#include "engine/session/windows.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <utility>

#include "engine/device/fair_queue.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15;  // odd
constexpr size_t kPrefix = Windows::kMinLength;
constexpr uint32_t kLongArgument = 64;  // bytes or elements
// References to results that are further away count as inputs for the hash; bind() compares them exactly.
constexpr Slot kFar = 64;
constexpr int kMaxFailures = 3;
// A window without compiled instructions for its inputs is ignored for 1, 3, 7, ... occurrences, below this power of
// two.
constexpr int kMaxSkippedPower = 4;
// Where windows contain all calls but one of kPerUnknown, parts are counted in one of kKnownFrames frames.
constexpr size_t kPerUnknown = 8, kKnownFrames = 8;
constexpr int64_t kNsToExamine = 60;  // per instruction of a frame; estimated
constexpr size_t kMaxCandidates = 1024;
// Frames without room for new candidates before some are forgotten: enough for known ones to become windows.
constexpr int kMaxFullFrames = 16;
// Parts of runs of calls: their ends have the least rank among this many calls before and after them. The large parts
// consist of small ones.
constexpr size_t kPartRadii[] = {Windows::kMinLength, 6 * Windows::kMinLength};
constexpr size_t kMinDivided = 3 * Windows::kMinLength;  // calls of a run that has parts
constexpr size_t kMaxInputs = 512;                       // of a window; searched linearly
constexpr size_t kMaxDropped = 2048;                     // names that a window drops

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kBase;
  return hash ^ (hash >> 32);
}

bool is_list(const Arg& arg) {
  return arg.kind == Arg::Kind::kInts || arg.kind == Arg::Kind::kFloats || arg.kind == Arg::Kind::kSlots;
}

// Whether two arguments without names are equal.
bool is_same_value(const Arg& a, const Arg& b) {
  if (a.kind != b.kind || a.size != b.size) return false;
  if (is_list(a)) return std::equal(a.integers, a.integers + a.size, b.integers);
  if (a.kind == Arg::Kind::kString) return a.string() == b.string();
  if (a.kind == Arg::Kind::kNone) return true;
  return a.integer == b.integer && std::bit_cast<uint64_t>(a.imaginary) == std::bit_cast<uint64_t>(b.imaginary);
}

// Whether calls of the operator have results whose sizes do not depend on values.
bool is_eligible(const Op& op) {
  return op.num_outputs != 0 && !op.is_dynamic && find_op(op.id) == &op && !Dispatcher::instance().suspends(op.id);
}

const std::vector<bool>& eligible_operators() {
  static const auto* const table = [] {
    auto* made = new std::vector<bool>;
    for (const Op* op : all_ops()) {
      if (op->id >= made->size()) made->resize(op->id + size_t{1});
      (*made)[op->id] = is_eligible(*op);
    }
    return made;
  }();
  return *table;
}

bool is_eligible(const Instruction& call) {
  const std::vector<bool>& table = eligible_operators();
  if (call.op->id >= table.size() || !table[call.op->id] || writes_in_place(call)) return false;
  if (call.results.empty() || call.results.size() > kLongArgument) return false;
  return std::none_of(call.args.begin(), call.args.end(), [](const Arg& arg) {
    return (is_list(arg) || arg.kind == Arg::Kind::kString) && arg.size > kLongArgument;
  });
}

uint64_t hash_of(const Instruction& call) {
  const Slot self = call.results[0];
  const auto reference = [&](Slot slot) { return slot < self && self - slot <= kFar ? self - slot : 0; };
  uint64_t hash = mix(uint64_t{call.op->id} | uint64_t{call.flags} << 16 | uint64_t{call.site} << 32,
                      call.args.size() | call.results.size() << 32);
  for (const Arg& arg : call.args) {
    hash = mix(hash, static_cast<uint64_t>(arg.kind) | uint64_t{arg.size} << 8);
    switch (arg.kind) {
      case Arg::Kind::kNone: break;
      case Arg::Kind::kSlot: hash = mix(hash, reference(arg.slot)); break;
      case Arg::Kind::kSlots:
        for (uint32_t i = 0; i < arg.size; ++i) hash = mix(hash, reference(arg.slots[i]));
        break;
      case Arg::Kind::kInts:
      case Arg::Kind::kFloats:
        for (uint32_t i = 0; i < arg.size; ++i) hash = mix(hash, static_cast<uint64_t>(arg.integers[i]));
        break;
      case Arg::Kind::kString:
        for (char c : arg.string()) hash = mix(hash, static_cast<unsigned char>(c));
        break;
      default: hash = mix(mix(hash, static_cast<uint64_t>(arg.integer)), std::bit_cast<uint64_t>(arg.imaginary));
    }
  }
  return hash;
}

// How much is lost if a window begins with the call instead of containing it: 0 for products and convolutions, because
// the passes fuse calls with those that they follow, 3 for calls that may be fused with those before.
uint64_t loss_of_cut(const Instruction& call) {
  switch (call.op->id) {
    case op_id::kLinear:
    case op_id::kMatmul:
    case op_id::kMm:
    case op_id::kBmm:
    case op_id::kAddmm:
    case op_id::kBaddbmm:
    case op_id::kConv1d:
    case op_id::kConv2d:
    case op_id::kConv3d: return 0;
    case op_id::kBatchNorm: return 3;
    default: return call.op->is_pointwise ? 3 : call.op->is_view ? 2 : 1;
  }
}

// The end of the run of eligible calls that begins with call `first`, without a read in between: `first` if there is
// none. `read` is the first one that may follow, and is updated.
size_t end_of_run(const std::vector<bool>& eligible, absl::Span<const ReadPoint> reads,
                  absl::Span<const ReadPoint>::iterator* read, size_t first) {
  while (*read != reads.end() && (*read)->instruction <= first) ++*read;
  const size_t before = *read == reads.end() ? eligible.size() : std::min((*read)->instruction, eligible.size());
  size_t end = first;
  while (end < before && eligible[end]) ++end;
  return end;
}

// Names that are dropped between the window's last instruction and the next one.
absl::Span<const Slot> dropped_after(const Program& program, size_t end) {
  return end < program.instructions().size() ? program.instructions()[end].release : program.release();
}

bool equals(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.requires_grad == b.requires_grad &&
         a.is_number == b.is_number && a.sizes == b.sizes && a.strides == b.strides;
}

// Ignores the window for some occurrences, more each time in succession.
void skip(Windows::Window* window) { window->skipped = (1 << std::min(window->unknown++, kMaxSkippedPower)) - 1; }

bool contains(absl::Span<const Slot> slots, Slot slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

}  // namespace

// While paused, one of 2, 4, 8 and then kPausedFrames frames is examined, until one of them was worth it.
bool Windows::is_paused() {
  ++frame_;
  if (compiler_->at_once()) return false;
  if (!uncharged_.empty()) charge_compiled();
  frames_ = std::min(frames_ + 1, 4 * kFramesBeforePause);
  if (is_paused_ ? balance_ > 0 : frames_ > kFramesBeforePause) {
    is_paused_ = balance_ <= 0;
    frames_ = 0;
    balance_ = 0;
  }
  if (!is_paused_) return false;
  balance_ = 0;
  const int frames = frames_ > 3 * kFramesBeforePause ? kPausedFrames : 2 << frames_ / kFramesBeforePause;
  return frame_ % static_cast<uint64_t>(frames) != 0;
}

absl::Span<const Windows::Match> Windows::find(const Program& program, absl::Span<const ReadPoint> reads) {
  matches_.clear();
  const auto& instructions = program.instructions();
  if (instructions.size() < kMinLength || is_paused()) return {};
  const bool at_once = compiler_->at_once();
  if (bytes_ > kMaxBytes || (at_once && ranges_.size() >= kMaxWindows)) forget();
  if (full_frames_ >= kMaxFullFrames) forget_rare();
  is_full_ = false;
  balance_ -= kNsToExamine * static_cast<int64_t>(instructions.size());
  hash(program);
  auto read = reads.begin();
  size_t searched = 0, matched = 0;  // calls
  for (size_t first = 0; first < instructions.size();) {
    const size_t end = end_of_run(eligible_, reads, &read, first);
    if (at_once) learn(program, reads, first, end);
    if (end - first >= kMinLength) {
      search(program, reads, first, end);
      searched += end - first;
    }
    first = std::max(end, first + 1);
  }
  for (const Match& match : matches_) matched += match.length;
  const bool is_known = (searched - matched) * kPerUnknown <= searched;
  if (!at_once && (!is_known || frame_ % kKnownFrames == 0)) learn_parts(program, reads, 0, instructions.size());
  full_frames_ += is_full_ ? 1 : 0;
  return matches_;
}

void Windows::hash(const Program& program) {
  const auto& instructions = program.instructions();
  const size_t n = instructions.size();
  while (powers_.size() <= n) powers_.push_back(powers_.empty() ? 1 : powers_.back() * kBase);
  sums_.resize(n + 1);
  ranks_.resize(n);
  eligible_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    eligible_[i] = is_eligible(instructions[i]);
    const uint64_t hash = eligible_[i] ? hash_of(instructions[i]) : 0;
    sums_[i + 1] = sums_[i] * kBase + hash;
    ranks_[i] = loss_of_cut(instructions[i]) << 62 | hash >> 2;
  }
}

uint64_t Windows::range(size_t first, size_t length) const {
  return mix(sums_[first + length] - sums_[first] * powers_[length], length);
}

void Windows::search(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end) {
  size_t unknown = first;  // where the instructions begin that belong to no window
  for (size_t at = first; at + kMinLength <= end;) {
    Match match;
    if (lengths_.empty() || !match_at(program, reads, at, end, &match)) {
      ++at;
      continue;
    }
    learn(program, reads, unknown, at);
    at = unknown = match.first + match.length;
    matches_.push_back(std::move(match));
  }
  learn(program, reads, unknown, end);
  // A part that was learned first, because a frame ended in the middle, must not hide the whole.
  const bool is_matched = unknown == end && matches_.back().first == first;
  if (unknown != first && !is_matched && end - first <= kMaxLength) count(program, reads, first, end - first, 1);
}

bool Windows::match_at(const Program& program, absl::Span<const ReadPoint> reads, size_t at, size_t end, Match* match) {
  const auto found = lengths_.find(range(at, kPrefix));
  if (found == lengths_.end()) return false;
  for (size_t length : found->second) {
    if (length > end - at || !ranges_.contains(range(at, length))) continue;
    if (!find_alive(program, reads, at, length)) continue;
    uint64_t key = range(at, length);
    for (size_t i = 0; i < alive_.size(); ++i) key = mix(key, alive_[i]);
    const auto candidate = candidates_.find(key);
    if (candidate == candidates_.end() || !candidate->second.window) continue;
    Window& window = *candidate->second.window;
    if (window.alive != alive_ || window.failures >= kMaxFailures) continue;
    if (window.skipped > 0) {
      --window.skipped;
      continue;
    }
    *match = {at, length, candidate->second.window};
    return true;
  }
  return false;
}

void Windows::learn(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end) {
  const size_t length = end - first;
  if (length < kMinLength) return;
  for (size_t period = kMinLength; 2 * period <= length && period <= kMaxLength; ++period) {
    if (range(first, kPrefix) != range(first + period, kPrefix)) continue;
    if (range(first, period) != range(first + period, period)) continue;
    count(program, reads, first, period, static_cast<int>(length / period));
    break;
  }
  if (length <= kMaxLength) count(program, reads, first, length, 1);
}

// Whether the call has the least rank among its neighbours in the run, or one of several equal ones.
bool Windows::is_cut(size_t at, size_t radius, size_t first, size_t end) const {
  const size_t last = std::min(end, at + radius + 1);
  for (size_t i = at - std::min(radius, at - first); i < last; ++i) {
    if (ranks_[i] < ranks_[at]) return false;
  }
  return true;
}

// Counts the parts of the runs of calls in a range. Their ends depend on a few neighbouring calls, so that the parts of
// a function are the same wherever frames divide it. Equal parts count once: layers that read a growing cache are
// alike, but do not occur again.
void Windows::learn_parts(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end) {
  absl::flat_hash_set<uint64_t> counted;
  const auto is_matched = [&](size_t begin, size_t length) {  // whether a window that was found contains the part
    const auto after = std::upper_bound(matches_.begin(), matches_.end(), begin,
                                        [](size_t at, const Match& match) { return at < match.first; });
    return after != matches_.begin() && begin + length <= std::prev(after)->first + std::prev(after)->length;
  };
  const auto count_in_run = [&](size_t run, size_t run_end, size_t radius) {
    size_t begin = run, inner = 0;  // number of small parts that end inside
    for (size_t at = run + 1; at <= run_end; ++at) {
      const bool is_small = at == run_end || is_cut(at, kPartRadii[0], run, run_end);
      if (!is_small || (at != run_end && radius != kPartRadii[0] && !is_cut(at, radius, run, run_end))) {
        inner += is_small ? 1 : 0;
        continue;
      }
      const size_t length = at - begin;
      const bool is_new = (inner != 0 || radius == kPartRadii[0]) && length != run_end - run;
      if (is_new && length >= kMinLength && length <= kMaxLength && !is_matched(begin, length) &&
          counted.insert(range(begin, length)).second) {
        count(program, reads, begin, length, 1);
      }
      begin = at;
      inner = 0;
    }
  };
  auto read = reads.begin();
  while (first < end) {
    const size_t run_end = end_of_run(eligible_, reads, &read, first);
    if (run_end - first >= kMinDivided) {
      for (size_t radius : kPartRadii) count_in_run(first, run_end, radius);
    }
    first = std::max(run_end, first + 1);
  }
}

void Windows::count(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t length, int times) {
  if (!find_alive(program, reads, first, length)) return;
  const uint64_t hash = range(first, length);
  uint64_t key = hash;
  for (size_t i = 0; i < alive_.size(); ++i) key = mix(key, alive_[i]);
  auto known = candidates_.find(key);
  if (known == candidates_.end()) {
    is_full_ |= candidates_.size() >= kMaxCandidates;
    if (is_full_) return;
    known = candidates_.try_emplace(key).first;
  }
  Candidate& candidate = known->second;
  candidate.occurrences += times;
  if (candidate.window || candidate.occurrences < occurrences_ || ranges_.size() >= kMaxWindows) return;
  // The calls with names 1, 2, ... for inputs, in order of their first use, and then for results.
  inputs_.clear();
  const auto calls = absl::MakeConstSpan(program.instructions()).subspan(first, length);
  const auto is_result = [&](Slot slot) { return index_of(slot) != names_.size(); };
  bool records = false;
  for (const Instruction& call : calls) {
    if (inputs_.size() > kMaxInputs) {
      candidate.occurrences = std::numeric_limits<int>::min();  // never
      return;
    }
    for (const Arg& arg : call.args) {
      for (Slot slot : names_in(arg)) {
        if (slot != 0 && !is_result(slot) && !contains(inputs_, slot)) inputs_.push_back(slot);
      }
    }
    records |= (call.flags & Instruction::kGrad) != 0 && (call.flags & Instruction::kInference) == 0;
  }
  const auto name_of = [&](Slot slot) -> Slot {
    if (is_result(slot)) return inputs_.size() + 1 + index_of(slot);
    return 1 + static_cast<Slot>(std::find(inputs_.begin(), inputs_.end(), slot) - inputs_.begin());
  };
  auto made = std::make_shared<Program>();
  for (const Instruction& call : calls) append_renamed(call, name_of, made.get());
  std::vector<Slot> outputs;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (alive_[i]) outputs.push_back(inputs_.size() + 1 + i);
  }
  made->set_outputs(outputs);
  candidate.window = std::make_shared<Window>();
  Window& window = *candidate.window;
  window.inputs = inputs_.size();
  window.alive = alive_;
  window.records = records;
  window.bytes = made->bytes() + sizeof(Window);
  window.program = std::move(made);
  bytes_ += window.bytes;
  ranges_.insert(hash);
  std::vector<size_t>& lengths = lengths_[range(first, kPrefix)];
  if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) {
    lengths.insert(std::upper_bound(lengths.begin(), lengths.end(), length, std::greater<>()), length);
  }
}

// Sets names_ for a range of instructions. Returns false if they are not ascending.
bool Windows::find_names(const Program& program, size_t first, size_t length) {
  names_.clear();
  for (size_t i = first; i < first + length; ++i) {
    for (Slot slot : program.instructions()[i].results) {
      if (slot >= kFirstTemporary || slot <= (names_.empty() ? 0 : names_.back())) return false;
      names_.push_back(slot);
    }
  }
  return true;
}

// The index of a name in names_; their number if it is not among them.
size_t Windows::index_of(Slot slot) const {
  if (names_.empty() || slot < names_.front() || slot > names_.back()) return names_.size();
  if (names_.back() - names_.front() + 1 == names_.size()) return slot - names_.front();
  const auto at = std::lower_bound(names_.begin(), names_.end(), slot);
  return *at == slot ? static_cast<size_t>(at - names_.begin()) : names_.size();
}

// Sets names_ and alive_ for a range of instructions. Returns false if it cannot be a window: names are not ascending,
// or one is dropped twice.
bool Windows::find_alive(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t length) {
  if (!find_names(program, first, length)) return false;
  const auto& instructions = program.instructions();
  const size_t end = first + length;
  alive_.assign(names_.size(), true);
  const auto drop = [&](Slot slot) {
    const size_t index = index_of(slot);
    if (index == names_.size()) return true;
    if (!alive_[index]) return false;
    alive_[index] = false;
    return true;
  };
  size_t releases = dropped_after(program, end).size();
  for (size_t i = first; i < end; ++i) releases += instructions[i].release.size();
  if (releases > kMaxDropped) return false;
  for (size_t i = first; i < end; ++i) {
    if (!std::all_of(instructions[i].release.begin(), instructions[i].release.end(), drop)) return false;
  }
  const auto read = std::lower_bound(reads.begin(), reads.end(), end,
                                     [](const ReadPoint& point, size_t index) { return point.instruction < index; });
  for (Slot slot : dropped_after(program, end)) {
    const bool is_read = end == instructions.size() && contains(program.outputs(), slot);
    bool is_read_before = false;
    for (auto at = read; at != reads.end() && at->instruction == end; ++at) is_read_before |= at->slot == slot;
    if (!is_read && !is_read_before && !drop(slot)) return false;
  }
  return true;
}

// Sets inputs_ for a match whose names_ are set, and which names it drops. Returns false if the calls differ from the
// window's.
bool Windows::bind(const Match& match, const Program& program) {
  const Window& window = *match.window;
  inputs_.assign(window.inputs, 0);
  dropped_inputs_.assign(window.inputs, false);
  dropped_others_.clear();
  const auto is_bound = [&](Slot expected, Slot slot) {
    if (expected == 0 || slot == 0) return expected == slot;
    if (expected > window.inputs) return names_[expected - window.inputs - 1] == slot;
    Slot& input = inputs_[expected - 1];
    if (input == 0 && index_of(slot) == names_.size()) input = slot;
    return input == slot;
  };
  for (size_t i = 0; i < match.length; ++i) {
    const Instruction &expected = window.program->instructions()[i], &call = program.instructions()[match.first + i];
    if (expected.op != call.op || expected.flags != call.flags || expected.site != call.site ||
        expected.args.size() != call.args.size() || expected.results.size() != call.results.size()) {
      return false;
    }
    for (size_t a = 0; a < call.args.size(); ++a) {
      const Arg &x = expected.args[a], &y = call.args[a];
      if (x.kind != y.kind || x.size != y.size) return false;
      const absl::Span<const Slot> wanted = names_in(x), given = names_in(y);
      if (wanted.empty() && !is_same_value(x, y)) return false;
      for (size_t k = 0; k < wanted.size(); ++k) {
        if (!is_bound(wanted[k], given[k])) return false;
      }
    }
  }
  for (size_t i = 1; i < match.length; ++i) {
    for (Slot slot : program.instructions()[match.first + i].release) {
      if (index_of(slot) != names_.size()) continue;
      const auto input = std::find(inputs_.begin(), inputs_.end(), slot);
      if (input == inputs_.end()) {
        dropped_others_.push_back(slot);
      } else {
        dropped_inputs_[static_cast<size_t>(input - inputs_.begin())] = true;
      }
    }
  }
  return true;
}

// Whether a version is worthwhile for inputs of the metadata metas_, for which there is none. It is for a window's
// first one. Others have to occur in two frames, because sizes may change in each call, and the versions so far have to
// run often enough.
bool Windows::may_compile(Window* window) {
  constexpr int64_t kFree = 3, kRunsPerVersion = 8;
  if (window->versions.empty()) return true;
  if (window->versions.size() >= kMaxVersions) return false;
  const auto ready = std::count_if(window->versions.begin(), window->versions.end(), [](const auto& version) {
    return version->state() != WindowVersion::State::kRejected;
  });
  if (ready >= kFree && window->runs < kRunsPerVersion * ready) return false;
  uint64_t hash = kBase;
  for (const TensorMeta* meta : metas_) {
    hash = mix(hash, static_cast<uint64_t>(meta->dtype) | uint64_t{meta->requires_grad} << 32 |
                         uint64_t{meta->sizes.size()} << 33);
    for (int64_t size : meta->sizes) hash = mix(hash, static_cast<uint64_t>(size));
    for (int64_t stride : meta->strides) hash = mix(hash, static_cast<uint64_t>(stride));
  }
  const auto seen = std::find_if(window->seen.begin(), window->seen.end(),
                                 [&](const SeenInputs& inputs) { return inputs.hash == hash; });
  if (seen != window->seen.end()) return seen->frame != frame_;
  std::rotate(window->seen.begin(), window->seen.end() - 1, window->seen.end());
  window->seen[0] = {hash, frame_};
  return false;
}

// Returns the version for the inputs' metadata, which may be waiting for the compiler; null if there is none, because
// inputs are not compiled or the compiler has no room.
std::shared_ptr<WindowVersion> Windows::version_for(Window* window, const SlotTable& slots) {
  if (!uncharged_.empty()) charge_compiled();
  std::vector<const TensorMeta*>& metas = metas_;
  metas.clear();
  for (Slot slot : inputs_) {
    const SlotValue* value = slots.find(slot);
    if (value == nullptr || value->poison || !value->tensor) return nullptr;
    const TensorMeta& meta = value->tensor.meta();
    if (meta.device.type != DeviceType::kCPU || (meta.requires_grad && window->records)) {
      ++window->failures;
      return nullptr;
    }
    metas.push_back(&meta);
  }
  for (const auto& version : window->versions) {
    if (std::equal(metas.begin(), metas.end(), version->inputs().begin(), version->inputs().end(),
                   [](const TensorMeta* a, const TensorMeta& b) { return equals(*a, b); })) {
      return version;
    }
  }
  if (!compiler_->at_once() && !may_compile(window)) {
    skip(window);
    return nullptr;
  }
  if (window->versions.size() >= kMaxVersions || uncharged_.size() >= kMaxUncharged) return nullptr;
  std::vector<TensorMeta> inputs;
  inputs.reserve(metas.size());
  for (const TensorMeta* meta : metas) inputs.push_back(*meta);
  auto version = std::make_shared<WindowVersion>(std::move(inputs), /*is_always_ready=*/compiler_->at_once());
  if (!compiler_->add(window->program, version)) return nullptr;
  if (compiler_->at_once()) compiler_->wait();
  uncharged_.push_back(version);
  window->versions.push_back(version);
  window->used.push_back(false);
  const uint64_t bytes = sizeof(WindowVersion) + metas.size() * sizeof(TensorMeta);
  window->bytes += bytes;
  bytes_ += bytes;
  return version;
}

bool Windows::replace(const Match& match, const Program& program, const SlotTable& slots, Replacement* made) {
  Window& window = *match.window;
  // find() has compared what exists afterwards; replacements of other windows drop further names only.
  alive_ = window.alive;
  if (!find_names(program, match.first, match.length) || !bind(match, program)) {
    ++window.failures;
    return false;
  }
  if (slots.limit() - slots.size() < 2 * names_.size() + match.length) return false;
  const std::shared_ptr<WindowVersion> version = version_for(&window, slots);
  if (!version || version->state() == WindowVersion::State::kWaiting) {
    if (is_paused_) window.skipped = std::max(window.skipped, 1);  // next time, shorter windows may be replaced here
    return false;
  }
  if (version->state() == WindowVersion::State::kRejected) {
    if (compiler_->at_once())
      ++window.failures;
    else
      skip(&window);  // it may be worthwhile for other inputs
    return false;
  }
  if (std::none_of(names_.begin(), names_.end(), [&](Slot slot) { return slots.find(slot) != nullptr; })) {
    write(*version, window, &program.instructions()[match.first], match.length, made);
    count_run(*version, &window);
    return true;
  }
  return false;  // names in use: an error, which the instructions report
}

void Windows::charge_compiled() {
  const auto is_done = [](const auto& version) { return version->state() != WindowVersion::State::kWaiting; };
  for (const auto& version : uncharged_) {
    if (Turn* const turn = Turn::current(); turn != nullptr && is_done(version)) {
      turn->add(std::chrono::microseconds(version->microseconds()));
    }
  }
  uncharged_.erase(std::remove_if(uncharged_.begin(), uncharged_.end(), is_done), uncharged_.end());
}

void Windows::count_run(const WindowVersion& version, Window* window) {
  const auto at = std::find_if(window->versions.begin(), window->versions.end(),
                               [&](const auto& other) { return other.get() == &version; });
  if (const auto index = static_cast<size_t>(at - window->versions.begin()); !window->used[index]) {
    window->used[index] = true;
    bytes_ += version.bytes();
    ++compiled_;
  }
  window->failures = window->unknown = 0;
  balance_ += version.saved_ns();
  ++window->runs;
  ++runs_;
  window->saved_instructions += version.saved_instructions();
  saved_instructions_ += version.saved_instructions();
  window->saved_bytes += version.saved_bytes();
}

void Windows::write(const WindowVersion& version, const Window& window, const Instruction* original, size_t length,
                    Replacement* made) {
  const Program& compiled = version.program();
  made->program.clear();
  made->dropped.clear();
  made->gone.clear();
  mapped_.assign(version.largest_name() + 1, 0);
  std::copy(inputs_.begin(), inputs_.end(), mapped_.begin() + 1);
  size_t output = 0, unused = 0;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (alive_[i])
      mapped_[compiled.outputs()[output++]] = names_[i];
    else
      made->gone.push_back(names_[i]);
  }
  Slot temporary = kFirstTemporary;
  const auto name_of = [&](Slot slot) {
    Slot& name = mapped_[slot];
    if (name == 0) name = unused < made->gone.size() ? made->gone[unused++] : temporary++;
    return name;
  };
  ProgramMemory& memory = made->program.memory();
  std::vector<Instruction>& instructions = made->program.mutable_instructions();
  std::vector<bool> remaining = dropped_inputs_;
  std::vector<Slot> names;
  for (size_t i = 0; i < compiled.instructions().size(); ++i) {
    Instruction call = compiled.instructions()[i];
    names.clear();
    if (i == 0) {
      names.assign(original->release.begin(), original->release.end());
      names.insert(names.end(), dropped_others_.begin(), dropped_others_.end());
    }
    for (Slot slot : call.release) {
      if (slot > window.inputs) {
        names.push_back(name_of(slot));
      } else if (remaining[slot - 1]) {
        remaining[slot - 1] = false;
        names.push_back(inputs_[slot - 1]);
      }
    }
    call.release = memory.copy(absl::MakeConstSpan(names));
    call.args = renamed_args(call.args, name_of, &memory);
    names.clear();
    for (Slot slot : call.results) names.push_back(name_of(slot));
    call.results = memory.copy(absl::MakeConstSpan(names));
    call.count = i + 1 == compiled.instructions().size() ? static_cast<uint16_t>(length) : 0;
    instructions.push_back(call);
  }
  if (instructions.empty()) {
    made->dropped.assign(original->release.begin(), original->release.end());
    made->dropped.insert(made->dropped.end(), dropped_others_.begin(), dropped_others_.end());
  }
  for (Slot slot : version.left()) made->dropped.push_back(name_of(slot));
  for (size_t i = 0; i < remaining.size(); ++i) {
    if (remaining[i]) made->dropped.push_back(inputs_[i]);
  }
}

uint64_t Windows::host_bytes() const {
  const uint64_t per_call = (sums_.capacity() + powers_.capacity() + ranks_.capacity()) * sizeof(uint64_t);
  return bytes_ + candidates_.capacity() * kCandidateBytes + per_call + eligible_.capacity() / 8;
}

std::vector<WindowCounters> Windows::counters() const {
  std::vector<WindowCounters> all;
  for (const auto& [key, candidate] : candidates_) {
    if (!candidate.window || candidate.window->runs == 0) continue;
    const Window& window = *candidate.window;
    WindowCounters& counters = all.emplace_back();
    counters.instructions = static_cast<int64_t>(window.program->instructions().size());
    counters.runs = window.runs;
    counters.saved_instructions = window.saved_instructions;
    counters.saved_bytes = window.saved_bytes;
    for (const auto& version : window.versions) {
      if (version->state() != WindowVersion::State::kReady) continue;
      counters.compiled_instructions = static_cast<int64_t>(version->program().instructions().size());
      counters.microseconds += version->microseconds();
      ++counters.signatures;
    }
  }
  return all;
}

// Halves the numbers of occurrences of the candidates that have not become windows, and forgets those that have none;
// or forgets everything if there is no room for windows.
void Windows::forget_rare() {
  full_frames_ = 0;
  if (ranges_.size() >= kMaxWindows) return forget();
  absl::erase_if(candidates_, [](auto& entry) {
    entry.second.occurrences /= 2;
    return !entry.second.window && entry.second.occurrences <= 0;
  });
}

void Windows::forget() {
  candidates_.clear();
  ranges_.clear();
  lengths_.clear();
  bytes_ = 0;
}

}  // namespace tt
