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
# die_after_fork: a test forks a writer of checkpoints from a program with threads, and kills it.
export TSAN_OPTIONS="die_after_fork=0 ignore_noninstrumented_modules=1 suppressions=$root/deploy/tsan.suppressions ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1 ${ASAN_OPTIONS:-}"
export LSAN_OPTIONS="suppressions=$root/deploy/lsan.suppressions ${LSAN_OPTIONS:-}"

export GTEST_OUTPUT="xml:$root/$results/gtest/"
echo "== C++ ($build)"
# The fast tier leaves out C++ programs labelled slow; of Python, folders that start many processes, and the rows' run
# through a daemon.
# Two tests at once, or four of those that mostly wait (tt_test in deploy/cmake/Generate.cmake).
ctest --test-dir "$build" --output-on-failure -j 4 $([[ $tier == fast ]] && echo '-LE slow') \
  --output-junit "$root/$results/ctest.xml" || failed=1

# Runs pytest with a report NAME.xml. If at most three tests fail, perhaps because the machine was busy, they are repeated
# one after the other in NAME.repeated.xml; count_tests.py lists those that pass then.
python_tests() {
  local report=$results/$1.xml ids
  .venv/bin/python -m pytest "${@:2}" -q -n 2 --junitxml "$report" && return
  [[ -e $report ]] || { failed=1; return; }
  mapfile -t ids < <(.venv/bin/python deploy/count_tests.py --failed "$report")
  if ((${#ids[@]} == 0 || ${#ids[@]} > 3)); then
    failed=1
  else
    .venv/bin/python -m pytest "${ids[@]}" -q -n 0 --junitxml "$results/$1.repeated.xml" || failed=1
  fi
}

if [[ $tier == fast || $tier == all ]]; then
  echo "== Python, through a daemon"
  less=()
  if [[ $tier == fast ]]; then
    less=(-m "not slow" --ignore tests/operators)
    for folder in checkpoint cuda data distributed examples launch session tutorials; do less+=(--ignore "tests/python/$folder"); done
  fi
  python_tests daemon tests "${less[@]}"
  echo "== Python, with the engine in the same process"
  # Without the folders whose programs start engines of their own: they would be the same tests again.
  folders=(tests/operators tests/python)
  for folder in distributed launch packaging tutorials; do folders+=(--ignore "tests/python/$folder"); done
  [[ $tier == fast ]] && folders=(tests/operators -m "not slow")
  TELETENSOR_IN_PROCESS=1 python_tests in_process "${folders[@]}"
fi

.venv/bin/python deploy/count_tests.py "$results" || failed=1
exit $failed
