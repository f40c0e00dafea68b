# A client of teletensor's wire protocol, written from proto/teletensor/v1/engine.proto and docs/protocol-clients.md.
#
# Requires Ruby's gRPC (Debian: ruby-grpc), the code that protoc generates from engine.proto on the load path, and the
# operators' numbers (`teletensor operators --json`). A Session is used by one thread.

require "grpc"
require "json"
require "teletensor/v1/engine_pb"
require "teletensor/v1/engine_services_pb"

module Teletensor
  # The error of an operation, which its result and everything computed from it have. The session continues.
  class OperationError < StandardError
    attr_reader :kind, :op

    def initialize(error)
      super(error.message)
      @kind, @op = error.kind, error.op
    end
  end

  # The engine has ended the session.
  class SessionEnded < StandardError; end

  # The operators of an engine's version, by name, from the output of `teletensor operators --json`.
  class Operators
    attr_reader :digest, :dtypes

    def initialize(path)
      table = JSON.parse(File.read(path))
      @digest = table.fetch("schema_digest").to_i(16)
      @dtypes = table.fetch("dtypes")
      @by_name = table.fetch("operators").to_h { |op| [op["name"], op] }
    end

    def fetch(name)
      @by_name.fetch(name.to_s) { raise ArgumentError, "expected an operator of the table, got #{name}" }
    end
  end

  # A name of a tensor in the engine. It has neither a shape nor a dtype: the engine returns them with the values.
  Handle = Struct.new(:id)

  # What a read returns.
  Value = Struct.new(:dtype, :sizes, :values)

  # A session with an engine. Calls are collected into a frame, which is sent before a read and by flush().
  class Session
    PACK = { "bool" => "C*", "uint8" => "C*", "int8" => "c*", "int32" => "l<*", "int64" => "q<*", "float32" => "e*",
             "float64" => "E*" }.freeze
    CHUNK = 1 << 20
    BROKEN = [GRPC::Unavailable, GRPC::Unknown, GRPC::Internal, GRPC::Cancelled, GRPC::DeadlineExceeded].freeze

    attr_reader :hello, :resumed

    # address: "host:port" or "unix:PATH".
    def initialize(address, operators, token: ENV["TELETENSOR_TOKEN"])
      @stub = V1::Engine::Stub.new(address, :this_channel_is_insecure)
      @operators, @token = operators, token
      @next_name, @next_request, @next_transfer, @sequence, @executed, @resumed = 1, 1, 1, 0, 0, 0
      @instructions, @reads, @release, @unacknowledged, @answers = [], [], [], [], {}
      @hello = say_hello("")
      @metadata = { "teletensor-session" => @hello.session_key }
      open_stream
    end

    # Issues an operator. Returns its result's handle, or as many handles as the operator has results.
    def call(name, *positional, count: nil, **named)
      op = @operators.fetch(name)
      raise ArgumentError, "#{name}: unknown to this engine" unless known?(op)
      results = count || op["results"]
      raise ArgumentError, "#{name}: pass count, the length of its list of results" if results.negative?
      handles = Array.new(results) { |i| Handle.new(@next_name + i) }
      @instructions << V1::Instruction.new(op: op["id"], args: arguments(op, positional, named), result: @next_name,
                                           result_count: results)
      @next_name += results
      results == 1 ? handles[0] : handles
    end

    # A tensor with values of a dtype: inside the instruction if they are few, otherwise uploaded beside the frames.
    def tensor(values, sizes, dtype = "float32")
      bytes = values.pack(PACK.fetch(dtype))
      return call(:literal, bytes, sizes, dtype, device) if bytes.bytesize <= @hello.limits.max_inline_bytes
      transfer = @next_transfer
      @next_transfer += 1
      handle = call(:uploaded, transfer, sizes, dtype, device)
      flush
      @stub.upload(chunks(transfer, bytes), metadata: @metadata)
      handle
    end

    # The values of a tensor. Waits. Raises OperationError if it or what it depends on has failed.
    def read(handle)
      request = @next_request
      @next_request += 1
      @reads << V1::Read.new(request: request, handle: handle.id)
      flush
      receive until @answers.key?(request)
      answer = @answers.delete(request)
      raise OperationError, answer.error if answer.error
      dtype, sizes = @operators.dtypes.key(answer.tensor.dtype), answer.tensor.sizes.to_a
      count = sizes.reduce(1, :*)
      data = answer.data.empty? && count.positive? ? download(handle) : answer.data
      Value.new(dtype, sizes, data.unpack(PACK.fetch(dtype)))
    end

    # Drops a name. The engine frees the tensor when nothing else uses it.
    def release(handle)
      @release << handle.id
    end

    # Sends what was issued. Does not wait.
    def flush(close: false)
      frame = V1::Frame.new(sequence: @sequence += 1, instructions: @instructions, reads: @reads, release: @release,
                            received: @executed, close: close)
      @instructions, @reads, @release = [], [], []
      @unacknowledged << frame
      @outgoing << frame
    end

    # Waits until everything issued has been executed.
    def synchronize
      flush
      receive until @executed >= @sequence
    end

    # Ends the session: the engine frees everything.
    def close
      flush(close: true)
      @outgoing << nil
      nil until @replies.pop.nil?
    end

    private

    def device
      @hello.devices.first.device
    end

    # An engine with other operators lists its own.
    def known?(op)
      table = @hello.operators
      return true if table.nil?
      index = table.ids.to_a.index(op["id"])
      !index.nil? && op["parameters"].length <= table.parameters[index]
    end

    def say_hello(resume_key)
      request = V1::HelloRequest.new(client: "ruby #{RUBY_VERSION}", schema_digest: @operators.digest, version: "0.1.0",
                                     resume_key: resume_key)
      @stub.hello(request, metadata: @token ? { "authorization" => "Bearer #{@token}" } : {})
    end

    # Opens the stream. A thread passes the replies to a queue, then the error, or nil at the stream's end.
    def open_stream
      outgoing = @outgoing = Queue.new
      replies = @replies = Queue.new
      requests = Enumerator.new { |sink| while (frame = outgoing.pop) do sink << frame end }
      stream = @stub.session(requests, metadata: @metadata)
      Thread.new do
        stream.each { |reply| replies << reply }
        replies << nil
      rescue GRPC::BadStatus => error
        replies << error
      end
    end

    # Takes the next reply. Resumes the session if the connection broke.
    def receive
      reply = @replies.pop
      case reply
      when V1::Reply
        raise SessionEnded, reply.fault.message if reply.fault
        @executed = [@executed, reply.executed].max
        @unacknowledged.shift while @unacknowledged.any? && @unacknowledged[0].sequence <= @executed
        reply.reads.each { |read| @answers[read.request] = read }
      when *BROKEN, nil then resume
      else raise SessionEnded, reply.message
      end
    end

    # A new stream of the same session. Frames that the engine has not executed are sent again; so are those whose reads
    # are not answered, which it does not execute again.
    def resume
      deadline = Time.now + @hello.lease_seconds
      begin
        say_hello(@hello.session_key)
      rescue *BROKEN
        raise SessionEnded, "no connection within the lease" if Time.now > deadline
        sleep 0.1
        retry
      rescue GRPC::NotFound => error
        raise SessionEnded, error.message
      end
      @resumed += 1
      @outgoing << nil
      open_stream
      @unacknowledged.each { |frame| @outgoing << frame }
    end

    def chunks(transfer, bytes)
      (0...bytes.bytesize).step(CHUNK).map do |offset|
        first = offset.zero? ? { transfer: transfer, total_bytes: bytes.bytesize, device: device } : {}
        V1::UploadChunk.new(data: bytes.byteslice(offset, CHUNK), **first)
      end
    end

    def download(handle)
      request = V1::DownloadRequest.new(handle: handle.id, after: @sequence)
      @stub.download(request, metadata: @metadata).map do |chunk|
        raise OperationError, chunk.error if chunk.error
        chunk.data
      end.join
    end

    # The arguments in the order of the parameters; those after the last given one are omitted.
    def arguments(op, positional, named)
      parameters = op["parameters"]
      given = parameters.first(positional.length).map { |parameter| parameter["name"] }.zip(positional).to_h
      named.each { |name, value| given[name.to_s] = value }
      unknown = given.keys - parameters.map { |parameter| parameter["name"] }
      raise ArgumentError, "#{op["name"]}: unexpected #{unknown}" if unknown.any? || positional.length > parameters.length
      last = parameters.rindex { |parameter| given.key?(parameter["name"]) }
      parameters.first(last ? last + 1 : 0).map do |parameter|
        encode(parameter, given.fetch(parameter["name"]) { parameter["default"] })
      end
    end

    def encode(parameter, value)
      return V1::Argument.new(none: true) if value.nil?
      return V1::Argument.new(handle: value.id) if value.is_a?(Handle)
      case parameter["type"]
      when "Tensor[]" then V1::Argument.new(handles: V1::Handles.new(values: value.map(&:id)))
      when "int[]" then V1::Argument.new(integers: V1::Integers.new(values: value))
      when "float[]" then V1::Argument.new(reals: V1::Reals.new(values: value))
      when "str" then V1::Argument.new(characters: value)
      when "bool" then V1::Argument.new(boolean: value)
      when "float" then V1::Argument.new(real: value)
      when "DType" then V1::Argument.new(integer: value.is_a?(String) ? @operators.dtypes.fetch(value) : value)
      else number(value) # Scalar, int, Device, and a number for a tensor
      end
    end

    def number(value)
      case value
      when true, false then V1::Argument.new(boolean: value)
      when Integer then V1::Argument.new(integer: value)
      else V1::Argument.new(real: value)
      end
    end
  end
end
