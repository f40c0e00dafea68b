#include "engine/session/programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/new_results.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "engine/program/passes/merge_equal.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"

namespace tt {
namespace {

// What fuse_pointwise() depends on: whether a tensor is small, of which dtype, and whether it is recorded.
char kind_of(const Tensor& tensor) {
  return static_cast<char>(static_cast<int>(tensor.dtype()) << 2 | (tensor.numel() >= kMinFusedElements ? 1 : 0) |
                           (tensor.requires_grad() ? 2 : 0));
}

std::string kinds_of(const ProgramInputs& inputs) {
  std::string kinds;
  kinds.reserve(inputs.read.size() + inputs.written.size());
  for (const Tensor& tensor : inputs.read) kinds.push_back(kind_of(tensor));
  for (const Tensor& tensor : inputs.written) kinds.push_back(kind_of(tensor));
  return kinds;
}

void fuse(const ProgramInputs& inputs, Program* program) {
  SlotTable slots;
  put_inputs(inputs, &slots);
  fuse_pointwise(program, slots);
}

}  // namespace

DefinedProgram::DefinedProgram(Program program, size_t read, size_t written, std::vector<std::string> sites,
                               std::string text)
    : program_(std::move(program)), read_(read), written_(written), sites_(std::move(sites)), text_(std::move(text)) {
  check_program(program_, read_ + written_);
  merge_equal(&program_);
  remove_unused(&program_);
}

void DefinedProgram::check_inputs(const ProgramInputs& inputs) const {
  check(ErrorKind::kValue, inputs.read.size() == read_ && inputs.written.size() == written_, "expected ", read_,
        " inputs and ", written_, " that the Program may change, got ", inputs.read.size(), " and ",
        inputs.written.size());
}

Tensors DefinedProgram::run(const ProgramInputs& inputs) const {
  check_inputs(inputs);
  const Variant program = variant_for(inputs);
  return run_program(*program, inputs, [this](uint32_t site) { return describe_site(site); });
}

DefinedProgram::Variant DefinedProgram::variant_for(const ProgramInputs& inputs) const {
  std::string kinds = kinds_of(inputs);
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(variants_.begin(), variants_.end(), [&](const auto& v) { return v.first == kinds; });
    if (found != variants_.end()) return found->second;
  }
  auto fused = std::make_shared<Program>(program_);
  fuse(inputs, fused.get());
  MutexLock lock(mutex_);
  if (variants_.size() == kMaxVariants) variants_.erase(variants_.begin());  // the oldest
  variants_.emplace_back(std::move(kinds), fused);
  return fused;
}

std::string DefinedProgram::explain(const ProgramInputs& inputs) const {
  check_inputs(inputs);
  Program fused = program_;
  fuse(inputs, &fused);
  return absl::StrCat("# after merge_equal and remove_unused\n", to_string(program_), "# after fuse_pointwise\n",
                      to_string(fused));
}

std::string DefinedProgram::describe_site(uint32_t site) const {
  return site == 0 || site > sites_.size() ? "" : sites_[site - 1];
}

uint64_t DefinedProgram::bytes() const {
  uint64_t bytes = program_.bytes() + text_.capacity();
  for (const std::string& site : sites_) bytes += sizeof(site) + site.capacity();
  MutexLock lock(mutex_);
  for (const auto& [kinds, program] : variants_) bytes += kinds.capacity() + program->bytes();
  return bytes;
}

Programs::Named& Programs::add(int64_t number) {
  check(ErrorKind::kValue, programs_.size() < kMaxPrograms, "a session has at most ", kMaxPrograms, " Programs");
  const auto [at, is_new] = programs_.try_emplace(number);
  check(ErrorKind::kValue, is_new, "the number ", number, " of a Program is in use");
  return at->second;
}

void Programs::define(int64_t number, Entry program) { add(number).program = std::move(program); }

void Programs::fail(int64_t number, const Error& error) { add(number).error = error; }

void Programs::drop(int64_t number) {
  check(ErrorKind::kValue, programs_.erase(number) == 1, "no Program has the number ", number);
}

Programs::Entry Programs::get(int64_t number) const {
  const auto found = programs_.find(number);
  check(ErrorKind::kValue, found != programs_.end(), "no Program has the number ", number);
  if (!found->second.program) throw Error(*found->second.error);
  return found->second.program;
}

void Programs::visit(absl::FunctionRef<void(int64_t, const DefinedProgram&)> visit) const {
  for (const auto& [number, named] : programs_) {
    if (named.program) visit(number, *named.program);
  }
}

uint64_t Programs::host_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, named] : programs_) {
    bytes += kEntryBytes + (named.program ? named.program->bytes() : named.error->message().size());
  }
  return bytes;
}

void Programs::skipped(const Op& op, Args args, const Error& error, uint32_t /*site*/) {
  if (op.id != op_id::kDefineProgram || args.empty() || args[0].kind != Arg::Kind::kInt) return;
  if (programs_.size() < kMaxPrograms && !programs_.contains(args[0].integer)) fail(args[0].integer, error);
}

void register_program_operators(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kDropProgram, key,
                   [](Call& call) { Context::current().services.get<Programs>().drop(call.args[0].integer); });
  }
}

}  // namespace tt
