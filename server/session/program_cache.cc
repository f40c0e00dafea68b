#include "server/session/program_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "engine/memory/workspace_charge.h"
#include "engine/program/passes/set_device.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/sha256.h"
#include "proto/wire.h"
#include "server/session/decode.h"
#include "server/session/frame_size.h"

namespace tt::server {
namespace {

constexpr size_t kMaxText = 256;  // of a file's or a function's name
constexpr int64_t kMaxDefinitionBytes = int64_t{4} << 20;

v1::Frame parse(const std::string& text, const Limits& limits) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FrameSize size;
  check(ErrorKind::kValue, measure_frame(&stream, limits.max_decoded_bytes, &size),
        "expected the serialized frame of a Program, of at most ", limits.max_decoded_bytes, " bytes in memory");
  const WorkspaceCharge charge(size.bytes);
  v1::Frame frame;
  check(ErrorKind::kValue, frame.ParseFromString(text), "expected the serialized frame of a Program");
  return frame;
}

// The source lines by number. Numbers are 1, 2, ...
std::vector<std::string> sites_of(const v1::Frame& frame) {
  std::vector<std::string> sites;
  for (const v1::Site& site : frame.sites()) {
    check(ErrorKind::kValue, site.id() == sites.size() + 1, "expected source line ", sites.size() + 1,
          " of a Program, got ", site.id());
    const std::string function = printable(site.function(), kMaxText);
    sites.push_back(
        absl::StrCat(printable(site.file(), kMaxText), ":", site.line(), function.empty() ? "" : " in ", function));
  }
  return sites;
}

// The part of the values of forward that backward may keep (docs/wire.md, "Programs"): in the first instruction.
double memory_budget_of(const v1::Frame& frame) {
  constexpr uint32_t kAll = uint32_t{1} << 16;
  const uint32_t sent = frame.instructions_size() == 0 ? 0 : frame.instructions(0).recompute() >> 2;
  return sent == 0 ? 1 : std::min(sent - 1, kAll) / static_cast<double>(kAll);
}

std::string text_of(const Call& call) {
  const Tensor definition = call.tensor(0);
  check(
      ErrorKind::kType,
      definition.dtype() == DType::kUInt8 && definition.device().type == DeviceType::kCPU && definition.is_contiguous(),
      "expected the definition as a contiguous uint8 tensor on the CPU, got ", definition.meta());
  check(ErrorKind::kValue, definition.numel() <= kMaxDefinitionBytes, "expected a definition of at most ",
        kMaxDefinitionBytes, " bytes, got ", definition.numel());
  return std::string(definition.data_as<char>(), static_cast<size_t>(definition.numel()));
}

size_t count_of(const Arg& arg) {
  check(ErrorKind::kValue, arg.integer >= 0 && arg.integer <= static_cast<int64_t>(Program::kMaxNames),
        "expected a number of inputs from 0 to ", Program::kMaxNames, ", got ", arg.integer);
  return static_cast<size_t>(arg.integer);
}

// The instruction has no results in which an error could be stored; the runs of the Program report it.
void define_program(Call& call) {
  SessionServices& services = Context::current().services;
  auto& programs = services.get<Programs>();
  const int64_t number = call.args[1].integer;
  const auto* definer = services.find<ProgramDefiner>();
  check(definer != nullptr, "Programs require a session");
  try {
    programs.define(number, definer->define(text_of(call),
                                            {count_of(call.args[2]), count_of(call.args[3]), call.args[4].to_bool()}));
  } catch (Error& error) {
    error.set_op(call.op->name);
    programs.fail(number, error);
  }
}

}  // namespace

Programs::Entry decode_definition(const Limits& limits, std::string text, const ProgramInterface& interface,
                                  size_t max_variants, std::optional<Device> device) {
  const v1::Frame frame = parse(text, limits);
  Program program;
  try {
    decode(frame, limits, &program);
    decode_sizes(frame, &program);
  } catch (const ProgramFault& fault) {
    Error error = fault.error;
    error.append(absl::StrCat(" (instruction ", fault.instruction, " of a Program)"));
    throw error;
  }
  if (device) set_device(&program, *device);
  return std::make_shared<DefinedProgram>(std::move(program), interface, sites_of(frame), std::move(text), max_variants,
                                          memory_budget_of(frame));
}

Programs::Entry ProgramCache::define(const std::string& principal, const Limits& limits, std::string text,
                                     const ProgramInterface& interface) {
  const std::string key = absl::StrCat(Sha256::of(text), interface.read, "/", interface.written, "/",
                                       interface.exact ? "exact/" : "/", principal);
  if (Programs::Entry found = find(key)) return found;
  Programs::Entry program = decode_definition(limits, std::move(text), interface);
  keep({key, principal, program, program->bytes()});
  return program;
}

Programs::Entry ProgramCache::find(const std::string& key) {
  MutexLock lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->program;
  }
  const auto found = in_use_.find(key);
  return found == in_use_.end() ? nullptr : found->second.lock();
}

void ProgramCache::keep(Kept kept) {
  MutexLock lock(mutex_);
  absl::erase_if(in_use_, [](const auto& entry) { return entry.second.expired(); });
  if (kept.bytes > kMaxPrincipalBytes || by_key_.contains(kept.key)) {
    in_use_[kept.key] = kept.program;
    return;
  }
  kept.bytes = 0;
  kept_.push_front(std::move(kept));
  by_key_[kept_.front().key] = kept_.begin();
  apply_limits();
}

void ProgramCache::trim() {
  MutexLock lock(mutex_);
  apply_limits();
}

void ProgramCache::apply_limits() {
  for (Kept& kept : kept_) {
    const uint64_t bytes = kept.program->bytes();
    bytes_ += bytes - kept.bytes;
    principal_bytes_[kept.principal] += bytes - kept.bytes;
    kept.bytes = bytes;
  }
  for (auto at = kept_.end(); at != kept_.begin();) {
    --at;
    if (bytes_ <= kMaxBytes && principal_bytes_[at->principal] <= kMaxPrincipalBytes) continue;
    const auto removed = at++;
    remove(removed);
  }
}

void ProgramCache::remove(Position at) {
  bytes_ -= at->bytes;
  principal_bytes_[at->principal] -= at->bytes;
  if (principal_bytes_[at->principal] == 0) principal_bytes_.erase(at->principal);
  in_use_[at->key] = at->program;
  by_key_.erase(at->key);
  kept_.erase(at);
}

uint64_t ProgramCache::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

void register_define_program(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) dispatcher.set(op_id::kDefineProgram, key, &define_program);
}

}  // namespace tt::server
