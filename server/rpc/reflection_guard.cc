#include "server/rpc/reflection_guard.h"

#include <optional>

#include "absl/strings/match.h"
#include "server/rpc/engine_service.h"

namespace tt::server {
namespace {

using grpc::experimental::InterceptionHookPoints;

// One per call. A refused call is cancelled before its handler runs, so the handler reads nothing.
class ReflectionInterceptor final : public grpc::experimental::Interceptor {
 public:
  ReflectionInterceptor(grpc::ServerContext& context, const Auth& auth, bool open, CallAdmission& admission)
      : context_(context), auth_(auth), open_(open), admission_(admission) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) begin();
    methods->Proceed();
  }

 private:
  // Maximum duration of a reflection call. Tools send only a few requests in a call.
  static constexpr std::chrono::milliseconds kTimeout{10'000};

  absl::StatusOr<CallAdmission::Slot> admit() {
    absl::StatusOr<CallAdmission::Holder> holder = holder_of_caller(auth_, context_, Role::kObserver);
    if (holder.ok()) {
      admission_.authenticated(context_.peer());
    } else if (open_) {
      holder = CallAdmission::address_holder(context_);
    } else {
      return holder.status();
    }
    return admission_.admit(CallAdmission::Kind::kReflection, *std::move(holder));
  }

  void begin() {
    absl::StatusOr<CallAdmission::Slot> slot = admit();
    if (!slot.ok()) {
      admission_.refuse(context_, slot.status());
      return;
    }
    slot_.emplace(*std::move(slot));
    deadline_.emplace(admission_, context_.c_call(), CallAdmission::Awaited::kRequest, kTimeout, &*slot_);
  }

  grpc::ServerContext& context_;
  const Auth& auth_;
  const bool open_;
  CallAdmission& admission_;
  std::optional<CallAdmission::Slot> slot_;
  std::optional<CallAdmission::Deadline> deadline_;
};

}  // namespace

grpc::experimental::Interceptor* ReflectionGuard::CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) {
  if (info->method() == nullptr || !absl::StartsWith(info->method(), "/grpc.reflection.")) return nullptr;
  // The reflection service is synchronous, so its context is a ServerContext.
  return new ReflectionInterceptor(static_cast<grpc::ServerContext&>(*info->server_context()), auth_, open_,
                                   admission_);
}

}  // namespace tt::server
