#include "server/rpc/principals.h"

#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/text.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

using Json = nlohmann::json;

constexpr uintmax_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxNameBytes = 64;
constexpr char kFields[] =
    "name, role, token_sha256, certificates, expires, sessions, memory, host_memory, gpu_memory, handles, transfers, "
    "checkpoints, weight, priority";

// A field of QuotaLimits, or null if there is none of that name.
uint64_t* limit_of(QuotaLimits& limits, absl::string_view field) {
  if (field == "memory") return &limits.memory;
  if (field == "host_memory") return &limits.host_memory;
  if (field == "gpu_memory") return &limits.gpu_memory;
  if (field == "handles") return &limits.handles;
  if (field == "transfers") return &limits.transfers;
  return field == "checkpoints" ? &limits.checkpoint_bytes : nullptr;
}

std::string digest_of(absl::string_view token) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof digest});
}

constexpr size_t kMaxShown = 80;  // bytes of a text of the file in a message

absl::Status invalid(absl::string_view field, absl::string_view expected, const Json& got) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", got ", printable(got.dump(), kMaxShown)));
}

bool is_name(const Json& value) { return value.is_string() && is_principal_name(value.get<std::string>()); }

bool is_digest(const Json& value) {
  if (!value.is_string()) return false;
  const std::string text = value.get<std::string>();
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

absl::StatusOr<Role> parse_role(const Json& value) {
  for (Role role : {Role::kObserver, Role::kUser, Role::kOperator}) {
    if (value == role_name(role)) return role;
  }
  return invalid("role", "observer, user or operator", value);
}

// "2027-01-31" (its end) or "2027-01-31T12:00:00Z". Never 0, which means that there is no date.
absl::StatusOr<std::time_t> parse_time(const Json& value) {
  absl::Time time;
  std::string error;
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    if (absl::ParseTime("%Y-%m-%d", text, absl::UTCTimeZone(), &time, &error)) {
      return std::max<std::time_t>(absl::ToTimeT(time + absl::Hours(24)), 1);
    }
    if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return std::max<std::time_t>(absl::ToTimeT(time), 1);
  }
  return invalid("expires", "a date such as 2027-01-31 or 2027-01-31T12:00:00Z", value);
}

}  // namespace

bool is_principal_name(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && text[0] != '.' && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' || c == '@';
         });
}

absl::StatusOr<Principals::Table> Principals::parse(const std::string& text) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return absl::InvalidArgumentError("expected JSON");
  if (!root.is_object() || !root.contains("principals") || !root["principals"].is_array()) {
    return absl::InvalidArgumentError("expected an object with a list \"principals\"");
  }
  Table table;
  for (const Json& each : root["principals"]) {
    if (!each.is_object() || !each.contains("name") || !is_name(each["name"])) {
      return invalid("name", "1 to 64 letters, digits and .-_@, not beginning with . or -",
                     each.is_object() && each.contains("name") ? each["name"] : each);
    }
    Entry entry;
    entry.principal.name = each["name"].get<std::string>();
    entry.principal.max_sessions = Principals::kDefaultSessions;
    QuotaLimits limits;
    uint32_t weight = 1;
    Share::Priority priority = Share::Priority::kInteractive;
    const size_t index = table.entries.size();
    const auto in_entry = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(absl::StrCat(entry.principal.name, ": ", status.message()));
    };
    if (entry.principal.name == "user" || entry.principal.name == "admin") {
      return in_entry(absl::InvalidArgumentError("is the principal of one of the engine's own tokens"));
    }
    for (const Entry& other : table.entries) {
      if (other.principal.name == entry.principal.name) return in_entry(absl::InvalidArgumentError("occurs twice"));
    }
    for (const auto& [field, value] : each.items()) {
      if (field == "name") continue;
      if (field == "role") {
        absl::StatusOr<Role> role = parse_role(value);
        if (!role.ok()) return in_entry(role.status());
        entry.principal.role = *role;
      } else if (field == "token_sha256") {
        if (!is_digest(value)) return in_entry(invalid(field, "64 hexadecimal digits in lower case", value));
        entry.token_digest = value.get<std::string>();
        if (!table.by_token.emplace(entry.token_digest, index).second) {
          return in_entry(absl::InvalidArgumentError("has the token of another principal"));
        }
      } else if (field == "certificates") {
        if (!value.is_array()) return in_entry(invalid(field, "a list of names", value));
        for (const Json& name : value) {
          if (!name.is_string() || name.get<std::string>().empty()) return in_entry(invalid(field, "names", name));
          entry.certificates.push_back(name.get<std::string>());
          if (!table.by_certificate.emplace(entry.certificates.back(), index).second) {
            return in_entry(absl::InvalidArgumentError(absl::StrCat(
                "the certificate name ", printable(entry.certificates.back(), kMaxShown), " occurs twice")));
          }
        }
      } else if (field == "expires") {
        absl::StatusOr<std::time_t> time = parse_time(value);
        if (!time.ok()) return in_entry(time.status());
        entry.expires = *time;
      } else if (field == "sessions") {
        if (!value.is_number_unsigned()) return in_entry(invalid(field, "a number", value));
        if (value != 0) entry.principal.max_sessions = value.get<size_t>();
      } else if (field == "weight") {
        if (!value.is_number_unsigned() || value.get<uint64_t>() - 1 >= Share::kMaxWeight) {
          return in_entry(invalid(field, absl::StrCat("a number from 1 to ", Share::kMaxWeight), value));
        }
        weight = value.get<uint32_t>();
      } else if (field == "priority") {
        if (value != "interactive" && value != "batch") return in_entry(invalid(field, "interactive or batch", value));
        priority = value == "batch" ? Share::Priority::kBatch : Share::Priority::kInteractive;
      } else if (uint64_t* limit = limit_of(limits, field)) {
        if (!value.is_number_unsigned()) return in_entry(invalid(field, "a number", value));
        *limit = value.get<uint64_t>();
      } else {
        return in_entry(absl::InvalidArgumentError(
            absl::StrCat("expected fields ", kFields, ", got ", printable(field, kMaxShown))));
      }
    }
    if (entry.token_digest.empty() && entry.certificates.empty()) {
      return in_entry(absl::InvalidArgumentError("expected token_sha256 or certificates"));
    }
    entry.principal.share = std::make_shared<Share>(entry.principal.name);
    entry.principal.share->set(weight, priority);
    entry.principal.quota = std::make_shared<Quota>(entry.principal.name, limits);
    table.entries.push_back(std::move(entry));
  }
  return table;
}

absl::StatusOr<Principals::Table> Principals::read(const std::filesystem::path& file) {
  const auto failed = [&](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("the file of principals ", file.native(), ": ", why));
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (error) return failed(error.message());
  if (!std::filesystem::is_regular_file(status)) return failed("is not a regular file");
  // A user who can write the file can make itself an operator.
  using std::filesystem::perms;
  if ((status.permissions() & (perms::group_write | perms::others_write)) != perms::none) {
    return failed("is writable by other users; use 'chmod go-w'");
  }
  if (std::filesystem::file_size(file, error) > kMaxFileBytes) return failed("is larger than 16 MiB");
  std::ifstream in(file);
  if (!in) return failed("cannot be opened");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return failed("cannot be read");
  absl::StatusOr<Table> table = parse(text);
  return table.ok() ? std::move(table) : failed(table.status().message());
}

Principals::Version Principals::version_of(const std::filesystem::path& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_ctim.tv_sec, found.st_ctim.tv_nsec, found.st_size};
}

absl::StatusOr<std::unique_ptr<Principals>> Principals::from_file(std::filesystem::path file) {
  const Version version = version_of(file);
  absl::StatusOr<Table> table = read(file);
  if (!table.ok()) return table.status();
  std::unique_ptr<Principals> principals(new Principals(std::move(file)));
  MutexLock lock(principals->mutex_);
  principals->table_ = *std::move(table);
  principals->version_ = version;
  principals->checked_ = std::time(nullptr);
  return principals;
}

Principals::~Principals() { stop(); }

void Principals::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Principals::watch(std::chrono::milliseconds interval, Revoked revoked) {
  revoked_ = std::move(revoked);
  thread_ = std::thread([this, interval] { run(interval); });
}

void Principals::run(std::chrono::milliseconds interval) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stopped_.wait_for(mutex_, interval, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; })) {
        return;
      }
    }
    try {
      reload();
      for (const std::string& name : expire()) revoked_(name);
    } catch (const std::exception& error) {  // out of memory; tried again
      spdlog::error("cannot read the principals: {}", error.what());
    }
  }
}

void Principals::reload() {
  const Version version = version_of(file_);
  {
    MutexLock lock(mutex_);
    if (version == version_) return;
  }
  absl::StatusOr<Table> table = read(file_);
  if (!table.ok()) {  // tried again, because the reason may pass; reported once
    if (std::string why(table.status().message()); why != failure_) {
      spdlog::error("{}; the principals stay as they were", why);
      failure_ = std::move(why);
    }
    return;
  }
  failure_.clear();
  const std::time_t time = std::time(nullptr);
  std::vector<std::string> revoked;
  size_t count = 0;
  {
    MutexLock lock(mutex_);
    version_ = version;
    for (const Entry& before : table_.entries) {
      const auto same = [&](const Entry& now) {
        return now.principal.name == before.principal.name && now.principal.role == before.principal.role &&
               now.token_digest == before.token_digest && now.certificates == before.certificates &&
               (!now.has_expired(time) || before.has_expired(time));
      };
      if (std::none_of(table->entries.begin(), table->entries.end(), same)) revoked.push_back(before.principal.name);
      for (Entry& now : table->entries) {  // its sessions go on with the new limits
        if (now.principal.name != before.principal.name) continue;
        before.principal.quota->set_limits(now.principal.quota->limits());
        now.principal.quota = before.principal.quota;
        before.principal.share->set(now.principal.share->weight(), now.principal.share->priority());
        now.principal.share = before.principal.share;
      }
    }
    table_ = *std::move(table);
    count = table_.entries.size();
  }
  spdlog::info("read {} principals from {}", count, file_.native());
  for (const std::string& name : revoked) revoked_(name);
}

// Returns the principals that have expired since the last call.
std::vector<std::string> Principals::expire() {
  const std::time_t now = std::time(nullptr);
  std::vector<std::string> expired;
  MutexLock lock(mutex_);
  for (const Entry& each : table_.entries) {
    if (each.has_expired(now) && !each.has_expired(checked_)) expired.push_back(each.principal.name);
  }
  checked_ = now;
  return expired;
}

absl::StatusOr<Principal> Principals::valid(const Entry& entry) {
  if (!entry.has_expired(std::time(nullptr))) return entry.principal;
  return absl::UnauthenticatedError(
      absl::StrCat("the access of ", entry.principal.name, " expired on ",
                   absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromTimeT(entry.expires), absl::UTCTimeZone())));
}

absl::StatusOr<Principal> Principals::by_token(absl::string_view token) const {
  const std::string digest = digest_of(token);
  MutexLock lock(mutex_);
  const auto found = table_.by_token.find(digest);
  if (found == table_.by_token.end()) return absl::NotFoundError("no principal has this token");
  return valid(table_.entries[found->second]);
}

absl::StatusOr<Principal> Principals::by_name(absl::string_view name) const {
  MutexLock lock(mutex_);
  for (const Entry& entry : table_.entries) {
    if (entry.principal.name == name) return valid(entry);
  }
  return absl::NotFoundError(absl::StrCat("the file of principals has no ", name));
}

absl::StatusOr<Principal> Principals::by_certificate(absl::Span<const std::string> names) const {
  MutexLock lock(mutex_);
  for (const std::string& name : names) {
    const auto found = table_.by_certificate.find(name);
    if (found != table_.by_certificate.end()) return valid(table_.entries[found->second]);
  }
  return absl::NotFoundError("no principal has this certificate");
}

}  // namespace tt::server
