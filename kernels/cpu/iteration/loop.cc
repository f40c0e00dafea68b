#include "kernels/cpu/iteration/loop.h"

#include <unistd.h>

#include <algorithm>

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
// Rows of at least this length are processed one by one, and are read in place if possible.
constexpr int64_t kLongRow = kBlock / 2;

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
              const Access& output, bool past_cache)
    : space_(space),
      steps_(steps),
      output_(output),
      conversions_(blocks().conversions<C>()),
      num_inputs_(static_cast<int>(inputs.size())),
      flat_output_(space.is_contiguous(output)),
      direct_output_(flat_output_ && output.dtype == kDTypeOf<C>),
      past_cache_(past_cache && direct_output_) {
  for (const LoopInput<C>& input : inputs) registers_.push_back(plan_input(input));
  registers_.resize(inputs.size() + steps.size());
  plan_buffers();
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
  } else if (repeats && strides.size() > 1 && strides[0] == 0 && inner() < kLongRow && space_.numel > kBlock) {
    r.mode = Mode::kPeriodic;
  } else if (space_.is_contiguous(*r.access)) {
    r.flat = true;
    if (r.access->dtype == kDTypeOf<C>) r.mode = Mode::kDirect;
  }
  return r;
}

template <typename C>
int8_t Loop<C>::allocate_buffer() {
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
  for (int s = 0; s < num_steps; ++s) {
    for (int a = 0; a < steps_[s].num_args; ++a) registers_[steps_[s].args[a]].last_use = static_cast<int16_t>(s);
  }
  for (int i = 0; i < num_inputs_; ++i) {
    Register& r = registers_[i];
    if (r.mode != Mode::kDirect) r.buffer = allocate_buffer();
    if (r.mode == Mode::kConstant || r.mode == Mode::kPeriodic) r.last_use = kMaxRegisters;  // filled once and reused
    if (r.mode == Mode::kPeriodic) block_ = kBlock - inner();                                // read at any offset
  }
  for (int s = 0; s < num_steps; ++s) {
    // A result may overwrite an argument that is not read again: block functions permit it.
    for (int a = 0; a < steps_[s].num_args; ++a) {
      Register& r = registers_[steps_[s].args[a]];
      if (r.buffer >= 0 && r.last_use == s) free_buffers_ |= uint32_t{1} << r.buffer;
    }
    const bool in_place = s == num_steps - 1 && direct_output_ && !past_cache_;
    if (!in_place && steps_[s].kept == nullptr) registers_[num_inputs_ + s].buffer = allocate_buffer();
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
  if (num_buffers_ == 0 && steps_.size() <= 1) return end - at;  // no buffer limits the block size
  const int64_t n = std::min(block_, end - at);
  const bool by_rows = space_.sizes.size() > 1 && inner() >= kLongRow;
  return by_rows ? std::min(n, inner() - at % inner()) : n;
}

template <typename C>
void Loop<C>::fill_once(int64_t n, C (*buffers)[kBlock]) const {
  for (const Register& r : absl::MakeConstSpan(registers_).first(num_inputs_)) {
    if (r.mode == Mode::kConstant) {
      std::fill_n(buffers[r.buffer], std::min(kBlock, n), r.number);
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
  alignas(64) C buffers[kMaxBuffers][kBlock];
  const C* values[kMaxRegisters];
  fill_once(end - begin, buffers);
  for (int64_t at = begin, n; at < end; at += n) {
    n = block_at(at, end);
    run_block(at, n, to + (at - begin), values, buffers);
  }
  // Streaming stores are not ordered with other stores. The fence makes them visible before this thread reports that
  // it is done.
  if (past_cache_) std::atomic_thread_fence(std::memory_order_seq_cst);
}

template <typename C>
void Loop<C>::run_block(int64_t at, int64_t n, C* out, const C** values, C (*buffers)[kBlock]) {
  const bool in_place = steps_.empty() && direct_output_ && !past_cache_;
  for (int i = 0; i < num_inputs_; ++i) {
    const Register& r = registers_[i];
    switch (r.mode) {
      case Mode::kDirect: values[i] = reinterpret_cast<const C*>(r.access->data) + at; break;
      case Mode::kConstant: values[i] = buffers[r.buffer]; break;
      case Mode::kPeriodic: values[i] = buffers[r.buffer] + at % inner(); break;
      case Mode::kGather: values[i] = gather(r, at, n, in_place ? out : buffers[r.buffer]);
    }
  }
  int result = num_inputs_ - 1;
  for (const Step<C>& step : steps_) {
    const C* in[kMaxStepInputs];
    for (int a = 0; a < step.num_args; ++a) in[a] = values[step.args[a]];
    const Register& r = registers_[++result];
    C* to = step.kept != nullptr ? step.kept + at : r.buffer < 0 ? out : buffers[r.buffer];
    if (step.divisor >= 0 && has_zero(in[step.divisor], n)) {
      divided_by_zero_.store(true, std::memory_order_relaxed);
    }
    step.function(n, in, to, step.scalar_args);
    values[result] = to;
  }
  const C* last = values[result];
  if (!direct_output_)
    scatter(last, at, n);
  else if (past_cache_)
    conversions_.stream(last, n, out);
  else if (last != out)
    std::copy_n(last, n, out);  // a constant, or a row read in place
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
