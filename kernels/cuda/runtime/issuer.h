// Issuer: issues a stream's launches, either one by one or, if they repeat, as one CUDA graph.
//
// A stretch is the sequence of launches between two other operations on the stream (an event, a copy from or to the
// host, a wait, a mark()). When a stretch occurs for the second time, it becomes a graph. From then on, launches that
// match the beginning of a known stretch are held back. If the whole stretch matches, it is issued as one graph launch,
// after updating the parameters that differ. If a launch does not match, the held launches are issued at once, in
// order. If most parameters differ, a variant of the graph is added, since memory addresses alternate between
// overlapping steps. Repetition needs no annotation and cannot change results: the engine does all other work as usual,
// memory allocation included, and saves only launches ("CUDA graphs" of the CUDA programming guide; automatic detection
// of repeated traces: "Apophenia", Yadav et al., 2025).
//
// Thread-safe, for three reasons: sessions may share a stream, freeing device memory must flush held launches, and a
// background thread issues launches that have waited for some time. The lock is taken once per launch and costs a
// hundredth of a launch.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/device/stream.h"
#include "engine/schema/device.h"
#include "kernels/cuda/runtime/stretch.h"

namespace tt::cuda {

class Issuer {
 public:
  // Throws Error (ValueError) if TELETENSOR_CUDA_REPLAY is neither "off" nor a number of microseconds.
  static void check_environment();

  // Requires that `stream` outlives the issuer.
  Issuer(Device device, StreamHandle stream);
  ~Issuer();
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  Device device() const { return device_; }
  StreamHandle stream() const { return stream_; }

  // Issues or holds `work`, in stream order. Requires that the stream's device is current. Throws Error if the runtime
  // rejects this launch or a previously held one.
  void add(const Work& work);
  // Issues held launches and ends the stretch. Call it before any other operation on the stream. Does not throw: a
  // failure is reported by the next add() or by a later wait.
  void flush();
  // Calls flush() on all issuers. Required before freeing memory that held launches may read.
  static void flush_all();
  // During manual graph capture, launches are issued at once and stretches are not recorded.
  void set_capturing(bool capturing);
  ReplayCounts counts() const;

 private:
  struct Known;  // a stretch and its graph
  friend class Watch;

  bool goes_on_as(const Known& known) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Known* expected() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void issue_held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void try_issue_held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_stretch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void learn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Known* keep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void replay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Known* nearest(double* least, size_t* variants) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool change(Known& known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void launch(Known& known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void give_up(std::string why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called by the watching thread. Issues launches that were held too long; returns whether any are still held.
  bool issue_what_waits();

  const Device device_;
  const StreamHandle stream_;
  mutable Mutex mutex_;
  bool capturing_ ABSL_GUARDED_BY(mutex_) = false;
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;  // the current stretch matches the beginning of a known one
  int glances_ ABSL_GUARDED_BY(mutex_) = 0;       // polls by the watching thread since the last launch
  size_t issued_ ABSL_GUARDED_BY(mutex_) = 0;     // number of launches of stretch_ already issued
  Stretch stretch_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Known>> known_ ABSL_GUARDED_BY(mutex_);  // most recently used last
  std::vector<uint64_t> seen_ ABSL_GUARDED_BY(mutex_);                 // hashes of stretches seen once, newest last
  std::vector<uint64_t> hopeless_ ABSL_GUARDED_BY(mutex_);  // hashes of stretches that must not become graphs
  int costly_ ABSL_GUARDED_BY(mutex_) = 0;                  // consecutive replays that saved no time
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);      // failure of a held launch, for the next add()
  ReplayCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::cuda
