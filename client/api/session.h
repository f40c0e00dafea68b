// Sessions of the C++ client, and the state of a thread that determines how its calls are recorded.
//
// Functions that create tensors use the thread's session (SessionGuard), or the process's default session, which the
// first such call opens. Other functions use the session of their tensors. All functions here are thread-safe.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "engine/schema/ref.h"

namespace tt::client {
class Session;
}

namespace teletensor {

/// How a session is opened; see connect().
struct ConnectOptions {
  /// "host:port", "teletensors://host:port" (with TLS) or "unix:PATH". If empty, TELETENSOR_ADDRESS is used; if that is
  /// empty too, a private engine starts, which ends with the session.
  std::string address;
  /// If empty, TELETENSOR_TOKEN is used, then the token file of this user's engine.
  std::string token;
  std::string client_name = "c++";
  uint64_t memory_limit = 0;         ///< requested limit in bytes; 0: the engine's default
  bool shared_memory = true;         ///< use shared memory for bulk bytes if the engine is on the same host
  std::string compression = "auto";  ///< of bulk bytes: "auto", "zstd" or "none"
  /// With TLS. If empty, TELETENSOR_TLS_FINGERPRINT, _CA, _CERTIFICATE and _KEY are used.
  std::string fingerprint;  ///< of the engine's certificate; remembered for the address after the first connection
  std::string ca;           ///< PEM file of authorities, instead of the system's
  std::string certificate;  ///< PEM files by which this client identifies itself, if the engine requires it
  std::string key;
  /// W3C trace context, which becomes the parent of the session's span.
  std::string traceparent;
};

/// A session with an engine, by reference: copies are the same session. Several threads may use one.
class Session {
 public:
  Session();
  explicit Session(tt::Ref<tt::client::Session> session);
  ~Session();
  Session(const Session&);
  Session(Session&&) noexcept;
  Session& operator=(const Session&);
  Session& operator=(Session&&) noexcept;

  /// Whether this refers to a session.
  bool defined() const { return static_cast<bool>(session_); }
  /// Waits until everything issued so far has been executed. Throws the error of an update in place that failed, once.
  void synchronize() const;
  /// Sends queued instructions without waiting.
  void flush() const;
  /// Cancels what has not been executed; reading a cancelled result throws.
  void cancel() const;
  /// Sets the W3C trace context (traceparent) of the calls issued from now on, by any thread; "": none. Costs a
  /// flush().
  void set_trace_context(const std::string& traceparent) const;
  /// Ends the session: the engine frees its tensors, and later calls throw ConnectionError. Idempotent.
  void close() const;
  /// The session in the layer beneath (`client/session/session.h`).
  const tt::Ref<tt::client::Session>& handle() const { return session_; }

 private:
  tt::Ref<tt::client::Session> session_;
};

/// Opens a session. Throws ConnectionError if no engine answers or none can be started, ValueError for an invalid
/// option. Does not change the default session.
Session connect(const ConnectOptions& options);
/// Opens a session with the engine at an address.
Session connect(const std::string& address = "");

/// The process's default session. Opens it if there is none, with default options. It ends with the process.
Session default_session();
/// The address of the default session's engine, by which other processes and sessions of this user on the same host can
/// connect; empty for a session that the program has set. Opens the session if there is none.
std::string default_address();
/// Replaces the default session. The one before stays open while tensors or objects refer to it.
void set_default_session(const Session& session);
/// Waits until the current session has executed everything that was issued.
void synchronize();

/// While it exists, its thread creates tensors in this session.
class SessionGuard {
 public:
  explicit SessionGuard(Session session);
  ~SessionGuard();
  SessionGuard(const SessionGuard&) = delete;
  SessionGuard& operator=(const SessionGuard&) = delete;

 private:
  const Session session_;
  tt::client::Session* const before_;
};

/// Whether the thread's calls are recorded for backward.
bool is_grad_enabled();

/// While it exists, calls of its thread are not recorded.
class NoGradGuard {
 public:
  NoGradGuard();
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  const bool before_;
};

/// While it exists, calls of its thread are recorded, also within a NoGradGuard; or not, with `enabled` false.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled);
  ~AutoGradMode();
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  const bool before_;
};

/// While it exists, results of its thread's calls never require grad and may not be saved for backward.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  const bool before_;
};

/// While it exists, errors of its thread's calls name this line of the program, or that of an inner SourceLine.
/// Profiles show it, too.
class SourceLine {
 public:
  explicit SourceLine(std::source_location line = std::source_location::current());
  ~SourceLine();
  SourceLine(const SourceLine&) = delete;
  SourceLine& operator=(const SourceLine&) = delete;

 private:
  const std::source_location line_;
  const std::source_location* const before_;
};

/// Seeds the random numbers of the current session.
void manual_seed(uint64_t seed);

namespace internal {
/// The session of the thread's SessionGuard; undefined if there is none.
Session guarded_session();
/// The thread's session, or the default one.
tt::client::Session& current_session();
/// The session's number of the thread's SourceLine; 0 if there is none.
uint32_t current_site(tt::client::Session& session);
}  // namespace internal
}  // namespace teletensor
