// RawStream: a session that sends arbitrary bytes as frames.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "proto/wire.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/daemon.h"

namespace tt::server::testing {

class RawStream {
 public:
  explicit RawStream(const Daemon& daemon) : channel_(daemon.channel()), stub_(channel_) {
    grpc::ClientContext context;
    daemon.authorize(&context);
    status_ = v1::Engine::NewStub(channel_)->Hello(&context, {}, &hello_);
    EXPECT_TRUE(status_.ok()) << status_.error_message();
    if (!status_.ok()) return;
    context_.AddMetadata("teletensor-session", hello_.session_key());
    call_ = stub_.PrepareCall(&context_, "/teletensor.v1.Engine/Session", &queue_);
    call_->StartCall(tag());
    wait();
  }
  ~RawStream() {
    if (call_) {
      context_.TryCancel();
      finish();
    }
    queue_.Shutdown();
  }

  // Returns nullopt if the stream has ended.
  std::optional<v1::Reply> send(const std::string& bytes) {
    if (!call_) return std::nullopt;
    grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), tag());
    if (!wait()) return std::nullopt;
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, tag());
    v1::Reply reply;
    if (!wait() || !grpc::SerializationTraits<v1::Reply>::Deserialize(&buffer, &reply).ok()) return std::nullopt;
    return reply;
  }
  std::optional<v1::Reply> send(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    return send(frame.SerializeAsString());
  }
  grpc::Status finish() {
    call_->Finish(&status_, tag());
    wait();
    call_ = nullptr;
    return status_;
  }
  const v1::HelloReply& hello() const { return hello_; }

 private:
  void* tag() { return this; }
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  v1::HelloReply hello_;
  grpc::Status status_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  uint64_t sequence_ = 0;
};

}  // namespace tt::server::testing
