// client::Session: one ordered conversation with an engine.
//
// Instructions are appended to the frame under construction and sent when the link is idle, or
// in larger frames while it is busy; nothing here waits for the network but read(), download(),
// and a full window. A wait throws Interrupted where its thread is interrupted (client/connection/interruption.h), and
// the session goes on. Thread-safe: one lock, held for the time of an append.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/link/counters.h"
#include "client/link/remote_error.h"
#include "client/tensor.h"
#include "client/transport/transport.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt::client {

// How a call is made; the defaults are what an ordinary call wants.
struct CallOptions {
  bool grad = true;
  bool inference = false;
  uint32_t site = 0;                   // from Session::site
  absl::Span<const Tensor> into = {};  // results are written to these
};

// A small value, read.
struct Value {
  TensorMeta meta;
  std::string bytes;  // row-major
};

class Session : public RefCounted {
 public:
  // Says hello and opens the stream. Throws Error (kConnection) where that fails.
  // `memory_limit`: bytes that the session asks to be held to; 0: the engine's default.
  static Ref<Session> connect(std::unique_ptr<Transport> transport, const std::string& client_name,
                              uint64_t memory_limit = 0);
  ~Session() override;

  // Infers, names the results, keeps the shadow graph, and queues the instruction. `args` may
  // hold Handles of this session only. Throws Error at once where rules say no (nothing is
  // sent), the error that ended the session where it has ended. Dynamic operators wait for the
  // sizes. Where a result requires grad, `record` of client/graph.h keeps the
  // shadow graph (results are `options.into` if it is given).
  Tensors call(const Op& op, Args args, const CallOptions& options = {});
  // As call, where the caller knows better than infer() what the results look like (backward and
  // its family). Nothing is recorded in the shadow graph.
  Tensors call_with_metas(const Op& op, Args args, absl::Span<const TensorMeta> results,
                          const CallOptions& options = {});

  // Waits for the value. Throws RemoteError with the root error where it is poisoned. Bytes up
  // to the engine's max_inline_bytes come with the reply, larger ones by download. `site` is the
  // line that the wait is put down to.
  Value read(const Tensor& tensor, uint32_t site = 0);
  // As read, straight into the caller's memory: exactly the tensor's bytes, row-major.
  void read_into(const Tensor& tensor, absl::Span<char> into, uint32_t site = 0);
  // A new tensor from the caller's row-major bytes, which may change once this returns.
  Tensor upload(absl::Span<const char> bytes, DType dtype, SizesView sizes, Device device);
  // Waits until everything issued so far has been executed. Errors stay with their handles.
  void synchronize(uint32_t site = 0);
  // Sends what is queued without waiting for more.
  void flush();
  // Cancels what was issued so far and has not been executed: reading its results throws. The session goes on. Throws
  // Error (kNotImplemented) where the engine is too old, kConnection where it does not answer.
  void cancel();
  // Ends the session; the engine frees its tensors now. Later calls throw. Idempotent.
  void close();

  // A number for a source line, for CallOptions. The same line gets the same number.
  uint32_t site(std::string_view file, uint32_t line, std::string_view function);
  // Differs from that of every other session of this process, from 1.
  uint64_t serial() const { return serial_; }

  using Counters = client::Counters;
  Counters counters() const;
  // The source lines at which callers waited for the engine, the longest wait first.
  using Wait = WaitCount;
  std::vector<Wait> wait_report() const;
  const v1::HelloReply& engine() const;  // what the engine said of itself

 private:
  struct Impl;
  class Waiting;
  explicit Session(std::unique_ptr<Impl> impl);
  friend struct Handle;
  void release(uint64_t handle) noexcept;
  std::unique_ptr<Impl> impl_;
  const uint64_t serial_;
};

// Reverse-mode differentiation, issued without waiting: see docs/autograd.md. Gradients may be
// null (ones are used then, and the root must have one element).
//
// Accumulates into the `.grad` of the leaves that the roots reach, or of those among `inputs`.
void backward(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, bool retain_graph, bool create_graph,
              uint32_t site, absl::Span<const Tensor> inputs = {});
// The gradients with respect to `inputs`; null entries (allow_unused) where there is none.
std::vector<Tensor> grad(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                         absl::Span<const Tensor> inputs, bool retain_graph, bool create_graph, bool allow_unused,
                         uint32_t site);

}  // namespace tt::client
