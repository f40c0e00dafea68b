"""Prints what teletensor derives from the environment of a rank that srun or mpirun has started, as one line of JSON."""

import dataclasses
import json
import os
import socket
import sys

from teletensor.launch.cluster import cluster_environment

environment = cluster_environment()
values = {**dataclasses.asdict(environment), "host": socket.gethostname(), "node": os.environ.get("SLURMD_NODENAME", "")}
sys.stdout.write(json.dumps(values) + "\n")  # one call: mpirun labels each write
