#!/usr/bin/env bash
# Runs a compiler and appends a line "SECONDS OUTPUT" with its processor time to the file that TT_COMPILE_TIMES names.
# deploy/build.py makes it ccache's prefix command, so that only files that are really compiled are recorded.
exec 3>&1 4>&2
TIMEFORMAT='%U %S'
times=$({ time "$@" 1>&3 2>&4; } 2>&1)
status=$?
output=
while (($#)); do
  [[ $1 == -o ]] && output=$2
  shift
done
read -r user system <<<"$times"
printf '%s+%s %s\n' "$user" "$system" "$output" >>"$TT_COMPILE_TIMES"
exit $status
