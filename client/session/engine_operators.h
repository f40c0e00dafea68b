// EngineOperators: the operators and parameters that a session's engine has, for a client of another version.
//
// A call of an operator that the engine does not have is rejected before it is sent, because the engine would refuse
// the frame and end the session. Owned by the session; immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/schema/op.h"
#include "proto/wire.h"

namespace tt::client {

class EngineOperators {
 public:
  // Throws Error (ConnectionError) if the engine's table is malformed.
  explicit EngineOperators(const v1::HelloReply& engine);

  // Throws Error (NotImplementedError) if the engine does not have the operator, or a parameter whose argument is not
  // its default. Takes no time if the engine's table is the client's.
  void require(const Op& op, Args args) const {
    if (!same_) [[unlikely]]
      require_known(op, args);
  }

 private:
  void require_known(const Op& op, Args args) const;

  const bool same_;
  const std::string version_;
  const uint32_t max_id_;             // of an engine that sends no table
  std::vector<uint32_t> parameters_;  // by id: their number plus 1; 0: no such operator. Empty without a table
};

}  // namespace tt::client
