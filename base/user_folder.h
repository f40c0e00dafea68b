// user_folder(): the user's folder for configuration, caches or state, by the XDG Base Directory Specification.
#pragma once

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace tt {

enum class UserFolder { kConfig, kCache, kState };

// Returns HOME, or the home in the password database if HOME is not set. Empty if that is not an absolute path.
inline std::string user_home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return *home == '/' ? home : "";
  std::vector<char> buffer(size_t{16} << 10);
  passwd entry;
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_dir != nullptr && *found->pw_dir == '/' ? found->pw_dir : "";
}

// Returns $XDG_CONFIG_HOME, $XDG_CACHE_HOME or $XDG_STATE_HOME, by default .config, .cache or .local/state in
// user_home(). Empty if that is not an absolute path, because a relative one would be below the working directory.
inline std::string user_folder(UserFolder folder) {
  const bool is_config = folder == UserFolder::kConfig, is_cache = folder == UserFolder::kCache;
  const char* named = std::getenv(is_config ? "XDG_CONFIG_HOME" : is_cache ? "XDG_CACHE_HOME" : "XDG_STATE_HOME");
  if (named != nullptr && *named != '\0') return *named == '/' ? named : "";
  const std::string home = user_home();
  if (home.empty()) return "";
  return home + (is_config ? "/.config" : is_cache ? "/.cache" : "/.local/state");
}

}  // namespace tt
