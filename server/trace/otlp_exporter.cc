#include "server/trace/otlp_exporter.h"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "proto/credentials.h"
#include "server/trace/otlp_encode.h"

namespace tt::server {
namespace {

constexpr int kMaxReplyBytes = 64 << 10;
constexpr size_t kMaxReason = 200;

// The codes after which OTLP lets a client repeat an export. RESOURCE_EXHAUSTED is one if the collector names a pause.
bool may_pass(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS: return true;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return requested_pause(status.error_details()).has_value();
    default: return false;
  }
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the collector is reached directly
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);     // export_batch() repeats exports
  return arguments;
}

}  // namespace

absl::StatusOr<OtlpEndpoint> parse_otlp_endpoint(absl::string_view text) {
  OtlpEndpoint endpoint;
  absl::string_view rest = text;
  endpoint.tls = absl::ConsumePrefix(&rest, "https://");
  if (!endpoint.tls) absl::ConsumePrefix(&rest, "http://");
  absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  const absl::string_view host = rest.substr(0, colon);
  int port = 0;
  const bool is_valid = colon != absl::string_view::npos && !host.empty() &&
                        host.find_first_of("/?#@ ") == absl::string_view::npos &&
                        (host.find(':') == absl::string_view::npos || (host.front() == '[' && host.back() == ']')) &&
                        absl::SimpleAtoi(rest.substr(colon + 1), &port) && port > 0 && port < 65536;
  if (!is_valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected HOST:PORT, http://HOST:PORT or https://HOST:PORT, got ", text));
  }
  endpoint.target = std::string(rest);
  return endpoint;
}

absl::StatusOr<std::unique_ptr<OtlpExporter>> OtlpExporter::start(const OtlpEndpoint& endpoint, Tracer& tracer) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = plain_channel_credentials();
  if (endpoint.tls) {
    TlsFiles files;
    files.authorities = endpoint.authorities;
    auto made = channel_credentials(files);
    if (!made.ok()) return made.status();
    credentials = *std::move(made);
  }
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(endpoint, std::move(credentials), tracer));
}

OtlpExporter::OtlpExporter(const OtlpEndpoint& endpoint, std::shared_ptr<grpc::ChannelCredentials> credentials,
                           Tracer& tracer)
    : endpoint_(endpoint),
      tracer_(tracer),
      stub_(Service::NewStub(
          grpc::CreateCustomChannel(absl::StrCat("dns:///", endpoint.target), credentials, channel_arguments()))),
      prototype_(otlp_request()),
      thread_([this] { run(); }) {}

OtlpExporter::~OtlpExporter() { shut_down(std::chrono::milliseconds(0)); }

void OtlpExporter::shut_down(std::chrono::milliseconds timeout) {
  if (!thread_.joinable()) return;
  tracer_.close();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    give_up_ = Clock::now() + timeout;
    changed_.notify_all();
    while (!done_ && Clock::now() < give_up_) changed_.wait_until(mutex_, give_up_);
    if (call_ != nullptr) call_->TryCancel();
  }
  thread_.join();
}

void OtlpExporter::run() {
  for (;;) {
    const std::vector<Span> batch = tracer_.take();
    if (batch.empty()) break;  // closed
    try {
      export_batch(batch);
    } catch (const std::exception& error) {  // out of memory, which may pass
      tracer_.drop(Tracer::Dropped::kFailed, batch.size());
      log_.warn(absl::StrCat("cannot export spans: ", error.what()));
    }
  }
  MutexLock lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void OtlpExporter::export_batch(const std::vector<Span>& batch) {
  Request request = prototype_;
  append_spans(batch, &request);
  static thread_local std::minstd_rand jitter{std::random_device{}()};
  auto next = kFirstPause;
  grpc::Status status;
  for (int attempt = 1;; ++attempt) {
    Response response;
    status = send(request, &response);
    if (status.ok()) {
      const auto rejected = static_cast<uint64_t>(
          std::clamp<int64_t>(response.partial_success().rejected_spans(), 0, static_cast<int64_t>(batch.size())));
      tracer_.exported(batch.size() - rejected);
      tracer_.drop(Tracer::Dropped::kRejected, rejected);
      if (rejected != 0) {
        log_.warn(absl::StrCat("the collector at ", endpoint_.target, " rejected ", rejected,
                               " spans: ", printable(response.partial_success().error_message(), kMaxReason)));
      }
      return;
    }
    if (!may_pass(status) || attempt == kAttempts || stopping()) break;
    log_.warn(absl::StrCat("cannot export spans to ", endpoint_.target,
                           "; trying again: ", printable(status.error_message(), kMaxReason)));
    const auto requested = requested_pause(status.error_details());
    const auto random = std::uniform_int_distribution<int64_t>(next.count() / 2, next.count())(jitter);
    if (!pause(requested ? std::min<std::chrono::milliseconds>(*requested, kMaxRequestedPause)
                         : std::chrono::milliseconds(random))) {
      attempt = kAttempts - 1;  // the last attempt, at once
    }
    next = std::min(next * 2, kMaxPause);
  }
  tracer_.drop(Tracer::Dropped::kFailed, batch.size());
  log_.warn(absl::StrCat("dropped ", batch.size(), " spans that could not be exported to ", endpoint_.target, ": ",
                         printable(status.error_message(), kMaxReason)));
}

grpc::Status OtlpExporter::send(const Request& request, Response* response) {
  grpc::ClientContext context;
  {
    MutexLock lock(mutex_);
    if (stopping_ && Clock::now() >= give_up_) {
      return {grpc::StatusCode::CANCELLED, "the engine's grace period is over"};
    }
    std::chrono::milliseconds left = kDeadline;
    if (stopping_)
      left = std::min(left, std::chrono::duration_cast<std::chrono::milliseconds>(give_up_ - Clock::now()));
    context.set_deadline(std::chrono::system_clock::now() + left);
    call_ = &context;
  }
  const grpc::Status status = stub_->Export(&context, request, response);
  MutexLock lock(mutex_);
  call_ = nullptr;
  return status;
}

bool OtlpExporter::pause(std::chrono::milliseconds duration) {
  const auto until = Clock::now() + duration;
  MutexLock lock(mutex_);
  while (!stopping_ && Clock::now() < until) changed_.wait_until(mutex_, until);
  return !stopping_;
}

}  // namespace tt::server
