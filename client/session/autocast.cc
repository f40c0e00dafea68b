#include "client/session/autocast.h"

#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "client/session/program_trace.h"
#include "client/session/session.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

struct Registry {
  Mutex mutex;
  absl::flat_hash_set<Session*> sessions ABSL_GUARDED_BY(mutex);
};

Registry& registry() {
  static auto* registry = new Registry;  // outlives all sessions
  return *registry;
}

template <typename F>
void for_each_session(const F& f) {
  Registry& all = registry();
  MutexLock lock(all.mutex);
  for (Session* session : all.sessions) {
    try {
      f(*session);
    } catch (const Error&) {  // the session has ended, and its casts with it
    }
  }
}

}  // namespace

AutocastSettings& autocast_settings() {
  static thread_local AutocastSettings settings;
  return settings;
}

Autocast::Autocast(DeviceType device, std::optional<DType> dtype, bool enabled, bool cache_enabled)
    : before_(autocast_settings()) {
  check(device == DeviceType::kCPU || device == DeviceType::kCUDA, "[Autocast] expected device type cpu or cuda, got ",
        to_string(Device{device}));
  check(!dtype || is_reduced_floating(*dtype), "[Autocast] expected dtype float16 or bfloat16, got ",
        dtype ? name(*dtype) : "none");
  AutocastSettings& settings = autocast_settings();
  settings.enabled(device) = enabled;
  if (dtype) settings.dtype(device) = *dtype;
  settings.cache_enabled = cache_enabled;
  ++settings.nesting;
}

Autocast::~Autocast() {
  autocast_settings() = before_;
  if (before_.nesting == 0) end_autocast_regions();
}

void clear_autocast_cache() {
  if (ProgramTrace* trace = ProgramTrace::active()) trace->forget_casts();
  for_each_session([](Session& session) { session.clear_autocast_cache(); });
}

void end_autocast_regions() noexcept {
  if (ProgramTrace* trace = ProgramTrace::active()) trace->forget_casts();
  for_each_session([](Session& session) { session.end_autocast(); });
}

void add_autocast_session(Session* session) {
  Registry& all = registry();
  MutexLock lock(all.mutex);
  all.sessions.insert(session);
}

void remove_autocast_session(Session* session) {
  Registry& all = registry();
  MutexLock lock(all.mutex);
  all.sessions.erase(session);
}

}  // namespace tt::client
