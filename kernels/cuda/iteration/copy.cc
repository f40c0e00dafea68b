#include "kernels/cuda/iteration/copy.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/boxed.h"
#include "engine/program/slot_table.h"
#include "engine/session/context.h"
#include "kernels/cuda/iteration/cast.h"
#include "kernels/cuda/iteration/move.h"
#include "kernels/cuda/kernels.h"

namespace tt::cuda {

namespace {

bool on_gpu(const Tensor& t) { return t.device().type == DeviceType::kCUDA; }

void copy_within(const Tensor& src, const Tensor& dst) {
  if (src.data() == dst.data() && src.dtype() == dst.dtype() && src.sizes() == dst.sizes() &&
      src.strides() == dst.strides()) {
    return;
  }
  const Queue queue = queue_of(dst);
  src.dtype() == dst.dtype() ? move_elements(queue, src, dst) : cast_elements(queue, src, dst);
}

// Returns a contiguous tensor like `t` in pinned host memory, which the device can access directly.
Tensor staging_like(const Tensor& t, Device device) {
  TensorMeta meta = t.meta();
  meta.device = Device{};
  meta.strides = contiguous_strides(meta.sizes);
  meta.offset = 0;
  meta.requires_grad = false;
  const size_t bytes = static_cast<size_t>(t.numel()) * item_size(t.dtype());
  return Tensor(new TensorImpl(meta, make_ref<Storage>(Devices::instance().backend(device).staging(), bytes)));
}

// Maximum size of a transfer. The device copies one piece while the host fills or empties another.
constexpr size_t kPieceBytes = size_t{4} << 20;

void copy_bytes(void* to, const void* from, size_t bytes) {
  constexpr int64_t kGrain = 1 << 19;
  parallel_for(static_cast<int64_t>(bytes), kGrain, [&](int64_t begin, int64_t end) {
    const auto size = static_cast<size_t>(end - begin);
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, size);
  });
}

// A piece of pinned staging memory. It is reused only after the device has executed the copies that copy() enqueued.
struct Piece {
  Piece(Stream& stream, size_t size)
      : staging(Devices::instance().backend(stream.device()).staging()),
        bytes(size),
        memory(make_ref<Storage>(staging, size)) {}
  void copy(Stream& stream, void* to, const void* from) {
    stream.copy(to, from, bytes);
    staging.record_stream(memory->data(), stream);
  }

  Allocator& staging;
  size_t bytes;
  Ref<Storage> memory;
};

// Copies from host to device memory. The caller may overwrite `from` after the call.
void send_bytes(char* to, const char* from, size_t bytes, Stream& stream) {
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    Piece piece(stream, std::min(kPieceBytes, bytes - at));
    copy_bytes(piece.memory->data(), from + at, piece.bytes);
    piece.copy(stream, to + at, piece.memory->data());
  }
}

// Copies from device to host memory. Waits until all bytes have arrived.
void fetch_bytes(char* to, const char* from, size_t bytes, Stream& stream) {
  constexpr size_t kAhead = 3;
  std::deque<std::pair<Piece, std::unique_ptr<Event>>> ahead;
  for (size_t asked = 0, done = 0; done < bytes;) {
    for (; ahead.size() < kAhead && asked < bytes; asked += ahead.back().first.bytes) {
      Piece piece(stream, std::min(kPieceBytes, bytes - asked));
      piece.copy(stream, piece.memory->data(), from + asked);
      ahead.emplace_back(std::move(piece), stream.record());
    }
    const auto& [piece, there] = ahead.front();
    there->synchronize();
    copy_bytes(to + done, piece.memory->data(), piece.bytes);
    done += piece.bytes;
    ahead.pop_front();
  }
}

void copy_to_host(const Tensor& src, const Tensor& dst) {
  const bool packs = src.dtype() != dst.dtype() || !src.is_contiguous();
  const Tensor packed = packs ? empty(src.sizes(), dst.dtype(), src.device()) : src;
  if (packs) copy_within(src, packed);
  Stream& stream = Context::current().stream(src.device());
  const bool direct = dst.is_contiguous() && dst.sizes() == src.sizes();
  const Tensor copied = direct ? dst : staging_like(packed, src.device());
  const size_t bytes = static_cast<size_t>(packed.numel()) * item_size(packed.dtype());
  if (direct) {
    fetch_bytes(static_cast<char*>(dst.data()), static_cast<const char*>(packed.data()), bytes, stream);
  } else {
    stream.copy(copied.data(), packed.data(), bytes);
  }
  stream.synchronize();
  if (std::shared_ptr<const Poison> poison =
          Context::current().async_errors().find_error(src->storage->pending_errors)) {
    throw Poisoned(std::move(poison));
  }
  if (!direct) copy_into(dst, copied);
}

// Copies the bytes of `staged` to `dst`. The staging memory is reused when the device has read it.
void send(const Tensor& staged, const Tensor& dst) {
  const size_t bytes = static_cast<size_t>(dst.numel()) * item_size(dst.dtype());
  if (bytes == 0) return;
  Stream& stream = Context::current().stream(dst.device());
  stream.copy(dst.data(), staged.data(), bytes);
  Devices::instance().backend(dst.device()).staging().record_stream(staged.data(), stream);
}

void copy_from_host(const Tensor& src, const Tensor& dst) {
  const bool direct = dst.is_contiguous() && dst.dtype() == src.dtype() && dst.sizes() == src.sizes();
  const Tensor copied = direct ? dst : empty(src.sizes(), src.dtype(), dst.device());
  if (src.is_contiguous()) {
    send_bytes(static_cast<char*>(copied.data()), static_cast<const char*>(src.data()),
               static_cast<size_t>(src.numel()) * item_size(src.dtype()), Context::current().stream(dst.device()));
  } else {
    const Tensor staged = staging_like(src, dst.device());
    copy_into(staged, src);
    send(staged, copied);
  }
  if (!direct) copy_within(copied, dst);
}

void copy_between(const Tensor& src, const Tensor& dst) {
  const Tensor packed = contiguous(src);
  Context& context = Context::current();
  Stream& from = context.stream(src.device());
  Stream& to = context.stream(dst.device());
  const Tensor copied = empty(packed.sizes(), packed.dtype(), dst.device());
  to.wait(*from.record());
  to.copy(copied.data(), packed.data(), static_cast<size_t>(packed.numel()) * item_size(packed.dtype()));
  from.wait(*to.record());  // later work in `from` may reuse the memory of `packed`
  copy_within(copied, dst);
}

template <int kSource>
void copy_argument(Call& call) {
  const Tensor& out = call.outputs[0];
  // The source may be on another device, because this kernel also copies tensors to the GPU.
  const Arg& arg = call.args[kSource];
  const Tensor source = arg.is_number() ? boxing::to_tensor(call, arg) : Tensor::from(arg.tensor);
  if (!out.same(source)) copy(source, out);
}

}  // namespace

void copy(const Tensor& src, const Tensor& dst) {
  if (dst.numel() == 0) return;
  if (!on_gpu(dst)) return copy_to_host(src, dst);
  if (!on_gpu(src)) return copy_from_host(src, dst);
  src.device() == dst.device() ? copy_within(src, dst) : copy_between(src, dst);
}

void upload(const Tensor& dst, absl::FunctionRef<void(void*)> write) {
  const Tensor staged = staging_like(dst, dst.device());
  write(staged.data());
  send(staged, dst);
}

Tensor contiguous(const Tensor& t) { return t ? contiguous_as(t, t.dtype()) : t; }

Tensor contiguous_as(const Tensor& t, DType dtype) {
  if (!t || (t.dtype() == dtype && t.is_contiguous())) return t;
  check(ErrorKind::kNotImplemented, !is_complex(t.dtype()) || is_complex(dtype) || dtype == DType::kBool,
        "not implemented for ", name(t.dtype()), " on ", t.device());
  Tensor packed = empty(t.sizes(), dtype, t.device());
  copy(t, packed);
  return packed;
}

void assign(Call& call) { run_with_separate_outputs(call, &copy_argument<1>); }

void clone(Call& call) { run_with_separate_outputs(call, &copy_argument<0>); }

void to_dtype(const Tensor& input, DType, Tensor& out) { copy(input, out); }

void to_device(const Tensor& input, Device, Tensor& out) { copy(input, out); }

}  // namespace tt::cuda
