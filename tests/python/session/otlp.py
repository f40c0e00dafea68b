"""A collector of OpenTelemetry for tests: OTLP/gRPC with the messages of the published package opentelemetry-proto."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

Answer = Callable[[trace_service_pb2.ExportTraceServiceRequest, grpc.ServicerContext], trace_service_pb2.ExportTraceServiceResponse]


def accept(request, context):
    return trace_service_pb2.ExportTraceServiceResponse()


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps the spans of the exports that `answer` accepts; it may also end the call with an error, or wait."""

    def __init__(self, answer: Answer = accept, port: int = 0, tls=None):
        self.answer, self.calls = answer, 0
        self.spans: list[trace_pb2.Span] = []
        self.resources: list[dict] = []
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        if tls is None:
            self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        else:
            pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
            self.port = self._server.add_secure_port(f"localhost:{port}", grpc.ssl_server_credentials([pair]))
        self.place = f"127.0.0.1:{self.port}"
        self._server.start()

    def Export(self, request, context):  # noqa: N802 - the method's name in the protocol
        self.calls += 1
        response = self.answer(request, context)
        with self._lock:
            for resource in request.resource_spans:
                self.resources.append(attributes(resource.resource))
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return response

    def named(self, name: str) -> list[trace_pb2.Span]:
        with self._lock:
            return [span for span in self.spans if span.name == name]

    def stop(self) -> None:
        self._server.stop(0).wait()


def attributes(owner) -> dict:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in owner.attributes}
