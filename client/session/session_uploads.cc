// Session: values that go to the engine. An upload's instruction is deferred until an instruction uses its result
// (deferred_uploads.h).
#include <chrono>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "client/connection/interruption.h"
#include "client/session/encode.h"
#include "client/session/session_impl.h"
#include "engine/schema/op.h"

namespace tt::client {

using Clock = std::chrono::steady_clock;

// Size of an `uploaded` instruction in a frame, for a tensor of many dimensions.
constexpr FrameSize kUploadedSize{
    96, frame_memory::kInstruction + 4 * frame_memory::kArgument + 64 * frame_memory::kNumber};

void Session::Impl::add_uploaded(Link::Appending& appending, const DeferredUpload& upload) {
  static const Op& uploaded = *find_op("uploaded");
  const Arg args[] = {static_cast<int64_t>(upload.transfer), SizesView(upload.sizes), upload.dtype, upload.device};
  add_instruction(appending, uploaded, args, upload.site)->set_result(upload.handle);
  appending.uploaded(upload.transfer);
}

void Session::Impl::issue_deferred(const Op& op, Args args, absl::Span<const Tensor> into,
                                   absl::FunctionRef<void()> before_waiting) {
  bool has_tensors = !into.empty();
  // An entry is taken only while its instruction is appended, so that another thread which uses the tensor either finds
  // the entry or appends later.
  auto issue = [&](const Handle* tensor) {
    has_tensors = true;
    if (!deferred.contains(tensor->id)) return;
    Link::Appending appending = link.append(kUploadedSize, before_waiting);
    if (auto upload = deferred.take(tensor->id)) add_uploaded(appending, *upload);
  };
  for (const Arg& arg : args) for_each_tensor(arg, issue);
  for (const Tensor& tensor : into) issue(tensor.get());
  if (!has_tensors && op.num_outputs == 0) issue_all_deferred();
}

void Session::Impl::issue_deferred(uint64_t handle) {
  if (!deferred.contains(handle)) return;
  Link::Appending appending = link.append_at_once(kUploadedSize);
  if (auto upload = deferred.take(handle)) add_uploaded(appending, *upload);
}

void Session::Impl::issue_all_deferred() {
  if (!deferred.any()) return;
  Link::Appending appending =
      link.append_at_once({kUploadedSize.bytes * DeferredUploads::kMax, kUploadedSize.memory * DeferredUploads::kMax});
  while (auto upload = deferred.take_oldest()) add_uploaded(appending, *upload);
}

Tensor Session::Impl::defer(Session* self, uint64_t transfer, Args args, uint32_t site) {
  static const Op& uploaded = *find_op("uploaded");
  Inference inference;
  infer(uploaded, args, /*grad=*/false, &inference);
  Tensor result = make_ref<Handle>(std::move(inference.outputs[0]), Ref<Session>(self), 0);
  Link::Appending appending = link.append_at_once(kUploadedSize);
  appending.check_names(uploaded, 1);
  result->id = appending.name(1);
  auto oldest = deferred.add({result->id, transfer, result->sizes, result->dtype, result->device, site});
  if (oldest) add_uploaded(appending, *oldest);
  return result;
}

Tensor Session::upload(absl::Span<const char> bytes, DType dtype, SizesView sizes, Device device, uint32_t site) {
  static const Op& literal = *find_op("literal");
  static const Op& uploaded = *find_op("uploaded");
  const CallOptions options{.site = site};
  if (bytes.size() <= impl_->max_inline_bytes) {
    const Arg args[] = {std::string_view(bytes.data(), bytes.size()), sizes, dtype, device};
    return call(literal, args, options)[0];
  }
  Ref<Session> self(this);  // another thread may disconnect during the upload
  const ProgramTrace::Pause pause;
  uint64_t transfer = impl_->next_transfer++;
  const Arg args[] = {static_cast<int64_t>(transfer), sizes, dtype, device};
  bool waited = false;
  try {
    ReleaseInterpreterLock release;
    const Clock::time_point start = Clock::now();
    waited = impl_->link.upload(transfer, device, bytes, [&] { impl_->check_wait(site); });
    if (waited) impl_->sites.count_wait(site, WaitKind::kUpload, seconds_since(start));
  } catch (const Error& error) {
    // The engine keeps a refused transfer until an instruction takes it, so issue one and drop its result.
    if (error.kind() == ErrorKind::kOutOfMemory) call(uploaded, args, options);
    throw;
  }
  if (!waited) return impl_->defer(this, transfer, args, site);
  Tensor result = call(uploaded, args, options)[0];
  impl_->link.uploaded(transfer);
  return result;
}

}  // namespace tt::client
