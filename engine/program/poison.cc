#include "engine/program/poison.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "engine/device/failed_check.h"
#include "engine/memory/alloc_scope.h"

namespace tt {
namespace {

constexpr size_t kMaxMessage = 4096;

}  // namespace

PoisonRef make_poison(ErrorKind kind, std::string message, std::string_view op, uint32_t site) {
  if (message.size() > kMaxMessage) {
    message.resize(kMaxMessage);
    message += "...";
    message.shrink_to_fit();
  }
  auto poison = std::make_shared<Poison>();
  poison->kind = kind;
  poison->message = std::move(message);
  poison->op = std::string(op);
  poison->site = site;
  poison->retriable = kind == ErrorKind::kOutOfMemory;
  poison->charge = HostCharge(AllocScope::current().account,
                              sizeof(Poison) + 2 * sizeof(void*) + poison->message.capacity() + poison->op.capacity());
  return poison;
}

PoisonRef try_dispatch(Call& call, uint32_t site) {
  const Op& op = *call.op;
  try {
    Dispatcher::instance().dispatch(call);
    return nullptr;
  } catch (const Poisoned& e) {
    return e.root();
  } catch (Error& e) {
    e.set_op(op.name);
    return make_poison(e.kind(), e.message(), op.name, site);
  } catch (const FailedCheck&) {  // an engine bug: the session's state may be wrong, so the session ends
    throw;
  } catch (const std::bad_alloc&) {
    return make_poison(ErrorKind::kOutOfMemory, absl::StrCat("[", message_part(op.name), "] out of memory on the host"),
                       op.name, site);
  } catch (const std::exception& e) {
    return make_poison(ErrorKind::kRuntime, absl::StrCat("[", message_part(op.name), "] ", e.what()), op.name, site);
  }
}

}  // namespace tt
