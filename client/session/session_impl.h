// The parts of client::Session that its source files share: session.cc (the beginning and the end of a session, its
// settings, its source lines), session_calls.cc (calls of operators), session_reads.cc (values and sizes from the
// engine) and session_uploads.cc (values to the engine).
//
// For these files only. Owned by the Session; thread-safe as it is.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "client/link/link.h"
#include "client/session/call_log.h"
#include "client/session/deferred_uploads.h"
#include "client/session/encode.h"
#include "client/session/engine_operators.h"
#include "client/session/program_trace.h"
#include "client/session/read_only_storages.h"
#include "client/session/saved_call.h"
#include "client/session/session.h"
#include "client/session/site_table.h"
#include "client/session/thread_generator.h"
#include "client/session/wait_policy.h"

namespace tt::client {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Size in a frame of an instruction with up to three plain arguments, such as set_autocast.
inline constexpr FrameSize kSettingSize{32, frame_memory::kInstruction + 3 * frame_memory::kArgument};

struct Session::Impl {
  Impl(std::unique_ptr<Transport> transport, v1::HelloRequest hello)
      : link(std::move(transport), std::move(hello)), operators(link.engine()) {
    const v1::HelloReply& engine = link.engine();
    if (uint64_t limit = engine.limits().max_inline_bytes()) {
      max_inline_bytes = std::min<size_t>(limit, max_inline_bytes);
    }
    link.name_sites([this](uint32_t site) { return sites.name(site); });
  }

  void require_default_dtypes(const Op& op) const {
    check(ErrorKind::kNotImplemented, link.engine().default_dtypes(), "[", op.name, "] the engine (version ",
          link.engine().engine_version(), ") is older than this client and supports no default dtype but float32");
  }
  // Rejects a call that the engine would refuse: the refused frame would end the session.
  void check_accepted(const Op& op, Args args, const CallOptions& options, const Inference& inference, bool autocasts);
  // Records a call in a trace instead of sending it.
  Tensors trace_call(ProgramTrace& trace, const Op& op, Args args, const CallOptions& options);
  // Adds a sent call to the shadow graph. `saved` is null if no function of the program packs the saved tensors.
  void record_call(Session& self, const Op& op, Args args, const Tensors& results, const CallOptions& options,
                   SavedCall* saved);
  // If the call waits, it stores the tensors of `args` in `kept`, because other threads of the language run during the
  // wait and may drop the arguments.
  void queue(Session* self, const Op& op, Args args, Tensors& results, const CallOptions& options, Tensors* kept,
             SavedCall* saved = nullptr);
  // Writes the instruction of a call and those that must be beside it in the frame, which has room for them.
  void write_call(Link::Appending& appending, Session* self, const Op& op, Args args, Tensors& results,
                  const CallOptions& options, SavedCall* saved);
  // Issues the deferred uploads that the instruction uses, or all of them if it uses no tensor and changes the
  // session's state, such as the beginning of a capture. Calls `before_waiting` before a wait for room.
  void issue_deferred(const Op& op, Args args, absl::Span<const Tensor> into, absl::FunctionRef<void()> before_waiting);
  void issue_if_deferred(uint64_t handle) {
    if (deferred.any()) [[unlikely]]
      issue_deferred(handle);
  }
  void issue_deferred(uint64_t handle);
  void issue_all_deferred();
  void add_uploaded(Link::Appending& appending, const DeferredUpload& upload);
  // Names the result of an upload whose instruction is issued later.
  Tensor defer(Session* self, uint64_t transfer, Args args, uint32_t site);
  void wait_for_sizes(Tensors& results, uint32_t site);
  // Waits until it is known whether a call has failed; throws its error. That of a call without results is the status
  // of its operands.
  void wait_for_status(const Tensors& results, const Tensors& operands, uint32_t site);
  std::vector<int64_t> read_description(SavedCall& saved, uint32_t site);
  // Call before a wait that the program may not intend.
  void check_wait(uint32_t site) const {
    if (restricts_waits()) [[unlikely]]
      apply_wait_policy(sites.name(site));
  }
  std::string read_inline(const Handle& tensor, size_t bytes);
  // Appends an instruction, whose results the caller names.
  v1::Instruction* add_instruction(Link::Appending& appending, const Op& op, Args args, uint32_t site);
  // Appends set_autocast if the engine's settings differ.
  void set_autocast(Link::Appending& appending, const AutocastState& state, uint32_t site);

  Link link;
  const EngineOperators operators;
  size_t max_inline_bytes = 64 << 10;
  std::atomic<uint64_t> next_transfer{1};
  DeferredUploads deferred;
  ReadOnlyStorages read_only;
  SiteTable sites;
  CallLog calls;
  GeneratorTurns generator_turns;
  AutocastState autocast;                   // the engine's settings; accessed by the owner of an Appending
  std::atomic<bool> autocast_used = false;  // the settings have changed since the session began
  std::atomic<int64_t> last_program{0};     // the number of the last Program that was defined
  Mutex new_sites_mutex;  // held by site(), so that a new line is queued before a call uses its number
};

// Adds the lifetime of this object to the waiting time of a source line.
class Session::Waiting {
 public:
  Waiting(Impl& impl, uint32_t site) : impl_(impl), site_(site) {}
  ~Waiting() { impl_.sites.count_wait(site_, WaitKind::kRead, seconds_since(since_)); }

 private:
  Impl& impl_;
  uint32_t site_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// Rejects a handle without values, which the engine does not know.
inline void check_has_values(const Handle& tensor, std::string_view what) {
  check(ErrorKind::kNotImplemented, tensor.id != 0, "[", what,
        "] a tensor of a wrapper subclass has no values in the engine; its __torch_dispatch__ does not handle this");
  check(!is_traced(tensor.id), "[", what,
        "] expected a tensor with a value, got one that exists only while a Program is traced");
}

}  // namespace tt::client
