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
# Programs of tests import the package thousands of times: its bytecode is kept in the build folder.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$root/build/pycache

# Ignores races and leaks inside Debian's gRPC, whose timer threads outlive main; the project's own are reported.
# die_after_fork: a test forks a writer of checkpoints from a program with threads, and kills it.
export TSAN_OPTIONS="die_after_fork=0 ignore_noninstrumented_modules=1 suppressions=$root/deploy/tsan.suppressions ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1 ${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$root/deploy/lsan.suppressions ${LSAN_OPTIONS:-}"

export GTEST_OUTPUT="xml:$root/$results/gtest/"
echo "== C++ ($build)"
# The fast tier leaves out C++ programs labelled slow, Python tests marked slow, and the rows' run through a daemon.
# Two tests at once, or four of those that mostly wait (tt_test in deploy/cmake/Generate.cmake).
# A program that hangs fails after 5 minutes; the sanitizers' are slower.
ctest --test-dir "$build" --output-on-failure -j 4 --timeout $([[ $build == build ]] && echo 300 || echo 1500) \
  $([[ $tier == fast ]] && echo '-LE slow') \
  --output-junit "$root/$results/ctest.xml" || failed=1

# Runs pytest with a report NAME.xml. Three tests run at once on two cores, because many mostly wait: for timeouts, leases
# and the exit of processes. A worker without tests takes some of another one's. If at most three tests fail, perhaps
# because the machine was busy, they are repeated one after the other in NAME.repeated.xml; count_tests.py lists those that
# pass then.
python_tests() {
  local report=$results/$1.xml ids limit=()
  [[ $build == build ]] || limit=(-o faulthandler_timeout=7200)
  .venv/bin/python -m pytest "${@:2}" -q -n 3 --dist worksteal "${limit[@]}" --junitxml "$report" && return
  [[ -e $report ]] || { failed=1; return; }
  mapfile -t ids < <(.venv/bin/python deploy/count_tests.py --failed "$report")
  if ((${#ids[@]} == 0 || ${#ids[@]} > 3)); then
    failed=1
  else
    .venv/bin/python -m pytest "${ids[@]}" -q -n 0 --junitxml "$results/$1.repeated.xml" || failed=1
  fi
}

# The build of the sanitizer with the ordinary build's client: the daemon has the memory and threads that are examined.
if [[ $build != build ]]; then
  mixed=$root/$build-daemon reports=$root/$results/reports
  rm -rf "$mixed" && mkdir -p "$mixed" "$reports"
  ln -s "$root"/build/* "$mixed/"
  rm "$mixed/bin" "$mixed/python" && mkdir "$mixed/bin"
  cp -rL build/python "$mixed/python"
  ln -s "$root"/build/bin/* "$mixed/bin/"
  ln -sf "$root/$build/bin/teletensord" "$mixed/bin/"
  echo "== Python, through a daemon of $build"
  # Reports are read when all tests have ended: an engine that reports an error may go on, and UBSan's does.
  folders=(tests/operators tests/python)
  for folder in packaging tutorials examples; do folders+=(--ignore "tests/python/$folder"); done
  TELETENSOR_BUILD=$mixed TELETENSOR_SANITIZER=$tier ASAN_OPTIONS="$ASAN_OPTIONS:log_path=$reports/asan" \
    UBSAN_OPTIONS="log_path=$reports/ubsan" TSAN_OPTIONS="$TSAN_OPTIONS log_path=$reports/tsan" \
    python_tests daemon "${folders[@]}"
  found=$(grep -lE "ERROR: |runtime error: |WARNING: ThreadSanitizer" "$reports"/* 2>/dev/null)
  if [[ -n $found ]]; then
    echo "reports of the sanitizer: $(wc -l <<<"$found") files in ${reports#"$root/"}; the first:"
    head -n 40 "$(head -n 1 <<<"$found")"
    failed=1
  else
    echo "reports of the sanitizer: none"
  fi
fi

if [[ $tier == fast || $tier == all ]]; then
  echo "== Python, through a daemon"
  less=()
  [[ $tier == fast ]] && less=(-m "not slow" --ignore tests/operators)
  python_tests daemon tests "${less[@]}"
  echo "== Python, with the engine in the same process"
  # The folders whose subject is what the engine computes. The others test the client, or start engines of their own:
  # they would be the same tests again.
  folders=(tests/operators)
  if [[ $tier == fast ]]; then
    folders+=(-m "not slow")
  else
    for folder in amp autograd distributions extension functions masked modules nested quantized session sparse tensor training; do
      folders+=("tests/python/$folder")
    done
  fi
  TELETENSOR_IN_PROCESS=1 python_tests in_process "${folders[@]}"
fi

.venv/bin/python deploy/count_tests.py --slowest "$results" > "$results/slowest.txt"
.venv/bin/python deploy/count_tests.py "$results" || failed=1
exit $failed
