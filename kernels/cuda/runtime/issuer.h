// Issuer: gives a stream its work: launch by launch, or as one graph where it repeats.
//
// What a stream gets between two points at which something else happens to it (an event, a copy from or to the host, a
// wait, a mark()) is a stretch. A stretch that comes for the second time becomes a graph. From then on, where a stretch
// begins as one of the graphs does, its launches are held back as long as they go on so: the whole of it is then one
// launch of the graph, with what differs in the parameters changed in it before; where it goes another way, what was
// held is issued at once, in order. Where most parameters differ the graph gets a variant beside it: memory alternates
// between steps that overlap. So nothing has to say that it repeats, and nothing that was repeated wrongly can happen:
// the engine does all it does otherwise, memory included, and only the launches are saved ("CUDA graphs" of the CUDA
// programming guide; that traces repeat can be noticed by themselves: "Apophenia", Yadav et al., 2025).
//
// Thread-safe: streams are shared between sessions where there are many, whoever frees memory of the device must see
// what is held issued, and a thread of its own issues what nobody has added to for a while. The lock is taken once a
// launch: it costs a hundredth of what the launch does.
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
  // Throws Error (ValueError) where TELETENSOR_CUDA_REPLAY is neither "off" nor a number of microseconds.
  static void check_environment();

  // Of a stream that outlives it.
  Issuer(Device device, StreamHandle stream);
  ~Issuer();
  Issuer(const Issuer&) = delete;
  Issuer& operator=(const Issuer&) = delete;

  Device device() const { return device_; }
  StreamHandle stream() const { return stream_; }

  // In the stream's order. Requires that the stream's device is current. Throws Error on what the runtime refuses, be
  // it with this launch or with one that was held before.
  void add(const Work& work);
  // Issues what is held and ends the stretch. Whoever does something else with the stream calls it first. Does not
  // throw: what fails shows at the next add(), or where somebody waits.
  void flush();
  // flush() of all issuers, before memory goes that what they hold may read.
  static void flush_all();
  // While a graph is captured by hand all work is issued at once and nothing is learnt.
  void set_capturing(bool capturing);
  ReplayCounts counts() const;

 private:
  struct Known;  // a stretch that became a graph
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
  // For the thread that watches. Whether anything is held still.
  bool issue_what_waits();

  const Device device_;
  const StreamHandle stream_;
  mutable Mutex mutex_;
  bool capturing_ ABSL_GUARDED_BY(mutex_) = false;
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;  // what comes is as a graph's stretch so far
  int glances_ ABSL_GUARDED_BY(mutex_) = 0;       // of the watching thread since the last launch
  size_t issued_ ABSL_GUARDED_BY(mutex_) = 0;     // how much of stretch_ the stream has
  Stretch stretch_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Known>> known_ ABSL_GUARDED_BY(mutex_);  // the last used last
  std::vector<uint64_t> seen_ ABSL_GUARDED_BY(mutex_);      // hashes of stretches that came once, the newest last
  std::vector<uint64_t> hopeless_ ABSL_GUARDED_BY(mutex_);  // and of those that are not to be tried again
  int costly_ ABSL_GUARDED_BY(mutex_) = 0;                  // replays in a row that were not worth it
  std::exception_ptr failure_ ABSL_GUARDED_BY(mutex_);      // of what was issued later than it was added
  ReplayCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::cuda
