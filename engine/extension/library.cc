#include "engine/extension/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/composites/pointwise_chain.h"
#include "engine/dispatch/call_scope.h"
#include "engine/extension/library_call.h"
#include "engine/program/chain_code.h"
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"

namespace tt::extension {
namespace {

constexpr size_t kMaxText = size_t{1} << 16;

struct Kernels {
  teletensor_function cpu = nullptr, cuda = nullptr;
  bool any_strides = false;
};

// By id. Written at the start, before sessions begin.
absl::flat_hash_map<uint16_t, Kernels>& kernels() {
  static auto* table = new absl::flat_hash_map<uint16_t, Kernels>();
  return *table;
}

std::vector<OperatorLibrary>& libraries() {
  static auto* list = new std::vector<OperatorLibrary>();
  return *list;
}

template <teletensor_function Kernels::*kFunction>
void run_kernel(Call& call) {
  run_with_plain_outputs(call, [](Call& plain) {
    const Kernels& found = kernels().at(plain.op->id);
    try {
      LibraryCall(plain, found.any_strides).run(found.*kFunction);
    } catch (Error& error) {
      error.set_op(plain.op->name);
      throw;
    }
  });
}

// ---- Bodies.

// Computes the steps one by one, so that the tape records each.
void run_steps(Call& call, absl::Span<const BodyStep> steps) {
  std::vector<Tensor> results(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    absl::InlinedVector<Arg, 4> args;
    for (const BodyStep::Source& source : steps[i].sources) {
      args.push_back(source.from == BodyStep::Source::From::kValue      ? source.value
                     : source.from == BodyStep::Source::From::kArgument ? call.args[source.index]
                                                                        : Arg(results[source.index].get()));
    }
    steps[i].op->check_args(args);
    Call step;
    step.op = steps[i].op;
    step.args = args;
    Dispatcher::instance().dispatch(step);
    results[i] = std::move(step.outputs[0]);
  }
  call.outputs.clear();
  call.outputs.push_back(std::move(results.back()));
}

// Computes the steps as one loop, where they can be one.
void run_chain(Call& call, absl::Span<const BodyStep> steps) {
  Tensors inputs;
  absl::InlinedVector<size_t, 8> place(call.args.size());  // in `inputs`, by argument
  for (size_t i = 0; i < call.args.size(); ++i) {
    place[i] = inputs.size();
    if (call.args[i].kind == Arg::Kind::kTensor) inputs.push_back(call.tensor(static_cast<int>(i)));
  }
  ChainWriter writer;
  const uint32_t site = CallScope::current().site;
  for (const BodyStep& step : steps) {
    writer.begin_step(*step.op, site, 0, step.sources.size());
    for (const BodyStep::Source& source : step.sources) {
      switch (source.from) {
        case BodyStep::Source::From::kValue: writer.add_value(source.value); break;
        case BodyStep::Source::From::kArgument: writer.add_input(place[source.index]); break;
        case BodyStep::Source::From::kStep: writer.add_result(source.index); break;
      }
    }
  }
  call.outputs = composites::run_chain(inputs, writer.code());
}

void run_body(Call& call) {
  const std::vector<BodyStep> steps = find_custom_op(call.op->id)->steps(call.args);
  const CallScope& scope = CallScope::current();
  const bool is_plain = call.inferred.backend != DeviceType::kMeta && scope.recorder == nullptr &&
                        !(call.inferred.requires_grad && scope.grad_enabled) && steps.size() > 1;
  is_plain ? run_chain(call, steps) : run_steps(call, steps);
}

// ---- Loading.

// A text of a library's table; "" for null.
std::string text_of(const char* text, const char* what) {
  if (text == nullptr) return "";
  const size_t size = strnlen(text, kMaxText + 1);
  check(ErrorKind::kValue, size <= kMaxText, "its ", what, " has more than ", kMaxText, " characters");
  return {text, size};
}

struct Checked {
  std::unique_ptr<CustomOperator> op;
  Kernels kernels;
};

Checked check_operator(const teletensor_operator& given, uint64_t digest) {
  CustomDeclaration declaration;
  declaration.schema = text_of(given.schema, "schema");
  check(ErrorKind::kValue, !declaration.schema.empty(), "an operator has no schema");
  declaration.doc = text_of(given.doc, "doc");
  declaration.shape = text_of(given.shape, "shape");
  declaration.dtype = text_of(given.dtype, "dtype");
  declaration.body = text_of(given.body, "body");
  declaration.gradient = text_of(given.gradient, "gradient");
  declaration.has_rule = given.rule != nullptr;
  if (declaration.has_rule) declaration.library = digest;
  auto op = std::make_unique<CustomOperator>(std::move(declaration));
  const bool has_kernels = given.cpu != nullptr || given.cuda != nullptr;
  check(ErrorKind::kValue, op->has_body() != has_kernels, "[", op->name(), "] expected either kernels or a body, got ",
        has_kernels ? "both" : "neither");
  check(ErrorKind::kValue, (given.flags & ~static_cast<uint32_t>(TELETENSOR_ANY_STRIDES)) == 0, "[", op->name(),
        "] has flags that this daemon does not know: ", given.flags);
  if (const teletensor_function rule = given.rule) {
    op->set_rule([rule](const CustomOperator& of, Args args, Inference* out) {
      LibraryCall call(of.op(), args);
      call.run(rule);
      std::vector<TensorMeta> results = call.take_results();
      out->outputs.assign(results.begin(), results.end());
    });
  }
  return {std::move(op), {given.cpu, given.cuda, (given.flags & TELETENSOR_ANY_STRIDES) != 0}};
}

// A gradient may call operators of the same library, which are registered later.
void check_gradient(const CustomOperator& op, const absl::flat_hash_set<std::string>& names) {
  for (const CustomFormula& formula : op.formulas()) {
    visit_expression(formula.expression, [&](const CustomExpression& e) {
      if (e.kind != CustomExpression::Kind::kCall) return;
      check(ErrorKind::kValue, names.contains(e.text) || find_op(std::string_view(e.text)) != nullptr, "[", op.name(),
            "] its gradient calls '", e.text, "', which is no operator");
    });
  }
}

void register_operator(const CustomOperator& op, const Kernels& functions, Dispatcher& dispatcher) {
  const uint16_t id = op.op().id;
  if (op.has_body()) return dispatcher.set_composite(id, &run_body);
  kernels()[id] = functions;
  if (functions.cpu) dispatcher.set(id, Key::kCPU, &run_kernel<&Kernels::cpu>);
  if (functions.cuda) dispatcher.set(id, Key::kCUDA, &run_kernel<&Kernels::cuda>);
}

}  // namespace

OperatorLibrary add_library(const teletensor_library* library, const std::string& path, uint64_t digest,
                            Dispatcher& dispatcher) {
  try {
    check(ErrorKind::kValue, library != nullptr, "its teletensor_operators() refuses this daemon");
    check(ErrorKind::kValue, library->abi == TELETENSOR_OPERATOR_ABI, "it was built for version ", library->abi,
          " of the interface, this daemon has version ", TELETENSOR_OPERATOR_ABI);
    check(ErrorKind::kValue,
          library->operator_size >= offsetof(teletensor_operator, flags) + sizeof(uint32_t) &&
              library->operator_size <= 4096,
          "its table has entries of ", library->operator_size, " bytes");
    const bool is_aligned = library->operator_size % alignof(teletensor_operator) == 0 &&
                            reinterpret_cast<uintptr_t>(library->operators) % alignof(teletensor_operator) == 0;
    check(ErrorKind::kValue, is_aligned, "its table is not aligned to ", alignof(teletensor_operator), " bytes");
    check(ErrorKind::kValue, library->operators != nullptr && library->count > 0 && library->count <= kMaxCustomOps,
          "it has ", library->count, " operators");
    OperatorLibrary made{path, text_of(library->name, "name"), {}};
    std::vector<Checked> all;
    absl::flat_hash_set<std::string> names;
    for (size_t i = 0; i < library->count; ++i) {
      const char* const at = reinterpret_cast<const char*>(library->operators) + i * library->operator_size;
      Checked one = check_operator(*reinterpret_cast<const teletensor_operator*>(at), digest);
      const std::string name(one.op->name());
      // Members of a later header, which this daemon would ignore.
      const bool is_known = std::all_of(at + std::min<size_t>(sizeof(teletensor_operator), library->operator_size),
                                        at + library->operator_size, [](char c) { return c == 0; });
      check(ErrorKind::kValue, is_known, "[", name, "] uses members of a later version of the header");
      check(ErrorKind::kValue, names.insert(name).second, "[", name, "] is declared twice");
      for (const OperatorLibrary& other : libraries()) {
        for (const std::string& theirs : other.operators) {
          check(ErrorKind::kValue, theirs != name, "[", name, "] is an operator of ", other.path, " too");
        }
      }
      all.push_back(std::move(one));
    }
    for (const Checked& one : all) check_gradient(*one.op, names);
    const size_t known = all_custom_ops().size();  // checked here, so that all are registered or none
    check(ErrorKind::kValue, known + all.size() <= kMaxCustomOps, "a process has at most ", kMaxCustomOps,
          " custom operators, got ", known + all.size());
    for (Checked& one : all) {
      const CustomOperator& op = add_custom_op(std::move(one.op));
      register_operator(op, one.kernels, dispatcher);
      made.operators.emplace_back(op.name());
    }
    libraries().push_back(made);
    return made;
  } catch (const Error& error) {
    throw Error(error.kind(), absl::StrCat("cannot load the operators of ", path, ": ", error.message()));
  }
}

OperatorLibrary load_library(const std::string& path, uint64_t digest, Dispatcher& dispatcher) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    fail(ErrorKind::kValue, "cannot load the operators of ", path, ": ", why != nullptr ? why : "dlopen failed");
  }
  absl::Cleanup close = [&] { dlclose(library); };
  const auto enter = reinterpret_cast<decltype(&teletensor_operators)>(dlsym(library, "teletensor_operators"));
  check(ErrorKind::kValue, enter != nullptr, "cannot load the operators of ", path,
        ": it exports no function teletensor_operators");
  const teletensor_library* table = nullptr;
  try {
    table = enter(&host());
  } catch (...) {
    fail(ErrorKind::kValue, "cannot load the operators of ", path, ": its teletensor_operators() throws an exception");
  }
  OperatorLibrary made = add_library(table, path, digest, dispatcher);
  std::move(close).Cancel();
  return made;
}

const std::vector<OperatorLibrary>& loaded_libraries() { return libraries(); }

}  // namespace tt::extension
