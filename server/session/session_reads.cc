// Session: replies. They contain the values that a frame reads, within a limit of bytes, and its errors.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "server/convert.h"
#include "server/session/session.h"
#include "server/session/values.h"
#include "server/transfer/host_reader.h"

namespace tt::server {
namespace {

// Bytes of replies that a session may always keep.
constexpr uint64_t kMinKeptBytes = uint64_t{256} << 10;

v1::Error lost_answer() {
  return to_wire(Error(ErrorKind::kRuntime, "the value was in a reply that was lost with the connection"));
}

// Error messages count towards the size limit of a reply, as values do. They are truncated if no room is left.
void limit_message(v1::Error* error, uint64_t* bytes_left) {
  constexpr size_t kShort = 128;
  if (error->message().size() > std::max<size_t>(kShort, *bytes_left))
    error->set_message(valid_utf8(error->message(), kShort));
  *bytes_left -= std::min<uint64_t>(*bytes_left, error->message().size());
}

void set_error(v1::Error error, uint64_t* bytes_left, v1::ReadResult* result) {
  limit_message(&error, bytes_left);
  *result->mutable_error() = std::move(error);
}

}  // namespace

// Keeps a reply if the account has room. Kept replies count as bookkeeping of the account from the next frame on.
void Session::keep(uint64_t sequence, const v1::Reply& reply) {
  replies_.keep(sequence, reply,
                std::min(options_.limits.max_kept_bytes, replies_.bytes() + account_->host_room() + kMinKeptBytes));
  context_.host_bytes = sites_->bytes() + replies_.bytes();
}

uint64_t Session::reply_room() const {
  return std::min(options_.limits.max_reply_bytes, account_->host_room() + kMinKeptBytes);
}

void Session::answer_reads(const v1::Frame& frame, bool again, uint64_t* bytes_left, v1::Reply* reply) {
  for (const v1::Read& read : frame.reads()) answer(read, again, bytes_left, reply->add_reads());
}

// Numbers do not count towards the size limit of the reply: their number is limited, and the client cannot read them
// later.
void Session::answer_scalar(size_t index, Slot slot, uint64_t* bytes_left, v1::Reply* reply) {
  const SlotValue* value = slots_.find(slot);
  check(ErrorKind::kValue, value != nullptr, "handle ", slot, " is not in use");
  std::optional<v1::Error> error = error_of(*value, false);
  if (error) {
    if (value->poison) delivered_.push_back(value->poison);
  } else if (value->tensor.numel() != 1 || !on_cpu(value->tensor)) {
    error = to_wire(Error(ErrorKind::kValue, absl::StrCat("expected a tensor on the CPU with one element, got one on ",
                                                          to_string(value->tensor.device()), " with ",
                                                          value->tensor.numel(), " elements")));
  } else {
    std::memcpy(reply->mutable_numbers()->data() + kNumberBytes * index, value->tensor.data(),
                item_size(value->tensor.dtype()));
  }
  if (!error) return;
  limit_message(&*error, bytes_left);
  v1::NumberError* failed = reply->add_number_errors();
  failed->set_index(static_cast<uint32_t>(index));
  *failed->mutable_error() = *std::move(error);
}

void Session::fail_numbers(const v1::Frame& frame, v1::Reply* reply) {
  const auto count =
      std::min<size_t>(static_cast<size_t>(frame.scalar_reads_size()) / 2, options_.limits.max_scalar_reads);
  if (count == 0) return;
  reply->set_first_number(frame.first_number());
  reply->mutable_numbers()->resize(kNumberBytes * count);
  for (size_t i = 0; i < count; ++i) {
    v1::NumberError* failed = reply->add_number_errors();
    failed->set_index(static_cast<uint32_t>(i));
    *failed->mutable_error() = lost_answer();
  }
}

// An unknown name is a fault when a frame is first executed. In a repeated frame the name may have been released since.
void Session::answer(const v1::Read& read, bool again, uint64_t* bytes_left, v1::ReadResult* result) {
  result->set_request(read.request());
  if (read.handle() == 0) {
    store_async_errors();
    if (const PoisonRef error = slots_.withheld_error()) {
      acknowledge(error);
      set_error(to_wire(*error), bytes_left, result);
    }
    return;
  }
  const SlotValue* value = slots_.find(read.handle());
  if (value == nullptr) {
    check(ErrorKind::kValue, again, "handle ", read.handle(), " is not in use");
    return set_error(lost_answer(), bytes_left, result);
  }
  if (std::optional<v1::Error> error = error_of(*value, read.meta_only())) {
    acknowledge(value->poison);
    return set_error(*std::move(error), bytes_left, result);
  }
  *result->mutable_tensor() = to_wire(value->tensor.meta());
  if (read.meta_only()) return;
  const size_t bytes = byte_size(value->tensor);
  if (bytes > std::min(*bytes_left, options_.limits.max_inline_bytes)) return;  // the client uses Download
  *bytes_left -= bytes;
  result->mutable_data()->resize(bytes);
  if (bytes == 0) return;
  if (on_cpu(value->tensor)) {
    HostReader(value->tensor).read(result->mutable_data()->data(), bytes);
  } else if (std::optional<v1::Error> error = read_from_device(read.handle(), value->tensor, result->mutable_data())) {
    result->clear_data();
    set_error(*std::move(error), bytes_left, result);
  }
}

// Reads a small value in the compute stream, because the value is usually the stream's latest result.
std::optional<v1::Error> Session::read_from_device(uint64_t handle, const Tensor& tensor, std::string* bytes) try {
  ContextScope scope(&context_);
  const Tensor source = packed(tensor);
  const Staging staging(downloads_, tensor.device(), bytes->size());
  Stream& stream = context_.stream(tensor.device());
  stream.copy(staging.data(), source.data(), bytes->size());
  stream.synchronize();
  bytes->assign(staging.data(), bytes->size());
  return poison_of(handle, tensor->storage->pending_errors);
} catch (const Error& error) {
  return to_wire(error);
}

// Requires that the device has finished the work that `pending_errors` depends on.
std::optional<v1::Error> Session::poison_of(uint64_t handle, const PendingErrors& pending_errors) {
  std::shared_ptr<const Poison> found = context_.async_errors().find_error(pending_errors);
  store_async_errors();
  if (const SlotValue* value = slots_.find(handle); value && value->poison) found = value->poison;
  if (!found) return std::nullopt;
  acknowledge(found);
  return to_wire(*found);
}

// Records that the client has received the error. Does nothing while a frame is suspended, because the client sent the
// frame's remaining instructions before it received the error.
void Session::acknowledge(const PoisonRef& poison) {
  if (!busy()) slots_.acknowledge(poison);
}

// Stores errors that the devices have found since the last call in place of the affected values.
void Session::store_async_errors() {
  if (context_.has_async_errors()) context_.async_errors().retire_completed(slots_);
}

}  // namespace tt::server
