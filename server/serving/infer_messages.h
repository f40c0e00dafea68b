// Conversions between the messages of inference requests and InferRequest, InferResult.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "inference/grpc_service.pb.h"
#include "server/serving/infer.h"
#include "server/serving/shared_regions.h"

namespace tt::server {

// Converts everything but who calls and when the request's time ends. `request` refers to the strings of `wire`, which
// must outlive it. `regions` are null if shared memory is not allowed. INVALID_ARGUMENT, or what SharedRegions returns.
absl::Status read_request_message(const inference::ModelInferRequest& wire, const std::string& principal,
                                  const SharedRegions* regions, InferRequest* request);

// Of the outputs, of which only names and sizes are read, those that the response contains: the others are written to
// shared memory. INVALID_ARGUMENT if that is too small, or what SharedRegions returns.
absl::StatusOr<std::vector<InferOutput>> response_outputs(const inference::ModelInferRequest& wire,
                                                          const std::string& principal, const SharedRegions* regions,
                                                          absl::Span<const InferOutput> outputs);

// Sets the outputs of a reply, or writes them to the shared memory that the request names for them.
absl::Status write_response_message(const inference::ModelInferRequest& wire, const std::string& principal,
                                    const SharedRegions* regions, const InferResult& result,
                                    inference::ModelInferResponse* reply);

// Sets a parameter of a request: one of those that the scheduler uses, or one for the model.
absl::Status set_parameter(const std::string& name, const InferParameter& value, InferRequest* request);

}  // namespace tt::server
