#!/usr/bin/env python3
"""Prints the engines of deploy/kubernetes/engines.yaml as one pod that ``podman play kube`` accepts.

    podman_manifest.py MANIFEST --token-file FILE [--image IMAGE] [--name NAME] [--host-port PORT]

podman 4.3 supports neither StatefulSets nor gRPC probes, resourceFieldRef, secretKeyRef of a Secret in the same manifest,
or emptyDir in memory. The result is the template's pod without probes, with values instead of the references, a claim for
each of volumeClaimTemplates, and a Secret object with the token.
"""

import argparse
import base64
import pathlib
import sys

import yaml


def main() -> None:
    """Converts the manifest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("manifest", type=pathlib.Path)
    parser.add_argument("--token-file", type=pathlib.Path, required=True)
    parser.add_argument("--image", default="localhost/teletensor:latest")
    parser.add_argument("--name", default="teletensor-0")
    parser.add_argument("--secret", default="teletensor-token")
    parser.add_argument("--host-port", type=int)
    args = parser.parse_args()

    token = args.token_file.read_text().strip()
    objects = list(yaml.safe_load_all(args.manifest.read_text()))
    (engines,) = (thing for thing in objects if thing["kind"] == "StatefulSet")
    template = engines["spec"]["template"]
    pod = template["spec"]
    for container in pod["containers"] + pod["initContainers"]:
        container["image"], container["imagePullPolicy"] = args.image, "Never"
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            container.pop(probe, None)
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {})
            if reference := source.get("resourceFieldRef"):
                variable["value"] = str(container["resources"][reference["resource"].split(".")[0]]["cpu"])
                del variable["valueFrom"]
            elif "secretKeyRef" in source:  # podman 4.3 reads the Secret objects of a manifest for volumes only
                variable["value"] = token
                del variable["valueFrom"]
        for port in container.get("ports", []):
            if args.host_port and port["name"] == "grpc":
                port.update(hostPort=args.host_port, hostIP="127.0.0.1")
    for claim in engines["spec"].get("volumeClaimTemplates", []):
        name = claim["metadata"]["name"]
        pod["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": f"{args.name}-{name}"}})
    # podman creates a volume with this name for each, and two pods must not share them.
    for thing in pod["volumes"] + [mount for c in pod["containers"] + pod["initContainers"] for mount in c["volumeMounts"]]:
        thing["name"] = f"{args.name}-{thing['name']}"
    for volume in pod["volumes"]:
        if "secret" in volume:
            volume["secret"].update(secretName=args.secret, optional=False)  # podman 4.3 requires `optional`
        if "emptyDir" in volume:
            volume["emptyDir"] = {}
    data = {"token": base64.b64encode(token.encode()).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": args.secret}, "data": data}
    # podman 4.3 sometimes fails to remove an init container that has ended; "always" keeps it until the pod is removed.
    metadata = {"name": args.name, "labels": template["metadata"]["labels"],
                "annotations": {"io.podman.annotations.init.container.type": "always"}}  # fmt: skip
    yaml.safe_dump_all([secret, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}], sys.stdout)


if __name__ == "__main__":
    main()
