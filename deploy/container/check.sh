#!/usr/bin/env bash
# Builds the engine's image and runs it with podman: host network, user network, `podman play kube`, podman-compose. Each time
# a Python client of this checkout computes on the engine. Run as root; removes what it created, except the images.
#   check.sh [--no-build | options of build.sh]      by default: build.sh --prebuilt
#   PYTHON                                           the clients' Python, by default .venv/bin/python
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$here/../..")
python=${PYTHON:-$root/.venv/bin/python}
image=localhost/teletensor:latest
. "$root/deploy/common.sh"
require_programs deploy/packages_container.txt buildah podman podman-compose runc

folder=$(mktemp -d /tmp/teletensor-container-XXXXXX)
name=tt-$(basename "${folder,,}" | tail -c 7)  # prefix of everything that podman creates
# Settings that need neither systemd nor cgroup controllers. Without systemd, podman cannot schedule health checks.
cat >"$folder/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
CONF
export CONTAINERS_CONF=${CONTAINERS_CONF:-$folder/containers.conf}
run=(podman run --detach --pull=never --no-healthcheck)

clean_up() {
  (
    [[ -f $folder/pod.yaml ]] && podman play kube --down "$folder/pod.yaml"
    podman rm --force --ignore --time 5 "$name-first" "$name-host" "$name-a" "$name-b" "$name-c" "${name}_engine_1"
    podman network rm --force "$name" "${name}_default"
    podman secret rm "$name" "$name-kube"
    podman pod rm --force --ignore "$name-pod"
    podman volume rm "$name-kube" "$name-pod-run" "$name-pod-tmp" "$name-pod-secret" "$name-pod-state" "$name-state" "${name}_state"
  ) >/dev/null 2>&1 || true
  rm -rf --one-file-system "$folder"
}
trap clean_up EXIT

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until the engine in a container is healthy. The limit only prevents a script that hangs.
wait_for() { # CONTAINER HOST:PORT
  for _ in $(seq 150); do
    podman exec "$1" teletensor-health "$2" >/dev/null 2>&1 && return
    sleep 0.4
  done
  echo "check.sh: $1 is not healthy" >&2
  podman logs "$1" >&2
  exit 1
}

client() { # ADDRESS TOKEN [FINGERPRINT]
  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE PYTHONPATH="$root/build/python" TELETENSOR_ADDRESS="$1" TELETENSOR_TOKEN="$2" \
    TELETENSOR_TLS_FINGERPRINT="${3:-}" TELETENSOR_KNOWN_ENGINES="$folder/known_engines" "$python" "$here/client.py"
}

fingerprint() { # CONTAINER
  podman logs "$1" 2>&1 | grep -o 'sha256:[0-9a-f]\{64\}' | tail -n 1
}

[[ ${1:-} == --no-build ]] || "$here/build.sh" "${@:---prebuilt}"
openssl rand -hex 32 >"$folder/token"
chmod 755 "$folder"
chown 10001 "$folder/token"
chmod 400 "$folder/token"
token=$(<"$folder/token")

echo "== size and start"
buildah push --quiet "$image" "oci:$folder/image" >/dev/null  # compresses the layers with gzip, as registries have them
bytes=$(find "$folder/image" -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
echo "image: $((bytes / 1000000)) MB compressed, $(podman image inspect --format '{{.Size}}' "$image" | awk '{print int($1 / 1000000)}') MB unpacked"
((bytes <= 120000000)) || { echo "check.sh: expected at most 120 MB compressed" >&2; exit 1; }
rm -rf "$folder/image"
for _ in 1 2; do  # the second time with the image's files in memory
  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE PYTHONPATH="$root/build/python" "$python" "$here/first_result.py" "$name-first" "$folder/token" \
    "$image" "$(free_port)"
  podman rm --force --time 5 "$name-first" >/dev/null
done
podman run --rm --pull=never --no-healthcheck --entrypoint cat "$image" /usr/share/doc/teletensor/sbom.cdx.json >"$folder/sbom.json"
"$python" "$root/deploy/check_sbom.py" "$folder/sbom.json"

echo "== host network: read-only, without capabilities"
port=$(free_port)
"${run[@]}" --name "$name-host" --network=host --read-only --cap-drop=all --security-opt=no-new-privileges --memory=2g \
  --volume "$folder/token:/run/secrets/teletensor-token:ro" "$image" \
  teletensord --listen "127.0.0.1:$port" --token-file /run/teletensor/token >/dev/null
wait_for "$name-host" "127.0.0.1:$port"
client "127.0.0.1:$port" "$token"
[[ $(podman exec "$name-host" id -u) == 10001 ]]
if client "127.0.0.1:$port" "$(openssl rand -hex 32)" >"$folder/denied" 2>&1; then
  echo "check.sh: expected an error for a wrong token" >&2
  exit 1
fi
grep -o "the token does not belong to this engine" "$folder/denied"
podman stop --time 20 "$name-host" >/dev/null
[[ $(podman inspect --format '{{.State.ExitCode}}' "$name-host") == 0 ]]
echo "stopped with code 0"

found=$(podman run --rm --pull=never --no-healthcheck "$image" sh -c 'find / -xdev -type f -perm /6000 2>/dev/null; echo end')
[[ $found == end ]] || { echo "check.sh: expected no file with the set-user-ID or set-group-ID bit, got $found" >&2; exit 1; }
echo "no file with the set-user-ID or set-group-ID bit"

echo "== without a token"
if podman run --rm --pull=never --no-healthcheck "$image" >"$folder/missing" 2>&1; then
  echo "check.sh: expected an error without a token" >&2
  exit 1
fi
grep "expected the token" "$folder/missing"

echo "== user network: names, a published port, a secret of podman"
port=$(free_port)
podman network create "$name" >/dev/null
podman secret create "$name" "$folder/token" >/dev/null
options=(--network "$name" --secret "source=$name,target=teletensor-token,uid=10001,mode=0400" --env TELETENSOR_THREADS=1)
state=(--volume "$name-state:/var/lib/teletensor")
"${run[@]}" --name "$name-a" "${options[@]}" "${state[@]}" --publish "127.0.0.1:$port:7070" "$image" >/dev/null
"${run[@]}" --name "$name-b" "${options[@]}" "$image" >/dev/null
wait_for "$name-a" 127.0.0.1:7070
wait_for "$name-a" "$name-b:7070"
pinned=$(fingerprint "$name-a")
client "teletensors://127.0.0.1:$port" "$token" "$pinned"
if client "127.0.0.1:$port" "$token" >"$folder/denied" 2>&1; then
  echo "check.sh: expected an error without TLS" >&2
  exit 1
fi
grep -o "the engine requires TLS" "$folder/denied"
# A client in a third container finds the engine by its name.
podman run --rm --pull=never --no-healthcheck --name "$name-c" "${options[@]}" --volume "$here/client.py:/client.py:ro" \
  --env "TELETENSOR_ADDRESS=teletensors://$name-b:7070" --env "TELETENSOR_TLS_FINGERPRINT=$(fingerprint "$name-b")" \
  --env "TELETENSOR_TOKEN_FILE=/run/secrets/teletensor-token" "$image" python3 /client.py
# Another container with the same volume has the certificate that the client knows.
podman rm --force --time 5 "$name-a" >/dev/null
"${run[@]}" --name "$name-a" "${options[@]}" "${state[@]}" --publish "127.0.0.1:$port:7070" "$image" >/dev/null
wait_for "$name-a" 127.0.0.1:7070
[[ $(fingerprint "$name-a") == "$pinned" ]]
client "teletensors://127.0.0.1:$port" "$token"
[[ $(podman exec "$name-a" stat -c %a:%u /var/lib/teletensor/tls-key.pem) == 600:10001 ]]

echo "== --insecure, which has to be given"
podman rm --force --time 5 "$name-a" >/dev/null
"${run[@]}" --name "$name-a" "${options[@]}" --publish "127.0.0.1:$port:7070" "$image" \
  teletensord --listen 0.0.0.0:7070 --insecure --token-file /run/teletensor/token >/dev/null
wait_for "$name-a" 127.0.0.1:7070
rm "$folder/known_engines"
client "127.0.0.1:$port" "$token"

echo "== podman play kube"
port=$(free_port)
"$python" "$here/podman_manifest.py" "$root/deploy/kubernetes/engines.yaml" --image "$image" --token-file "$folder/token" \
  --name "$name-pod" --secret "$name-kube" --host-port "$port" >"$folder/pod.yaml"
podman play kube "$folder/pod.yaml" >"$folder/kube" 2>&1 || { cat "$folder/kube" >&2; exit 1; }
wait_for "$name-pod-engine" 127.0.0.1:7070
# The token of the engine: podman 4.3 mounts the secret's data without decoding it.
client "teletensors://127.0.0.1:$port" "$(podman exec "$name-pod-engine" cat /run/teletensor/token)" \
  "$(fingerprint "$name-pod-engine")"
podman play kube --down "$folder/pod.yaml" >"$folder/kube" 2>&1 || { cat "$folder/kube" >&2; exit 1; }

echo "== podman-compose"
export TELETENSOR_PORT TELETENSOR_TOKEN_FILE=$folder/token
TELETENSOR_PORT=$(free_port)
compose=(podman-compose --podman-run-args "--pull=never --no-healthcheck" --project-name "$name" --file "$here/compose.yaml")
"${compose[@]}" up --detach >"$folder/compose" 2>&1 || { cat "$folder/compose" >&2; exit 1; }
wait_for "${name}_engine_1" 127.0.0.1:7070 || { cat "$folder/compose" >&2; exit 1; }
client "teletensors://127.0.0.1:$TELETENSOR_PORT" "$token" "$(fingerprint "${name}_engine_1")"
"${compose[@]}" down >"$folder/compose" 2>&1 || { cat "$folder/compose" >&2; exit 1; }
echo "container: passed"
