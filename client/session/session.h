// client::Session: a client's session with an engine, which executes the session's calls in order.
//
// Instructions are appended to the frame under construction, which is sent when the link is idle, and grows while the
// link is busy. Only reads, transfers, synchronize() and a full window wait for the network. A wait throws Interrupted
// if its thread is interrupted (client/connection/interruption.h); the session continues. Thread-safe: one lock, held
// during an append.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/link/counters.h"
#include "client/link/frame_log.h"
#include "client/link/remote_error.h"
#include "client/session/default_dtype.h"
#include "client/session/tensor.h"
#include "client/transport/transport.h"
#include "engine/schema/autocast.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt::client {

class CallLog;
class SavedTensorHooks;  // client/session/saved_tensors.h

// Options of a call; the defaults suit an ordinary call.
struct CallOptions {
  bool grad = true;
  bool inference = false;
  uint32_t site = 0;                   // number from Session::site; 0: none
  absl::Span<const Tensor> into = {};  // tensors to write the results to; empty: new tensors
  AutocastState autocast = {};         // does not apply to a call that writes to existing tensors
  DType default_float = default_dtype();
  // Where tensors are saved for backward; null: in the engine, which shares their storages.
  const std::shared_ptr<SavedTensorHooks>* saved = nullptr;
};

// A tensor's metadata and bytes.
struct Value {
  TensorMeta meta;
  std::string bytes;  // row-major
};

// Throws Error (ValueError) unless the text is empty or has the form of a W3C traceparent.
void check_traceparent(const std::string& text);

struct PendingRead;        // client/link/pending_reads.h
class PendingScalar;       // client/link/scalar_reads.h
class BackgroundDownload;  // client/link/download_queue.h

// The value that a tensor had when Session::read_async() was called; later instructions do not change it. Owned by the
// caller, which may destroy it at any time. Not thread-safe.
class PendingValue {
 public:
  ~PendingValue();
  // Whether get() returns at once, as far as replies have been handled. Costs a load; never throws.
  bool is_ready() const;
  // Whether get() returns at once. Does not wait. Throws the error that ended the session if the value has not arrived.
  bool has_arrived();
  // Waits for the value and returns its row-major bytes, which the caller may change. They are valid until this object
  // is destroyed. `site` is the line to which the wait is attributed. Throws RemoteError with the root error if the
  // tensor is poisoned. May be called again.
  absl::Span<char> get(uint32_t site = 0);

 private:
  friend class Session;
  PendingValue(Ref<Session> session, size_t bytes, Ref<PendingScalar> number);
  PendingValue(Ref<Session> session, size_t bytes, Tensor copy);
  absl::Span<char> get_number(uint32_t site);
  absl::Span<char> finish_download(uint32_t site, std::chrono::steady_clock::time_point start);

  const Ref<Session> session_;
  const size_t bytes_;
  const Ref<PendingScalar> number_;          // of a small CPU tensor with one element; else null, and the rest is used
  const Tensor copy_;                        // the engine's copy of the tensor at the call
  const std::unique_ptr<PendingRead> read_;  // of copy_
  std::shared_ptr<BackgroundDownload> download_;  // null for a value of up to max_inline_bytes
  std::string inline_bytes_;                      // read by the first get()
};

class Session : public RefCounted {
 public:
  // Sends Hello and opens the stream. Throws Error (kConnection) if that fails. `memory_limit` is the limit in bytes
  // that the session requests; 0 requests the engine's default.
  // `traceparent`: see set_trace_context().
  static Ref<Session> connect(std::unique_ptr<Transport> transport, const std::string& client_name,
                              uint64_t memory_limit = 0, const std::string& traceparent = "");
  ~Session() override;

  // Infers the results' metadata, names the results, records the call in the client's autograd graph
  // (client/session/graph.h) if a result requires grad, and queues the instruction. `args` may contain Handles of this
  // session only. The results are `options.into` if it is given. Waits for the sizes if the operator is dynamic. Throws
  // Error at once if the rules reject the arguments; nothing is sent then. If the session has ended, throws the error
  // that ended it.
  Tensors call(const Op& op, Args args, const CallOptions& options = {});
  // Like call(), with metadata from the caller instead of infer() (for backward and related operators). Does not record
  // the call in the client's autograd graph.
  Tensors call_with_metas(const Op& op, Args args, absl::Span<const TensorMeta> results,
                          const CallOptions& options = {});

  // Like call_with_metas(), for an operator with gradients: records the call in the client's autograd graph, with
  // `recorded` as its arguments.
  Tensors call_recorded(const Op& op, Args args, Args recorded, absl::Span<const TensorMeta> results,
                        const CallOptions& options);

  // For client/session/program.h, which defines Programs and runs them. The definition is a serialized Frame. Returns
  // the Program's number in the session. Neither waits.
  int64_t define_program(const Tensor& definition, size_t read, size_t written, bool exact, uint32_t site);
  void drop_program(int64_t number);

  // Waits for the metadata of results of call_with_metas() that the caller does not know, and sets it.
  void describe(Tensors& results, uint32_t site = 0);

  // Waits for the value. Throws RemoteError with the root error if the tensor is poisoned. A value of up to the
  // engine's max_inline_bytes is part of the reply; larger values are downloaded. `site` is the line to which the wait
  // is attributed.
  Value read(const Tensor& tensor, uint32_t site = 0);
  // Like read(), but writes the row-major bytes to the caller's memory, whose size must equal the tensor's size in
  // bytes.
  void read_into(const Tensor& tensor, absl::Span<char> into, uint32_t site = 0);
  // Requests the value without waiting for it. A value of more than max_inline_bytes is downloaded in the background,
  // at most four values at a time.
  std::unique_ptr<PendingValue> read_async(const Tensor& tensor, uint32_t site = 0);
  // Creates a tensor from row-major bytes. The caller may change the bytes after the call returns.
  Tensor upload(absl::Span<const char> bytes, DType dtype, SizesView sizes, Device device, uint32_t site = 0);
  // Makes calls throw that would write to the tensor's storage, through any tensor: its bytes were published
  // (client/published.h).
  void mark_read_only(const Tensor& tensor);
  bool is_read_only(const Tensor& tensor) const;
  // Waits until everything issued so far has been executed. Throws the error of an update in place that was not
  // executed, once; not those of poisoned handles.
  void synchronize(uint32_t site = 0);
  // Sets the W3C trace context (traceparent) of the calls that are issued from now on, by any thread; "": none. An
  // engine that exports spans (--otlp) makes those of the calls' frames children of this span. Ends the frame under
  // construction, so it costs as much as flush(). Throws Error (ValueError) if the text is not a traceparent.
  void set_trace_context(const std::string& traceparent);
  // Sends the queued instructions without waiting for more.
  void flush();
  // Free the casts of parameters that the engine keeps for autocast; end_autocast() also turns autocast off until the
  // next call whose options enable it. They do not wait.
  void clear_autocast_cache();
  void end_autocast();
  // Cancels everything issued so far that has not been executed; reading a cancelled result throws. The session
  // continues. Throws Error: kNotImplemented if the engine is too old, kConnection if it does not answer.
  void cancel();
  // Stores images of the session on the engine's disk, every `every` seconds (0: no longer), from which it continues if
  // the engine ends and starts again within `wait` seconds. What cannot be repeated since the last image ends the
  // session with an error that says so. Throws Error if the engine has no folder for images (teletensord --state-dir),
  // or if the session cannot be stored, with the reason.
  void persist(double every, double wait);
  // Ends the session; the engine frees its tensors now. Later calls throw. Idempotent.
  void close();

  // Returns the number of a source line, for CallOptions. The same line always has the same number.
  uint32_t site(std::string_view file, uint32_t line, std::string_view function);
  // Unique among the sessions of this process; starts at 1.
  uint64_t serial() const { return serial_; }

  using Counters = client::Counters;
  Counters counters() const;
  // Returns the source lines at which callers waited for the engine, the longest wait first.
  using Wait = WaitCount;
  std::vector<Wait> wait_report() const;
  // Logs when instructions are issued, for a profiler.
  CallLog& call_log();
  // Logs when the next frames are sent and acknowledged, as many as `max_frames`, until stop_frame_log().
  void start_frame_log(size_t max_frames);
  std::vector<SentFrame> stop_frame_log();
  // Returns for example "train.py:12 in step"; "" for 0.
  std::string site_name(uint32_t site) const;
  // Sets file, line and function of a line, not its number.
  void describe_site(uint32_t site, v1::Site* description) const;
  const v1::HelloReply& engine() const;  // the engine's reply to Hello

 private:
  // call() of an operator that uses the session's generator (client/session/thread_generator.h).
  Tensors call_with_generator(const Op& op, Args args, const CallOptions& options);
  Tensors call_in_turn(const Op& op, Args args, const CallOptions& options);
  struct Impl;
  class Waiting;
  explicit Session(std::unique_ptr<Impl> impl);
  friend struct Handle;
  friend class PendingValue;
  void release(uint64_t handle) noexcept;
  void count_data_writes(const Op& op, Args args, const CallOptions& options);
  Tensors make_results(absl::Span<const TensorMeta> metas, const CallOptions& options);
  std::unique_ptr<Impl> impl_;
  const uint64_t serial_;
};

}  // namespace tt::client
