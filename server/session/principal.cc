#include "server/session/principal.h"

namespace tt::server {

const char* role_name(Role role) {
  switch (role) {
    case Role::kObserver: return "observer";
    case Role::kUser: return "user";
    case Role::kOperator: return "operator";
  }
  return "";
}

}  // namespace tt::server
