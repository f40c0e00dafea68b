#include "server/serving/infer.h"

namespace tt::server {

absl::Status infer_status(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kOutOfMemory: return absl::ResourceExhaustedError(error.message());
    case ErrorKind::kNotImplemented: return absl::UnimplementedError(error.message());
    case ErrorKind::kConnection: return absl::UnavailableError(error.message());
    default: return absl::InvalidArgumentError(error.message());
  }
}

}  // namespace tt::server
