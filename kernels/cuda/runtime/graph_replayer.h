// GraphReplayer: issues a stream's kernel launches, one by one or, if a sequence repeats, as one CUDA graph.
//
// The launches between two other operations on the stream (an event, a copy from or to the host, a wait, a mark()) are
// a trace. When a trace occurs a second time, a graph is created from it. Later launches that match the beginning of a
// graph's trace are held back. If the whole trace matches, the graph is launched instead, after the parameters that
// differ have been updated in the graph. If a launch does not match, the held launches are issued at once, in order. If
// most parameters differ, a further graph (a variant) is created for the trace: steps that overlap use different memory
// addresses, which recur in a later step. Callers do not declare repetition, and a trace that repeats only partly is
// executed correctly. Replay saves only the launches: the engine does all other work, such as allocating memory, as
// without replay. See "CUDA graphs" in the CUDA programming guide, and on finding repeated traces automatically
// "Apophenia" (Yadav et al., 2025).
//
// Thread-safe: several sessions may share a stream, freeing device memory first issues the held launches, and a thread
// issues launches that have been held for some time. The lock is acquired once per launch and takes a hundredth of the
// time of a launch.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/device/stream.h"
#include "engine/schema/device.h"
#include "kernels/cuda/runtime/launch_trace.h"

namespace tt::cuda {

class GraphReplayer {
 public:
  // Throws Error (ValueError) if TELETENSOR_CUDA_REPLAY is neither "off" nor a number of microseconds.
  static void check_environment();

  // `stream` must outlive this object.
  GraphReplayer(Device device, StreamHandle stream);
  ~GraphReplayer();
  GraphReplayer(const GraphReplayer&) = delete;
  GraphReplayer& operator=(const GraphReplayer&) = delete;

  Device device() const { return device_; }
  StreamHandle stream() const { return stream_; }

  // Issues or holds back a launch, in the stream's order. Requires that the stream's device is current. Throws Error if
  // the runtime rejects this launch or rejected a launch that was held before.
  void add(const KernelLaunch& launch);
  // Issues the held launches and ends the trace. Must be called before any other operation on the stream. Does not
  // throw: a failure is reported by the next add() or when the stream is waited for.
  void flush();
  // Calls flush() of every replayer. Must be called before memory is freed that held launches may use.
  static void flush_all();
  // Must be called when the capture of a graph begins and ends. During a capture, every launch is issued at once and no
  // trace is recorded.
  void set_capturing(bool capturing);
  ReplayCounts counts() const;

 private:
  struct CachedGraph;  // a graph and the trace that the graph replaces
  friend class HeldLaunchWatcher;

  bool matches_start_of(const CachedGraph& graph) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CachedGraph* matching_graph() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void issue_held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void try_issue_held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_trace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void record_trace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CachedGraph* make_graph() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void replay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CachedGraph* cheapest_graph(double* cost, size_t* variants) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool update(CachedGraph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void launch(CachedGraph& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void reject_trace(std::string why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called by the watching thread: issues launches that have been held too long. Returns whether any are still held.
  bool issue_if_overdue();

  const Device device_;
  const StreamHandle stream_;
  mutable Mutex mutex_;
  bool capturing_ ABSL_GUARDED_BY(mutex_) = false;
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;  // whether the trace so far matches the start of a graph's trace
  int polls_ ABSL_GUARDED_BY(mutex_) = 0;         // number of polls by the watching thread since the last launch
  size_t issued_ ABSL_GUARDED_BY(mutex_) = 0;     // number of launches of trace_ that were issued
  LaunchTrace trace_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<CachedGraph>> graphs_ ABSL_GUARDED_BY(mutex_);  // least recently used first
  std::vector<uint64_t> seen_ ABSL_GUARDED_BY(mutex_);      // hashes of traces that occurred once, oldest first
  std::vector<uint64_t> rejected_ ABSL_GUARDED_BY(mutex_);  // hashes of traces that cannot become graphs
  int costly_ ABSL_GUARDED_BY(mutex_) = 0;                  // consecutive replays that cost as much as launches
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);      // error of a held launch, thrown by the next add()
  ReplayCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::cuda
