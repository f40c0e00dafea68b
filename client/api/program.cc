#include "client/api/program.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "client/api/errors.h"
#include "client/api/session.h"
#include "client/session/autocast.h"
#include "client/session/call_mode.h"
#include "client/session/program.h"
#include "client/session/program_trace.h"
#include "client/session/session.h"

namespace teletensor::compiler {
namespace {

using Handles = std::vector<tt::client::Tensor>;
using From = tt::client::Program::Output::From;

Handles handles_of(const std::vector<Tensor>& tensors) {
  Handles handles;
  handles.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    tensor.meta();  // throws for an undefined tensor
    handles.push_back(tensor.handle());
  }
  return handles;
}

std::vector<Tensor> tensors_of(absl::Span<const tt::client::Tensor> handles) {
  std::vector<Tensor> tensors;
  tensors.reserve(handles.size());
  for (const tt::client::Tensor& handle : handles) tensors.emplace_back(handle);
  return tensors;
}

bool must_be_exact(const TraceOptions& options) {
  const char* const set = std::getenv("TELETENSOR_EXACT_PROGRAMS");
  return options.exact || (set != nullptr && *set != '\0' && std::string_view(set) != "0");
}

}  // namespace

// Makes Programs, whose constructor is private.
class Trace {
 public:
  static Program run(const Function& function, const std::vector<Tensor>& examples, const TraceOptions& options) {
    const Handles handles = handles_of(examples);
    tt::client::Session& session = handles.empty() ? internal::current_session() : *handles[0]->session;
    const SessionGuard creates_tensors{Session(tt::Ref<tt::client::Session>(&session))};
    std::optional<tt::client::ProgramTrace> trace;
    tt::client::TraceOptions sizes;
    sizes.current_site = [&session] { return internal::current_site(session); };
    internal::translated([&] { trace.emplace(tt::Ref<tt::client::Session>(&session), handles, sizes); });
    const std::vector<Tensor> outputs = function(tensors_of(trace->inputs()));
    return internal::translated([&] {
      return Program(trace->finish(handles_of(outputs),
                                   {.exact = must_be_exact(options), .memory_budget = options.memory_budget}));
    });
  }
};

Program::Program() = default;
Program::Program(tt::Ref<tt::client::Program> program) : program_(std::move(program)) {}
Program::~Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;

tt::client::Program& Program::require() const {
  if (!program_) throw RuntimeError("expected a Program, got an undefined Program");
  return *program_;
}

// The session is only known to the Program, also if it has no inputs.
static uint32_t site_of(const tt::client::Program& program) {
  return internal::current_site(const_cast<tt::client::Session&>(program.session()));
}

void Program::define() const {
  tt::client::Program& program = require();
  internal::translated([&] {
    if (program.instructions() > 0) program.define(site_of(program));
  });
}

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs) const {
  tt::client::Program& program = require();
  const Handles handles = handles_of(inputs);
  return internal::translated([&] {
    return tensors_of(program.run(handles, {.grad = tt::client::call_mode.grad,
                                            .inference = tt::client::call_mode.inference,
                                            .site = site_of(program),
                                            .autocast = tt::client::autocast_settings().state()}));
  });
}

Tensor Program::single(const std::vector<Tensor>& inputs) const {
  const size_t outputs = require().outputs().size();
  if (outputs != 1) {
    throw RuntimeError("[run_program] expected a Program with one output, got one with " + std::to_string(outputs) +
                       "; call run()");
  }
  return run(inputs)[0];
}

std::vector<OutputInfo> Program::infer(const std::vector<Tensor>& inputs) const {
  const tt::client::Program& program = require();
  const Handles handles = handles_of(inputs);
  const std::vector<tt::TensorMeta> results = internal::translated([&] { return program.infer(handles); });
  std::vector<OutputInfo> outputs;
  for (const tt::client::Program::Output& output : program.outputs()) {
    const tt::TensorMeta& meta = output.from == From::kResult  ? results[output.index]
                                 : output.from == From::kInput ? *handles[output.index]
                                                               : *program.captured()[output.index];
    outputs.push_back({{meta.sizes.begin(), meta.sizes.end()}, meta.dtype, Device(meta.device)});
  }
  return outputs;
}

void Program::drop() { program_ = {}; }

std::string Program::text() const { return require().text(); }

std::string Program::explain(const std::vector<Tensor>& inputs) const {
  tt::client::Program& program = require();
  const Handles handles = handles_of(inputs);
  return internal::translated([&] { return program.explain(handles, site_of(program)); });
}

size_t Program::instructions() const { return require().instructions(); }
size_t Program::inputs() const { return require().inputs(); }
std::vector<Tensor> Program::captured() const { return tensors_of(require().captured()); }

Program trace(const Function& function, const std::vector<Tensor>& examples, const TraceOptions& options) {
  return Trace::run(function, examples, options);
}

}  // namespace teletensor::compiler
