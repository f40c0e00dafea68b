// boxed<&f>: wraps a typed kernel function as a dispatcher Kernel.
//
//   void matmul(const Tensor& x, const Tensor& y, Tensor& out);      // sig: (Tensor x, Tensor y) -> Tensor
//   dispatcher.set(op_id::kMatmul, Key::kCPU, boxed<&cpu::matmul>);
//
// Parameters are those of the signature, then one `Tensor&` per result (`Tensors&` for a list). Outputs are allocated
// as inferred: contiguous, sharing no memory with an argument. For operators with data-dependent shapes they are
// undefined and the kernel assigns them. A number passed for a tensor becomes a zero-dim tensor.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/dispatch/dispatcher.h"

namespace tt {

namespace boxing {

// Converts an argument of tensor type: a tensor, a number, or nothing.
Tensor to_tensor(const Call& call, const Arg& arg);

template <typename T>
struct From {  // T by value
  static T get(const Call&, const Arg& arg) {
    if constexpr (std::is_same_v<T, bool>)
      return arg.to_bool();
    else if constexpr (std::is_same_v<T, int64_t>)
      return arg.integer;
    else if constexpr (std::is_same_v<T, double>)
      return arg.to_double();
    else if constexpr (std::is_same_v<T, Scalar>)
      return arg.scalar();
    else if constexpr (std::is_same_v<T, std::string_view>)
      return arg.string();
    else if constexpr (std::is_same_v<T, DType>)
      return arg.dtype();
    else if constexpr (std::is_same_v<T, Device>)
      return decode_device(arg.integer);
    else if constexpr (std::is_same_v<T, absl::Span<const int64_t>>)
      return arg.ints();
    else if constexpr (std::is_same_v<T, absl::Span<const double>>)
      return arg.floats();
    else
      static_assert(!sizeof(T), "not a type of the signature language");
  }
};
template <typename T>
struct From<std::optional<T>> {
  static std::optional<T> get(const Call& call, const Arg& arg) {
    if (arg.is_none()) return std::nullopt;
    return From<T>::get(call, arg);
  }
};
template <>
struct From<Tensor> {
  static Tensor get(const Call& call, const Arg& arg) { return to_tensor(call, arg); }
};
template <>
struct From<Tensors> {  // passed as `const Tensors&`
  static Tensors get(const Call&, const Arg& arg) {
    Tensors list;
    for (const TensorMeta* t : arg.list()) list.push_back(Tensor::from(t));
    return list;
  }
};

template <auto F, typename Sig>
struct Boxed;
template <auto F, typename... P>
struct Boxed<F, void (*)(P...)> {
  template <size_t I>
  using Param = std::tuple_element_t<I, std::tuple<P...>>;
  template <typename T>
  static constexpr bool kIsOutput = std::is_same_v<T, Tensor&> || std::is_same_v<T, Tensors&>;
  static constexpr size_t kInputs = (size_t{0} + ... + (kIsOutput<P> ? 0 : 1));

  template <size_t I>
  static decltype(auto) pass(Call& call) {
    using T = Param<I>;
    if constexpr (std::is_same_v<T, Tensors&>)
      return (call.outputs);
    else if constexpr (kIsOutput<T>)
      return (call.outputs[I - kInputs]);
    else
      return From<std::remove_cvref_t<T>>::get(call, call.args[I]);
  }
  static void run(Call& call) {
    [&]<size_t... I>(std::index_sequence<I...>) { F(pass<I>(call)...); }
    (std::index_sequence_for<P...>{});
  }
};

}  // namespace boxing

template <auto F>
void boxed(Call& call) {
  run_with_plain_outputs(call, &boxing::Boxed<F, decltype(F)>::run);
}

}  // namespace tt
