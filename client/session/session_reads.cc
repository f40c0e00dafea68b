// Session: values and sizes that come from the engine.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "client/connection/interruption.h"
#include "client/session/encode.h"
#include "client/session/session_impl.h"

namespace tt::client {
namespace {

using Clock = std::chrono::steady_clock;

size_t byte_size(const TensorMeta& meta) { return static_cast<size_t>(meta.numel()) * item_size(meta.dtype); }

}  // namespace

void Session::Impl::wait_for_sizes(Tensors& results, uint32_t site) {
  Waiting waiting(*this, site);
  absl::InlinedVector<uint64_t, 4> handles;
  for (const Tensor& tensor : results) handles.push_back(tensor->id);
  std::vector<v1::ReadResult> answers = link.read(handles, /*meta_only=*/true);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].has_error()) throw link.remote_error(answers[i].error());
    decode_description(answers[i].tensor(), results[i].get());
  }
}

// The description of a value on the CPU is known when it has been computed, that of a value on a GPU before.
void Session::Impl::wait_for_status(const Tensors& results, const Tensors& operands, uint32_t site) {
  const Tensors& tensors = results.empty() ? operands : results;
  const auto smallest =
      absl::c_min_element(tensors, [](const Tensor& a, const Tensor& b) { return byte_size(*a) < byte_size(*b); });
  if (smallest == tensors.end() || (*smallest)->device.type == DeviceType::kMeta) return;
  Waiting waiting(*this, site);
  const Handle& result = **smallest;
  if (result.device.type != DeviceType::kCPU) {
    read_inline(result, byte_size(result));
    return;
  }
  const std::vector<v1::ReadResult> answers = link.read({&result.id, 1}, /*meta_only=*/true);
  if (answers[0].has_error()) throw link.remote_error(answers[0].error());
}

std::vector<int64_t> Session::Impl::read_description(SavedCall& saved, uint32_t site) {
  Waiting waiting(*this, site);
  return saved.read_description(link);
}

void Session::describe(Tensors& results, uint32_t site) {
  impl_->check_wait(site);
  impl_->wait_for_sizes(results, site);
}

// The description of a tensor's value, without bytes.
static Value empty_value(const TensorMeta& tensor) {
  Value value;
  value.meta.dtype = tensor.dtype;
  value.meta.device = tensor.device;
  value.meta.sizes = tensor.sizes;
  value.meta.strides = contiguous_strides(tensor.sizes);
  return value;
}

// Reads a value that is small enough for a reply. Downloads the value if the reply does not contain it.
std::string Session::Impl::read_inline(const Handle& tensor, size_t bytes) {
  issue_if_deferred(tensor.id);
  v1::ReadResult answer = std::move(link.read({&tensor.id, 1}, /*meta_only=*/false)[0]);
  if (answer.has_error()) throw link.remote_error(answer.error());
  std::string value = std::move(*answer.mutable_data());
  if (value.empty() && bytes > 0) {
    value.resize(bytes);
    link.download(tensor.id, absl::MakeSpan(value));
  }
  check(value.size() == bytes, "the engine sent ", value.size(), " bytes for ", static_cast<const TensorMeta&>(tensor));
  return value;
}

Value Session::read(const Tensor& tensor, uint32_t site) {
  check_has_values(*tensor, "read");
  Value value = empty_value(*tensor);
  size_t bytes = byte_size(*tensor);
  if (bytes > impl_->max_inline_bytes) {
    value.bytes.resize(bytes);
    read_into(tensor, absl::MakeSpan(value.bytes), site);
    return value;
  }
  impl_->check_wait(site);
  Waiting waiting(*impl_, site);
  value.bytes = impl_->read_inline(*tensor, bytes);
  return value;
}

PendingValue::PendingValue(Ref<Session> session, size_t bytes, Ref<PendingScalar> number)
    : session_(std::move(session)), bytes_(bytes), number_(std::move(number)) {}

PendingValue::PendingValue(Ref<Session> session, size_t bytes, Tensor copy)
    : session_(std::move(session)), bytes_(bytes), copy_(std::move(copy)), read_(std::make_unique<PendingRead>()) {}

PendingValue::~PendingValue() {
  if (read_) session_->impl_->link.abandon_read(read_.get());
}

bool PendingValue::is_ready() const {
  if (number_) return number_->has_arrived();
  return inline_bytes_.size() == bytes_ && bytes_ > 0;
}

bool PendingValue::has_arrived() {
  if (number_) return session_->impl_->link.has_arrived(*number_);
  if (!session_->impl_->link.has_arrived(*read_)) return false;
  return !download_ || read_->results[0].has_error() || download_->done();
}

absl::Span<char> PendingValue::get_number(uint32_t site) {
  Session::Impl& impl = *session_->impl_;
  if (!number_->has_arrived()) {
    if (restricts_waits() && !impl.link.has_arrived(*number_)) impl.check_wait(site);
    const Clock::time_point start = Clock::now();
    if (impl.link.finish_read(*number_)) impl.sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  }
  if (number_->error) throw impl.link.remote_error(*number_->error);
  return {number_->bytes, bytes_};
}

absl::Span<char> PendingValue::get(uint32_t site) {
  if (number_) return get_number(site);
  Session::Impl& impl = *session_->impl_;
  const size_t bytes = bytes_;
  if (is_ready()) return absl::MakeSpan(inline_bytes_);
  if (restricts_waits() && !has_arrived()) impl.check_wait(site);
  const Clock::time_point start = Clock::now();
  const bool waited = impl.link.finish_read(*read_);
  v1::ReadResult& answer = read_->results[0];
  if (answer.has_error()) throw impl.link.remote_error(answer.error());
  if (download_) return finish_download(site, start);
  if (waited) impl.sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  inline_bytes_ = std::move(*answer.mutable_data());
  if (inline_bytes_.empty() && bytes > 0) {  // the reply had no room for it
    inline_bytes_ = session_->read(copy_, site).bytes;
  }
  check(inline_bytes_.size() == bytes, "the engine sent ", inline_bytes_.size(), " bytes for ",
        static_cast<const TensorMeta&>(*copy_));
  return absl::MakeSpan(inline_bytes_);
}

absl::Span<char> PendingValue::finish_download(uint32_t site, Clock::time_point start) {
  if (!download_->done()) {
    for (InterruptTimer timer; !download_->wait_for(timer.max_sleep());) {
      session_->impl_->link.check_interrupt(&timer);
    }
    session_->impl_->sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  }
  return download_->bytes();
}

// Reads of numbers are answered between instructions. Other reads are answered at the end of their frame, when later
// instructions may have written to the tensor, so a copy is read; so are numbers of a GPU, which the engine would have
// to wait for before it executes the next instruction. The answer to the read of a downloaded value has no bytes; it
// shows that the value was computed, and a wait for it can be interrupted like that of any read.
std::unique_ptr<PendingValue> Session::read_async(const Tensor& tensor, uint32_t site) {
  static const Op& clone = *find_op("clone");
  check_has_values(*tensor, "read");
  const size_t bytes = byte_size(*tensor);
  check(tensor->session.get() == this, "expected a tensor of this session, got a tensor of another session");
  if (tensor->numel() == 1 && tensor->device.type == DeviceType::kCPU) {
    impl_->issue_if_deferred(tensor->id);
    Tensor kept;
    if (Ref<PendingScalar> number = impl_->link.read_scalar(tensor->id, [&] { kept = tensor; })) {
      return std::unique_ptr<PendingValue>(new PendingValue(Ref<Session>(this), bytes, std::move(number)));
    }
  }
  const bool downloads = bytes > impl_->max_inline_bytes;
  const Arg args[] = {tensor.get()};
  std::unique_ptr<PendingValue> pending(
      new PendingValue(Ref<Session>(this), bytes, call(clone, args, {.grad = false, .site = site})[0]));
  impl_->link.begin_read({&pending->copy_->id, 1}, downloads, pending->read_.get());
  if (downloads) pending->download_ = impl_->link.download_in_background(pending->copy_->id, bytes);
  return pending;
}

void Session::read_into(const Tensor& tensor, absl::Span<char> into, uint32_t site) {
  check_has_values(*tensor, "read_into");
  size_t bytes = byte_size(*tensor);
  check(ErrorKind::kValue, into.size() == bytes, "reading ", static_cast<const TensorMeta&>(*tensor),
        " requires a buffer of ", bytes, " bytes, got ", into.size());
  impl_->check_wait(site);
  Waiting waiting(*impl_, site);
  if (bytes > impl_->max_inline_bytes) {
    impl_->issue_if_deferred(tensor->id);
    return impl_->link.download(tensor->id, into);
  }
  std::string value = impl_->read_inline(*tensor, bytes);
  std::copy(value.begin(), value.end(), into.begin());
}

}  // namespace tt::client
