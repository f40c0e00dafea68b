// GroupMember: what a rank of a process group has done, for the process that forms the group again (group_image.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tt::distributed {

// A rank of a group, or, with the rank -1, a store that the session serves.
struct GroupMember {
  std::string store;  // its address
  std::string token;  // of the store
  std::string group;  // its name
  int rank = 0;
  int size = 1;  // of the group; of a store, the number of its members
  uint64_t collectives = 0;
  bool is_whole = true;                    // no rank has left the group, and it has not failed
  std::map<int, uint64_t> sent, received;  // messages, by the other rank
};

}  // namespace tt::distributed
