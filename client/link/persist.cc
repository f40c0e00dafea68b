// Link's part of sessions that outlive their engine's process.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/link/link.h"
#include "client/link/outside.h"

namespace tt::client {

void Link::persist(double every, double wait) {
  {
    CallLock lock(*this);
    if (every > 0) window_.keep_acknowledged(true);
  }
  flush();
  v1::PersistRequest request;
  request.set_every_seconds(every);
  request.set_wait_seconds(wait);
  v1::PersistReply reply;
  const absl::Status status = transport_->persist(request, &reply);
  MutexLock lock(mutex_of_process());
  mutex_.assume_held();  // that mutex
  if (!status.ok()) {
    if (window_.persisted() == 0) {  // as before the call
      window_.keep_acknowledged(false);
      kept_uploads_.clear();
      clear_acknowledged();
    }
    const bool is_wrong = absl::IsInvalidArgument(status);
    fail(is_wrong ? ErrorKind::kValue : ErrorKind::kRuntime, "[persist] ", status.message());
  }
  window_.keep_acknowledged(every > 0);
  if (every > 0) {
    window_.persisted(reply.persisted());
  } else {
    kept_uploads_.clear();
  }
  resumption_->set_patience(std::chrono::duration<double>(every > 0 ? wait : 0));
  clear_acknowledged();
}

void Link::uploaded(uint64_t transfer) {
  MutexLock lock(mutex_of_process());
  mutex_.assume_held();
  if (window_.keeps_acknowledged()) kept_uploads_.used_in(transfer, window_.sealed() + 1);
}

std::string Link::repeat_after(uint64_t executed) {
  const std::string from = absl::StrCat("it continues from frame ", executed, " of ", window_.acknowledged());
  if (!window_.has_frames_after(executed)) return absl::StrCat(from, ", and the frames after it are not kept any more");
  std::string outside;
  window_.visit_acknowledged(executed, [&](const v1::Frame& frame) {
    for (const v1::Instruction& instruction : frame.instructions()) {
      const Op* const op = find_op(static_cast<uint16_t>(instruction.op()));
      if (outside.empty() && op != nullptr && reaches_outside(op->name)) outside = std::string(op->name);
    }
  });
  if (!outside.empty()) return absl::StrCat(from, ", and ", outside, " after it may have another result when repeated");
  std::optional<std::vector<KeptUploads::Bytes>> uploads = kept_uploads_.after(executed);
  if (!uploads) return absl::StrCat(from, ", and an upload after it was too large to be kept");
  window_.rewind_to(executed);
  if (!uploads->empty()) {
    upload_again_.emplace_back([this, again = *std::move(uploads)]() mutable { run_uploads_again(std::move(again)); });
  }
  return "";
}

void Link::run_uploads_again(std::vector<KeptUploads::Bytes> uploads) {
  for (const KeptUploads::Bytes& upload : uploads) {
    try {
      send_upload(upload.transfer, upload.device, {upload.data->data(), upload.data->size()}, Mode::kBackground);
    } catch (const std::exception&) {
      // As for uploads in the background: the instruction that waits for the bytes fails in the engine.
    }
  }
}

}  // namespace tt::client
