#include "client/session/session.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "client/connection/interruption.h"
#include "client/link/link.h"
#include "client/session/autocast.h"
#include "client/session/call_log.h"
#include "client/session/custom_operators.h"
#include "client/session/deferred_uploads.h"
#include "client/session/encode.h"
#include "client/session/engine_operators.h"
#include "client/session/graph.h"
#include "client/session/inference_cache.h"
#include "client/session/program_trace.h"
#include "client/session/read_only_storages.h"
#include "client/session/saved_call.h"
#include "client/session/site_table.h"
#include "client/session/wait_policy.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"
#include "proto/version.h"

namespace tt::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kCloseTimeout = std::chrono::seconds(5);
constexpr FrameSize kSettingSize{32, frame_memory::kInstruction + 3 * frame_memory::kArgument};  // of set_autocast

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

size_t byte_size(const TensorMeta& meta) { return static_cast<size_t>(meta.numel()) * item_size(meta.dtype); }

// Returns the base tensor of a view, which is never itself a view. Returns any other tensor unchanged.
const Ref<Handle>& root_of(const Ref<Handle>& tensor) { return tensor->base ? tensor->base : tensor; }

// Returns the tensor of an argument. Arguments contain raw pointers; the caller keeps references during the call.
Tensor tensor_of(const Arg& arg) { return Tensor(static_cast<Handle*>(const_cast<TensorMeta*>(arg.tensor))); }

// Returns the part of a source line's text that the engine keeps, without a part of a character at its end.
std::string_view beginning(std::string_view utf8) {
  constexpr size_t kMaxText = 256;
  if (utf8.size() <= kMaxText) return utf8;
  size_t size = kMaxText;
  while (size > 0 && (static_cast<unsigned char>(utf8[size]) & 0xC0) == 0x80) --size;
  return utf8.substr(0, size);
}

Tensor first_tensor(Args args) {
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor) return tensor_of(arg);
    if (arg.kind == Arg::Kind::kTensors && arg.size > 0) return tensor_of(Arg(arg.tensors[0]));
  }
  return nullptr;
}

}  // namespace

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
  void issue_if_deferred(uint64_t handle);
  void issue_all_deferred();
  void add_uploaded(Link::Appending& appending, const DeferredUpload& upload);
  // Names the result of an upload whose instruction is issued later.
  Tensor defer(Session* self, uint64_t transfer, Args args, uint32_t site);
  void wait_for_sizes(Tensors& results, uint32_t site);
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
  Clock::time_point since_ = Clock::now();
};

static uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)), serial_(next_serial()) {}
Session::~Session() {
  if (impl_->autocast_used) remove_autocast_session(this);
  forget_custom_operators(*this);
  if (impl_->link.is_forked_copy()) impl_.release();  // NOLINT: its threads and connection belong to the parent process
}

void check_traceparent(const std::string& text) {
  if (text.empty()) return;
  constexpr std::string_view kForm = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  bool valid = text.size() == kForm.size();
  for (size_t i = 0; valid && i < kForm.size(); ++i) {
    const char c = text[i];
    valid = kForm[i] == 'x' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') : c == kForm[i];
  }
  check(ErrorKind::kValue, valid,
        "[set_trace_context] expected a W3C traceparent such as "
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01, got ",
        text);
}

void Session::set_trace_context(const std::string& traceparent) {
  check_traceparent(traceparent);
  impl_->link.set_trace_context(traceparent);
}

Ref<Session> Session::connect(std::unique_ptr<Transport> transport, const std::string& client_name,
                              uint64_t memory_limit, const std::string& traceparent) {
  check_traceparent(traceparent);
  v1::HelloRequest hello;
  hello.set_client(client_name);
  hello.set_schema_digest(schema_digest());
  hello.set_version(std::string(own_version()));
  hello.set_memory_limit(memory_limit);
  hello.set_traceparent(traceparent);
  return Ref<Session>(new Session(std::make_unique<Impl>(std::move(transport), std::move(hello))));
}

// ---- Calls

// Rejects a handle without values, which the engine does not know.
static void check_has_values(const Handle& tensor, std::string_view what) {
  check(ErrorKind::kNotImplemented, tensor.id != 0, "[", what,
        "] a tensor of a wrapper subclass has no values in the engine; its __torch_dispatch__ does not handle this");
  check(!is_traced(tensor.id), "[", what,
        "] expected a tensor with a value, got one that exists only while a Program is traced");
}

v1::Instruction* Session::Impl::add_instruction(Link::Appending& appending, const Op& op, Args args, uint32_t site) {
  v1::Instruction* instruction = appending.add_instruction();
  if (calls.active()) [[unlikely]]
    calls.add(op.id, site);
  instruction->set_op(op.id);
  encode_args(op, args, instruction);
  if (site != 0) instruction->set_site(site);
  return instruction;
}

void Session::Impl::set_autocast(Link::Appending& appending, const AutocastState& state, uint32_t site) {
  static const Op& op = *find_op(op_id::kSetAutocast);
  if (state == autocast) return;
  const Arg args[] = {Arg(state.cpu), Arg(state.cuda), Arg(state.cache)};
  add_instruction(appending, op, args, site);
  autocast = state;
}

// Rejects tensors that the session's engine does not have.
static void check_tensors(const Session* self, const Op& op, Args args, absl::Span<const Tensor> into) {
  for (const Arg& arg : args) {
    for_each_tensor(arg, [&](const Handle* tensor) {
      check(tensor->session.get() == self, "[", op.name,
            "] expected tensors of this session, got a tensor of another session");
      check_has_values(*tensor, op.name);
    });
  }
  for (const Tensor& tensor : into) {
    check(tensor->session.get() == self, "[", op.name,
          "] expected out tensors of this session, got an out tensor of another session");
    check_has_values(*tensor, op.name);
  }
}

static void keep_tensors(Args args, Tensors* kept) {
  for (const Arg& arg : args) {
    for_each_tensor(arg, [&](const Handle* tensor) { kept->push_back(Tensor(const_cast<Handle*>(tensor))); });
  }
}

// Names the results, or lists the tensors that receive them.
static void encode_results(Link::Appending& appending, absl::Span<const Tensor> into, Tensors& results,
                           v1::Instruction* instruction) {
  for (const Tensor& tensor : into) instruction->add_into(tensor->id);
  if (!into.empty() || results.empty()) return;
  uint64_t name = appending.name(results.size());
  instruction->set_result(name);
  if (results.size() > 1) instruction->set_result_count(static_cast<uint32_t>(results.size()));
  for (Tensor& tensor : results) tensor->id = name++;
}

static void encode_modes(const CallOptions& options, v1::Instruction* instruction) {
  if (!options.grad) instruction->set_no_grad(true);
  if (options.inference) instruction->set_inference(true);
  if (options.default_float != kDefaultFloat) [[unlikely]]
    instruction->set_default_dtype(static_cast<uint32_t>(options.default_float));
}

void Session::Impl::write_call(Link::Appending& appending, Session* self, const Op& op, Args args, Tensors& results,
                               const CallOptions& options, SavedCall* saved) {
  if (saved) [[unlikely]]
    saved->begin(appending);
  v1::Instruction* instruction = add_instruction(appending, op, args, options.site);
  encode_results(appending, options.into, results, instruction);
  encode_modes(options, instruction);
  if (saved) [[unlikely]]
    saved->end(appending, Ref<Session>(self), absl::MakeConstSpan(results));
}

// Stages: check, issue what the instruction needs, wait for room in the frame, write the instruction.
void Session::Impl::queue(Session* self, const Op& op, Args args, Tensors& results, const CallOptions& options,
                          Tensors* kept, SavedCall* saved) {
  check_tensors(self, op, args, options.into);
  if (options.default_float != kDefaultFloat) [[unlikely]]
    require_default_dtypes(op);
  std::optional<Clock::time_point> blocked;
  auto before_waiting = [&] {
    keep_tensors(args, kept);
    if (!blocked) blocked = Clock::now();
  };
  if (deferred.any()) [[unlikely]]
    issue_deferred(op, args, options.into, before_waiting);
  const bool autocasts = (options.autocast.enabled() || autocast_used) && has_autocast_policy(op);
  if (autocasts && !autocast_used.exchange(true)) add_autocast_session(self);

  FrameSize size = encoded_size(op, args, max_inline_bytes);
  if (saved) [[unlikely]]
    size = size + saved->encoded_size(results.size());
  Link::Appending appending = link.append(size, before_waiting);
  if (blocked) sites.count_wait(options.site, WaitKind::kWindow, seconds_since(*blocked));
  if (autocasts && options.into.empty()) [[unlikely]]
    set_autocast(appending, options.autocast, options.site);
  if (options.into.empty()) appending.check_names(op, results.size() + (saved ? saved->names() : 0));
  write_call(appending, self, op, args, results, options, saved);
}

// Checks `into` and returns the handles that the results are written to.
static Tensors check_into(const Op& op, const Inference& inference, bool grad, absl::Span<const Tensor> into) {
  check(into.size() == inference.outputs.size(), "[", op.name, "] expected ", inference.outputs.size(),
        " out tensors, got ", into.size());
  for (size_t i = 0; i < into.size(); ++i) {
    check_out_variant(op, inference.outputs[i], *into[i], into[i]->is_leaf(), grad);
    if (grad) check_writable(*into[i]);
  }
  return Tensors(into.begin(), into.end());
}

// Which of the tensors that a call writes to require grad afterwards because of it.
using Tracked = absl::InlinedVector<bool, 4>;

static Tracked tracked_results(const Inference& inference, absl::Span<const Tensor> into) {
  Tracked tracked;
  for (size_t i = 0; i < into.size(); ++i) tracked.push_back(inference.outputs[i].requires_grad);
  return tracked;
}

static void mark_written(const Tracked& tracked, absl::Span<const Tensor> into) {
  for (size_t i = 0; i < into.size(); ++i) {
    into[i]->bump_version();
    into[i]->requires_grad |= tracked[i];
  }
}

static void bump_written(const Op& op, Args args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.params[i].written) continue;
    for_each_tensor(args[i], [](const Handle* tensor) { const_cast<Handle*>(tensor)->bump_version(); });
  }
}

// Whether the tensor is the `.data` of another tensor, or a view of it.
static bool is_data(const Handle& tensor) { return (tensor.base ? *tensor.base : tensor).is_data; }

// Reports the writes of a call through `.data` to the engine, so that backward accepts them.
void Session::count_data_writes(const Op& op, Args args, const CallOptions& options) {
  const auto count = [&](const Handle& tensor) {
    if (!is_data(tensor)) [[likely]]
      return;
    CallOptions counting;
    counting.grad = false;
    counting.site = options.site;
    const Arg written[] = {Arg(&tensor)};
    Tensors none;
    impl_->queue(this, *find_op(op_id::kCountDataWrite), written, none, counting, &none);
  };
  for (const Tensor& tensor : options.into) count(*tensor);
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].written) for_each_tensor(args[i], [&](const Handle* tensor) { count(*tensor); });
  }
}

// A recorded operation reads the `.data` itself, so that backward must notice later writes to it.
static void track_data(Args args) {
  for (const Arg& arg : args) {
    for_each_tensor(arg, [](const Handle* tensor) {
      if (!is_data(*tensor)) [[likely]]
        return;
      Handle& mutable_tensor = const_cast<Handle&>(*tensor);
      (mutable_tensor.base ? *mutable_tensor.base : mutable_tensor).is_data = false;
    });
  }
}

// Checks the arguments and infers the results, into `own` if the thread's cache does not have them.
static const Inference& infer_call(const Op& op, Args args, const AutocastState& autocast, bool grad, bool autocasts,
                                   bool cacheable, Inference* own) {
  InferenceCache* const cache = cacheable ? InferenceCache::of_thread() : nullptr;
  InferenceCache::Key key;
  if (cache) [[likely]] {
    key = InferenceCache::key_of(op, args, grad);
    const Inference* const known = key.cacheable ? cache->find(key, op, args, grad) : nullptr;
    if (known) return *known;
  }
  op.check_args(args);
  if (autocasts) [[unlikely]]
    infer_with_autocast(op, args, autocast, grad, own);
  else
    infer(op, args, grad, own);
  if (key.cacheable) cache->store(key, op, args, grad, *own);
  return *own;
}

Tensors Session::call(const Op& op, Args args, const CallOptions& options) {
  std::optional<CustomCall> custom;
  if (is_custom(op.id)) [[unlikely]]
    custom.emplace(*this, op);
  if (ProgramTrace* trace = ProgramTrace::of(*this)) [[unlikely]] {
    impl_->operators.require(op, args);
    return trace->call(op, args, options);
  }
  if (impl_->calls.active()) [[unlikely]]
    impl_->calls.begin();
  const bool grad = options.grad && !options.inference;
  std::optional<DefaultFloat> default_float;
  if (options.default_float != kDefaultFloat) [[unlikely]]
    default_float.emplace(options.default_float);
  Inference own;  // unless the thread's cache has the results
  const bool autocasts = options.autocast.enabled() && options.into.empty() && has_autocast_policy(op);
  const bool cacheable = !autocasts && options.default_float == kDefaultFloat;
  const Inference& inference = infer_call(op, args, options.autocast, grad, autocasts, cacheable, &own);
  impl_->operators.require(op, args);
  if (autocasts) [[unlikely]]
    impl_->operators.require(*find_op(op_id::kSetAutocast), {});
  impl_->read_only.check_call(op, args, options.into);
  // Such a call is rejected here, because the engine would refuse the frame and end the session.
  check(ErrorKind::kNotImplemented, !op.is_dynamic || op.num_outputs >= 0 || !inference.outputs.empty(), "[", op.name,
        "] is part of a backward pass and cannot be called directly");
  // `inference` is not used below the next lines: code of the program may run in a wait, and call operators.
  const bool requires_grad = inference.requires_grad;
  Tracked tracked;
  Tensors results;
  if (options.into.empty()) {
    for (const TensorMeta& meta : inference.outputs) {
      results.push_back(make_ref<Handle>(meta, Ref<Session>(this), 0));
    }
    if (inference.alias) {
      Tensor viewed = first_tensor(args);
      for (Tensor& view : results) {
        if (op.differentiable) view->base = root_of(viewed);
        if (!op.differentiable) view->is_data = is_data(*viewed);
        view->viewed_storage = viewed->storage_number();
        view->viewed_storage_bytes = viewed->storage_bytes();
      }
    }
  } else {
    results = check_into(op, inference, grad, options.into);
    tracked = tracked_results(inference, options.into);
  }
  if (op.is_dynamic && options.into.empty() && op.num_outputs != 0) impl_->check_wait(options.site);
  Tensors kept;
  std::optional<SavedCall> saved;
  if (options.saved != nullptr && grad && requires_grad) [[unlikely]]
    saved.emplace(*options.saved, args);
  if (saved && saved->is_stored()) impl_->check_wait(options.site);
  impl_->queue(this, op, args, results, options, &kept,
               saved ? &*saved : nullptr);  // if interrupted, nothing was written
  mark_written(tracked, options.into);
  bump_written(op, args);
  count_data_writes(op, args, options);
  if (op.is_dynamic && options.into.empty()) impl_->wait_for_sizes(results, options.site);
  if (!grad) return results;
  Ref<GraphNode> node = record(op, args, absl::MakeConstSpan(results), !options.into.empty());
  if (node) track_data(args);
  if (saved && saved->is_stored() && node) [[unlikely]] {
    const std::vector<int64_t> description = impl_->read_description(*saved, options.site);
    node->mutable_extras().packed = saved->store(*this, description, absl::MakeConstSpan(results));
  }
  return results;
}

Tensors Session::call_with_metas(const Op& op, Args args, absl::Span<const TensorMeta> metas,
                                 const CallOptions& options) {
  op.check_args(args);
  impl_->operators.require(op, args);
  if (ProgramTrace* trace = ProgramTrace::of(*this)) [[unlikely]]
    return trace->call_with_metas(op, args, options);
  Tensors results;
  for (const TensorMeta& meta : metas) results.push_back(make_ref<Handle>(meta, Ref<Session>(this), 0));
  Tensors kept;
  impl_->queue(this, op, args, results, options, &kept);
  return results;
}

Tensors Session::call_recorded(const Op& op, Args args, Args recorded, absl::Span<const TensorMeta> metas,
                               const CallOptions& options) {
  impl_->read_only.check_call(op, args, {});
  Tensors results = call_with_metas(op, args, metas, options);
  bump_written(op, args);
  count_data_writes(op, args, options);
  if (options.grad && !options.inference) {
    if (record(op, recorded, absl::MakeConstSpan(results), /*into=*/false)) track_data(args);
  }
  return results;
}

int64_t Session::define_program(const Tensor& definition, size_t read, size_t written, bool exact, uint32_t site) {
  static const Op& op = *find_op(op_id::kDefineProgram);
  const int64_t number = ++impl_->last_program;
  const Arg args[] = {definition.get(), number, static_cast<int64_t>(read), static_cast<int64_t>(written), exact};
  call_with_metas(op, args, {}, {.grad = false, .site = site});
  return number;
}

void Session::drop_program(int64_t number) {
  static const Op& op = *find_op(op_id::kDropProgram);
  if (impl_->link.is_forked_copy()) return;
  Link::Appending appending = impl_->link.append_at_once(kSettingSize);
  const Arg args[] = {number};
  impl_->add_instruction(appending, op, args, 0);
}

void Session::clear_autocast_cache() {
  static const Op& op = *find_op(op_id::kClearAutocastCache);
  Link::Appending appending = impl_->link.append_at_once(kSettingSize);
  if (impl_->autocast.enabled()) impl_->add_instruction(appending, op, {}, 0);
}

void Session::end_autocast() {
  Link::Appending appending = impl_->link.append_at_once(kSettingSize);
  impl_->set_autocast(appending, {.cache = impl_->autocast.cache}, 0);
}

// ---- Deferred uploads

// Size of an `uploaded` instruction in a frame, for a tensor of many dimensions.
constexpr FrameSize kUploadedSize{
    96, frame_memory::kInstruction + 4 * frame_memory::kArgument + 64 * frame_memory::kNumber};

void Session::Impl::add_uploaded(Link::Appending& appending, const DeferredUpload& upload) {
  static const Op& uploaded = *find_op("uploaded");
  const Arg args[] = {static_cast<int64_t>(upload.transfer), SizesView(upload.sizes), upload.dtype, upload.device};
  add_instruction(appending, uploaded, args, upload.site)->set_result(upload.handle);
  appending.uploaded(upload.transfer);
}

void Session::Impl::issue_deferred(const Op& op, Args args, absl::Span<const Tensor> into,
                                   absl::FunctionRef<void()> before_waiting) {
  bool has_tensors = !into.empty();
  // An entry is taken only while its instruction is appended, so that another thread which uses the tensor either finds
  // the entry or appends later.
  auto issue = [&](const Handle* tensor) {
    has_tensors = true;
    if (!deferred.contains(tensor->id)) return;
    Link::Appending appending = link.append(kUploadedSize, before_waiting);
    if (auto upload = deferred.take(tensor->id)) add_uploaded(appending, *upload);
  };
  for (const Arg& arg : args) for_each_tensor(arg, issue);
  for (const Tensor& tensor : into) issue(tensor.get());
  if (!has_tensors && op.num_outputs == 0) issue_all_deferred();
}

void Session::Impl::issue_if_deferred(uint64_t handle) {
  if (!deferred.any() || !deferred.contains(handle)) return;
  Link::Appending appending = link.append_at_once(kUploadedSize);
  if (auto upload = deferred.take(handle)) add_uploaded(appending, *upload);
}

void Session::Impl::issue_all_deferred() {
  if (!deferred.any()) return;
  Link::Appending appending =
      link.append_at_once({kUploadedSize.bytes * DeferredUploads::kMax, kUploadedSize.memory * DeferredUploads::kMax});
  while (auto upload = deferred.take_oldest()) add_uploaded(appending, *upload);
}

Tensor Session::Impl::defer(Session* self, uint64_t transfer, Args args, uint32_t site) {
  static const Op& uploaded = *find_op("uploaded");
  Inference inference;
  infer(uploaded, args, /*grad=*/false, &inference);
  Tensor result = make_ref<Handle>(std::move(inference.outputs[0]), Ref<Session>(self), 0);
  Link::Appending appending = link.append_at_once(kUploadedSize);
  appending.check_names(uploaded, 1);
  result->id = appending.name(1);
  auto oldest = deferred.add({result->id, transfer, result->sizes, result->dtype, result->device, site});
  if (oldest) add_uploaded(appending, *oldest);
  return result;
}

void Session::Impl::wait_for_sizes(Tensors& results, uint32_t site) {
  Waiting waiting(*this, site);
  absl::InlinedVector<uint64_t, 4> handles;
  for (const Tensor& tensor : results) handles.push_back(tensor->id);
  std::vector<v1::ReadResult> answers = link.read(handles, /*meta_only=*/true);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].has_error()) throw link.remote_error(answers[i].error());
    decode_description(answers[i].tensor(), results[i].get());
  }
}

std::vector<int64_t> Session::Impl::read_description(SavedCall& saved, uint32_t site) {
  Waiting waiting(*this, site);
  return saved.read_description(link);
}

void Session::describe(Tensors& results, uint32_t site) {
  impl_->check_wait(site);
  impl_->wait_for_sizes(results, site);
}

// ---- Bytes

// The description of a tensor's value, without bytes.
static Value empty_value(const TensorMeta& tensor) {
  Value value;
  value.meta.dtype = tensor.dtype;
  value.meta.device = tensor.device;
  value.meta.sizes = tensor.sizes;
  value.meta.strides = contiguous_strides(tensor.sizes);
  return value;
}

// Reads a value that is small enough for a reply. Downloads the value if the reply does not contain it.
std::string Session::Impl::read_inline(const Handle& tensor, size_t bytes) {
  issue_if_deferred(tensor.id);
  v1::ReadResult answer = std::move(link.read({&tensor.id, 1}, /*meta_only=*/false)[0]);
  if (answer.has_error()) throw link.remote_error(answer.error());
  std::string value = std::move(*answer.mutable_data());
  if (value.empty() && bytes > 0) {
    value.resize(bytes);
    link.download(tensor.id, absl::MakeSpan(value));
  }
  check(value.size() == bytes, "the engine sent ", value.size(), " bytes for ", static_cast<const TensorMeta&>(tensor));
  return value;
}

Value Session::read(const Tensor& tensor, uint32_t site) {
  check_has_values(*tensor, "read");
  Value value = empty_value(*tensor);
  size_t bytes = byte_size(*tensor);
  if (bytes > impl_->max_inline_bytes) {
    value.bytes.resize(bytes);
    read_into(tensor, absl::MakeSpan(value.bytes), site);
    return value;
  }
  impl_->check_wait(site);
  Waiting waiting(*impl_, site);
  value.bytes = impl_->read_inline(*tensor, bytes);
  return value;
}

PendingValue::PendingValue(Ref<Session> session, size_t bytes, Ref<PendingScalar> number)
    : session_(std::move(session)), bytes_(bytes), number_(std::move(number)) {}

PendingValue::PendingValue(Ref<Session> session, size_t bytes, Tensor copy)
    : session_(std::move(session)), bytes_(bytes), copy_(std::move(copy)), read_(std::make_unique<PendingRead>()) {}

PendingValue::~PendingValue() {
  if (read_) session_->impl_->link.abandon_read(read_.get());
}

bool PendingValue::is_ready() const {
  if (number_) return number_->has_arrived();
  return inline_bytes_.size() == bytes_ && bytes_ > 0;
}

bool PendingValue::has_arrived() {
  if (number_) return session_->impl_->link.has_arrived(*number_);
  if (!session_->impl_->link.has_arrived(*read_)) return false;
  return !download_ || read_->results[0].has_error() || download_->done();
}

absl::Span<char> PendingValue::get_number(uint32_t site) {
  Session::Impl& impl = *session_->impl_;
  if (!number_->has_arrived()) {
    if (restricts_waits() && !impl.link.has_arrived(*number_)) impl.check_wait(site);
    const Clock::time_point start = Clock::now();
    if (impl.link.finish_read(*number_)) impl.sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  }
  if (number_->error) throw impl.link.remote_error(*number_->error);
  return {number_->bytes, bytes_};
}

absl::Span<char> PendingValue::get(uint32_t site) {
  if (number_) return get_number(site);
  Session::Impl& impl = *session_->impl_;
  const size_t bytes = bytes_;
  if (is_ready()) return absl::MakeSpan(inline_bytes_);
  if (restricts_waits() && !has_arrived()) impl.check_wait(site);
  const Clock::time_point start = Clock::now();
  const bool waited = impl.link.finish_read(*read_);
  v1::ReadResult& answer = read_->results[0];
  if (answer.has_error()) throw impl.link.remote_error(answer.error());
  if (download_) return finish_download(site, start);
  if (waited) impl.sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  inline_bytes_ = std::move(*answer.mutable_data());
  if (inline_bytes_.empty() && bytes > 0) {  // the reply had no room for it
    inline_bytes_ = session_->read(copy_, site).bytes;
  }
  check(inline_bytes_.size() == bytes, "the engine sent ", inline_bytes_.size(), " bytes for ",
        static_cast<const TensorMeta&>(*copy_));
  return absl::MakeSpan(inline_bytes_);
}

absl::Span<char> PendingValue::finish_download(uint32_t site, Clock::time_point start) {
  if (!download_->done()) {
    for (InterruptTimer timer; !download_->wait_for(timer.max_sleep());) {
      session_->impl_->link.check_interrupt(&timer);
    }
    session_->impl_->sites.count_wait(site, WaitKind::kRead, seconds_since(start));
  }
  return download_->bytes();
}

// Reads of numbers are answered between instructions. Other reads are answered at the end of their frame, when later
// instructions may have written to the tensor, so a copy is read; so are numbers of a GPU, which the engine would have
// to wait for before it executes the next instruction. The answer to the read of a downloaded value has no bytes; it
// shows that the value was computed, and a wait for it can be interrupted like that of any read.
std::unique_ptr<PendingValue> Session::read_async(const Tensor& tensor, uint32_t site) {
  static const Op& clone = *find_op("clone");
  check_has_values(*tensor, "read");
  const size_t bytes = byte_size(*tensor);
  check(tensor->session.get() == this, "expected a tensor of this session, got a tensor of another session");
  if (tensor->numel() == 1 && tensor->device.type == DeviceType::kCPU) {
    impl_->issue_if_deferred(tensor->id);
    Tensor kept;
    if (Ref<PendingScalar> number = impl_->link.read_scalar(tensor->id, [&] { kept = tensor; })) {
      return std::unique_ptr<PendingValue>(new PendingValue(Ref<Session>(this), bytes, std::move(number)));
    }
  }
  const bool downloads = bytes > impl_->max_inline_bytes;
  const Arg args[] = {tensor.get()};
  std::unique_ptr<PendingValue> pending(
      new PendingValue(Ref<Session>(this), bytes, call(clone, args, {.grad = false, .site = site})[0]));
  impl_->link.begin_read({&pending->copy_->id, 1}, downloads, pending->read_.get());
  if (downloads) pending->download_ = impl_->link.download_in_background(pending->copy_->id, bytes);
  return pending;
}

void Session::read_into(const Tensor& tensor, absl::Span<char> into, uint32_t site) {
  check_has_values(*tensor, "read_into");
  size_t bytes = byte_size(*tensor);
  check(ErrorKind::kValue, into.size() == bytes, "reading ", static_cast<const TensorMeta&>(*tensor),
        " requires a buffer of ", bytes, " bytes, got ", into.size());
  impl_->check_wait(site);
  Waiting waiting(*impl_, site);
  if (bytes > impl_->max_inline_bytes) {
    impl_->issue_if_deferred(tensor->id);
    return impl_->link.download(tensor->id, into);
  }
  std::string value = impl_->read_inline(*tensor, bytes);
  std::copy(value.begin(), value.end(), into.begin());
}

Tensor Session::upload(absl::Span<const char> bytes, DType dtype, SizesView sizes, Device device, uint32_t site) {
  static const Op& literal = *find_op("literal");
  static const Op& uploaded = *find_op("uploaded");
  const CallOptions options{.site = site};
  if (bytes.size() <= impl_->max_inline_bytes) {
    const Arg args[] = {std::string_view(bytes.data(), bytes.size()), sizes, dtype, device};
    return call(literal, args, options)[0];
  }
  Ref<Session> self(this);  // another thread may disconnect during the upload
  const ProgramTrace::Pause pause;
  uint64_t transfer = impl_->next_transfer++;
  const Arg args[] = {static_cast<int64_t>(transfer), sizes, dtype, device};
  bool waited = false;
  try {
    ReleaseInterpreterLock release;
    const Clock::time_point start = Clock::now();
    waited = impl_->link.upload(transfer, device, bytes, [&] { impl_->check_wait(site); });
    if (waited) impl_->sites.count_wait(site, WaitKind::kUpload, seconds_since(start));
  } catch (const Error& error) {
    // The engine keeps a refused transfer until an instruction takes it, so issue one and drop its result.
    if (error.kind() == ErrorKind::kOutOfMemory) call(uploaded, args, options);
    throw;
  }
  if (!waited) return impl_->defer(this, transfer, args, site);
  Tensor result = call(uploaded, args, options)[0];
  impl_->link.uploaded(transfer);
  return result;
}

// ---- Other functions

void Session::persist(double every, double wait) { impl_->link.persist(every, wait); }

void Session::synchronize(uint32_t site) {
  Waiting waiting(*impl_, site);
  impl_->issue_all_deferred();
  impl_->link.synchronize();
}

void Session::mark_read_only(const Tensor& tensor) {
  check(tensor->session.get() == this, "expected a tensor of this session, got a tensor of another session");
  check_has_values(*tensor, "mark_read_only");
  impl_->read_only.add(tensor->storage_number());
}
bool Session::is_read_only(const Tensor& tensor) const { return impl_->read_only.contains(tensor->storage_number()); }

void Session::flush() { impl_->link.flush(); }
void Session::cancel() {
  impl_->issue_all_deferred();
  impl_->link.cancel();
}
void Session::close() {
  if (!impl_->link.close(kCloseTimeout)) throw Interrupted();
}
void Session::release(uint64_t handle) noexcept {
  if (is_traced(handle)) return;
  try {
    if (!impl_->link.is_forked_copy()) impl_->issue_if_deferred(handle);  // so that the engine does not keep the bytes
  } catch (const Error&) {                                                // the session has ended
  }
  impl_->link.release(handle);
}
const v1::HelloReply& Session::engine() const { return impl_->link.engine(); }

uint32_t Session::site(std::string_view file, uint32_t line, std::string_view function) {
  MutexLock lock(impl_->new_sites_mutex);
  bool is_new = false;
  uint32_t number = impl_->sites.number(file, line, function, &is_new);
  if (is_new) {
    file = beginning(file);
    function = beginning(function);
    // Does not wait, because the lock is held.
    const size_t characters = file.size() + function.size();
    Link::Appending appending =
        impl_->link.append_at_once({characters + 16, frame_memory::kSite + frame_memory::kCharacter * characters});
    v1::Site* site = appending.frame().add_sites();
    site->set_id(number);
    site->set_file(file.data(), file.size());
    site->set_line(line);
    site->set_function(function.data(), function.size());
  }
  return number;
}

Session::Counters Session::counters() const {
  Counters counters = impl_->link.counters();
  impl_->sites.total(&counters);
  return counters;
}

CallLog& Session::call_log() { return impl_->calls; }
void Session::start_frame_log(size_t max_frames) { impl_->link.start_frame_log(max_frames); }
std::vector<SentFrame> Session::stop_frame_log() { return impl_->link.stop_frame_log(); }

std::string Session::site_name(uint32_t site) const { return impl_->sites.name(site); }

void Session::describe_site(uint32_t site, v1::Site* description) const { impl_->sites.describe(site, description); }

std::vector<Session::Wait> Session::wait_report() const { return impl_->sites.waits(); }

}  // namespace tt::client
