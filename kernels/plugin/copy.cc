#include "kernels/plugin/copy.h"

#include <utility>

#include "engine/dispatch/boxed.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/plugin/call.h"
#include "kernels/plugin/plugin.h"
#include "kernels/plugin/stream.h"

namespace tt::plugin {
namespace {

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.numel()) * item_size(t.dtype()); }

// The number of elements from the first to the last.
int64_t extent(const Tensor& t) {
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return last + 1;
}

// Returns the bytes from the first element of `t`, which is not empty, to the last, as a tensor on the CPU with the
// geometry of `t`. Waits for the device.
Tensor fetch_extent(const Tensor& t) {
  const Tensor bytes = empty({extent(t)}, t.dtype(), Device{});
  Context::current().stream(t.device()).copy(bytes.data(), t.data(), bytes_of(bytes));
  return view_of(bytes, Geometry{t.sizes(), t.strides(), 0, true});
}

bool same_device(const Tensor& a, const Tensor& b) { return a.device() == b.device(); }

// Waits for a stream at the end of a scope, so that memory of the host that the stream reads may be reused.
class StreamWait {
 public:
  explicit StreamWait(LibraryStream& stream) : stream_(stream) {}
  ~StreamWait() {
    try {
      stream_.synchronize();
    } catch (const Error&) {  // the scope ends with another error
    }
  }
  StreamWait(const StreamWait&) = delete;
  StreamWait& operator=(const StreamWait&) = delete;

 private:
  LibraryStream& stream_;
};

// Copies `packed`, a contiguous tensor on the CPU with the dtype and sizes of `target`, to `target`: one copy per run
// of contiguous elements, because other sessions may be writing the elements between the runs.
void store_runs(const Tensor& packed, const Tensor& target) {
  int64_t run = 1;
  auto outer = static_cast<size_t>(target.dim());  // the dimensions that runs do not cover
  while (outer > 0 && (target.sizes()[outer - 1] == 1 || target.strides()[outer - 1] == run)) {
    run *= target.sizes()[--outer];
  }
  const auto item = static_cast<int64_t>(item_size(target.dtype()));
  const auto* from = packed.data_as<char>();
  Sizes index(outer, 0);
  uintptr_t to = reinterpret_cast<uintptr_t>(target.data());
  auto& stream = static_cast<LibraryStream&>(Context::current().stream(target.device()));
  const StreamWait wait(stream);
  for (int64_t left = target.numel() / run; left > 0; --left, from += run * item) {
    stream.enqueue_copy(reinterpret_cast<void*>(to), from, static_cast<size_t>(run * item));
    for (size_t d = outer; d-- > 0;) {
      const int64_t step = target.strides()[d] * item;
      to += static_cast<uintptr_t>(step);
      if (++index[d] < target.sizes()[d]) break;
      to -= static_cast<uintptr_t>(step * target.sizes()[d]);
      index[d] = 0;
    }
  }
  stream.synchronize();
}

// Copies with the library's kernel for `assign`. Returns false if it has none that supports the tensors.
bool assign_on_device(const Tensor& source, const Tensor& target) {
  if (!same_device(source, target) || library_of(target.device().type).find(op_id::kAssign) == nullptr) return false;
  return run_assign(target, source);
}

// Copies bytes within the device. Returns false if the tensors' layouts or dtypes differ.
bool copy_bytes(const Tensor& source, const Tensor& target) {
  const bool plain = same_device(source, target) && source.dtype() == target.dtype() &&
                     source.sizes() == target.sizes() && source.is_contiguous() && target.is_contiguous();
  if (plain && source.data() != target.data()) {
    Context::current().stream(target.device()).copy(target.data(), source.data(), bytes_of(target));
  }
  return plain;
}

template <int kSource>
void copy_argument(Call& call) {
  const Arg& arg = call.args[kSource];
  const Tensor source =
      arg.is_number() ? scalar_tensor(arg.scalar(), arg.scalar().dtype(), Device{}) : Tensor::from(arg.tensor);
  if (!call.outputs[0].same(source)) copy(source, call.outputs[0]);
}

}  // namespace

Tensor fetch(const Tensor& t) {
  if (t.numel() == 0) return empty(t.sizes(), t.dtype(), Device{});
  if (t.is_contiguous()) return fetch_extent(t);
  const Tensor packed = empty(t.sizes(), t.dtype(), t.device());
  if (assign_on_device(t, packed)) return fetch_extent(packed);
  const Tensor copied = empty(t.sizes(), t.dtype(), Device{});
  copy_into(copied, fetch_extent(t));
  return copied;
}

void store(const Tensor& host, const Tensor& target) {
  if (target.numel() == 0) return;
  Tensor packed = host;
  if (host.dtype() != target.dtype() || host.sizes() != target.sizes() || !host.is_contiguous()) {
    packed = empty(target.sizes(), target.dtype(), Device{});
    copy_into(packed, host);
  }
  if (target.is_contiguous()) {
    return Context::current().stream(target.device()).copy(target.data(), packed.data(), bytes_of(target));
  }
  if (library_of(target.device().type).find(op_id::kAssign) != nullptr) {
    const Tensor uploaded = empty(target.sizes(), target.dtype(), target.device());
    store(packed, uploaded);
    if (assign_on_device(uploaded, target)) return;
  }
  store_runs(packed, target);
}

void copy(const Tensor& source, const Tensor& target) {
  if (target.numel() == 0) return;
  const bool from_plugin = is_plugin(source.device().type), to_plugin = is_plugin(target.device().type);
  if (from_plugin && to_plugin && (copy_bytes(source, target) || assign_on_device(source, target))) return;
  Tensor host = source;
  if (from_plugin) {
    host = fetch(source);
  } else if (source.device().type != DeviceType::kCPU) {
    host = empty(source.sizes(), source.dtype(), Device{});
    copy_into(host, source);
  }
  to_plugin ? store(host, target) : copy_into(target, host);
}

Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor packed = empty(t.sizes(), t.dtype(), t.device());
  copy(t, packed);
  return packed;
}

void assign(Call& call) { run_with_separate_outputs(call, &copy_argument<1>); }

void clone(Call& call) { run_with_separate_outputs(call, &copy_argument<0>); }

}  // namespace tt::plugin
