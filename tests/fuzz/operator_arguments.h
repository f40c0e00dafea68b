// Random operator arguments, drawn from bytes: for fuzz targets and for tests with a seeded generator.
//
// Equal bytes give equal arguments. Not thread-safe; one object per call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/op.h"

namespace tt::fuzz {

// Reads values from a byte string; returns zeros after its end.
class ByteReader {
 public:
  ByteReader(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  uint8_t byte() { return at_ < end_ ? *at_++ : 0; }
  bool at_end() const { return at_ == end_; }
  uint64_t word();
  // In [0, n); n is positive.
  size_t below(size_t n) { return n <= 256 ? byte() % n : word() % n; }
  // True with probability 1/n; false after the end.
  bool one_in(size_t n) { return below(n) == n - 1; }
  template <typename T, size_t N>
  const T& pick(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

// Limits of drawn tensors.
struct TensorLimits {
  bool extreme = true;         // sizes up to 2^62 in up to kMaxDims dimensions, if such a tensor can exist
  int64_t max_elements = 256;  // if not `extreme`
  bool cpu_only = false;
};

// The arguments of one call; owns everything they refer to.
class OperatorArguments {
 public:
  // Returns the tensor for `meta`, which must outlive this object.
  using MakeTensor = std::function<const TensorMeta*(const TensorMeta& meta)>;

  // Without `make_tensor` the arguments are metas, as in the client.
  OperatorArguments(const Op& op, ByteReader& bytes, const TensorLimits& limits, MakeTensor make_tensor = {});
  OperatorArguments(const OperatorArguments&) = delete;
  OperatorArguments& operator=(const OperatorArguments&) = delete;

  Args args() const { return args_; }
  // "movedim(float32[3, 4], [0], [-1])", for failure messages.
  std::string to_string() const;
  // A valid meta, similar to the tensor arguments.
  TensorMeta draw_meta();

 private:
  Arg draw(const Param& param);
  // Sets the arguments to those of the typical call, with some of them changed.
  void mutate_typical_call(std::string_view typical);
  Arg read(std::string_view* text);
  Arg read_tensor(char type, Sizes sizes);
  Sizes read_ints(std::string_view* text);
  Arg draw_of_type(ParamType type, const Param& param);
  Arg draw_tensor();
  Arg draw_tensors(const Param& param);
  Arg draw_number();
  Arg draw_ints(const Param& param);
  Arg draw_floats();
  Arg draw_string();
  int64_t draw_int();
  int64_t draw_size();
  double draw_float();
  DType draw_dtype();
  Sizes draw_sizes();
  void vary(Sizes* sizes);
  Arg keep(TensorMeta meta);
  void bound(TensorMeta* meta);
  void lay_out(TensorMeta* meta);

  const Op& op_;
  ByteReader& bytes_;
  const TensorLimits limits_;
  const MakeTensor make_tensor_;
  size_t change_ = 1;  // on average one in `change_` parts of a typical call is changed
  DType common_dtype_ = DType::kFloat32;
  std::vector<Arg> args_;
  std::vector<Sizes> shapes_;  // sizes of the tensors drawn so far, to draw matching arguments
  std::deque<TensorMeta> metas_;
  std::deque<std::vector<const TensorMeta*>> lists_;
  std::deque<Sizes> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::string> strings_;
};

// Selects an operator by the first bytes.
const Op& draw_op(ByteReader& bytes);

}  // namespace tt::fuzz
