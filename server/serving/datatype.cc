#include "server/serving/datatype.h"

#include <algorithm>

namespace tt::server {
namespace {

struct Row {
  DType dtype;
  absl::string_view name;
  inference::DataType type;
};
constexpr Row kRows[] = {
    {DType::kBool, "BOOL", inference::TYPE_BOOL},       {DType::kUInt8, "UINT8", inference::TYPE_UINT8},
    {DType::kUInt16, "UINT16", inference::TYPE_UINT16}, {DType::kUInt32, "UINT32", inference::TYPE_UINT32},
    {DType::kUInt64, "UINT64", inference::TYPE_UINT64}, {DType::kInt8, "INT8", inference::TYPE_INT8},
    {DType::kInt16, "INT16", inference::TYPE_INT16},    {DType::kInt32, "INT32", inference::TYPE_INT32},
    {DType::kInt64, "INT64", inference::TYPE_INT64},    {DType::kFloat16, "FP16", inference::TYPE_FP16},
    {DType::kFloat32, "FP32", inference::TYPE_FP32},    {DType::kFloat64, "FP64", inference::TYPE_FP64},
    {DType::kBFloat16, "BF16", inference::TYPE_BF16},
};

const Row* row_of(DType dtype) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.dtype == dtype; });
  return row == std::end(kRows) ? nullptr : row;
}

}  // namespace

absl::string_view datatype_name(DType dtype) {
  const Row* row = row_of(dtype);
  return row == nullptr ? absl::string_view() : row->name;
}

std::optional<DType> parse_datatype(absl::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  return row == std::end(kRows) ? std::nullopt : std::optional(row->dtype);
}

inference::DataType config_type(DType dtype) {
  const Row* row = row_of(dtype);
  return row == nullptr ? inference::TYPE_INVALID : row->type;
}

}  // namespace tt::server
