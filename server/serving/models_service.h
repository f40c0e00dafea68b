// ModelsService: teletensor.v1.Models over gRPC; a thin layer over ModelPublisher. Calls are admitted by their metadata
// before their requests are read.
#pragma once

#include "server/rpc/auth.h"
#include "server/rpc/call_admission.h"
#include "server/serving/publish_model.h"
#include "teletensor/v1/model.grpc.pb.h"

namespace tt::server {

class ModelsService final : public teletensor::v1::Models::Service {
 public:
  // All arguments must outlive the service.
  ModelsService(ModelPublisher& publisher, const Auth& auth, CallAdmission& admission);
};

}  // namespace tt::server
