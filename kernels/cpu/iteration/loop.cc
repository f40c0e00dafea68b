#include "kernels/cpu/iteration/loop.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"

namespace tt::cpu {

namespace {

// Elements per piece, the unit of parallel work: a multiple of a block, so that pieces stay aligned.
constexpr int64_t kPiece = 32 * kBlock;
// The minimum number of pieces per thread. With fewer pieces, waking a thread (about 20 us) would cost more than the
// work. Costly steps process a few elements per nanosecond, other steps about ten.
constexpr int64_t kCostlyPieces = 2;
constexpr int64_t kPieces = 8;
// Loops of fewer elements run their steps one by one: finding compiled code would take longer.
constexpr int64_t kMinCompiled = 1 << 10;
// The maximum number of constants that keep a block for the whole loop.
constexpr int kMaxConstants = 8;
// Rows of at least this length are processed one by one, and are read in place if possible; shorter rows, if otherwise
// they would be copied.
constexpr int64_t kLongRow = kBlock / 2;
constexpr int64_t kLongRowInPlace = 64;

template <typename C>
bool has_zero(const C* values, int64_t n) {
  bool zero = false;
  for (int64_t i = 0; i < n; ++i) zero |= values[i] == 0;
  return zero;
}

}  // namespace

bool bypasses_cache(int64_t bytes) {
  static const int64_t last_cache = [] {
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? int64_t{size} : int64_t{32} << 20;
  }();
  return bytes >= last_cache;
}

template <typename C>
Loop<C>::Loop(const Space& space, absl::Span<const LoopInput<C>> inputs, absl::Span<const Step<C>> steps,
              const Access& output, bool past_cache, bool often)
    : space_(space),
      steps_(steps),
      output_(output),
      conversions_(blocks().conversions<C>()),
      num_inputs_(static_cast<int>(inputs.size())),
      flat_output_(space.is_contiguous(output)),
      by_rows_(reads_rows_in_place(inputs)),
      direct_output_(flat_output_ && output.dtype == kDTypeOf<C>),
      past_cache_(past_cache && direct_output_) {
  for (const LoopInput<C>& input : inputs) registers_.push_back(plan_input(input));
  registers_.resize(inputs.size() + steps.size());
  if constexpr (std::is_same_v<C, float> || std::is_same_v<C, double>) find_compiled(often);
  plan_buffers();
}

template <typename C>
bool Loop<C>::reads_rows_in_place(absl::Span<const LoopInput<C>> inputs) const {
  if (space_.sizes.size() < 2) return false;
  if (inner() >= kLongRow) return true;
  if (inner() < kLongRowInPlace || !flat_output_ || output_.dtype != kDTypeOf<C>) return false;
  bool gathers = false;  // whether an operand is neither contiguous nor the same in every row
  for (const LoopInput<C>& input : inputs) {
    if (input.access == nullptr) continue;
    const Strides& strides = input.access->strides;
    if (input.access->dtype != kDTypeOf<C> || strides.back() < 0 || strides.back() > 1) return false;
    gathers |= !space_.is_contiguous(*input.access) &&
               std::any_of(strides.begin(), strides.end() - 1, [](int64_t stride) { return stride != 0; });
  }
  return gathers;
}

template <typename C>
typename Loop<C>::Register Loop<C>::plan_input(const LoopInput<C>& input) const {
  Register r;
  r.access = input.access;
  if (!r.access) {
    r.mode = Mode::kConstant;
    r.number = input.number;
    return r;
  }
  const Strides& strides = r.access->strides;
  // An operand of an empty space may have no element to read, so it is never treated as constant.
  const bool repeats = space_.numel > 0 &&
                       std::all_of(strides.begin(), strides.end() - !strides.empty(), [](int64_t s) { return s == 0; });
  r.load = conversions_.load[static_cast<int>(r.access->dtype)];
  if (repeats && (strides.empty() || strides.back() == 0)) {
    r.mode = Mode::kConstant;
    r.load(r.access->data, {1, 0, 1, 0}, &r.number);
  } else if (repeats && strides.size() > 1 && strides[0] == 0 && !by_rows_ && space_.numel > kBlock) {
    r.mode = Mode::kPeriodic;
  } else if (space_.is_contiguous(*r.access)) {
    r.flat = true;
    if (r.access->dtype == kDTypeOf<C>) r.mode = Mode::kDirect;
  }
  return r;
}

template <typename C>
bool Loop<C>::can_repeat() const {
  return std::none_of(registers_.begin(), registers_.begin() + num_inputs_,
                      [](const Register& r) { return r.mode == Mode::kConstant && r.access != nullptr; });
}

// Forms runs of consecutive steps with compiled bodies.
template <typename C>
void Loop<C>::find_compiled(bool often) {
  if ((space_.numel < kMinCompiled && !often) || !compiles_for(blocks().isa)) return;
  const int num_steps = static_cast<int>(steps_.size());
  for (int begin = 0; begin < num_steps;) {
    int end = begin;
    while (end < num_steps && steps_[end].body != nullptr) ++end;
    if (end - begin >= 2) add_compiled(begin, end, often);
    begin = std::max(end, begin + 1);
  }
}

template <typename C>
bool Loop<C>::is_read_outside(int step, int begin, int end) const {
  const int num_steps = static_cast<int>(steps_.size());
  if (step == num_steps - 1 || steps_[step].kept != nullptr) return true;
  for (int s = 0; s < num_steps; ++s) {
    if (s >= begin && s < end) continue;
    for (int a = 0; a < steps_[s].num_args; ++a) {
      if (steps_[s].args[a] == num_inputs_ + step) return true;
    }
  }
  return false;
}

// Adds the code of the steps, or, if there are too few registers for it, that of each half.
template <typename C>
void Loop<C>::add_compiled(int begin, int end, bool often) {
  Compiled compiled;
  compiled.begin = begin;
  compiled.end = end;
  StepSource source;
  source.is_double = std::is_same_v<C, double>;
  absl::InlinedVector<uint8_t, 8> constants;  // registers, in the order of the numbers
  const auto index_of = [](auto& list, uint8_t wanted) {
    const auto found = std::find(list.begin(), list.end(), wanted);
    if (found == list.end()) list.push_back(wanted);
    return static_cast<uint8_t>(std::find(list.begin(), list.end(), wanted) - list.begin());
  };
  for (int s = begin; s < end; ++s) {
    SourceStep& step = source.steps.emplace_back();
    step.body = steps_[s].body;
    for (int a = 0; a < steps_[s].num_args; ++a) {
      const uint8_t from = steps_[s].args[a];
      const bool is_inner = from >= num_inputs_ + begin;
      const bool is_constant = from < num_inputs_ && registers_[from].mode == Mode::kConstant;
      step.args[a].kind = is_inner      ? StepOperand::Kind::kResult
                          : is_constant ? StepOperand::Kind::kNumber
                                        : StepOperand::Kind::kInput;
      step.args[a].index = is_inner      ? static_cast<uint8_t>(from - num_inputs_ - begin)
                           : is_constant ? index_of(constants, from)
                                         : index_of(compiled.inputs, from);
    }
    step.is_stored = is_read_outside(s, begin, end);
    if (step.is_stored) compiled.outputs.push_back(static_cast<uint8_t>(num_inputs_ + s));
  }
  for (uint8_t from : constants) compiled.numbers.push_back(registers_[from].number);
  for (int s = begin; s < end; ++s) {
    source.steps[s - begin].first_number = static_cast<uint8_t>(compiled.numbers.size());
    const Body& body = *steps_[s].body;
    for (int k = 0; k < body.num_numbers; ++k) compiled.numbers.push_back(steps_[s].scalar_args.value[k]);
    for (double constant : body.constants) compiled.numbers.push_back(static_cast<C>(constant));
  }
  constexpr size_t kMaxNumbers = 200;  // of the indices of StepSource
  bool never = compiled.numbers.size() > kMaxNumbers;
  if (!never) {
    source.num_inputs = static_cast<uint8_t>(compiled.inputs.size());
    source.num_numbers = static_cast<uint8_t>(compiled.numbers.size());
    constexpr int64_t kMany = 1 << 20;  // elements of which one pass takes longer than compiling
    compiled.code = find_code(source, blocks().isa, often || space_.numel >= kMany, &never);
  }
  if (compiled.code != nullptr) {
    compiled_.push_back(std::move(compiled));
  } else if (never && end - begin >= 4) {
    const int middle = begin + (end - begin) / 2;
    add_compiled(begin, middle, often);
    add_compiled(middle, end, often);
  }
}

template <typename C>
int8_t Loop<C>::allocate_buffer() {
  if (free_buffers_ == 0) {
    num_buffers_ = kMaxBuffers + 1;
    return 0;  // the loop does not fit
  }
  const int b = __builtin_ctz(free_buffers_);
  free_buffers_ &= ~(uint32_t{1} << b);
  num_buffers_ = std::max(num_buffers_, b + 1);
  return static_cast<int8_t>(b);
}

// Assigns a buffer to each register that needs one and releases it after its last use, so that a chain of any length
// keeps its working set in the L1 cache.
template <typename C>
void Loop<C>::plan_buffers() {
  const int num_steps = static_cast<int>(steps_.size());
  for (int i = 0; i < num_inputs_; ++i)
    registers_[i].is_number = registers_[i].mode == Mode::kConstant && num_steps > 0;
  auto next = compiled_.begin();
  for (int s = 0; s < num_steps; ++s) {
    if (next != compiled_.end() && s == next->end) ++next;
    const bool is_compiled = next != compiled_.end() && s >= next->begin;
    for (int a = 0; a < steps_[s].num_args; ++a) {
      registers_[steps_[s].args[a]].last_use = static_cast<int16_t>(is_compiled ? next->end - 1 : s);
      if (!is_compiled) registers_[steps_[s].args[a]].is_number = false;
    }
  }
  const auto needs_constant = [](const Register& r) { return r.mode == Mode::kConstant && !r.is_number; };
  if (std::count_if(registers_.begin(), registers_.begin() + num_inputs_, needs_constant) > kMaxConstants) {
    refilled_ = allocate_buffer();
    for (int i = 1; i < kMaxStepInputs; ++i) allocate_buffer();
  }
  for (int i = 0; i < num_inputs_; ++i) {
    Register& r = registers_[i];
    if (r.mode == Mode::kConstant && (r.is_number || refilled_ >= 0)) continue;
    if (r.mode != Mode::kDirect) r.buffer = allocate_buffer();
    if (r.mode == Mode::kConstant || r.mode == Mode::kPeriodic) r.last_use = kMaxRegisters;  // filled once and reused
    if (r.mode == Mode::kPeriodic) block_ = kBlock - inner();                                // read at any offset
  }
  const auto give_buffer = [&](int s) {
    const bool in_place = s == num_steps - 1 && direct_output_ && !past_cache_;
    if (!in_place && steps_[s].kept == nullptr) registers_[num_inputs_ + s].buffer = allocate_buffer();
  };
  const auto drop_arguments = [&](int s, int at) {
    for (int a = 0; a < steps_[s].num_args; ++a) {
      Register& r = registers_[steps_[s].args[a]];
      if (r.buffer >= 0 && r.last_use == at) free_buffers_ |= uint32_t{1} << r.buffer;
    }
  };
  next = compiled_.begin();
  for (int s = 0; s < num_steps; ++s) {
    if (next != compiled_.end() && s == next->begin) {  // the code may store a result before it reads an input
      for (uint8_t output : next->outputs) give_buffer(output - num_inputs_);
      for (; s < next->end; ++s) drop_arguments(s, next->end - 1);
      --s;
      ++next;
      continue;
    }
    drop_arguments(s, s);  // a result may overwrite an argument that is not read again: block functions permit it
    give_buffer(s);
  }
}

template <typename C>
void Loop<C>::run() {
  if (space_.numel == 0) return;
  const bool costly = std::any_of(steps_.begin(), steps_.end(), [](const Step<C>& s) { return s.costly; });
  const int64_t least = costly ? kCostlyPieces : kPieces;
  C* const to = reinterpret_cast<C*>(output_.data);
  if (space_.numel < 2 * least * kPiece) {
    run_range(0, space_.numel, to);
  } else {
    const int64_t pieces = (space_.numel + kPiece - 1) / kPiece;
    parallel_for(pieces, least, [this, to](int64_t begin, int64_t end) {
      run_range(begin * kPiece, std::min(end * kPiece, space_.numel), to + begin * kPiece);
    });
  }
  check(!divided_by_zero_.load(std::memory_order_relaxed), "ZeroDivisionError");
}

template <typename C>
int64_t Loop<C>::block_at(int64_t at, int64_t end) const {
  const bool is_one_pass = steps_.size() <= 1 || (!compiled_.empty() && compiled_[0].begin == 0 &&
                                                  compiled_[0].end == static_cast<int>(steps_.size()));
  if (num_buffers_ == 0 && is_one_pass) return end - at;  // no buffer limits the block size
  const int64_t n = std::min(block_, end - at);
  return by_rows_ ? std::min(n, inner() - at % inner()) : n;
}

template <typename C>
void Loop<C>::fill_once(int64_t n, C (*buffers)[kBlock]) const {
  for (const Register& r : absl::MakeConstSpan(registers_).first(num_inputs_)) {
    if (r.mode == Mode::kConstant) {
      if (r.buffer >= 0) std::fill_n(buffers[r.buffer], std::min(kBlock, n), r.number);
    } else if (r.mode == Mode::kPeriodic) {
      const int64_t times = kBlock / inner();
      r.load(r.access->data, {times, 0, inner(), r.access->strides.back()}, buffers[r.buffer]);
      r.load(r.access->data, {1, 0, kBlock - times * inner(), r.access->strides.back()},
             buffers[r.buffer] + times * inner());
    }
  }
}

template <typename C>
void Loop<C>::run_range(int64_t begin, int64_t end, C* to) {
  if (steps_.empty() && registers_[0].mode == Mode::kConstant && direct_output_ && !past_cache_) {
    return fill(registers_[0].number, end - begin, to);
  }
  alignas(64) C buffers[kMaxBuffers][kBlock];
  const C* values[kMaxRegisters];
  fill_once(end - begin, buffers);
  if (by_rows_ && num_buffers_ > 0) {
    run_rows(begin, end, to, values, buffers);
  } else {
    for (int64_t at = begin, n; at < end; at += n) {
      n = block_at(at, end);
      C* const out = to + (at - begin);
      for (int i = 0; i < num_inputs_; ++i) {
        const Register& r = registers_[i];
        values[i] = r.mode == Mode::kGather ? gather(r, at, n, place_of(r, out, buffers)) : read(r, at, buffers);
      }
      run_steps(at, n, out, values, buffers);
    }
  }
  // Streaming stores are not ordered with other stores. The fence makes them visible before this thread reports that
  // it is done.
  if (past_cache_) std::atomic_thread_fence(std::memory_order_seq_cst);
}

template <typename C>
void Loop<C>::fill(C number, int64_t n, C* to) const {
  const char zeros[sizeof(C)] = {};
  if (std::memcmp(&number, zeros, sizeof(C)) == 0) {
    std::memset(static_cast<void*>(to), 0, static_cast<size_t>(n) * sizeof(C));
  } else {
    conversions_.load[static_cast<int>(kDTypeOf<C>)](&number, {1, 0, n, 0}, to);
  }
}

// As run_range(), where no block extends over the end of a row: advances the gathered inputs' rows by their strides.
template <typename C>
void Loop<C>::run_rows(int64_t begin, int64_t end, C* to, const C** values, C (*buffers)[kBlock]) {
  struct Row {
    int input;
    const Access* access;
    int64_t item;
    const char* begin;
    bool in_place;
  };
  absl::InlinedVector<Row, 4> rows;
  const int last = static_cast<int>(space_.sizes.size()) - 1;
  const int64_t length = inner();
  int64_t rest = begin / length, column = begin % length;
  Strides index(space_.sizes.size());
  for (int d = last - 1; d >= 0; --d) {
    index[d] = rest % space_.sizes[d];
    rest /= space_.sizes[d];
  }
  for (int i = 0; i < num_inputs_; ++i) {
    if (registers_[i].mode != Mode::kGather) continue;
    const Access* access = registers_[i].access;
    Row row{i, access, static_cast<int64_t>(item_size(access->dtype)), access->data, false};
    for (int d = 0; d < last; ++d) row.begin += index[d] * access->strides[d] * row.item;
    row.in_place = access->dtype == kDTypeOf<C> && access->strides[last] == 1;
    rows.push_back(row);
  }
  // What run_steps() would do for the most frequent loops takes longer than computing a short row.
  const bool is_single = steps_.size() == 1 && compiled_.empty() && direct_output_ && !past_cache_ && refilled_ < 0 &&
                         steps_[0].divisor < 0 && steps_[0].kept == nullptr;
  if (is_single && length <= block_ && column == 0 && end % length == 0) {
    return run_whole_rows(begin / length, end / length, to, buffers);
  }
  const C* arguments[kMaxStepInputs];
  for (int64_t at = begin, n; at < end; at += n) {
    n = std::min({block_, end - at, length - column});
    C* const out = to + (at - begin);
    for (int i = 0; i < num_inputs_; ++i) {
      if (registers_[i].mode != Mode::kGather) values[i] = read(registers_[i], at, buffers);
    }
    for (const Row& row : rows) {
      const Register& r = registers_[row.input];
      const int64_t stride = row.access->strides[last];
      const char* const from = row.begin + column * stride * row.item;
      if (row.in_place) {
        values[row.input] = reinterpret_cast<const C*>(from);
        continue;
      }
      C* const buffer = place_of(r, out, buffers);
      r.load(from, {1, 0, n, stride}, buffer);
      values[row.input] = buffer;
    }
    if (is_single) {
      for (int a = 0; a < steps_[0].num_args; ++a) arguments[a] = values[steps_[0].args[a]];
      steps_[0].function(n, arguments, out, steps_[0].scalar_args);
    } else {
      run_steps(at, n, out, values, buffers);
    }
    column += n;
    if (column < length) continue;
    column = 0;
    for (int d = last - 1; d >= 0; --d) {
      const bool wraps = ++index[d] == space_.sizes[d];
      const int64_t by = wraps ? 1 - space_.sizes[d] : 1;
      for (Row& row : rows) row.begin += by * row.access->strides[d] * row.item;
      if (!wraps) break;
      index[d] = 0;
    }
  }
}

// As run_rows(), for a single step and rows [begin, end) of at most one block: does little else per row than to call
// the step's function.
template <typename C>
void Loop<C>::run_whole_rows(int64_t begin, int64_t end, C* to, C (*buffers)[kBlock]) const {
  struct Argument {
    const char* at;        // the row
    const Access* access;  // null: a constant, which is in the buffer
    LoadFunction<C> load;  // null: rows are read in place
    C* buffer;
    int64_t item;
  };
  const Step<C>& step = steps_[0];
  const int last = static_cast<int>(space_.sizes.size()) - 1, num_args = step.num_args;
  const int64_t length = inner();
  Strides index(space_.sizes.size());
  int64_t rest = begin;
  for (int d = last - 1; d >= 0; --d) {
    index[d] = rest % space_.sizes[d];
    rest /= space_.sizes[d];
  }
  Argument arguments[kMaxStepInputs];
  const C* rows[kMaxStepInputs];
  for (int a = 0; a < num_args; ++a) {
    const Register& r = registers_[step.args[a]];
    C* const buffer = r.buffer < 0 ? nullptr : buffers[r.buffer];
    if (r.mode == Mode::kConstant) {
      arguments[a] = {nullptr, nullptr, nullptr, buffer, 0};
      rows[a] = buffer;
      continue;
    }
    const Access& access = *r.access;
    const int64_t item = static_cast<int64_t>(item_size(access.dtype));
    const bool in_place = access.dtype == kDTypeOf<C> && access.strides[last] == 1;
    arguments[a] = {access.data, &access, in_place ? nullptr : r.load, buffer, item};
    for (int d = 0; d < last; ++d) arguments[a].at += index[d] * access.strides[d] * item;
  }
  const auto advance = [&](int d, int64_t by) {
    index[d] += by;
    for (int a = 0; a < num_args; ++a) {
      if (arguments[a].access) arguments[a].at += by * arguments[a].access->strides[d] * arguments[a].item;
    }
  };
  for (int64_t row = begin; row < end;) {
    const int64_t next = std::min(end, row + space_.sizes[last - 1] - index[last - 1]);
    for (; row < next; ++row, to += length) {
      for (int a = 0; a < num_args; ++a) {
        Argument& argument = arguments[a];
        if (argument.access == nullptr) continue;
        if (argument.load == nullptr) {
          rows[a] = reinterpret_cast<const C*>(argument.at);
        } else {
          argument.load(argument.at, {1, 0, length, argument.access->strides[last]}, argument.buffer);
          rows[a] = argument.buffer;
        }
      }
      step.function(length, rows, to, step.scalar_args);
      advance(last - 1, 1);
    }
    for (int d = last - 1; d > 0 && index[d] == space_.sizes[d]; --d) {
      advance(d, -space_.sizes[d]);
      advance(d - 1, 1);
    }
  }
}

template <typename C>
C* Loop<C>::place_of(const Register& gathered, C* out, C (*buffers)[kBlock]) const {
  const bool in_place = steps_.empty() && direct_output_ && !past_cache_;
  return in_place ? out : buffers[gathered.buffer];
}

template <typename C>
const C* Loop<C>::read(const Register& r, int64_t at, C (*buffers)[kBlock]) const {
  if (r.mode == Mode::kDirect) return reinterpret_cast<const C*>(r.access->data) + at;
  if (r.mode == Mode::kPeriodic) return buffers[r.buffer] + at % inner();
  return r.buffer >= 0 ? buffers[r.buffer] : nullptr;
}

template <typename C>
void Loop<C>::run_steps(int64_t at, int64_t n, C* out, const C** values, C (*buffers)[kBlock]) {
  const int num_steps = static_cast<int>(steps_.size());
  auto next = compiled_.begin();
  for (int s = 0; s < num_steps; ++s) {
    if (next != compiled_.end() && s == next->begin) {
      run_compiled(*next, at, n, out, values, buffers);
      s = next->end - 1;
      ++next;
      continue;
    }
    const Step<C>& step = steps_[s];
    const C* in[kMaxStepInputs];
    for (int a = 0; a < step.num_args; ++a) {
      in[a] = values[step.args[a]];
      if (in[a] != nullptr) continue;
      C* const filled = buffers[refilled_ + a];
      std::fill_n(filled, n, registers_[step.args[a]].number);
      in[a] = filled;
    }
    C* const to = result_of(s, at, out, buffers);
    if (step.divisor >= 0 && has_zero(in[step.divisor], n)) {
      divided_by_zero_.store(true, std::memory_order_relaxed);
    }
    step.function(n, in, to, step.scalar_args);
    values[num_inputs_ + s] = to;
  }
  const C* last = values[num_inputs_ + num_steps - 1];
  if (!direct_output_)
    scatter(last, at, n);
  else if (past_cache_)
    conversions_.stream(last, n, out);
  else if (last != out)
    std::copy_n(last, n, out);  // a constant, or a row read in place
}

template <typename C>
C* Loop<C>::result_of(int step, int64_t at, C* out, C (*buffers)[kBlock]) const {
  const int8_t buffer = registers_[num_inputs_ + step].buffer;
  return steps_[step].kept != nullptr ? steps_[step].kept + at : buffer < 0 ? out : buffers[buffer];
}

template <typename C>
void Loop<C>::run_compiled(const Compiled& steps, int64_t at, int64_t n, C* out, const C** values,
                           C (*buffers)[kBlock]) const {
  const void* in[kMaxRegisters];
  void* results[kMaxRegisters];
  for (size_t i = 0; i < steps.inputs.size(); ++i) in[i] = values[steps.inputs[i]];
  for (size_t i = 0; i < steps.outputs.size(); ++i) {
    C* const to = result_of(steps.outputs[i] - num_inputs_, at, out, buffers);
    results[i] = to;
    values[steps.outputs[i]] = to;
  }
  steps.code->run(n, in, results, steps.numbers.data());
}

template <typename C>
template <typename F>
void Loop<C>::for_each_row_range(const Strides& strides, int64_t at, int64_t n, F f) const {
  const int last = static_cast<int>(space_.sizes.size()) - 1;
  if (last < 0) return f(int64_t{0}, int64_t{0}, Rows{1, 0, n, 1});
  if (last == 1) {  // fast path: usually a part of one row
    const int64_t row = at / inner(), column = at - row * inner();
    if (column + n <= inner()) {
      return f(row * strides[0] + column * strides[1], int64_t{0}, Rows{1, 0, n, strides[1]});
    }
  }
  Strides index(space_.sizes.size());
  int64_t offset = 0;
  for (int d = last; d >= 0; --d) {
    index[d] = at % space_.sizes[d];
    at /= space_.sizes[d];
    offset += index[d] * strides[d];
  }
  for (int64_t done = 0; done < n;) {
    Rows rows{1, 0, std::min(n - done, inner() - index[last]), strides[last]};
    if (last > 0 && rows.length == inner()) {  // whole rows, with a constant row stride
      rows.count = std::min((n - done) / inner(), space_.sizes[last - 1] - index[last - 1]);
      rows.row_stride = strides[last - 1];
    }
    f(offset, done, rows);
    done += rows.count * rows.length;
    // Advances the index: whole rows advance the second-innermost dimension, a part of a row the innermost one.
    int d = rows.length == inner() && last > 0 ? last - 1 : last;
    const int64_t by = d == last ? rows.length : rows.count;
    index[d] += by;
    offset += by * strides[d];
    for (; d > 0 && index[d] == space_.sizes[d]; --d) {
      offset += strides[d - 1] - index[d] * strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

template <typename C>
const C* Loop<C>::gather(const Register& from, int64_t at, int64_t n, C* buffer) const {
  const Access& a = *from.access;
  const int64_t item = static_cast<int64_t>(item_size(a.dtype));
  if (from.flat) {
    from.load(a.data + at * item, {1, 0, n, 1}, buffer);
    return buffer;
  }
  const C* in_place = nullptr;
  for_each_row_range(a.strides, at, n, [&](int64_t offset, int64_t done, const Rows& rows) {
    const char* src = a.data + offset * item;
    if (rows.length == n && rows.stride == 1 && a.dtype == kDTypeOf<C>)
      in_place = reinterpret_cast<const C*>(src);
    else
      from.load(src, rows, buffer + done);
  });
  return in_place ? in_place : buffer;
}

template <typename C>
void Loop<C>::scatter(const C* from, int64_t at, int64_t n) const {
  const int64_t item = static_cast<int64_t>(item_size(output_.dtype));
  const StoreFunction<C> store = conversions_.store[static_cast<int>(output_.dtype)];
  if (flat_output_) return store(from, {1, 0, n, 1}, output_.data + at * item);
  for_each_row_range(output_.strides, at, n, [&](int64_t offset, int64_t done, const Rows& rows) {
    store(from + done, rows, output_.data + offset * item);
  });
}

template class Loop<float>;
template class Loop<double>;
template class Loop<int32_t>;
template class Loop<int64_t>;
template class Loop<Complex<float>>;
template class Loop<Complex<double>>;
template class Loop<BFloat16>;

}  // namespace tt::cpu
