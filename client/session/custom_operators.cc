#include "client/session/custom_operators.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "client/session/program_trace.h"
#include "engine/schema/custom_query.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

using Operators = std::vector<const CustomOperator*>;

// By the session's serial number. Never destroyed.
struct Known {
  Mutex mutex;
  absl::flat_hash_map<uint64_t, Operators> by_session ABSL_GUARDED_BY(mutex);

  static Known& instance() {
    static Known* known = new Known;
    return *known;
  }
};

// Runs `f` where no Program is traced: a thread's trace records the thread's calls.
template <typename F>
auto outside_trace(const Session& session, F f) -> decltype(f()) {
  if (ProgramTrace::of(session) == nullptr) return f();
  decltype(f()) result;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      result = f();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

std::string query(Session& session, absl::Span<const int64_t> numbers) {
  return outside_trace(session, [&]() -> std::string {
    const Arg args[] = {Arg(numbers)};
    const Tensors reply = session.call(*find_op(op_id::kCustomOperators), args, {.grad = false});
    return session.read(reply[0]).bytes;
  });
}

Operators fetch(Session& session) {
  // An engine of a version without the operator custom_operators has no custom ones.
  const v1::OperatorTable& table = session.engine().operators();
  const bool same = session.engine().schema_digest() == schema_digest();
  const auto& ids = table.ids();
  if (!same && std::find(ids.begin(), ids.end(), uint32_t{op_id::kCustomOperators}) == ids.end()) return {};
  Operators operators;
  for (NumberedDeclaration& one : decode_declarations(query(session, {}))) {
    auto made = std::make_unique<CustomOperator>(std::move(one.declaration));
    operators.push_back(&add_custom_op(std::move(made), one.id));
  }
  return operators;
}

}  // namespace

Operators custom_operators(Session& session) {
  Known& known = Known::instance();
  {
    MutexLock lock(known.mutex);
    if (const auto found = known.by_session.find(session.serial()); found != known.by_session.end())
      return found->second;
  }
  Operators operators = fetch(session);  // several threads may ask at once
  MutexLock lock(known.mutex);
  return known.by_session.try_emplace(session.serial(), std::move(operators)).first->second;
}

void forget_custom_operators(const Session& session) {
  Known& known = Known::instance();
  MutexLock lock(known.mutex);
  known.by_session.erase(session.serial());
}

const CustomOperator& custom_operator(Session& session, std::string_view name) {
  for (const CustomOperator* op : custom_operators(session)) {
    if (op->name() == name) return *op;
  }
  fail(ErrorKind::kRuntime, "[", name, "] the session's engine has no operator of this name (teletensord --operators)");
}

Tensors call_custom(Session& session, std::string_view name, Args args, absl::Span<const Keyword> keywords,
                    const CallOptions& options) {
  const Op& op = custom_operator(session, name).op();
  const size_t positional = static_cast<size_t>(
      std::count_if(op.params.begin(), op.params.end(), [](const Param& param) { return !param.keyword_only; }));
  check(ErrorKind::kType, args.size() <= positional, "[", name, "] takes ", positional, " positional arguments, got ",
        args.size());
  std::vector<Arg> all(args.begin(), args.end());
  std::vector<bool> given(op.params.size(), false);
  std::fill_n(given.begin(), args.size(), true);
  for (size_t i = args.size(); i < op.params.size(); ++i) all.push_back(op.params[i].default_value);
  for (const auto& [keyword, value] : keywords) {
    size_t i = 0;
    while (i < op.params.size() && op.params[i].name != keyword) ++i;
    check(ErrorKind::kType, i < op.params.size(), "[", name, "] got the unexpected argument '", keyword, "'");
    check(ErrorKind::kType, !given[i], "[", name, "] got several values for the argument '", keyword, "'");
    all[i] = value;
    given[i] = true;
  }
  for (size_t i = 0; i < op.params.size(); ++i) {
    check(ErrorKind::kType, given[i] || op.params[i].has_default || op.params[i].optional, "[", name,
          "] missing the argument '", op.params[i].name, "'");
  }
  return session.call(op, all, options);
}

CustomCall::CustomCall(Session& session, const Op& op)
    : session_(session), questions_([this](const Op& of, Args args) { return ask(of, args); }) {
  const Operators operators = custom_operators(session);
  const bool known =
      std::any_of(operators.begin(), operators.end(), [&](const CustomOperator* each) { return &each->op() == &op; });
  check(ErrorKind::kNotImplemented, known, "[", op.name, "] the session's engine does not have this operator");
}

std::vector<TensorMeta> CustomCall::ask(const Op& op, Args args) const {
  const std::vector<int64_t> numbers = encode_query(op, args);
  return decode_results(query(session_, numbers));
}

}  // namespace tt::client
