// A device library for teletensord: two devices in the host's memory, each of whose streams is a thread.
//
//   teletensord --devices build/libexample_device.so
//
// Read teletensor_device.h first. This library shows every function of the table; a real one would call its driver.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels.h"
#include "memory.h"
#include "stream.h"
#include "teletensor_device.h"

namespace example {
namespace {

constexpr int32_t kDevices = 2;
constexpr uint64_t kDefaultMemory = uint64_t{256} << 20;

struct Device {
  std::atomic<uint64_t> used{0};
  std::mutex mutex;
  std::vector<std::unique_ptr<Stream>> streams;
};

// Never destroyed: streams may run until the process ends.
Device& device_at(int32_t device) {
  static auto* const devices = new Device[kDevices];
  return devices[device];
}

// EXAMPLE_DEVICE_MEMORY sets the bytes of each device.
uint64_t memory_bytes() {
  const char* const text = std::getenv("EXAMPLE_DEVICE_MEMORY");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : kDefaultMemory;
}

int32_t device_count(int32_t* count, TeletensorDeviceError*) {
  *count = kDevices;
  return TELETENSOR_DEVICE_OK;
}

int32_t properties(int32_t device, TeletensorDeviceProperties* properties, TeletensorDeviceError*) {
  std::snprintf(properties->name, sizeof properties->name, "example device %d", static_cast<int>(device));
  properties->total_memory = memory_bytes();
  return TELETENSOR_DEVICE_OK;
}

int32_t free_memory(int32_t device, uint64_t* bytes, TeletensorDeviceError*) {
  *bytes = memory_bytes() - std::min(memory_bytes(), device_at(device).used.load());
  return TELETENSOR_DEVICE_OK;
}

int32_t allocate_segment(int32_t device, uint64_t bytes, void** address, TeletensorDeviceError* error) {
  std::atomic<uint64_t>& used = device_at(device).used;
  if (used.fetch_add(bytes) + bytes <= memory_bytes()) {
    *address = allocate(bytes);
    if (*address != nullptr) return TELETENSOR_DEVICE_OK;
  }
  used -= bytes;
  std::snprintf(error->text, error->size, "the device's memory is full");
  return TELETENSOR_DEVICE_NO_MEMORY;
}

int32_t release_segment(int32_t device, void* address, uint64_t bytes, TeletensorDeviceError*) {
  release(address, bytes);
  device_at(device).used -= bytes;
  return TELETENSOR_DEVICE_OK;
}

int32_t create_stream(int32_t device, void** stream, TeletensorDeviceError*) {
  auto made = std::make_unique<Stream>();
  *stream = made.get();
  const std::lock_guard<std::mutex> lock(device_at(device).mutex);
  device_at(device).streams.push_back(std::move(made));
  return TELETENSOR_DEVICE_OK;
}

int32_t synchronize_stream(int32_t, void* stream, TeletensorDeviceError*) {
  static_cast<Stream*>(stream)->synchronize();
  return TELETENSOR_DEVICE_OK;
}

int32_t synchronize_device(int32_t device, TeletensorDeviceError*) {
  const std::lock_guard<std::mutex> lock(device_at(device).mutex);
  for (const auto& stream : device_at(device).streams) stream->synchronize();
  return TELETENSOR_DEVICE_OK;
}

using SharedEvent = std::shared_ptr<Event>;
SharedEvent& event_of(void* handle) { return *static_cast<SharedEvent*>(handle); }

int32_t create_event(int32_t, void** event, TeletensorDeviceError*) {
  *event = new SharedEvent(std::make_shared<Event>());
  return TELETENSOR_DEVICE_OK;
}

int32_t destroy_event(int32_t, void* event, TeletensorDeviceError*) {
  delete static_cast<SharedEvent*>(event);
  return TELETENSOR_DEVICE_OK;
}

int32_t record_event(int32_t, void* event, void* stream, TeletensorDeviceError*) {
  static_cast<Stream*>(stream)->add([event = event_of(event)] { event->complete(); });
  return TELETENSOR_DEVICE_OK;
}

int32_t wait_event(int32_t, void* stream, void* event, TeletensorDeviceError*) {
  static_cast<Stream*>(stream)->add([event = event_of(event)] { event->wait(); });
  return TELETENSOR_DEVICE_OK;
}

int32_t query_event(int32_t, void* event, int32_t* done, TeletensorDeviceError*) {
  *done = event_of(event)->is_done() ? 1 : 0;
  return TELETENSOR_DEVICE_OK;
}

int32_t synchronize_event(int32_t, void* event, TeletensorDeviceError*) {
  event_of(event)->wait();
  return TELETENSOR_DEVICE_OK;
}

int32_t elapsed(int32_t, void* from, void* to, double* milliseconds, TeletensorDeviceError*) {
  *milliseconds = event_of(to)->milliseconds_since(*event_of(from));
  return TELETENSOR_DEVICE_OK;
}

int32_t copy(int32_t, void* stream, void* to, const void* from, uint64_t bytes, TeletensorDeviceError*) {
  // An address of the host has no tag, and stays as it is.
  static_cast<Stream*>(stream)->add([=] { std::memmove(host_pointer(to), host_pointer(from), bytes); });
  return TELETENSOR_DEVICE_OK;
}

int32_t zero(int32_t, void* stream, void* to, uint64_t bytes, TeletensorDeviceError*) {
  static_cast<Stream*>(stream)->add([=] { std::memset(host_pointer(to), 0, bytes); });
  return TELETENSOR_DEVICE_OK;
}

TeletensorDeviceTable make_table() {
  TeletensorDeviceTable table{};
  table.abi = TELETENSOR_DEVICE_ABI;
  table.size = sizeof table;
  table.name = "example";
  table.version = "1.0";
  table.device_count = &device_count;
  table.properties = &properties;
  table.free_memory = &free_memory;
  table.allocate = &allocate_segment;
  table.release = &release_segment;
  table.create_stream = &create_stream;
  table.synchronize_stream = &synchronize_stream;
  table.synchronize_device = &synchronize_device;
  table.create_event = &create_event;
  table.destroy_event = &destroy_event;
  table.record_event = &record_event;
  table.wait_event = &wait_event;
  table.query_event = &query_event;
  table.synchronize_event = &synchronize_event;
  table.elapsed = &elapsed;
  table.copy_to_device = &copy;
  table.copy_to_host = &copy;
  table.copy_on_device = &copy;
  table.zero = &zero;
  table.operator_size = sizeof(TeletensorDeviceOperator);
  table.num_operators = static_cast<uint32_t>(operators().size());
  table.operators = operators().data();
  return table;
}

}  // namespace
}  // namespace example

extern "C" __attribute__((visibility("default"))) const TeletensorDeviceTable* teletensor_device_table(uint32_t abi) {
  if (abi != TELETENSOR_DEVICE_ABI) return nullptr;
  static const TeletensorDeviceTable table = example::make_table();
  return &table;
}
