#include "client/api/creation.h"

#include <algorithm>
#include <cstring>

#include "client/api/errors.h"
#include "client/api/session.h"
#include "client/session/default_dtype.h"
#include "client/session/session.h"

namespace teletensor {
namespace {

std::vector<int64_t> sizes_of(const TensorData& data) {
  std::vector<int64_t> sizes;
  for (const TensorData* part = &data; part->is_list(); part = &part->list()[0]) {
    sizes.push_back(static_cast<int64_t>(part->list().size()));
    if (part->list().empty()) break;
  }
  return sizes;
}

void flatten(const TensorData& data, const std::vector<int64_t>& sizes, size_t dim, std::vector<Scalar>* values) {
  if (data.is_list() != (dim < sizes.size())) throw ValueError("tensor: expected lists of the same shape");
  if (!data.is_list()) {
    values->push_back(data.scalar());
    return;
  }
  if (static_cast<int64_t>(data.list().size()) != sizes[dim]) {
    throw ValueError("expected sequence of length " + std::to_string(sizes[dim]) + " at dim " + std::to_string(dim) +
                     " (got " + std::to_string(data.list().size()) + ")");
  }
  for (const TensorData& part : data.list()) flatten(part, sizes, dim + 1, values);
}

template <typename T, typename Get>
Tensor upload(const std::vector<Scalar>& values, const std::vector<int64_t>& sizes, const TensorOptions& options,
              Get get) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(get(values[i]));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return from_blob(bytes.data(), sizes, options.dtype(dtype_of<T>()).requires_grad(false));
}

}  // namespace

TensorData::TensorData(std::initializer_list<TensorData> list) : list_(list), is_list_(true) {}

Tensor tensor(const TensorData& data, const TensorOptions& options) {
  const std::vector<int64_t> sizes = sizes_of(data);
  std::vector<Scalar> values;
  flatten(data, sizes, 0, &values);
  tt::Category category = values.empty() ? tt::Category::kFloating : tt::Category::kBool;
  for (const Scalar& value : values) category = std::max(category, value.category());
  const Dtype natural = category == tt::Category::kBool      ? kBool
                        : category == tt::Category::kInteger ? kInt64
                                                             : get_default_dtype();
  const Dtype wanted = options.dtype_opt().value_or(natural);
  Tensor made;
  if (category == tt::Category::kFloating) {
    const auto number = [](const Scalar& s) { return s.to_double(); };
    made = wanted == kFloat32 ? upload<float>(values, sizes, options, number)
                              : upload<double>(values, sizes, options, number);
  } else if (category == tt::Category::kInteger) {
    made = upload<int64_t>(values, sizes, options, [](const Scalar& s) { return s.to_int(); });
  } else {
    made = upload<bool>(values, sizes, options, [](const Scalar& s) { return s.to_bool(); });
  }
  made = made.to(wanted);
  if (options.requires_grad()) made.set_requires_grad(true);
  return made;
}

Tensor from_blob(const void* data, IntArrayRef sizes, const TensorOptions& options) {
  const Dtype dtype = options.dtype_opt().value_or(kFloat32);
  // Strides are computed from the sizes of an empty tensor too.
  auto extent = static_cast<int64_t>(tt::item_size(dtype));
  bool is_empty = false;
  for (int64_t size : sizes) {
    if (size < 0)
      throw RuntimeError("[from_blob] expected sizes that are not negative, got " + tt::to_string(sizes.span()));
    is_empty |= size == 0;
    if (__builtin_mul_overflow(extent, std::max<int64_t>(size, 1), &extent)) {
      throw RuntimeError("[from_blob] the number of bytes of " + tt::to_string(sizes.span()) + " exceeds 63 bits");
    }
  }
  const size_t bytes = is_empty ? 0 : static_cast<size_t>(extent);
  return internal::translated([&] {
    Tensor made(internal::current_session().upload({static_cast<const char*>(data), bytes}, dtype, sizes.span(),
                                                   options.device_opt().value_or(Device(kCPU))));
    if (options.requires_grad()) made.set_requires_grad(true);
    return made;
  });
}

}  // namespace teletensor
