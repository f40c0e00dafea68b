// A library with the functions of NVML that the engine uses, for tests on machines without a driver: a GPU that is 73 %
// busy, and one that does not report how busy it is, as with MIG.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9;
constexpr unsigned kGpus = 2;
std::atomic<bool> hanging{false};
std::atomic<int> users{0};
char devices[kGpus];

unsigned index_of(void* device) { return static_cast<unsigned>(static_cast<char*>(device) - devices); }

}  // namespace

extern "C" {

// While set, reading the memory of a GPU does not return, as with a driver that waits for a device.
void fake_nvml_hang(bool on) { hanging = on; }
// How often the library has been initialised and not shut down.
int fake_nvml_users() { return users; }

int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_WITHOUT_DRIVER") != nullptr) return kDriverNotLoaded;
  ++users;
  return kSuccess;
}
int nvmlShutdown() {
  --users;
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= kGpus) return kNotFound;
  *device = &devices[index];
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-00000000-0000-0000-0000-00000000000%u", index_of(device));
  return kSuccess;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Simulated \"GPU\"");
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, void* to) {
  auto* const gpu_and_memory = static_cast<unsigned*>(to);
  if (index_of(device) == 1) return kNotSupported;
  gpu_and_memory[0] = 73;
  gpu_and_memory[1] = 20;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, void* to) {
  auto* const total_free_used = static_cast<unsigned long long*>(to);
  while (hanging) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  total_free_used[0] = 80ull << 30;
  total_free_used[2] = (12ull + index_of(device)) << 30;
  total_free_used[1] = total_free_used[0] - total_free_used[2];
  return kSuccess;
}
}
