#include "kernels/cuda/runtime/issuer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/schema/error.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tt::cuda {
namespace {

constexpr size_t kLeast = 8;    // launches per stretch; a shorter graph saves no time
constexpr size_t kMost = 4096;  // a longer stretch is cut; it is not a repeating step
constexpr size_t kMostKnown = 16;
constexpr size_t kMostSeen = 64;
constexpr size_t kMostVariants = 4;
constexpr int kMostCostly = 4;  // consecutive replays without saving before giving up
// Cost of changing one node of a graph, in units of one launch: for our own kernels, and for library calls that must be
// captured again. Estimates from published reports, not measured.
constexpr double kChangeOfKernel = 0.25, kChangeOfOther = 3;
constexpr std::chrono::microseconds kGlance{100};
constexpr int kQuiet = 100;  // polls without held launches before the watching thread sleeps

// TELETENSOR_CUDA_REPLAY: how many microseconds launches are held after the last one, or "off".
struct Conf {
  bool on = true;
  int glances = 2;  // long enough for the next frame of a client that does not wait

  Conf() {
    const char* value = std::getenv("TELETENSOR_CUDA_REPLAY");
    if (value == nullptr) return;
    int microseconds = 0;
    on = absl::string_view(value) != "off";
    check_as(ErrorKind::kValue, !on || (absl::SimpleAtoi(value, &microseconds) && microseconds > 0),
             "TELETENSOR_CUDA_REPLAY must be 'off' or a number of microseconds, got '", value, "'");
    if (on) glances = std::max<int>(1, microseconds / static_cast<int>(kGlance.count()));
  }
};

const Conf& conf() {
  static const Conf conf;
  return conf;
}

void push(std::vector<uint64_t>& hashes, uint64_t hash) {
  if (hashes.size() == kMostSeen) hashes.erase(hashes.begin());
  hashes.push_back(hash);
}

bool contains(const std::vector<uint64_t>& hashes, uint64_t hash) {
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

}  // namespace

struct Issuer::Known {
  Stretch stretch;  // with the graph's current parameters
  std::unique_ptr<WorkGraph> graph;
};

// All issuers of the process, and a thread that limits how long they hold launches. Never destroyed.
class Watch {
 public:
  static Watch& instance() {
    static auto* watch = new Watch;  // devices' streams may outlive main
    return *watch;
  }

  void add(Issuer* issuer) {
    MutexLock lock(mutex_);
    issuers_.push_back(issuer);
    if (issuers_.size() == 1 && !started_) std::thread(&Watch::run, this).detach();
    started_ = true;
  }
  void remove(Issuer* issuer) {
    MutexLock lock(mutex_);
    issuers_.erase(std::find(issuers_.begin(), issuers_.end(), issuer));
  }
  // Called when an issuer starts to hold launches.
  void wake() {
    if (asleep_.exchange(false)) asleep_.notify_one();
  }
  template <typename F>
  void for_each(F f) {
    MutexLock lock(mutex_);
    for (Issuer* issuer : issuers_) f(*issuer);
  }

 private:
  // An issuer that starts to hold after this call has checked it sees asleep_ set, because both take the issuer's lock.
  bool is_any_held() {
    bool held = false;
    for_each([&](Issuer& issuer) { held |= issuer.issue_what_waits(); });
    return held;
  }
  [[noreturn]] void run() {
    for (int quiet = 0;;) {
      quiet = is_any_held() ? 0 : quiet + 1;
      if (quiet < kQuiet) {
        std::this_thread::sleep_for(kGlance);
        continue;
      }
      asleep_ = true;
      if (!is_any_held()) asleep_.wait(true);
      asleep_ = false;
      quiet = 0;
    }
  }

  Mutex mutex_;  // locked before any issuer's mutex
  std::vector<Issuer*> issuers_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> asleep_{false};
};

void Issuer::check_environment() { static_cast<void>(conf()); }

Issuer::Issuer(Device device, StreamHandle stream) : device_(device), stream_(stream) { Watch::instance().add(this); }

Issuer::~Issuer() {
  Watch::instance().remove(this);
  flush();
}

void Issuer::add(const Work& work) {
  MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!conf().on || capturing_) return work.issue(work, stream_);
  if (stretch_.size() == kMost) end_stretch();
  const bool held_before = holding_ && stretch_.size() > 0;
  stretch_.add(work);
  glances_ = 0;
  if (!holding_) {
    issued_ = stretch_.size();
    return work.issue(work, stream_);
  }
  Known* known = expected();
  if (!known) {
    holding_ = false;
    return issue_held();
  }
  if (known->stretch.size() == stretch_.size()) return replay();
  if (!held_before) Watch::instance().wake();
}

void Issuer::flush() {
  MutexLock lock(mutex_);
  end_stretch();
}

void Issuer::flush_all() {
  Watch::instance().for_each([](Issuer& issuer) { issuer.flush(); });
}

void Issuer::set_capturing(bool capturing) {
  MutexLock lock(mutex_);
  end_stretch();
  capturing_ = capturing;
}

ReplayCounts Issuer::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

bool Issuer::issue_what_waits() {
  if (!mutex_.try_lock()) return true;
  MutexLock lock(mutex_, std::adopt_lock);
  if (!holding_ || stretch_.size() == 0) return false;
  if (++glances_ < conf().glances) return true;
  holding_ = false;  // issue the rest of the stretch launch by launch
  try_issue_held();
  return false;
}

// ---- Held launches ---------------------------------------------------------------------------

bool Issuer::goes_on_as(const Known& known) const {
  const size_t n = stretch_.size();
  return n <= known.stretch.size() && known.stretch.hash(n) == stretch_.hash(n) &&
         known.stretch[n - 1].is_like(stretch_[n - 1]);
}

// Returns the most recently used graph whose stretch starts with the current stretch, or null.
Issuer::Known* Issuer::expected() {
  for (size_t i = known_.size(); i-- > 0;) {
    if (goes_on_as(*known_[i])) return known_[i].get();
  }
  return nullptr;
}

void Issuer::issue_held() {
  while (issued_ < stretch_.size()) {
    const Work& work = stretch_[issued_++];  // a failed launch is not retried
    work.issue(work, stream_);
  }
}

void Issuer::try_issue_held() {
  if (issued_ == stretch_.size()) return;
  try {
    make_current(device_);
    issue_held();
  } catch (const Error&) {
    issued_ = stretch_.size();
    failure_ = std::current_exception();
  }
}

void Issuer::end_stretch() {
  try_issue_held();
  if (stretch_.size() >= kLeast && !capturing_) learn();
  stretch_.clear();
  issued_ = 0;
  holding_ = !known_.empty();
}

void Issuer::learn() {
  const uint64_t hash = stretch_.hash(stretch_.size());
  if (contains(hopeless_, hash)) return;
  for (const auto& known : known_) {
    if (known->stretch.hash(known->stretch.size()) == hash) return;
  }
  const auto seen = std::find(seen_.begin(), seen_.end(), hash);
  if (seen == seen_.end()) return push(seen_, hash);
  seen_.erase(seen);
  keep();
}

// Creates a graph of the stretch. Returns null if the runtime cannot.
Issuer::Known* Issuer::keep() {
  std::vector<const Work*> works;
  for (size_t i = 0; i < stretch_.size(); ++i) works.push_back(&stretch_[i]);
  auto known = std::make_unique<Known>();
  try {
    make_current(device_);
    known->graph = runtime().make_graph(works);
  } catch (const Error& error) {
    give_up(error.message());
    return nullptr;
  }
  known->stretch = stretch_;
  if (known_.size() == kMostKnown) {
    known_.erase(known_.begin());
    --counts_.graphs;
  }
  ++counts_.graphs;
  return known_.emplace_back(std::move(known)).get();
}

// Drops the graphs of such stretches and prevents new ones.
void Issuer::give_up(std::string why) {
  const uint64_t hash = stretch_.hash(stretch_.size());
  push(hopeless_, hash);
  counts_.refusal = std::move(why);
  std::erase_if(known_, [&](const auto& known) { return known->stretch.hash(known->stretch.size()) == hash; });
  counts_.graphs = known_.size();
  costly_ = 0;
}

// ---- Repetition ------------------------------------------------------------------------------

// Requires that the stretch matches a known stretch of the same length.
void Issuer::replay() {
  double cost = 0;
  size_t variants = 0;
  Known* known = nearest(&cost, &variants);
  const double launches = static_cast<double>(stretch_.size());
  costly_ = known && cost >= launches && variants == kMostVariants ? costly_ + 1 : 0;
  if (costly_ == kMostCostly) {
    give_up("the launch parameters change every time");
    known = nullptr;
  } else if (known && cost > 0.5 * launches && variants < kMostVariants) {
    known = keep();
  }
  if (known && change(*known)) {
    launch(*known);
  } else {
    issue_held();
  }
  stretch_.clear();
  issued_ = 0;
  holding_ = !known_.empty();
}

// Returns the matching graph with the least cost of changes, or null if no graph matches.
Issuer::Known* Issuer::nearest(double* least, size_t* variants) {
  Known* best = nullptr;
  for (const auto& known : known_) {
    if (known->stretch.size() != stretch_.size() || !goes_on_as(*known)) continue;
    ++*variants;
    double cost = 0;
    for (size_t i = 0; i < stretch_.size() && (!best || cost < *least); ++i) {
      if (stretch_[i].equals(known->stretch[i])) continue;
      cost += stretch_[i].kernel ? kChangeOfKernel : kChangeOfOther;
    }
    if (best && cost >= *least) continue;
    best = known.get();
    *least = cost;
  }
  return best;
}

// Updates the graph to the parameters of the stretch. Returns false if that fails; the graph is then dropped.
bool Issuer::change(Known& known) {
  for (size_t i = 0; i < stretch_.size(); ++i) {
    if (stretch_[i].equals(known.stretch[i])) continue;
    if (!stretch_[i].is_like(known.stretch[i]) || !known.graph->change(i, stretch_[i])) {
      give_up("the graph rejected new parameters of a launch");
      return false;
    }
    known.stretch.replace(i, stretch_[i]);
    ++counts_.changed;
  }
  return true;
}

void Issuer::launch(Known& known) {
  issued_ = stretch_.size();
  known.graph->launch(stream_);
  ++counts_.replays;
  counts_.launches += issued_;
  const auto at = std::find_if(known_.begin(), known_.end(), [&](const auto& k) { return k.get() == &known; });
  std::rotate(at, at + 1, known_.end());
}

}  // namespace tt::cuda
