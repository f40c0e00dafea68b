#!/usr/bin/env bash
# Runs the tests of a tier (fast, all, asan or tsan) and prints their number.
set -uo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/..")
cd "$root"
tier=${1:-all}
build=build
[[ $tier == asan || $tier == tsan ]] && build=build-$tier
results=$build/test-results
rm -rf "$results" && mkdir -p "$results"
failed=0

# Ignores races and leaks inside Debian's gRPC, whose timer threads outlive main; the project's own are reported.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$root/deploy/tsan.suppressions ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1 ${ASAN_OPTIONS:-}"

export GTEST_OUTPUT="xml:$root/$results/gtest/"
echo "== C++ ($build)"
ctest --test-dir "$build" --output-on-failure -j 2 --output-junit "$root/$results/ctest.xml" || failed=1

if [[ $tier == fast || $tier == all ]]; then
  echo "== Python, through a daemon"
  marker=()
  [[ $tier == fast ]] && marker=(-m "not slow")
  .venv/bin/python -m pytest tests -q -n 2 "${marker[@]}" --junitxml "$results/daemon.xml" || failed=1
  echo "== Python, with the engine in the same process"
  TELETENSOR_IN_PROCESS=1 .venv/bin/python -m pytest tests/operators tests/python -q -n 2 "${marker[@]}" \
    --junitxml "$results/in_process.xml" || failed=1
fi

.venv/bin/python deploy/count_tests.py "$results" || failed=1
exit $failed
