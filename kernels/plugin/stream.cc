#include "kernels/plugin/stream.h"

#include <algorithm>

namespace tt::plugin {

LibraryEvent::LibraryEvent(DeviceLibrary& library, int device, void* stream) : library_(library), device_(device) {
  const TeletensorDeviceTable& table = library_.table();
  library_.call("create_event", table.create_event, device_, &handle_);
  try {
    library_.call("record_event", table.record_event, device_, handle_, stream);
  } catch (const Error&) {
    std::string ignored;
    library_.try_call("destroy_event", &ignored, table.destroy_event, device_, handle_);
    throw;
  }
}

LibraryEvent::~LibraryEvent() {
  std::string ignored;
  library_.try_call("destroy_event", &ignored, library_.table().destroy_event, device_, handle_);
}

bool LibraryEvent::done() const {
  int32_t done = 0;
  library_.call("query_event", library_.table().query_event, device_, handle_, &done);
  return done != 0;
}

void LibraryEvent::synchronize() {
  library_.call("synchronize_event", library_.table().synchronize_event, device_, handle_);
}

double LibraryEvent::elapsed_ms(const Event& since) const {
  const auto* from = dynamic_cast<const LibraryEvent*>(&since);
  if (library_.table().elapsed == nullptr || from == nullptr || &from->library_ != &library_) {
    return Event::elapsed_ms(since);
  }
  double milliseconds = 0;
  library_.call("elapsed", library_.table().elapsed, device_, from->handle_, handle_, &milliseconds);
  return milliseconds;
}

LibraryStream::~LibraryStream() { streams_.release(handle_); }

Device LibraryStream::device() const { return streams_.device(); }

std::unique_ptr<Event> LibraryStream::record() {
  return std::make_unique<LibraryEvent>(streams_.library(), device().index, handle_);
}

void LibraryStream::wait(const Event& event) {
  DeviceLibrary& library = streams_.library();
  const auto* own = dynamic_cast<const LibraryEvent*>(&event);
  if (own == nullptr || &own->library() != &library) return const_cast<Event&>(event).synchronize();
  library.call("wait_event", library.table().wait_event, device().index, handle_, own->handle());
}

void LibraryStream::synchronize() {
  DeviceLibrary& library = streams_.library();
  library.call("synchronize_stream", library.table().synchronize_stream, device().index, handle_);
}

void LibraryStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  enqueue_copy(to, from, bytes);
  const DeviceLibrary& library = streams_.library();
  if (library.device_of(to, bytes) < 0 || library.device_of(from, bytes) < 0) synchronize();
}

void LibraryStream::enqueue_copy(void* to, const void* from, size_t bytes) {
  const DeviceLibrary& library = streams_.library();
  const TeletensorDeviceTable& table = library.table();
  const int32_t here = device().index;
  const bool to_device = library.device_of(to, bytes) >= 0, from_device = library.device_of(from, bytes) >= 0;
  check(to_device || from_device, library.name(), ": a copy has neither end on the device");
  if (to_device && from_device) {
    library.call("copy_on_device", table.copy_on_device, here, handle_, to, from, uint64_t{bytes});
  } else if (to_device) {
    library.call("copy_to_device", table.copy_to_device, here, handle_, to, from, uint64_t{bytes});
  } else {
    library.call("copy_to_host", table.copy_to_host, here, handle_, to, from, uint64_t{bytes});
  }
}

void LibraryStream::zero(void* p, size_t bytes) {
  if (bytes == 0) return;
  DeviceLibrary& library = streams_.library();
  library.call("zero", library.table().zero, device().index, handle_, p, uint64_t{bytes});
}

std::unique_ptr<LibraryStream> LibraryStreams::lease() {
  MutexLock lock(mutex_);
  auto idle = std::min_element(streams_.begin(), streams_.end(),
                               [](const Leased& a, const Leased& b) { return a.users < b.users; });
  if (idle == streams_.end() || (idle->users > 0 && streams_.size() < kStreams)) {
    void* handle = nullptr;
    library_.call("create_stream", library_.table().create_stream, device_.index, &handle);
    const bool is_new = handle != nullptr && std::none_of(streams_.begin(), streams_.end(),
                                                          [&](const Leased& each) { return each.handle == handle; });
    check(is_new, library_.name(), ": create_stream: the library returned no new stream");
    idle = streams_.insert(streams_.end(), Leased{handle, 0});
  }
  ++idle->users;
  return std::make_unique<LibraryStream>(*this, idle->handle);
}

void LibraryStreams::release(void* handle) {
  MutexLock lock(mutex_);
  for (Leased& leased : streams_) {
    if (leased.handle == handle) --leased.users;
  }
}

std::unique_ptr<Event> LibraryStreamEvents::record(const StreamId& stream) {
  return std::make_unique<LibraryEvent>(library_, stream.device.index, reinterpret_cast<void*>(stream.id));
}

}  // namespace tt::plugin
