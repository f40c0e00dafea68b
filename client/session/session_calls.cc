// Session: calls of operators. A call is checked, its results are inferred and named, and its instruction is appended
// to the frame under construction.
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "client/session/autocast.h"
#include "client/session/custom_operators.h"
#include "client/session/encode.h"
#include "client/session/graph.h"
#include "client/session/inference_cache.h"
#include "client/session/session_impl.h"
#include "client/session/thread_generator.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the base tensor of a view, which is never itself a view. Returns any other tensor unchanged.
const Ref<Handle>& root_of(const Ref<Handle>& tensor) { return tensor->base ? tensor->base : tensor; }

// Returns the tensor of an argument. Arguments contain raw pointers; the caller keeps references during the call.
Tensor tensor_of(const Arg& arg) { return Tensor(static_cast<Handle*>(const_cast<TensorMeta*>(arg.tensor))); }

Tensor first_tensor(Args args) {
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor) return tensor_of(arg);
    if (arg.kind == Arg::Kind::kTensors && arg.size > 0) return tensor_of(Arg(arg.tensors[0]));
  }
  return nullptr;
}

}  // namespace

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

// The operands of a call that waits for its error, because of its operator or the thread, else nothing.
static std::optional<Tensors> awaited_operands(bool waits, Args args) {
  if (!waits && !waits_for_errors()) return std::nullopt;
  std::optional<Tensors> operands(std::in_place);
  keep_tensors(args, &*operands);
  return operands;
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
    if (grad && inference.outputs[i].requires_grad) check_own(*into[i]);
  }
  return Tensors(into.begin(), into.end());
}

// Writes that were recorded since may have changed which views require grad.
static void follow_bases(Args args, absl::Span<const Tensor> into) {
  for (const Arg& arg : args) {
    for_each_tensor(arg, [](const Handle* tensor) { const_cast<Handle*>(tensor)->follow_base(); });
  }
  for (const Tensor& tensor : into) tensor->follow_base();
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

static bool writes_arguments(const Op& op) {
  return absl::c_any_of(op.params, [](const Param& param) { return param.written; });
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
    Tensors results, kept;  // no results; kept while the call waits for room
    impl_->queue(this, *find_op(op_id::kCountDataWrite), written, results, counting, &kept);
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

// Makes `view` a view of `viewed`: it has its base, its version and its storage.
static void set_viewed(const Op& op, const Tensor& viewed, Tensor& view) {
  if (op.differentiable) {
    view->set_base(root_of(viewed));
    view->is_function_view = viewed->is_function_view;
    view->function_view_version = viewed->function_view_version;
  } else {
    view->is_data = is_data(*viewed);
    view->share_version(*viewed);
  }
  view->is_inference = viewed->is_inference;
  view->viewed_storage = viewed->storage_number();
  view->viewed_storage_bytes = viewed->storage_bytes();
}

// The handles of a call's results, which have no names yet.
static Tensors new_results(Session* self, const Op& op, Args args, const Inference& inference,
                           const CallOptions& options) {
  Tensors results;
  for (const TensorMeta& meta : inference.outputs) results.push_back(make_ref<Handle>(meta, Ref<Session>(self), 0));
  if (inference.alias) {
    const Tensor viewed = first_tensor(args);
    for (Tensor& view : results) set_viewed(op, viewed, view);
  } else if (options.inference) {
    for (Tensor& result : results) result->is_inference = true;
  }
  return results;
}

void Session::Impl::check_accepted(const Op& op, Args args, const CallOptions& options, const Inference& inference,
                                   bool autocasts) {
  operators.require(op, args);
  if (autocasts) [[unlikely]]
    operators.require(*find_op(op_id::kSetAutocast), {});
  read_only.check_call(op, args, options.into);
  check(ErrorKind::kNotImplemented, !op.is_dynamic || op.num_outputs >= 0 || !inference.outputs.empty(), "[", op.name,
        "] is part of a backward pass and cannot be called directly");
}

Tensors Session::Impl::trace_call(ProgramTrace& trace, const Op& op, Args args, const CallOptions& options) {
  operators.require(op, args);
  Tensors results = trace.call(op, args, options);
  for (const Tensor& tensor : options.into) tensor->bump_version();
  return results;
}

void Session::Impl::record_call(Session& self, const Op& op, Args args, const Tensors& results,
                                const CallOptions& options, SavedCall* saved) {
  Ref<GraphNode> node = record(op, args, absl::MakeConstSpan(results), !options.into.empty());
  if (!node) return;
  track_data(args);
  if (saved) [[unlikely]] {
    std::vector<int64_t> description;
    if (saved->is_stored()) description = read_description(*saved, options.site);
    saved->store(self, description, absl::MakeConstSpan(results), node.get());
  }
}

Tensors Session::call(const Op& op, Args args, const CallOptions& options) {
  if (uses_generator(op)) [[unlikely]]
    return call_with_generator(op, args, options);
  return call_in_turn(op, args, options);
}

Tensors Session::call_with_generator(const Op& op, Args args, const CallOptions& options) {
  const GeneratorTurns::Turn turn(impl_->generator_turns);
  Tensor& own = thread_generator();
  if (turn.is_nested() || !own || own->session.get() != this || ProgramTrace::of(*this) != nullptr) [[likely]]
    return call_in_turn(op, args, options);
  CallOptions setting;
  setting.grad = false;
  setting.site = options.site;
  const auto exchange = [&](const Tensor& next) {
    const Tensor current = call_in_turn(*find_op(op_id::kGetRngState), {}, setting)[0];
    const Arg state[] = {Arg(next.get())};
    call_in_turn(*find_op(op_id::kSetRngState), state, setting);
    return current;
  };
  const Tensor shared = exchange(own);
  Tensors results;
  std::exception_ptr error;
  try {
    results = call_in_turn(op, args, options);
  } catch (...) {
    error = std::current_exception();
  }
  own = exchange(shared);
  if (error) std::rethrow_exception(error);
  return results;
}

// Stages: trace, infer, check, make the results, queue, note what was written, wait for sizes, record in the graph.
Tensors Session::call_in_turn(const Op& op, Args args, const CallOptions& options) {
  std::optional<CustomCall> custom;
  if (is_custom(op.id)) [[unlikely]]
    custom.emplace(*this, op);
  const bool grad = options.grad && !options.inference;
  if (grad) follow_bases(args, options.into);
  if (ProgramTrace* trace = ProgramTrace::of(*this)) [[unlikely]]
    return impl_->trace_call(*trace, op, args, options);
  if (impl_->calls.active()) [[unlikely]]
    impl_->calls.begin();
  std::optional<DefaultFloat> default_float;
  if (options.default_float != kDefaultFloat) [[unlikely]]
    default_float.emplace(options.default_float);
  Inference own;  // unless the thread's cache has the results
  const bool writes = !options.into.empty();
  const bool autocasts = options.autocast.enabled() && !writes && has_autocast_policy(op);
  const bool cacheable = !autocasts && options.default_float == kDefaultFloat;
  const Inference& inference = infer_call(op, args, options.autocast, grad, autocasts, cacheable, &own);
  impl_->check_accepted(op, args, options, inference, autocasts);
  // `inference` is not used below the next lines: code of the program may run in a wait, and call operators.
  const bool requires_grad = inference.requires_grad;
  Tensors results =
      writes ? check_into(op, inference, grad, options.into) : new_results(this, op, args, inference, options);
  const Tracked tracked = writes ? tracked_results(inference, options.into) : Tracked();
  const bool waits_for_sizes = op.is_dynamic && !writes;
  const bool waits = op.waits_for_status(args) && inference.backend != DeviceType::kMeta;
  if ((waits_for_sizes && op.num_outputs != 0) || waits) impl_->check_wait(options.site);
  const std::optional<Tensors> awaited = awaited_operands(waits, args);
  Tensors kept;
  std::optional<SavedCall> saved;
  if (options.saved != nullptr && grad && requires_grad) [[unlikely]]
    saved = SavedCall::begin_call(*options.saved, op, args, absl::MakeConstSpan(results));
  if (saved) saved->require(impl_->operators);
  if (saved && saved->is_stored()) impl_->check_wait(options.site);
  SavedCall* const saving = saved ? &*saved : nullptr;
  impl_->queue(this, op, args, results, options, &kept, saving);  // if interrupted, nothing was written
  if (saving) [[unlikely]]
    saving->end_call(op, absl::MakeConstSpan(results));
  if (writes || writes_arguments(op)) {
    mark_written(tracked, options.into);
    bump_written(op, args);
    count_data_writes(op, args, options);
  }
  if (waits_for_sizes) impl_->wait_for_sizes(results, options.site);
  if (awaited) [[unlikely]]
    impl_->wait_for_status(results, *awaited, options.site);
  if (grad) impl_->record_call(*this, op, args, results, options, saving);
  return results;
}

Tensors Session::call_with_metas(const Op& op, Args args, absl::Span<const TensorMeta> metas,
                                 const CallOptions& options) {
  op.check_args(args);
  impl_->operators.require(op, args);
  if (ProgramTrace* trace = ProgramTrace::of(*this)) [[unlikely]]
    return trace->call_with_metas(op, args, options);
  const std::optional<Tensors> awaited = awaited_operands(false, args);
  Tensors results = make_results(metas, options), kept;
  impl_->queue(this, op, args, results, options, &kept);
  if (awaited) [[unlikely]]
    impl_->wait_for_status(results, *awaited, options.site);
  return results;
}

Tensors Session::make_results(absl::Span<const TensorMeta> metas, const CallOptions& options) {
  Tensors results;
  for (const TensorMeta& meta : metas) {
    results.push_back(make_ref<Handle>(meta, Ref<Session>(this), 0));
    results.back()->is_inference = options.inference;
  }
  return results;
}

Tensors Session::call_recorded(const Op& op, Args args, Args recorded, absl::Span<const TensorMeta> metas,
                               const CallOptions& options) {
  impl_->read_only.check_call(op, args, {});
  op.check_args(args);
  impl_->operators.require(op, args);
  if (ProgramTrace* trace = ProgramTrace::of(*this)) [[unlikely]]
    return trace->call_with_metas(op, args, options);
  const bool grad = options.grad && !options.inference;
  Tensors results = make_results(metas, options), kept;
  std::optional<SavedCall> saved;
  if (options.saved != nullptr && grad && absl::c_any_of(metas, [](const TensorMeta& t) { return t.requires_grad; }))
    saved = SavedCall::begin_call(*options.saved, op, args, absl::MakeConstSpan(results));
  if (saved) saved->require(impl_->operators);
  if (saved && saved->is_stored()) impl_->check_wait(options.site);
  const std::optional<Tensors> awaited = awaited_operands(false, args);
  impl_->queue(this, op, args, results, options, &kept, saved ? &*saved : nullptr);
  if (saved) saved->end_call(op, absl::MakeConstSpan(results));
  bump_written(op, args);
  count_data_writes(op, args, options);
  if (awaited) [[unlikely]]
    impl_->wait_for_status(results, *awaited, options.site);
  if (!grad) return results;
  Ref<GraphNode> node = record(op, recorded, absl::MakeConstSpan(results), /*into=*/false);
  if (node) track_data(args);
  if (saved && node) {
    std::vector<int64_t> description;
    if (saved->is_stored()) description = impl_->read_description(*saved, options.site);
    saved->store(*this, description, absl::MakeConstSpan(results), node.get());
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

}  // namespace tt::client
