// Credentials of gRPC's servers and channels: TLS from files, or none. The only place that creates them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/certificate.h"
#include "proto/revocations.h"

namespace tt {

std::shared_ptr<grpc::ServerCredentials> plain_server_credentials();
std::shared_ptr<grpc::ChannelCredentials> plain_channel_credentials();

// Credentials of a server with TLS 1.2 or newer. With `files.authorities`, clients must present a certificate that one
// of them signed; with `files.revocations`, one that was not revoked, else `report` is called (proto/revocations.h).
// Changed files are used once they fit each other (proto/checked_files.h); `report` receives the result of each change.
// FAILED_PRECONDITION if a file cannot be used.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> server_credentials(const TlsFiles& files,
                                                                            Revocations::Report report = {});

// Credentials of a channel to a server whose certificate must be valid, be signed by one of `files.authorities`, or if
// that is empty, of the system, and have the name to which the channel connects.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const TlsFiles& files);
// The same for engines among themselves: the certificate's name is not checked, because engines connect by addresses.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> peer_channel_credentials(const TlsFiles& files);
// Credentials of a channel to a server whose certificate has `fingerprint` (proto/certificate.h) and is valid now. Its
// name and signature are not checked. `files.authorities` is not used.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> pinned_credentials(const std::string& fingerprint,
                                                                             const TlsFiles& files);

}  // namespace tt
