// The custom operators of a session's engine (teletensord --operators), as the client knows them.
//
// The engine is asked for its operators at the first use of one in a session, which waits for a round trip, and for the
// sizes of a call's results if a function of the library determines them: once for each kind of arguments in a process.
// Thread-safe.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "client/session/session.h"
#include "engine/schema/custom_operator.h"

namespace tt::client {

// The operators of the session's engine; none if it is of a version without them. Waits at the session's first use.
// Throws Error.
std::vector<const CustomOperator*> custom_operators(Session& session);

// The operator "mylib::scale" of the session's engine. Throws Error (RuntimeError) if it has none of this name.
const CustomOperator& custom_operator(Session& session, std::string_view name);

// Calls the operator, with keyword arguments after positional ones; omitted ones are the schema's defaults. Throws
// Error like Session::call(), and TypeError for missing, unknown or repeated arguments.
using Keyword = std::pair<std::string_view, Arg>;
Tensors call_custom(Session& session, std::string_view name, Args args, absl::Span<const Keyword> keywords = {},
                    const CallOptions& options = {});

// Session::call() constructs one for a call of a custom operator: checks that the session's engine has it, and answers
// its rule's questions about results while it exists.
class CustomCall {
 public:
  // Throws Error (NotImplementedError) if the engine does not have the operator.
  CustomCall(Session& session, const Op& op);
  CustomCall(const CustomCall&) = delete;
  CustomCall& operator=(const CustomCall&) = delete;

 private:
  std::vector<TensorMeta> ask(const Op& op, Args args) const;

  Session& session_;
  const CustomOperator::Questions questions_;
};

// Called at the end of a session.
void forget_custom_operators(const Session& session);

}  // namespace tt::client
