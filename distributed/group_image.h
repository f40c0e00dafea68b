// The image of a session's process groups: what the process that replaces this one needs to form them again.
//
// A group can be passed on if all its ranks are sessions of this process: the ranks then meet again in its store, as
// its next generation. They must have named the store by the same address. A store that a session serves is served
// again at its port, with its pairs; all its members must be sessions of this process too. Connections to other engines
// cannot be passed on. The group must be idle: no collective is in progress on any rank, and every message that was
// sent was received. Records of earlier collectives (FlightRecorder) are lost.
#pragma once

#include <string>
#include <vector>

#include "distributed/group/group_member.h"

namespace tt::distributed {

// Why the groups of some ranks cannot be passed on; the ranks' texts, empty where they can. `members` are those of all
// sessions of the process.
std::vector<std::string> why_not_passed(const std::vector<GroupMember>& members);

}  // namespace tt::distributed
