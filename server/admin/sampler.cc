#include "server/admin/sampler.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "engine/schema/op.h"

namespace tt::server {
namespace {

constexpr size_t kMaxEntries = 1 << 14;  // a reply of them is within the size of a message
// While no session has had work for this many samples, the thread wakes ten times less often.
constexpr int kIdleSamples = 100;
constexpr int kIdleFactor = 10;

std::string op_name(uint16_t id) {
  const Op* op = id == 0 ? nullptr : find_op(id);
  return op == nullptr ? "" : std::string(op->name);
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Sampler::Sampler(const Sessions& sessions, double rate) : sessions_(sessions), rate_(rate) {
  if (rate_ > 0) thread_ = std::thread([this] { run(); });
}

Sampler::~Sampler() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Sampler::sample() {
  using Phase = SessionActivity::Phase;
  bool works = false;
  sessions_.visit([&](const Session& session) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const SessionActivity activity = session.activity();
    if (activity.phase == Phase::kIdle) return;
    works = true;
    const bool executes = activity.phase == Phase::kExecute || activity.phase == Phase::kSuspended;
    const Activity::Now now = executes ? activity.now : Activity::Now{};
    const Key key{session.id(), activity.phase, now.op, now.kernel, now.site};
    auto at = entries_.find(key);
    if (at == entries_.end()) {
      if (entries_.size() >= kMaxEntries) {
        ++other_;
        return;
      }
      at = entries_.try_emplace(key, Entry{session.principal(), session.describe_site(now.site)}).first;
    }
    ++at->second.count;
  });
  ++samples_;
  return works;
}

void Sampler::run() {
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate_));
  int idle = 0;
  MutexLock lock(mutex_);
  while (!stopping_) {
    idle = sample() ? 0 : std::min(idle + 1, kIdleSamples);
    cpu_seconds_ = thread_seconds();
    stopped_.wait_for(mutex_, idle < kIdleSamples ? interval : interval * kIdleFactor);
  }
}

v1::ProfileReply Sampler::profile() const {
  v1::ProfileReply reply;
  MutexLock lock(mutex_);
  reply.set_seconds(std::chrono::duration<double>(Clock::now() - started_).count());
  reply.set_rate(rate_);
  reply.set_samples(samples_);
  reply.set_cpu_seconds(cpu_seconds_);
  for (const auto& [key, entry] : entries_) {
    v1::ProfileEntry* wire = reply.add_entries();
    wire->set_principal(entry.principal);
    wire->set_session(key.session);
    wire->set_phase(phase_name(key.phase));
    wire->set_op(op_name(key.op));
    wire->set_kernel(op_name(key.kernel));
    wire->set_site(entry.site);
    wire->set_count(entry.count);
  }
  if (other_ > 0) {
    v1::ProfileEntry* wire = reply.add_entries();
    wire->set_principal("(other)");
    wire->set_count(other_);
  }
  return reply;
}

}  // namespace tt::server
