#include "server/session/session_image.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autograd/image.h"
#include "distributed/group_service.h"
#include "engine/session/image.h"
#include "server/checkpoint/checksum.h"
#include "server/session/image_parts.h"
#include "server/session/publish_service.h"
#include "server/session/session.h"
#include "server/session/shared_tensors.h"

namespace tt::server {
namespace {

constexpr std::string_view kMagic = "TTIMAGE";
constexpr char kFormat = 4;
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 16;

// unsaved(), for an image that is passed to another process with those of all sessions.
std::string unpassed(Context& context) {
  const auto set_passed = [&context](bool is_passed) {
    if (auto* shares = context.services.find<ShareService>()) shares->set_passed(is_passed);
    if (auto* groups = context.services.find<distributed::GroupService>()) groups->set_passed(is_passed);
    if (auto* published = context.services.find<PublishService>()) published->set_passed(is_passed);
  };
  set_passed(true);
  std::string reason = unsaved(context);
  set_passed(false);
  return reason;
}

std::string to_text(const SessionRecord& record) {
  ImageOutput out;
  out.text(record.key_digest);
  out.number(record.id);
  out.text(record.client);
  out.text(record.principal);
  out.number(record.memory_limit);
  out.number(record.executed);
  out.real(record.persistence.every);
  out.real(record.persistence.wait);
  return out.bytes();
}

}  // namespace

SessionRecord read_record(ImageSource* source) {
  char magic[kMagic.size() + 1];
  source->read(magic, sizeof magic);
  check(std::string_view(magic, kMagic.size()) == kMagic, "[image] expected the image of a session");
  check(magic[kMagic.size()] == kFormat, "[image] expected an image of format ", static_cast<int>(kFormat),
        ", got one of format ", static_cast<int>(magic[kMagic.size()]), ", which another version has written");
  const std::string bytes = read_part(kMaxRecordBytes, source);
  ImageInput in(bytes);
  SessionRecord record;
  record.key_digest = in.text();
  record.id = in.number();
  record.client = in.text();
  record.principal = in.text();
  record.memory_limit = in.number();
  record.executed = in.number();
  record.persistence.every = in.real();
  record.persistence.wait = in.real();
  check(record.key_digest.size() == Sha256::kBytes && in.at_end(), "[image] expected a session's record");
  return record;
}

SessionRecord Session::record() const {
  SessionRecord record;
  record.key_digest = options_.key;
  record.id = options_.id;
  record.client = options_.client;
  record.principal = options_.principal;
  record.memory_limit = options_.memory_limit;
  record.executed = executed();
  record.persistence = persistence();
  return record;
}

absl::Status Session::hold(std::chrono::steady_clock::time_point deadline, bool is_passed) {
  std::string reason = "a frame runs";
  const auto wanted = [&] { return std::chrono::steady_clock::now() < deadline; };
  for (bool first = true; first || wanted(); first = false) {
    {
      MutexLock lock(progress_mutex_);
      is_held_.store(true, std::memory_order_release);
    }
    if (wait_until_idle(wanted)) {
      MutexLock execution(execution_mutex_);
      MutexLock lock(mutex_);
      if (over()) break;
      ContextScope context(&context_);
      context_.finish_device_work();
      store_async_errors();
      reason = is_passed ? unpassed(context_) : unsaved(context_);
      if (reason.empty()) {
        transfers_->hold(true);
        return absl::OkStatus();
      }
    }
    release();
    // The next frame may change what is unsaved.
    const uint64_t before = executed();
    MutexLock lock(progress_mutex_);
    ++waiting_;
    while (wanted() && executed() == before && !stopped_) progress_.wait_for(progress_mutex_, kHoldInterval);
    --waiting_;
  }
  release();
  if (over()) return absl::NotFoundError("the session has ended");
  return absl::FailedPreconditionError(reason);
}

std::vector<distributed::GroupMember> Session::group_members() {
  MutexLock lock(mutex_);
  const auto* groups = context_.services.find<distributed::GroupService>();
  return over() || groups == nullptr ? std::vector<distributed::GroupMember>() : groups->members();
}

void Session::end_stores() {
  MutexLock lock(mutex_);
  if (auto* groups = context_.services.find<distributed::GroupService>(); groups != nullptr && !over())
    groups->end_stores();
}

void Session::resume_groups() {
  MutexLock execution(execution_mutex_);
  MutexLock lock(mutex_);
  ContextScope context(&context_);
  if (auto* groups = context_.services.find<distributed::GroupService>(); groups != nullptr && !over())
    groups->resume();
}

void Session::release() {
  transfers_->hold(false);
  MutexLock lock(progress_mutex_);
  is_held_.store(false, std::memory_order_release);
  released_.notify_all();
}

std::vector<Ref<Storage>> Session::write_structure(ImageBlocks* blocks, ImageOutput* structure) {
  MutexLock lock(mutex_);
  check(!over(), "the session has ended");
  ContextScope context(&context_);
  ImageTensors tensors;
  ImageOutput rest;
  write_context(context_, &tensors, &rest);
  write_slots(slots_, &tensors, &rest);
  transfers_->write_image(&tensors, &rest);
  autograd::write_tape(&tensors, &rest);
  write_bookkeeping(&rest);
  const auto* shares = blocks == nullptr ? nullptr : context_.services.find<ShareService>();
  rest.flag(shares != nullptr);
  if (shares != nullptr) shares->write_image(&tensors, &rest);
  const auto* groups = blocks == nullptr ? nullptr : context_.services.find<distributed::GroupService>();
  rest.flag(groups != nullptr);
  if (groups != nullptr) groups->write_image(&tensors, &rest);
  std::vector<Ref<Storage>> contents = tensors.write(blocks, structure);
  structure->append(rest);
  return contents;
}

void Session::write_image(ImageSink* sink, ImageBlocks* blocks) {
  ImageOutput structure;
  const std::vector<Ref<Storage>> storages = write_structure(blocks, &structure);
  const std::string head = to_text(record());
  uint64_t bytes = kMagic.size() + 1 + 2 * kPartBytes + head.size() + structure.bytes().size() + sizeof(uint32_t);
  for (const Ref<Storage>& storage : storages) bytes += storage->bytes();
  sink->begin(bytes);
  sink->write(kMagic.data(), kMagic.size());
  sink->write(&kFormat, 1);
  write_part(head, sink);
  write_part(structure.bytes(), sink);
  uint32_t checksum = 0;
  write_contents_of(storages, &checksum, sink);
  write_checksum(checksum, sink);
}

// What has left its device is written from where it is. Downloads, which bring it back, wait meanwhile.
void Session::write_contents_of(const std::vector<Ref<Storage>>& storages, uint32_t* checksum, ImageSink* sink) {
  std::optional<MutexLock<>> lock;
  if (is_offloaded()) lock.emplace(mutex_);  // nothing leaves a device while the session is held
  for (const Ref<Storage>& storage : storages) {
    if (storage->data() != nullptr) {
      write_contents(storage, downloads_, checksum, sink);
      continue;
    }
    offload_->read(*storage, [&](const char* data, size_t size) {
      *checksum = update_checksum(*checksum, data, size);
      sink->write(data, size);
    });
  }
}

void Session::write_bookkeeping(ImageOutput* out) {
  const ExecutorStats& stats = executor_.stats();
  out->number(executed());
  out->number(stats.instructions);
  out->number(stats.fused);
  out->number(stats.failed);
  {
    MutexLock lock(progress_mutex_);
    out->number(cancel_through_);
  }
  sites_->write_image(out);
  replies_.write_image(out);
  write_programs(out);
}

void Session::write_programs(ImageOutput* out) const {
  const auto* programs = context_.services.find<Programs>();
  uint64_t count = 0;
  if (programs) programs->visit([&](int64_t, const DefinedProgram&) { ++count; });
  out->number(count);
  if (count == 0) return;
  programs->visit([&](int64_t number, const DefinedProgram& program) {
    out->signed_number(number);
    out->number(program.interface().read);
    out->number(program.interface().written);
    out->flag(program.interface().exact);
    out->text(program.text());
  });
}

void Session::read_programs(ImageInput* in) {
  const auto* definer = context_.services.find<ProgramDefiner>();
  for (size_t count = in->count(); count > 0; --count) {
    const int64_t number = in->signed_number();
    ProgramInterface interface;
    interface.read = static_cast<size_t>(in->number(Program::kMaxNames));
    interface.written = static_cast<size_t>(in->number(Program::kMaxNames));
    interface.exact = in->flag();
    context_.services.get<Programs>().define(number, definer->define(in->text(), interface));
  }
}

void Session::read_image(ImageSource* source, ImageBlocks* blocks) try {
  MutexLock execution(execution_mutex_);
  MutexLock lock(mutex_);
  const std::string structure = read_part(kMaxStructureBytes, source);
  ContextScope context(&context_);
  ImageInput in(structure);
  const ImageObjects objects(&in, blocks, source->left());
  read_context(&in, objects, &context_);
  read_slots(&in, objects, &slots_);
  transfers_->read_image(&in, objects);
  autograd::read_tape(&in, objects);
  const uint64_t executed = in.number();
  ExecutorStats stats;
  stats.instructions = in.number();
  stats.fused = in.number();
  stats.failed = in.number();
  executor_.set_stats(stats);
  {
    MutexLock progress(progress_mutex_);
    cancel_through_ = in.number();
  }
  sites_->read_image(&in);
  replies_.read_image(&in);
  read_programs(&in);
  if (in.flag()) {
    auto* shares = context_.services.find<ShareService>();
    check(blocks != nullptr && shares != nullptr, "[image] expected no exported tensors");
    shares->read_image(&in, objects);
  }
  if (in.flag()) {
    auto* groups = context_.services.find<distributed::GroupService>();
    check(blocks != nullptr && groups != nullptr, "[image] expected no process groups");
    groups->read_image(&in, objects);
  }
  check(in.at_end(), "[image] the image has more than was expected");
  uint32_t checksum = 0;
  for (const Ref<Storage>& storage : objects.contents()) read_contents(storage, downloads_, &checksum, source);
  check_checksum(checksum, source);
  context_.host_bytes = sites_->bytes() + replies_.bytes();
  account_->set_bookkeeping(slots_.host_bytes() + context_.bookkeeping_bytes(), slots_.size());
  publish(executed);
  last_use_.store({}, std::memory_order_relaxed);  // idle until its client comes
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::kOutOfMemory, "[image] out of memory on the host");
}

}  // namespace tt::server
