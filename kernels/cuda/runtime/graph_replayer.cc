#include "kernels/cuda/runtime/graph_replayer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/schema/error.h"
#include "kernels/cuda/runtime/event_tracer.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/runtime/tracer.h"

namespace tt::cuda {
namespace {

constexpr size_t kMinLaunches = 8;     // a shorter trace would not be faster as a graph
constexpr size_t kMaxLaunches = 4096;  // a longer trace is split: it is more than one repeated step
constexpr size_t kMaxGraphs = 16;
constexpr size_t kMaxSeen = 64;
constexpr size_t kMaxVariants = 4;
constexpr int kMaxCostly = 4;  // a trace is rejected after this many consecutive replays that cost as much as launches
// Cost of updating one launch in a graph, in units of the cost of one launch: for our own kernels, and for library
// calls, which are captured again. Estimated from published reports, not measured.
constexpr double kKernelUpdateCost = 0.25, kOtherUpdateCost = 3;
constexpr std::chrono::microseconds kPollInterval{100};
constexpr int kIdlePolls = 100;  // the watching thread sleeps after this many consecutive polls without held launches

// The value of TELETENSOR_CUDA_REPLAY: "off", or the number of microseconds after which held launches are issued if no
// further launch is added.
struct Conf {
  bool on = true;
  int polls = 2;  // delay in polls; long enough for the next frame of a client that is not waiting

  Conf() {
    const char* value = std::getenv("TELETENSOR_CUDA_REPLAY");
    if (value == nullptr) return;
    int microseconds = 0;
    on = absl::string_view(value) != "off";
    check(ErrorKind::kValue, !on || (absl::SimpleAtoi(value, &microseconds) && microseconds > 0),
          "TELETENSOR_CUDA_REPLAY must be 'off' or a number of microseconds, got '", value, "'");
    if (on) polls = std::max<int>(1, microseconds / static_cast<int>(kPollInterval.count()));
  }
};

const Conf& conf() {
  static const Conf conf;
  return conf;
}

void push(std::vector<uint64_t>& hashes, uint64_t hash) {
  if (hashes.size() == kMaxSeen) hashes.erase(hashes.begin());
  hashes.push_back(hash);
}

bool contains(const std::vector<uint64_t>& hashes, uint64_t hash) {
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

}  // namespace

struct GraphReplayer::CachedGraph {
  LaunchTrace trace;  // contains the current parameters of the graph
  std::unique_ptr<LaunchGraph> graph;
};

// All replayers of the process, and the thread that issues launches held for too long. Never destroyed.
class HeldLaunchWatcher {
 public:
  static HeldLaunchWatcher& instance() {
    static auto* watcher = new HeldLaunchWatcher;  // the devices' streams may outlive main
    return *watcher;
  }

  void add(GraphReplayer* replayer) {
    MutexLock lock(mutex_);
    replayers_.push_back(replayer);
    if (replayers_.size() == 1 && !started_) std::thread(&HeldLaunchWatcher::run, this).detach();
    started_ = true;
  }
  void remove(GraphReplayer* replayer) {
    MutexLock lock(mutex_);
    replayers_.erase(std::find(replayers_.begin(), replayers_.end(), replayer));
  }
  // Called when a replayer starts to hold launches.
  void wake() {
    if (asleep_.exchange(false)) asleep_.notify_one();
  }
  template <typename F>
  void for_each(F f) {
    MutexLock lock(mutex_);
    for (GraphReplayer* replayer : replayers_) f(*replayer);
  }

 private:
  // run() calls this again after it has set asleep_. A replayer that starts to hold launches after that call sees
  // asleep_ and wakes this thread, because both acquire the replayer's lock.
  bool is_any_held() {
    bool held = false;
    for_each([&](GraphReplayer& replayer) { held |= replayer.issue_if_overdue(); });
    return held;
  }
  [[noreturn]] void run() {
    for (int idle = 0;;) {
      idle = is_any_held() ? 0 : idle + 1;
      if (idle < kIdlePolls) {
        std::this_thread::sleep_for(kPollInterval);
        continue;
      }
      asleep_ = true;
      if (!is_any_held()) asleep_.wait(true);
      asleep_ = false;
      idle = 0;
    }
  }

  Mutex mutex_;  // acquired before the mutex of any replayer
  std::vector<GraphReplayer*> replayers_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> asleep_{false};
};

void GraphReplayer::check_environment() { static_cast<void>(conf()); }

GraphReplayer::GraphReplayer(Device device, StreamHandle stream) : device_(device), stream_(stream) {
  HeldLaunchWatcher::instance().add(this);
}

GraphReplayer::~GraphReplayer() {
  HeldLaunchWatcher::instance().remove(this);
  flush();
}

void GraphReplayer::add(const KernelLaunch& launch) {
  MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!conf().on || capturing_) return launch.issue(launch, stream_);
  if (is_traced()) [[unlikely]] {
    end_trace();
    const TimedLaunch timed(device_, stream_);
    return launch.issue(launch, stream_);
  }
  if (trace_.size() == kMaxLaunches) end_trace();
  const bool held_before = holding_ && trace_.size() > 0;
  trace_.add(launch);
  polls_ = 0;
  if (!holding_) {
    issued_ = trace_.size();
    return launch.issue(launch, stream_);
  }
  const CachedGraph* graph = matching_graph();
  if (!graph) {
    holding_ = false;
    return issue_held();
  }
  if (graph->trace.size() == trace_.size()) return replay();
  if (!held_before) HeldLaunchWatcher::instance().wake();
}

void GraphReplayer::flush() {
  MutexLock lock(mutex_);
  end_trace();
}

void GraphReplayer::flush_all() {
  HeldLaunchWatcher::instance().for_each([](GraphReplayer& replayer) { replayer.flush(); });
}

void GraphReplayer::set_capturing(bool capturing) {
  MutexLock lock(mutex_);
  end_trace();
  capturing_ = capturing;
}

ReplayCounts GraphReplayer::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

bool GraphReplayer::issue_if_overdue() {
  if (!mutex_.try_lock()) return true;
  MutexLock lock(mutex_, std::adopt_lock);
  if (!holding_ || trace_.size() == 0) return false;
  if (++polls_ < conf().polls) return true;
  holding_ = false;  // the rest of the trace is issued launch by launch
  try_issue_held();
  return false;
}

// ---- Held launches ---------------------------------------------------------------------------

bool GraphReplayer::matches_start_of(const CachedGraph& graph) const {
  const size_t n = trace_.size();
  return n <= graph.trace.size() && graph.trace.hash(n) == trace_.hash(n) &&
         graph.trace[n - 1].has_same_function(trace_[n - 1]);
}

// Returns the most recently used graph whose trace starts with the current trace, or null if there is none.
GraphReplayer::CachedGraph* GraphReplayer::matching_graph() {
  for (size_t i = graphs_.size(); i-- > 0;) {
    if (matches_start_of(*graphs_[i])) return graphs_[i].get();
  }
  return nullptr;
}

void GraphReplayer::issue_held() {
  while (issued_ < trace_.size()) {
    const KernelLaunch& held = trace_[issued_++];  // counted before it is issued: a launch that fails is not retried
    held.issue(held, stream_);
  }
}

void GraphReplayer::try_issue_held() {
  if (issued_ == trace_.size()) return;
  try {
    make_current(device_);
    issue_held();
  } catch (const Error&) {
    issued_ = trace_.size();
    failure_ = std::current_exception();
  }
}

void GraphReplayer::end_trace() {
  try_issue_held();
  if (trace_.size() >= kMinLaunches && !capturing_) record_trace();
  trace_.clear();
  issued_ = 0;
  holding_ = !graphs_.empty();
}

void GraphReplayer::record_trace() {
  const uint64_t hash = trace_.hash(trace_.size());
  if (contains(rejected_, hash)) return;
  for (const auto& graph : graphs_) {
    if (graph->trace.hash(graph->trace.size()) == hash) return;
  }
  const auto seen = std::find(seen_.begin(), seen_.end(), hash);
  if (seen == seen_.end()) return push(seen_, hash);
  seen_.erase(seen);
  make_graph();
}

// Creates a graph of the trace and caches the graph. Returns null if the runtime rejects the trace.
GraphReplayer::CachedGraph* GraphReplayer::make_graph() {
  std::vector<const KernelLaunch*> launches;
  for (size_t i = 0; i < trace_.size(); ++i) launches.push_back(&trace_[i]);
  auto cached = std::make_unique<CachedGraph>();
  try {
    make_current(device_);
    cached->graph = runtime().make_graph(launches);
  } catch (const Error& error) {
    reject_trace(error.message());
    return nullptr;
  }
  cached->trace = trace_;
  if (graphs_.size() == kMaxGraphs) {
    graphs_.erase(graphs_.begin());
    --counts_.graphs;
  }
  ++counts_.graphs;
  return graphs_.emplace_back(std::move(cached)).get();
}

// Drops all graphs whose traces call the same functions as the current trace. No further graphs are created for such
// traces.
void GraphReplayer::reject_trace(std::string why) {
  const uint64_t hash = trace_.hash(trace_.size());
  push(rejected_, hash);
  counts_.refusal = std::move(why);
  std::erase_if(graphs_, [&](const auto& graph) { return graph->trace.hash(graph->trace.size()) == hash; });
  counts_.graphs = graphs_.size();
  costly_ = 0;
}

// ---- Repetition ------------------------------------------------------------------------------

// Launches a graph instead of the trace, or issues the held launches if no graph can be used. Requires that the whole
// trace matches the trace of a graph.
void GraphReplayer::replay() {
  double cost = 0;
  size_t variants = 0;
  CachedGraph* graph = cheapest_graph(&cost, &variants);
  const double launches = static_cast<double>(trace_.size());
  costly_ = graph && cost >= launches && variants == kMaxVariants ? costly_ + 1 : 0;
  if (costly_ == kMaxCostly) {
    reject_trace("the launch parameters change every time");
    graph = nullptr;
  } else if (graph && cost > 0.5 * launches && variants < kMaxVariants) {
    graph = make_graph();
  }
  if (graph && update(*graph)) {
    launch(*graph);
  } else {
    issue_held();
  }
  trace_.clear();
  issued_ = 0;
  holding_ = !graphs_.empty();
}

// Returns, of the graphs that call the same functions as the trace, the graph that is cheapest to update, or null if
// there is none. Stores its update cost in `least` and the number of such graphs in `variants`.
GraphReplayer::CachedGraph* GraphReplayer::cheapest_graph(double* least, size_t* variants) {
  CachedGraph* best = nullptr;
  for (const auto& graph : graphs_) {
    if (graph->trace.size() != trace_.size() || !matches_start_of(*graph)) continue;
    ++*variants;
    double cost = 0;
    for (size_t i = 0; i < trace_.size() && (!best || cost < *least); ++i) {
      if (trace_[i].equals(graph->trace[i])) continue;
      cost += trace_[i].kernel ? kKernelUpdateCost : kOtherUpdateCost;
    }
    if (best && cost >= *least) continue;
    best = graph.get();
    *least = cost;
  }
  return best;
}

// Updates the graph's parameters to those of the trace. Returns false, and drops the graph, if an update fails.
bool GraphReplayer::update(CachedGraph& graph) {
  for (size_t i = 0; i < trace_.size(); ++i) {
    if (trace_[i].equals(graph.trace[i])) continue;
    if (!trace_[i].has_same_function(graph.trace[i]) || !graph.graph->change(i, trace_[i])) {
      reject_trace("the graph rejected new parameters of a launch");
      return false;
    }
    graph.trace.replace(i, trace_[i]);
    ++counts_.changed;
  }
  return true;
}

void GraphReplayer::launch(CachedGraph& graph) {
  issued_ = trace_.size();
  graph.graph->launch(stream_);
  ++counts_.replays;
  counts_.launches += issued_;
  const auto at = std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& g) { return g.get() == &graph; });
  std::rotate(at, at + 1, graphs_.end());
}

}  // namespace tt::cuda
