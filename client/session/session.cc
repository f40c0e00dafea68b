#include "client/session/session.h"

#include <chrono>
#include <utility>

#include "client/session/autocast.h"
#include "client/session/custom_operators.h"
#include "client/session/session_impl.h"
#include "proto/version.h"

namespace tt::client {
namespace {

constexpr auto kCloseTimeout = std::chrono::seconds(5);

// Returns the part of a source line's text that the engine keeps, without a part of a character at its end.
std::string_view beginning(std::string_view utf8) {
  constexpr size_t kMaxText = 256;
  if (utf8.size() <= kMaxText) return utf8;
  size_t size = kMaxText;
  while (size > 0 && (static_cast<unsigned char>(utf8[size]) & 0xC0) == 0x80) --size;
  return utf8.substr(0, size);
}

}  // namespace

static uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)), serial_(next_serial()) {}
Session::~Session() {
  if (impl_->autocast_used) remove_autocast_session(this);
  forget_custom_operators(*this);
  if (impl_->link.is_forked_copy()) impl_.release();  // NOLINT: its threads and connection belong to the parent process
}

void check_traceparent(const std::string& text) {
  if (text.empty()) return;
  constexpr std::string_view kForm = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  bool valid = text.size() == kForm.size();
  for (size_t i = 0; valid && i < kForm.size(); ++i) {
    const char c = text[i];
    valid = kForm[i] == 'x' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') : c == kForm[i];
  }
  check(ErrorKind::kValue, valid,
        "[set_trace_context] expected a W3C traceparent such as "
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01, got ",
        text);
}

void Session::set_trace_context(const std::string& traceparent) {
  check_traceparent(traceparent);
  impl_->link.set_trace_context(traceparent);
}

Ref<Session> Session::connect(std::unique_ptr<Transport> transport, const std::string& client_name,
                              uint64_t memory_limit, const std::string& traceparent) {
  check_traceparent(traceparent);
  v1::HelloRequest hello;
  hello.set_client(client_name);
  hello.set_schema_digest(schema_digest());
  hello.set_version(std::string(own_version()));
  hello.set_memory_limit(memory_limit);
  hello.set_traceparent(traceparent);
  return Ref<Session>(new Session(std::make_unique<Impl>(std::move(transport), std::move(hello))));
}

void Session::persist(double every, double wait) { impl_->link.persist(every, wait); }

void Session::synchronize(uint32_t site) {
  Waiting waiting(*impl_, site);
  impl_->issue_all_deferred();
  if (!engine().update_errors()) return impl_->link.synchronize();
  constexpr uint64_t kErrorOfAnUpdate = 0;
  const std::vector<v1::ReadResult> answers = impl_->link.read({&kErrorOfAnUpdate, 1}, /*meta_only=*/true);
  if (answers[0].has_error()) throw impl_->link.remote_error(answers[0].error());
}

void Session::mark_read_only(const Tensor& tensor) {
  check(tensor->session.get() == this, "expected a tensor of this session, got a tensor of another session");
  check_has_values(*tensor, "mark_read_only");
  impl_->read_only.add(tensor->storage_number());
}
bool Session::is_read_only(const Tensor& tensor) const { return impl_->read_only.contains(tensor->storage_number()); }

void Session::flush() { impl_->link.flush(); }
void Session::cancel() {
  impl_->issue_all_deferred();
  impl_->link.cancel();
}
void Session::close() {
  if (!impl_->link.close(kCloseTimeout)) throw Interrupted();
}
void Session::release(uint64_t handle) noexcept {
  if (is_traced(handle)) return;
  try {
    if (!impl_->link.is_forked_copy()) impl_->issue_if_deferred(handle);  // so that the engine does not keep the bytes
  } catch (const Error&) {                                                // the session has ended
  }
  impl_->link.release(handle);
}
const v1::HelloReply& Session::engine() const { return impl_->link.engine(); }

uint32_t Session::site(std::string_view file, uint32_t line, std::string_view function) {
  MutexLock lock(impl_->new_sites_mutex);
  bool is_new = false;
  uint32_t number = impl_->sites.number(file, line, function, &is_new);
  if (is_new) {
    file = beginning(file);
    function = beginning(function);
    // Does not wait, because the lock is held.
    const size_t characters = file.size() + function.size();
    Link::Appending appending =
        impl_->link.append_at_once({characters + 16, frame_memory::kSite + frame_memory::kCharacter * characters});
    v1::Site* site = appending.frame().add_sites();
    site->set_id(number);
    site->set_file(file.data(), file.size());
    site->set_line(line);
    site->set_function(function.data(), function.size());
  }
  return number;
}

Session::Counters Session::counters() const {
  Counters counters = impl_->link.counters();
  impl_->sites.total(&counters);
  return counters;
}

CallLog& Session::call_log() { return impl_->calls; }
void Session::start_frame_log(size_t max_frames) { impl_->link.start_frame_log(max_frames); }
std::vector<SentFrame> Session::stop_frame_log() { return impl_->link.stop_frame_log(); }

std::string Session::site_name(uint32_t site) const { return impl_->sites.name(site); }

void Session::describe_site(uint32_t site, v1::Site* description) const { impl_->sites.describe(site, description); }

std::vector<Session::Wait> Session::wait_report() const { return impl_->sites.waits(); }

}  // namespace tt::client
