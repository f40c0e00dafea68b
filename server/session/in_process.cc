#include "server/session/in_process.h"

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

absl::Status no_session() { return absl::NotFoundError("the session has ended"); }

}  // namespace

absl::Status InProcessEngine::hello(const v1::HelloRequest& request, v1::HelloReply* reply) {
  return sessions_.hello(request, reply);
}

absl::Status InProcessEngine::execute(absl::string_view session_key, const v1::Frame& frame, v1::Reply* reply) {
  auto session = sessions_.find(session_key);
  if (!session) return no_session();
  reply->Clear();
  session->execute(frame, reply);
  if (session->over()) sessions_.end(*session);
  return absl::OkStatus();
}

absl::Status InProcessEngine::cancel(absl::string_view session_key, uint64_t through, uint64_t* executed) {
  auto session = sessions_.find(session_key);
  if (!session) return no_session();
  *executed = session->cancel(through);
  return absl::OkStatus();
}

absl::Status InProcessEngine::upload(absl::string_view session_key, uint64_t transfer, Device device,
                                     absl::Span<const char> bytes) {
  auto session = sessions_.find(session_key);
  if (!session) return no_session();
  auto upload = session->begin_upload(transfer, bytes.size(), device);
  return upload.ok() ? (*upload)->append(bytes) : upload.status();
}

absl::Status InProcessEngine::download(absl::string_view session_key, uint64_t handle, uint64_t after,
                                       absl::Span<char> into, v1::Error* error) {
  auto session = sessions_.find(session_key);
  if (!session) return no_session();
  auto download = session->begin_download(handle, after, [] { return true; });
  if (!download.ok()) return download.status();
  if (download->error) {
    *error = *download->error;
    return absl::OkStatus();
  }
  if (download->bytes->bytes() != into.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a buffer of ", download->bytes->bytes(), " bytes, got ", into.size()));
  }
  download->bytes->read(into.data(), into.size());
  return absl::OkStatus();
}

}  // namespace tt::server
