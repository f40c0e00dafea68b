// GrpcTransport's Hello: opening a session with an engine or with the worker to which it redirects, and resuming it.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/connection/busy_retry.h"
#include "client/connection/channel.h"
#include "client/connection/metadata.h"
#include "client/connection/redirect.h"
#include "client/connection/trust.h"
#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"
#include "client/transport/grpc_transport.h"
#include "proto/version.h"

namespace tt::client {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(10);
// Time for the answer to a Hello that resumes a session: at least this and 4 times that of the last answered Hello,
// which includes several round trips. Doubled after each Hello without an answer up to the maximum, because the
// engine's machine may be overloaded.
constexpr auto kResumeTimeout = std::chrono::milliseconds(800);
constexpr auto kMaxResumeTimeout = std::chrono::milliseconds(4000);

// Attempts to open a session if the connection is closed before the engine answers: an engine that a flood of
// connections reaches may close one whose first bytes are late.
constexpr int kOpenAttempts = 8;

constexpr char kAdmissionKey[] = "teletensor-admission";

// Whether an UNAVAILABLE is gRPC's, because the connection failed, and not the engine's answer, which has a reason of
// its own.
bool is_of_connection(absl::string_view message) {
  static constexpr absl::string_view kBeginnings[] = {"failed to connect",
                                                      "connections to all",
                                                      "Socket closed",
                                                      "Connection reset",
                                                      "recvmsg",
                                                      "Broken pipe",
                                                      "Stream removed",
                                                      "ipv4:",
                                                      "ipv6:"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [message](absl::string_view each) { return absl::StartsWith(message, each); });
}

// Whether the connection was made, and then closed by the other side.
bool was_closed(const absl::Status& status) {
  return absl::IsUnavailable(status) && is_of_connection(status.message()) &&
         (absl::StrContains(status.message(), "Socket closed") ||
          absl::StrContains(status.message(), "Connection reset") ||
          absl::StrContains(status.message(), "Broken pipe"));
}

}  // namespace

absl::Status GrpcTransport::hello(const v1::HelloRequest& hello, v1::HelloReply* reply) {
  MutexLock lock(hello_mutex_);
  if (is_shut_down()) return absl::CancelledError("the session is closed");
  hello_ = hello;
  hello_.set_shared_memory(options_.shared_memory);
  hello_.set_follows_redirect(true);
  hello_.set_follows_placement(true);
  hello_.clear_codecs();
  if (options_.compression != CompressionMode::kNone) hello_.add_codecs(v1::CODEC_ZSTD);
  const bool resumes = !hello.resume_key().empty();
  const auto start = std::chrono::steady_clock::now();
  auto connection = resumes ? resume_session(hello_, reply) : open_session(hello_, reply);
  const auto duration = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  if (resumes && absl::IsDeadlineExceeded(connection.status())) {
    resume_timeout_ = std::max(resume_timeout_, std::min(2 * resume_timeout_, kMaxResumeTimeout));
  }
  if (!connection.ok()) return connection.status();
  resume_timeout_ = std::max(kResumeTimeout, 4 * duration);
  hello_.set_resume_key(reply->session_key());
  set_connection(*std::move(connection));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<GrpcTransport::Connection>> GrpcTransport::open_session(const v1::HelloRequest& request,
                                                                                       v1::HelloReply* reply) {
  worker_.reset();
  // Repeats while the engine is busy or closes the connection.
  const auto open = [&](const Address& address, const Credential& credential) {
    BusyRetry retry(kConnectTimeout);
    for (int closed = 0;;) {
      auto connection = connect(address, credential, request, retry.left(), reply);
      const absl::Status& status = connection.status();
      closed += was_closed(status);
      const bool repeats = BusyRetry::is_busy(absl::IsUnavailable(status), status.message()) ||
                           (was_closed(status) && closed < kOpenAttempts);
      if (!repeats || is_shut_down() || !retry.pause()) return connection;
    }
  };
  auto connection = open(address_, token());
  if (absl::IsUnavailable(connection.status()) && is_of_connection(connection.status().message())) {
    if (std::string why = explain_failure(address_); !why.empty()) return absl::UnavailableError(why);
  }
  if (!connection.ok() || !reply->has_redirect()) return connection;
  const v1::Redirect redirect = reply->redirect();
  absl::StatusOr<Address> address = redirected_address(address_, redirect);
  if (!address.ok()) return address.status();
  if (absl::Status status = check_key(redirect); !status.ok()) return status;
  // The worker gets the key only: a token stays between the client and the engine.
  connection = open(*address, {kAdmissionKey, redirect.key()});
  if (absl::IsUnavailable(connection.status()) || absl::IsDeadlineExceeded(connection.status())) {
    if (!redirect.address().empty()) {
      const std::string why = explain_failure(*address);
      return absl::Status(connection.status().code(),
                          absl::StrCat("the engine has placed this session in the engine at ", address->text, ": ",
                                       why.empty() ? connection.status().message() : why));
    }
    return absl::Status(
        connection.status().code(),
        absl::StrCat("the engine has started a worker for this session, which does not answer at ", address->text, ": ",
                     connection.status().message(), ". If a firewall is between, open the engine's --worker-ports"));
  }
  if (!connection.ok()) return connection;
  if (reply->has_redirect()) {
    return absl::InvalidArgumentError(absl::StrCat("expected a session at ", address->text,
                                                   ", to which the engine redirected, "
                                                   "got another redirect"));
  }
  worker_.emplace(Worker{*std::move(address), redirect.worker()});
  return connection;
}

absl::StatusOr<std::shared_ptr<GrpcTransport::Connection>> GrpcTransport::resume_session(
    const v1::HelloRequest& request, v1::HelloReply* reply) {
  if (!worker_) return connect(address_, token(), request, resume_timeout_, reply);
  auto connection = connect(worker_->address, {kSessionKey, request.resume_key()}, request, resume_timeout_, reply);
  if (!absl::IsUnavailable(connection.status())) return connection;
  absl::Status lost = ask_for_worker(request);
  if (!lost.ok()) return lost;
  return connection;
}

absl::Status GrpcTransport::ask_for_worker(const v1::HelloRequest& request) {
  v1::HelloRequest question = request;
  question.set_worker(worker_->number);
  v1::HelloReply ignored;
  absl::Status status = connect(address_, token(), question, resume_timeout_, &ignored).status();
  const bool refused = absl::IsNotFound(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
  return refused ? status : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<GrpcTransport::Connection>> GrpcTransport::connect(const Address& address,
                                                                                  const Credential& credential,
                                                                                  const v1::HelloRequest& request,
                                                                                  std::chrono::milliseconds timeout,
                                                                                  v1::HelloReply* reply) {
  // Opens a new channel, because a channel that has failed delays its next attempt.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = open_channel(address);
  if (!channel.ok()) return channel.status();
  auto connection = std::make_shared<Connection>(Connection{address, v1::Engine::NewStub(*channel)});
  absl::Status status = send_hello(*connection, credential, request, timeout, reply);
  if (!status.ok()) return status;
  return connection;
}

absl::Status GrpcTransport::send_hello(Connection& connection, const Credential& credential,
                                       const v1::HelloRequest& request, std::chrono::milliseconds timeout,
                                       v1::HelloReply* reply) {
  auto prepare = [&](grpc::ClientContext& context) {
    if (credential.name != nullptr) add_metadata(context, credential.name, credential.value);
  };
  auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return connection.stub->AsyncHello(context, request, queue);
  };
  reply->Clear();
  grpc::Status status = call_unary(timeout, prepare, start, reply);
  if (!status.ok()) return to_status(status);
  if (absl::Status fits = check_engine_version(reply->engine_version(), connection.address.text); !fits.ok())
    return fits;
  if (!is_metadata_value(reply->session_key()))
    return absl::InvalidArgumentError("expected printable ASCII characters in the session's key, got others");
  connection.session_key = reply->session_key();
  connection.max_templates = reply->limits().max_templates();
  connection.codec = reply->codec();
  connection.content_addressed = reply->content_addressed();
  if (options_.shared_memory && reply->has_shared_memory())
    connection.memory = SharedMemory::open(reply->shared_memory());
  if (connection.memory) connection.engine = static_cast<pid_t>(reply->shared_memory().pid());
  return absl::OkStatus();
}

}  // namespace tt::client
