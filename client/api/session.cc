#include "client/api/session.h"

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "client/api/dispatch.h"
#include "client/api/errors.h"
#include "client/connect.h"
#include "client/session/call_mode.h"
#include "client/session/session.h"
#include "engine/schema/op_ids.h"

namespace teletensor {
namespace {

constinit thread_local tt::client::Session* thread_session = nullptr;
constinit thread_local const std::source_location* thread_line = nullptr;

// The process's default session. Its destructor, at the end of the process, ends it, and with it a private engine.
class Default {
 public:
  ~Default() {
    if (session_) session_->close();
  }
  tt::Ref<tt::client::Session> get() {
    tt::MutexLock lock(mutex_);
    open();
    return session_;
  }
  std::string address() {
    tt::MutexLock lock(mutex_);
    open();
    return address_;
  }
  void replace(tt::Ref<tt::client::Session> session) {
    tt::MutexLock lock(mutex_);
    set(std::move(session));
    address_.clear();
  }
  // Without a lock. A replaced session stays valid: see `earlier_`.
  tt::client::Session* current() const { return current_.load(std::memory_order_acquire); }

 private:
  void open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!session_) set(internal::translated([&] { return tt::client::connect({}, &address_); }));
  }
  void set(tt::Ref<tt::client::Session> session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (session_) earlier_.push_back(std::move(session_));
    session_ = std::move(session);
    current_.store(session_.get(), std::memory_order_release);
  }

  tt::Mutex mutex_;
  tt::Ref<tt::client::Session> session_ ABSL_GUARDED_BY(mutex_);
  // Another thread may have read the pointer, so they are not destroyed.
  std::vector<tt::Ref<tt::client::Session>> earlier_ ABSL_GUARDED_BY(mutex_);
  std::string address_ ABSL_GUARDED_BY(mutex_);
  std::atomic<tt::client::Session*> current_{nullptr};
};

Default& default_of_process() {
  static Default session;
  return session;
}

tt::client::Session& require(const tt::Ref<tt::client::Session>& session) {
  if (!session) throw RuntimeError("expected a session, got an undefined Session");
  return *session;
}

}  // namespace

Session::Session() = default;
Session::Session(tt::Ref<tt::client::Session> session) : session_(std::move(session)) {}
Session::~Session() = default;
Session::Session(const Session&) = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(const Session&) = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::synchronize() const {
  internal::translated([&] { require(session_).synchronize(); });
}
void Session::flush() const {
  internal::translated([&] { require(session_).flush(); });
}
void Session::cancel() const {
  internal::translated([&] { require(session_).cancel(); });
}
void Session::set_trace_context(const std::string& traceparent) const {
  internal::translated([&] { require(session_).set_trace_context(traceparent); });
}
void Session::close() const {
  internal::translated([&] { require(session_).close(); });
}

Session connect(const ConnectOptions& options) {
  return internal::translated([&] {
    return Session(tt::client::connect({.address = options.address,
                                        .token = options.token,
                                        .trust = {.fingerprint = options.fingerprint,
                                                  .ca = options.ca,
                                                  .certificate = options.certificate,
                                                  .key = options.key},
                                        .client_name = options.client_name,
                                        .memory_limit = options.memory_limit,
                                        .shared_memory = options.shared_memory,
                                        .compression = options.compression,
                                        .traceparent = options.traceparent}));
  });
}
Session connect(const std::string& address) {
  ConnectOptions options;
  options.address = address;
  return connect(options);
}

Session default_session() { return Session(default_of_process().get()); }
std::string default_address() { return default_of_process().address(); }
void set_default_session(const Session& session) {
  require(session.handle());
  default_of_process().replace(session.handle());
}
void synchronize() {
  internal::translated([] { internal::current_session().synchronize(); });
}

SessionGuard::SessionGuard(Session session)
    : session_(std::move(session)), before_(std::exchange(thread_session, &require(session_.handle()))) {}
SessionGuard::~SessionGuard() { thread_session = before_; }

bool is_grad_enabled() { return tt::client::call_mode.grad && !tt::client::call_mode.inference; }

NoGradGuard::NoGradGuard() : before_(std::exchange(tt::client::call_mode.grad, false)) {}
NoGradGuard::~NoGradGuard() { tt::client::call_mode.grad = before_; }
AutoGradMode::AutoGradMode(bool enabled) : before_(std::exchange(tt::client::call_mode.grad, enabled)) {}
AutoGradMode::~AutoGradMode() { tt::client::call_mode.grad = before_; }
InferenceMode::InferenceMode(bool enabled) : before_(std::exchange(tt::client::call_mode.inference, enabled)) {}
InferenceMode::~InferenceMode() { tt::client::call_mode.inference = before_; }

SourceLine::SourceLine(std::source_location line) : line_(line), before_(std::exchange(thread_line, &line_)) {}
SourceLine::~SourceLine() { thread_line = before_; }

void manual_seed(uint64_t seed) {
  const tt::Arg args[] = {tt::Arg(static_cast<int64_t>(seed))};
  internal::call_all(tt::op_id::kManualSeed, args);
}

namespace internal {

Session guarded_session() { return Session(tt::Ref<tt::client::Session>(thread_session)); }

tt::client::Session& current_session() {
  if (thread_session) return *thread_session;
  if (tt::client::Session* session = default_of_process().current()) return *session;
  return *default_of_process().get();
}

uint32_t current_site(tt::client::Session& session) {
  if (thread_line == nullptr) [[likely]]
    return 0;
  return session.site(thread_line->file_name(), thread_line->line(), thread_line->function_name());
}

}  // namespace internal
}  // namespace teletensor
