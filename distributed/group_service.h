// GroupService: a session's process groups, and its collectives in progress.
//
// Attached to the session's Context; used on the thread on which the Context is current. Its destruction leaves the
// groups and ends their collectives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "distributed/group/process_group.h"
#include "distributed/group_formation.h"
#include "distributed/group_image.h"
#include "distributed/peers/peer_policy.h"
#include "distributed/reducer/reducer.h"
#include "distributed/store/store_server.h"
#include "engine/memory/account.h"
#include "engine/session/image.h"
#include "engine/session/service.h"

namespace tt::distributed {

// A collective from its start to its completion.
struct PendingCall {
  std::shared_ptr<ProcessGroup> group;
  std::shared_ptr<Work> work;
  // Run on the session's thread after the work has succeeded or failed; may be empty.
  std::function<void()> complete{};
  std::function<void()> undo{};
  Tensors results{};  // that run() returns
};

class GroupService final : public SessionService {
 public:
  // `peers` limits where the session's stores are served, and where its groups connect to; `open_gate` limits the
  // connections to the stores, `threads` the threads of groups and stores.
  GroupService(std::shared_ptr<SuspensionNotifier> notifier, PeerPolicy peers, OpenGate open_gate,
               std::shared_ptr<ThreadBudget> threads)
      : notifier_(std::move(notifier)),
        peers_(std::move(peers)),
        open_gate_(std::move(open_gate)),
        threads_(std::move(threads)) {}
  ~GroupService() override;

  const std::shared_ptr<SuspensionNotifier>& notifier() const { return notifier_; }
  const PeerPolicy& peers() const { return peers_; }
  const std::shared_ptr<ThreadBudget>& threads() const { return threads_; }

  // Runs the current instruction's collective: the first call starts it and throws Suspended, and so do the calls until
  // it is complete. Then returns its results, or throws its error. In a cancelled frame, aborts the group and throws
  // Cancelled.
  Tensors run(absl::FunctionRef<PendingCall()> start);
  // The number of the last call that run() or wait() completed: Work::value().
  int64_t value() const { return value_; }
  // Starts a collective that wait() completes. Throws Error if the number is in use or 0.
  void start(int64_t number, absl::FunctionRef<PendingCall()> start);
  // Like run(), for a collective that was started. Throws Error if there is none with this number.
  void wait(int64_t number);
  bool is_completed(int64_t number) const;
  // Stops tracking a collective that was started; it continues for the other ranks.
  void drop(int64_t number);
  // Whether a collective was started and not waited for, or was dropped and still runs. It may write to its tensors.
  bool has_unfinished() const;

  // Adds a group under a number that the session chose. Throws Error if the number is in use, if there are too many, or
  // if the session's memory limit has no room for the group.
  void add_group(int64_t number, std::shared_ptr<ProcessGroup> group, GroupPlace place);
  // Throws Error (ValueError) if there is none.
  const std::shared_ptr<ProcessGroup>& group(int64_t number) const;
  // Also drops the group's calls that were started and not waited for.
  void destroy_group(int64_t number);

  // The same for reducers, whose parameters' gradients are observed until the reducer is destroyed.
  void add_reducer(int64_t number, std::shared_ptr<Reducer> reducer);
  const std::shared_ptr<Reducer>& reducer(int64_t number) const;
  void destroy_reducer(int64_t number);

  // Serves a store on "host:port", unless the session serves it; returns the port. Its bytes, which its clients send,
  // are charged to the session. Throws Error.
  int serve_store(const std::string& address, const std::string& token);
  // Ends the store at a port as soon as no group in it has members, which is checked here and when the session serves
  // another store. Throws Error (ValueError) if there is none.
  void release_store(int64_t port);

  std::string unsaved() const override;
  // Whether an image would be for another process, with those of all sessions: the image then has the groups
  // (group_image.h), unless a collective is in progress.
  void set_passed(bool is_passed) { is_passed_ = is_passed; }
  std::vector<GroupMember> members() const;
  void write_image(ImageTensors* tensors, ImageOutput* out) const;
  // Makes the groups and reducers of an image, in a session without any. resume() then serves the stores and forms the
  // groups, in the background. Throw Error.
  void read_image(ImageInput* in, const ImageObjects& objects);
  void resume();
  // Ends the stores, so that another process can serve them; the groups in them fail.
  void end_stores();

  // Enters the collective of an instruction that is not executed because an argument is poisoned, so that the other
  // ranks receive an error instead of waiting.
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) override;

 private:
  static constexpr size_t kMaxGroups = 256;
  // Charged per group and per store: threads, descriptors, buffers; and a rank's slots in the memory that a group on
  // one host shares.
  static constexpr uint64_t kGroupBytes = uint64_t{1280} << 10;
  static constexpr uint64_t kStoreBytes = uint64_t{512} << 10;
  static constexpr size_t kMaxStarted = 65'536;
  static constexpr size_t kMaxStores = 16;
  static constexpr size_t kMaxReducers = 1024;
  // Throws Suspended until the call is complete. Then erases it, completes it and returns its results.
  Tensors finish(std::optional<PendingCall>& pending);

  const std::shared_ptr<SuspensionNotifier> notifier_;
  const PeerPolicy peers_;
  const OpenGate open_gate_;
  const std::shared_ptr<ThreadBudget> threads_;
  std::optional<PendingCall> current_;  // of the suspended instruction
  int64_t value_ = 0;
  absl::flat_hash_map<int64_t, std::optional<PendingCall>> started_;
  std::vector<std::shared_ptr<Work>> dropped_;
  struct ServedStore {
    HostCharge charge;
    ThreadShare thread;  // that ends waits at their deadlines
    std::unique_ptr<StoreServer> server;
    std::string address, token;
    bool is_released = false;
  };
  void end_released_stores();
  std::vector<ServedStore> stores_;
  struct PassedStore {  // that resume() serves
    std::string address, token;
    bool is_released = false;
    std::vector<std::string> keys{}, values{};
  };
  std::vector<PassedStore> passed_stores_;
  bool is_passed_ = false;
  struct OwnGroup {
    HostCharge charge;
    std::shared_ptr<ProcessGroup> group;
    GroupPlace place;
  };
  absl::flat_hash_map<int64_t, OwnGroup> groups_;
  absl::flat_hash_map<int64_t, std::shared_ptr<Reducer>> reducers_;
};

}  // namespace tt::distributed
