// Rules for products of 8-bit matrices. They match PyTorch's: the CPU accepts any sizes and layouts, a GPU only those
// supported by its library.
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt {
namespace {

constexpr SymInt kAlignment = 16;                 // sizes on a GPU must be multiples of this
constexpr SymInt kBlock = 128, kSmallBlock = 32;  // elements of the common dimension that share a scale

bool is_one_number(const TensorMeta& scale) { return scale.dtype == DType::kFloat32 && scale.numel() == 1; }

bool is_vector(const TensorMeta& scale, const Sizes& sizes) {
  return scale.dtype == DType::kFloat32 && scale.sizes == sizes && scale.is_contiguous();
}

SymInt blocks_of(SymInt size, SymInt block) { return size / block + (size % block != 0); }

bool is_matrix(const TensorMeta& scale, SymInt rows, SymInt columns) {
  return scale.dtype == DType::kFloat32 && scale.sizes == Sizes{rows, columns};
}

// Whether the scales are those of blocks: of 128 or 32 elements of the common dimension, or, for one of the matrices,
// of 128x128 elements. The strides are any.
bool are_block_scales(const TensorMeta& a, const TensorMeta& b, const TensorMeta& scale_a, const TensorMeta& scale_b) {
  const SymInt m = a.sizes[0], k = a.sizes[1], n = b.sizes[1];
  const SymInt blocks = blocks_of(k, kBlock), small_blocks = blocks_of(k, kSmallBlock);
  const bool lines_a = is_matrix(scale_a, m, blocks), lines_b = is_matrix(scale_b, blocks, n);
  return (lines_a && (lines_b || is_matrix(scale_b, blocks, blocks_of(n, kBlock)))) ||
         (lines_b && is_matrix(scale_a, blocks_of(m, kBlock), blocks)) ||
         (is_matrix(scale_a, m, small_blocks) && is_matrix(scale_b, small_blocks, n));
}

// "mat_a.dtype()=Float, scale_a.dtype()=Float, scale_a.size()=[]"
std::string describe_factor(const char* letter, const TensorMeta& matrix, const TensorMeta& scale) {
  return absl::StrCat("mat_", letter, ".dtype()=", message_part(scalar_type_name(matrix.dtype)), ", scale_", letter,
                      ".dtype()=", message_part(scalar_type_name(scale.dtype)), ", scale_", letter,
                      ".size()=", to_string(scale.sizes));
}

void check_scales(const TensorMeta& a, const TensorMeta& b, const TensorMeta& scale_a, const TensorMeta& scale_b) {
  const Sizes rows{a.sizes[0], 1}, columns{1, b.sizes[1]};
  const bool tensor_wise = is_one_number(scale_a) && is_one_number(scale_b);
  const bool row_wise = is_vector(scale_a, rows) && is_vector(scale_b, columns);
  const bool are_floats = is_float8(a.dtype) && is_float8(b.dtype);
  if (are_floats && (tensor_wise || row_wise)) return;
  if (are_floats && are_block_scales(a, b, scale_a, scale_b)) {
    check(ErrorKind::kNotImplemented, a.device.type != DeviceType::kCUDA,
          "scales of blocks are computed on CPUs only; torch.nn.functional.scaled_mm computes them in float32");
    return;
  }
  fail(
      ErrorKind::kValue,
      "Invalid scaling configuration. For TensorWise scaling, a and b should be float8, scales should be "
      "float and singletons. For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ",
      rows, " and scale_b should be ", columns,
      ", and both should be contiguous. For BlockWise scaling, scales should be float, scale_a should be ",
      Sizes{rows[0], blocks_of(a.sizes[1], kBlock)}, " and scale_b should be ",
      Sizes{blocks_of(a.sizes[1], kBlock), columns[1]}, ", or one of them with a scale of 128x128. Got ",
      describe_factor("a", a, scale_a), ", ", describe_factor("b", b, scale_b));
}

// Checks the restrictions of cuBLASLt.
void check_cublaslt_operands(const TensorMeta& a, const TensorMeta& b) {
  check(a.sizes[1] % kAlignment == 0, "Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: (",
        a.sizes[0], "x", a.sizes[1], ").");
  check(b.sizes[0] % kAlignment == 0 && b.sizes[1] % kAlignment == 0, "mat2 shape (", b.sizes[0], "x", b.sizes[1],
        ") must be divisible by 16");
  check(a.dtype != DType::kFloat8E5m2 || b.dtype != DType::kFloat8E5m2,
        "Multiplication of two Float8_e5m2 matrices is not supported");
  check(a.strides[1] == 1 && b.strides[0] == 1,
        "Only multiplication of row-major and column-major matrices is supported by cuBLASLt");
}

void check_cublaslt_bias(const TensorMeta& bias, DType out) {
  check(out != DType::kFloat32, "Bias is not supported when out_dtype is set to Float32");
  check(is_reduced_floating(bias.dtype), "Bias must be BFloat16 or Half, but got ", scalar_type_name(bias.dtype));
  check(out != DType::kBFloat16 || bias.dtype == out, "Bias must be BFloat16 to compute ", scalar_type_name(out),
        " output, but got ", scalar_type_name(bias.dtype));
  check(out != DType::kFloat16 || bias.dtype == out, "Bias must be Float16 to compute ", scalar_type_name(out),
        " output, but got ", scalar_type_name(bias.dtype));
}

}  // namespace

namespace shape_rules {

Sizes scaled_mm(const Arg& input, const Arg& mat2, const Arg& scale_a, const Arg& scale_b, const Arg& bias,
                const Arg& scale_result, std::optional<DType> out_dtype) {
  const TensorMeta &a = *input.tensor, &b = *mat2.tensor;
  check(a.dim() == 2, "mat1 must be a matrix");
  check(b.dim() == 2, "mat2 must be a matrix");
  check(a.sizes[1] == b.sizes[0], "mat_a and mat_b shapes cannot be multiplied (", a.sizes[0], "x", a.sizes[1], " and ",
        b.sizes[0], "x", b.sizes[1], ")");
  check_scales(a, b, *scale_a.tensor, *scale_b.tensor);
  check(scale_result.is_none() || is_one_number(*scale_result.tensor), "scale_result must be a float scalar");
  const DType out = out_dtype.value_or(a.dtype);
  check(ErrorKind::kNotImplemented, is_floating(out), "not implemented for '", scalar_type_name(out), "'");
  const bool on_gpu = a.device.type == DeviceType::kCUDA;
  if (on_gpu) check_cublaslt_operands(a, b);
  check(ErrorKind::kNotImplemented, !on_gpu || out != DType::kFloat64, "not implemented for 'Double'");
  if (!bias.is_none()) {
    const TensorMeta& added = *bias.tensor;
    check(added.numel() == b.sizes[1], "Bias must be size ", b.sizes[1], " but got ", added.numel());
    check(is_floating(added.dtype) && !is_float8(added.dtype), "Bias must be Float32 or BFloat16 or Half, but got ",
          scalar_type_name(added.dtype));
    if (on_gpu) check_cublaslt_bias(added, out);
  }
  return {a.sizes[0], b.sizes[1]};
}

}  // namespace shape_rules
}  // namespace tt
