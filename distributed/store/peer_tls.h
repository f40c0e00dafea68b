// TLS between engines: the process's certificate, and the authorities of the other engines' certificates.
//
// Stores and pull servers, and the channels to them, use it. The payload of collectives does not: Gloo and NCCL have no
// TLS. One setting per process, because all sessions of an engine share its connections to a store.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/status.h"
#include "proto/certificate.h"
#include "proto/checked_files.h"

namespace tt::distributed {

// Makes servers and channels that are created from now on use TLS, in both directions with a certificate. Call it once,
// before the first of them, without other threads. `report` receives the result of each change of the files.
// FAILED_PRECONDITION if a file cannot be used.
absl::Status use_peer_tls(const TlsFiles& files, CheckedTlsFiles::Report report);

bool peers_use_tls();
// Without TLS until use_peer_tls() is called.
std::shared_ptr<grpc::ServerCredentials> peer_server_credentials();
std::shared_ptr<grpc::ChannelCredentials> peer_channel_credentials();

}  // namespace tt::distributed
