#!/usr/bin/env bash
# run.sh PROGRAM READER SECONDS: fuzzes one reader from a copy of its committed corpus. Fails on a crash, a leak, an input
# that takes more than five seconds of processor time (a minute by the clock) or more memory than its size allows
# (Targets.h), or an allocation above 256 MiB; the input stays in the folder that is then named.
set -euo pipefail
program=$(realpath "$1")
corpus=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/corpus/$2
work=$(mktemp -d)
mkdir "$work/corpus"
cd "$work"
if ! "$program" -max_total_time="$3" -timeout=60 -malloc_limit_mb=256 -rss_limit_mb=2048 -print_final_stats=1 corpus "$corpus" >log 2>&1; then
    tail -n 60 log
    echo "the input is in $work" >&2
    exit 1
fi
grep -E "stat::(number_of_executed_units|peak_rss_mb)|^Done" log
rm -rf "$work"
