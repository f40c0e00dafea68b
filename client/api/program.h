// Programs of C++ functions: calls that the engine runs as one instruction; see docs/programs.md.
//
//   compiler::Program program = compiler::trace([&](const Tensor& x) { return (x.matmul(w) + b).relu().sum(); }, x);
//   Tensor loss = program(x);   // one instruction, whatever the function does
//   loss.backward();            // gradients as of the function itself
//
// The namespace is `compiler`, because teletensor::trace is the sum of a matrix's diagonal.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/api/tensor.h"
#include "engine/schema/ref.h"

namespace tt::client {
class Program;
}

namespace teletensor::compiler {

/// The metadata of an output of a Program.
struct OutputInfo {
  std::vector<int64_t> sizes;
  Dtype dtype;
  Device device;
};

/// A traced function, by reference: copies are the same Program, which the engine drops with the last of them. Belongs
/// to one session, and is used by one thread at a time, that of the session's tensors. An undefined Program throws
/// RuntimeError.
class Program {
 public:
  Program();  ///< An undefined Program.
  ~Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;

  /// Whether this refers to a Program.
  bool defined() const { return static_cast<bool>(program_); }
  /// Sends the Program to the engine, which otherwise happens at its first run.
  void define() const;
  /// The outputs for these inputs, of which there are as many as traced; their sizes may differ if the recorded calls
  /// accept them, and if what the function has read of sizes is the same. Does not wait. Calls are recorded for
  /// backward where they were at the trace, unless a NoGradGuard exists. Throws what single calls throw, and ValueError
  /// for inputs that do not fit. An error inside the Program is thrown where an output is read; it names the
  /// instruction, and the function's SourceLine if there was one.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  /// The same for a function with one output.
  template <std::same_as<Tensor>... Inputs>
  Tensor operator()(const Inputs&... inputs) const {
    return single({inputs...});
  }
  /// The outputs' metadata for these inputs, without a run. Never waits. Throws as run() does.
  std::vector<OutputInfo> infer(const std::vector<Tensor>& inputs) const;
  /// Ends this reference. The engine drops the Program with the last one.
  void drop();

  /// The recorded calls, one per line.
  std::string text() const;
  /// The Program as it was traced and after the engine's passes for these inputs, as text. Waits for the engine.
  std::string explain(const std::vector<Tensor>& inputs) const;
  /// The number of recorded calls.
  size_t instructions() const;
  /// The number of inputs.
  size_t inputs() const;
  /// The tensors that the function used without having received them. Every run reads their values.
  std::vector<Tensor> captured() const;

 private:
  friend class Trace;
  explicit Program(tt::Ref<tt::client::Program> program);
  tt::client::Program& require() const;
  Tensor single(const std::vector<Tensor>& inputs) const;

  tt::Ref<tt::client::Program> program_;
};

struct TraceOptions {
  /// Runs have the bits of single calls, because the engine replaces no calls by operators that round differently. The
  /// environment variable TELETENSOR_EXACT_PROGRAMS=1 has the same effect.
  bool exact = false;
  /// If the function contains a backward pass: the part, 0 to 1, of the bytes that forward keeps for it. The engine
  /// computes other values again, those first that take the least time per byte.
  double memory_budget = 1;
};

/// A function of tensors.
using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Calls `function` with tensors like the examples, without computing anything, and makes a Program of the operators
/// that it calls. Numbers that C++ computes are constants of the Program. backward(), autograd::grad and set_grad() in
/// the function take place at every run, as do writes to tensors. Throws RuntimeError if the function reads a value
/// that it computes, or if this thread is tracing already; NotImplementedError if it calls an operator whose results'
/// sizes depend on values, steps an optimizer, writes to an input while gradients are recorded, or returns a view of an
/// input; and what the function throws.
Program trace(const Function& function, const std::vector<Tensor>& examples, const TraceOptions& options = {});

/// The same for a function of single tensors, which returns a Tensor, a vector or a tuple of them.
template <typename F, std::same_as<Tensor>... Examples>
requires std::invocable<const F&, const Examples&...> Program trace(const F& function, const Examples&... examples) {
  const auto call = [&]<size_t... I>(const std::vector<Tensor>& inputs, std::index_sequence<I...>) {
    using Result = std::invoke_result_t<const F&, const Examples&...>;
    if constexpr (std::is_same_v<Result, Tensor>) {
      return std::vector<Tensor>{function(inputs[I]...)};
    } else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
      return function(inputs[I]...);
    } else {
      return std::apply([](const auto&... outputs) { return std::vector<Tensor>{outputs...}; }, function(inputs[I]...));
    }
  };
  return trace(Function([&](const std::vector<Tensor>& inputs) {
                 return call(inputs, std::make_index_sequence<sizeof...(Examples)>());
               }),
               std::vector<Tensor>{examples...});
}

}  // namespace teletensor::compiler
