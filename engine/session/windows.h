// Windows: finds the repeated windows of one session's instruction stream, and replaces them by what the passes have
// made of them (window.h).
//
// A candidate is a run of calls that only compute new results, between two instructions of other kinds, reads or ends
// of frames, or a part of a run whose ends depend on a few neighbouring calls, wherever frames divide it. Its identity
// is a hash of its operators, arguments, source lines and inner references, and of the results that exist after it;
// names and inputs may differ. A candidate that has occurred kMinOccurrences times becomes a window, which is then
// found wherever it begins. While replacements save less time than it takes to find them, according to estimates, only
// one of kPausedFrames frames is examined.
//
// Owned by the session's Context; used by the thread on which it is current. Memory is bounded, and charged to the
// session.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "engine/program/slot_table.h"
#include "engine/schema/program.h"
#include "engine/session/service.h"
#include "engine/session/window.h"
#include "engine/session/window_compiler.h"

namespace tt {

// Statistics of a session's windows.
struct WindowCounters {
  int64_t instructions = 0;           // number of instructions in the window
  int64_t compiled_instructions = 0;  // their number after the latest compilation
  int64_t runs = 0;                   // number of runs of compiled instructions
  int64_t signatures = 0;             // number of signatures of inputs for which the passes have run
  int64_t microseconds = 0;           // total time of the passes
  int64_t saved_instructions = 0;     // number of instructions that all runs together did not execute
  int64_t saved_bytes = 0;            // total size of the results that were not stored
};

class Windows final : public SessionService {
 public:
  static constexpr size_t kMinLength = 4, kMaxLength = 512;  // instructions
  static constexpr int kMinOccurrences = 3;
  static constexpr int kFramesBeforePause = 64, kPausedFrames = 16;
  static constexpr size_t kMaxWindows = 128, kMaxVersions = 16;
  static constexpr uint64_t kMaxBytes = uint64_t{8} << 20;
  // Names from this one on are used for values of compiled instructions.
  static constexpr Slot kFirstTemporary = Slot{1} << 62;

  // Inputs for which there is no version.
  struct SeenInputs {
    uint64_t hash = 0;   // of their metadata
    uint64_t frame = 0;  // in which they occurred first
  };
  // The calls as a Program, and what the passes have made of it.
  struct Window {
    std::shared_ptr<const Program> program;  // names: inputs, then results in order
    size_t inputs = 0;
    std::vector<bool> alive;  // by result: whether it exists after the window
    bool records = false;     // whether a call would be recorded for backward if an input required grad
    std::vector<std::shared_ptr<WindowVersion>> versions;
    std::vector<bool> used;  // by version: whether its instructions have run, and its memory is charged
    int failures = 0;        // replacements in succession that were impossible, whatever the compiler does
    int unknown = 0;         // occurrences since the last run whose inputs had no version
    int skipped = 0;         // number of the next occurrences that are ignored
    std::array<SeenInputs, 8> seen;
    int64_t runs = 0, saved_instructions = 0, saved_bytes = 0;
    uint64_t bytes = 0;
  };
  struct Match {
    size_t first = 0;   // index of the instruction
    size_t length = 0;  // number of instructions
    std::shared_ptr<Window> window;
  };
  // Instructions in place of a window's.
  struct Replacement {
    Program program;
    std::vector<Slot> dropped;  // names to drop after them
    std::vector<Slot> gone;     // names that the window would have defined and dropped
  };

  explicit Windows(std::shared_ptr<WindowCompiler> compiler)
      : compiler_(std::move(compiler)), occurrences_(compiler_->at_once() ? 1 : kMinOccurrences) {}

  // The windows that occur in the frame's Program, ascending and disjoint. No instruction is fused yet. `reads` are in
  // ascending order. Valid until the next call.
  absl::Span<const Match> find(const Program& program, absl::Span<const ReadPoint> reads);
  // Fills `made` with what replaces the window that find() has found, and returns true. All instructions before it have
  // been executed. Returns false if the instructions have to be executed as they are: because an input is missing, has
  // an error or is of a kind that is not compiled, or because the compiler is not done.
  bool replace(const Match& match, const Program& program, const SlotTable& slots, Replacement* made);

  std::vector<WindowCounters> counters() const;
  // Totals over all windows, also of those that were forgotten.
  int64_t compiled() const { return compiled_; }  // versions with compiled instructions that have run
  int64_t runs() const { return runs_; }
  int64_t saved_instructions() const { return saved_instructions_; }

  uint64_t host_bytes() const override;
  std::string unsaved() const override { return ""; }

 private:
  struct Candidate {
    int occurrences = 0;
    std::shared_ptr<Window> window;  // once it has occurred often enough
  };

  static constexpr uint64_t kCandidateBytes = 64;
  static constexpr size_t kMaxUncharged = 16;  // versions that wait for the passes, or whose time is not charged

  bool is_paused();
  void hash(const Program& program);
  uint64_t range(size_t first, size_t length) const;
  void search(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end);
  bool match_at(const Program& program, absl::Span<const ReadPoint> reads, size_t at, size_t end, Match* match);
  void learn(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end);
  void count(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t length, int times);
  bool is_cut(size_t at, size_t radius, size_t first, size_t end) const;
  void learn_parts(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t end);
  bool find_names(const Program& program, size_t first, size_t length);
  size_t index_of(Slot slot) const;
  bool find_alive(const Program& program, absl::Span<const ReadPoint> reads, size_t first, size_t length);
  bool bind(const Match& match, const Program& program);
  bool may_compile(Window* window);
  std::shared_ptr<WindowVersion> version_for(Window* window, const SlotTable& slots);
  // Charges the turn for the time of passes that have ended.
  void charge_compiled();
  void count_run(const WindowVersion& version, Window* window);
  void write(const WindowVersion& version, const Window& window, const Instruction* original, size_t length,
             Replacement* made);
  void forget_rare();
  void forget();

  const std::shared_ptr<WindowCompiler> compiler_;
  const int occurrences_;                                       // that a window requires
  absl::flat_hash_map<uint64_t, Candidate> candidates_;         // by range and results
  absl::flat_hash_set<uint64_t> ranges_;                        // of windows
  absl::flat_hash_map<uint64_t, std::vector<size_t>> lengths_;  // of windows, descending, by their first calls
  std::vector<Match> matches_;
  std::vector<uint64_t> sums_;    // of the hashes of the instructions before each
  std::vector<uint64_t> powers_;  // of the hash's base
  std::vector<uint64_t> ranks_;   // by instruction of the frame: the least ones divide runs into parts
  std::vector<bool> eligible_;    // by instruction of the frame
  std::vector<std::shared_ptr<const WindowVersion>> uncharged_;
  // Of the window that is considered:
  std::vector<Slot> names_;  // results, ascending
  std::vector<bool> alive_;
  std::vector<Slot> inputs_;
  std::vector<bool> dropped_inputs_;
  std::vector<Slot> dropped_others_;
  std::vector<const TensorMeta*> metas_;  // of inputs_
  std::vector<Slot> mapped_;              // by name of the compiled Program
  uint64_t frame_ = 0;                    // number of frames so far
  // Nanoseconds that replacements are estimated to have saved, less those for examining frames, in the last `frames_`
  // frames; while paused, in the last one that was examined.
  int64_t balance_ = 0;
  int frames_ = 0;
  bool is_paused_ = false;
  int full_frames_ = 0;   // in which there was no room for a candidate, since some were forgotten
  bool is_full_ = false;  // whether the frame is one of these
  uint64_t bytes_ = 0;
  int64_t compiled_ = 0, runs_ = 0, saved_instructions_ = 0;
};

}  // namespace tt
