// Admin: what people and scripts ask an engine about itself. Needs no session.
//
// Every call but status() needs the engine's admin token. status() goes with either token; with the user token it
// leaves out what sessions' programs are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/schema/device.h"
#include "proto/wire.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::client {

// Thread-safe. Every call throws Error (kConnection) where nobody answers within the deadline, or the token is wrong or
// not the admin token.
class Admin {
 public:
  // Address and token as ConnectOptions has them; an empty address is TELETENSOR_ADDRESS, then the socket of this
  // user's own engine: on TCP anybody on this host could wait for the token. An empty admin token is looked for as
  // find_admin_token() does.
  Admin(const std::string& address, const std::string& token, double deadline_seconds = 5,
        const std::string& admin_token = "");
  ~Admin();

  v1::StatusReply status() const;
  v1::EmptyCacheReply empty_cache() const;
  v1::SnapshotReply snapshot(Device device) const;
  // Returns once the engine has stopped accepting sessions; it exits when those there are have ended, or after
  // `seconds`.
  void drain(double seconds) const;
  // Cancels the session's work and frees what it holds. Throws Error (kValue) where no session has that id.
  void end_session(uint64_t id) const;
  const std::string& address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::client
