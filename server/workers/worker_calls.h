// worker_calls: calls to all workers of an engine at once, and the sums of their answers to Admin.Status and
// Admin.Profile.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/workers/workers.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::server {

inline constexpr std::chrono::milliseconds kWorkerTimeout{1'000};

template <typename Reply>
struct WorkerAnswer {
  Workers::Running worker;
  grpc::Status status{};
  Reply reply{};
};

// Calls a method of Admin in all workers, and returns when they have answered or `timeout` has passed.
template <typename Request, typename Reply>
std::vector<WorkerAnswer<Reply>> call_workers(const Workers& workers,
                                              std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (
                                                  v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                            grpc::CompletionQueue*),
                                              const Request& request,
                                              std::chrono::milliseconds timeout = kWorkerTimeout) {
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader;
  };
  std::vector<WorkerAnswer<Reply>> answers;
  for (Workers::Running& each : workers.running()) answers.push_back({std::move(each)});
  std::vector<std::unique_ptr<Call>> calls;
  grpc::CompletionQueue queue;
  const auto deadline = std::chrono::system_clock::now() + timeout;
  for (WorkerAnswer<Reply>& answer : answers) {
    calls.push_back(std::make_unique<Call>());
    Call& call = *calls.back();
    call.context.set_deadline(deadline);
    call.reader = (answer.worker.process->admin().*method)(&call.context, request, &queue);
    call.reader->Finish(&answer.reply, &answer.status, &answer);
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < answers.size(); ++i) queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answers;
}

// Returns a status with `workers`, and the sessions, principals and devices of all of them. A device's memory is the
// sum; its peaks are the sums of the workers' peaks, and its limit is the largest of theirs. Waits for up to a second.
v1::StatusReply status_of(const Workers& workers);

// The samples of all workers together. Returns the error of a worker that has none or does not answer.
absl::StatusOr<v1::ProfileReply> profile_of(const Workers& workers);

}  // namespace tt::server
