// A device library with a fault, which TELETENSOR_TEST_DEVICE_FAULT names. Without one it is a synchronous device.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "engine/device/teletensor_device.h"

namespace {

bool has_fault(std::string_view fault) {
  const char* const named = std::getenv("TELETENSOR_TEST_DEVICE_FAULT");
  return named != nullptr && fault == named;
}

int32_t failed(TeletensorDeviceError* error, const char* text) {
  std::snprintf(error->text, error->size, "%s", text);
  return TELETENSOR_DEVICE_FAILED;
}

int32_t device_count(int32_t* count, TeletensorDeviceError* error) {
  if (has_fault("count fails")) return failed(error, "no driver");
  if (has_fault("count throws")) throw std::runtime_error("no driver at all");
  *count = has_fault("too many devices") ? 1'000 : has_fault("no devices") ? 0 : has_fault("negative count") ? -1 : 1;
  return TELETENSOR_DEVICE_OK;
}

int32_t properties(int32_t, TeletensorDeviceProperties* properties, TeletensorDeviceError*) {
  std::snprintf(properties->name, sizeof properties->name, "%s",
                has_fault("unprintable name") ? "\x01" : "faulty device");
  if (has_fault("endless name")) std::memset(properties->name, 'x', sizeof properties->name);
  properties->total_memory = has_fault("no memory") ? 0 : uint64_t{64} << 20;
  return TELETENSOR_DEVICE_OK;
}

int32_t allocate(int32_t, uint64_t bytes, void** address, TeletensorDeviceError* error) {
  static void* first = nullptr;
  if (has_fault("allocate fails")) return failed(error, "the device is on fire");
  if (has_fault("allocate throws")) throw 1;
  if (has_fault("allocate is full")) return TELETENSOR_DEVICE_NO_MEMORY;
  if (has_fault("null address")) return TELETENSOR_DEVICE_OK;
  if (has_fault("odd address")) {
    *address = reinterpret_cast<void*>(0x1001);
    return TELETENSOR_DEVICE_OK;
  }
  if (has_fault("address beyond")) {
    *address = reinterpret_cast<void*>(UINT64_MAX - 63);
    return TELETENSOR_DEVICE_OK;
  }
  if (has_fault("same address") && first != nullptr) {
    *address = first;
    return TELETENSOR_DEVICE_OK;
  }
  *address = first = std::aligned_alloc(64, bytes);
  return TELETENSOR_DEVICE_OK;
}

int32_t release(int32_t, void* address, uint64_t, TeletensorDeviceError*) {
  if (!has_fault("same address")) std::free(address);
  return TELETENSOR_DEVICE_OK;
}

int32_t create_stream(int32_t, void** stream, TeletensorDeviceError* error) {
  if (has_fault("stream fails")) return failed(error, "no streams today");
  if (has_fault("null stream")) return TELETENSOR_DEVICE_OK;
  static char streams[64];
  static int count = 0;
  *stream = &streams[count++ % 64];
  return TELETENSOR_DEVICE_OK;
}

int32_t synchronize(int32_t, void*, TeletensorDeviceError* error) {
  return has_fault("work fails") ? failed(error, "the work before this failed") : TELETENSOR_DEVICE_OK;
}
int32_t synchronize_device(int32_t, TeletensorDeviceError*) { return TELETENSOR_DEVICE_OK; }

int32_t create_event(int32_t, void** event, TeletensorDeviceError*) {
  *event = nullptr;
  return TELETENSOR_DEVICE_OK;
}
int32_t with_event(int32_t, void*, TeletensorDeviceError*) { return TELETENSOR_DEVICE_OK; }
int32_t record_event(int32_t, void*, void*, TeletensorDeviceError* error) {
  return has_fault("record fails") ? failed(error, "no events today") : TELETENSOR_DEVICE_OK;
}
int32_t query_event(int32_t, void*, int32_t* done, TeletensorDeviceError*) {
  *done = 1;
  return TELETENSOR_DEVICE_OK;
}

int32_t copy(int32_t, void*, void* to, const void* from, uint64_t bytes, TeletensorDeviceError* error) {
  if (has_fault("copy fails")) return failed(error, "the bus is broken");
  std::memmove(to, from, bytes);
  return TELETENSOR_DEVICE_OK;
}
int32_t copy_to_device(int32_t device, void* stream, void* to, const void* from, uint64_t bytes,
                       TeletensorDeviceError* error) {
  if (has_fault("parts end at 16 bytes") && bytes > 16 && bytes < 96) return failed(error, "too many bytes");
  return copy(device, stream, to, from, bytes, error);
}
int32_t zero(int32_t, void*, void* to, uint64_t bytes, TeletensorDeviceError*) {
  std::memset(to, 0, bytes);
  return TELETENSOR_DEVICE_OK;
}

int32_t neg(const TeletensorDeviceCall* call, TeletensorDeviceError* error) {
  if (has_fault("kernel fails")) return failed(error, "division by cucumber");
  if (has_fault("kernel throws")) throw std::runtime_error("thrown by a kernel");
  if (has_fault("kernel throws a number")) throw 1;
  if (has_fault("kernel is full")) return TELETENSOR_DEVICE_NO_MEMORY;
  if (has_fault("kernel is silent")) return 77;
  if (has_fault("kernel shouts")) {
    std::memset(error->text, 'A', error->size);  // without a terminating zero
    return TELETENSOR_DEVICE_FAILED;
  }
  if (has_fault("kernel declines")) return TELETENSOR_DEVICE_UNSUPPORTED;
  const auto* x = static_cast<const float*>(call->arguments[0].tensors[0].data);
  auto* out = static_cast<float*>(call->outputs[0].data);
  int64_t n = 1;
  for (int32_t d = 0; d < call->outputs[0].dims; ++d) n *= call->outputs[0].sizes[d];
  for (int64_t i = 0; i < n; ++i) out[i] = -x[i];
  return TELETENSOR_DEVICE_OK;
}

constexpr uint32_t kFloat = 1u << TELETENSOR_DEVICE_FLOAT32;
TeletensorDeviceOperator operators[] = {
    {"neg", 1, TELETENSOR_DEVICE_ELEMENTWISE, kFloat, &neg},
    {"an_operator_of_the_future", 1, 0, kFloat, &neg},
    {"exp", 5, 0, kFloat, &neg},  // of another signature
    {"abs", 1, TELETENSOR_DEVICE_ELEMENTWISE, kFloat, &neg},
};

TeletensorDeviceTable table;

}  // namespace

extern "C" __attribute__((visibility("default"))) const TeletensorDeviceTable* teletensor_device_table(uint32_t abi) {
  if (has_fault("entry throws")) throw std::runtime_error("never");
  if (has_fault("null table")) return nullptr;
  table = {};
  table.abi = has_fault("another version") ? abi + 1 : abi;
  table.size = has_fault("short table") ? 64 : sizeof table;
  table.name = has_fault("bad name")     ? "Not A Name"
               : has_fault("null name")  ? nullptr
               : has_fault("taken name") ? "cuda"
                                         : "faulty";
  table.version = "0.1";
  table.device_count = &device_count;
  table.properties = &properties;
  table.allocate = has_fault("missing function") ? nullptr : &allocate;
  table.release = &release;
  table.create_stream = &create_stream;
  table.synchronize_stream = &synchronize;
  table.synchronize_device = &synchronize_device;
  table.create_event = &create_event;
  table.destroy_event = &with_event;
  table.record_event = &record_event;
  table.wait_event = &record_event;
  table.query_event = &query_event;
  table.synchronize_event = &with_event;
  table.copy_to_device = &copy_to_device;
  table.copy_to_host = &copy;
  table.copy_on_device = &copy;
  table.zero = &zero;
  table.operator_size = has_fault("short operators") ? 8 : sizeof(TeletensorDeviceOperator);
  table.num_operators = has_fault("too many operators") ? UINT32_MAX : 3;
  table.operators = has_fault("no operators") ? nullptr : operators;
  operators[1].name = has_fault("two kernels") ? "neg" : "an_operator_of_the_future";
  operators[2].kernel = has_fault("null kernel") ? nullptr : &neg;
  return &table;
}
