#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test; ends with the line "N passed, N failed, N skipped", which counts test
# functions. With CI=true (or --sanitize) contract, planner and readers are tested under the address and undefined-behaviour sanitizers (built
# with clang) and fuzzed as well, and the engine's threads under the thread sanitizer.
#   ./test.sh [--sanitize] [CTEST ARGS]     for example ./test.sh -L unit
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ./.setup.sh

sanitize=${CI:+1}
if [ "${1:-}" = "--sanitize" ]; then
    sanitize=1
    shift
fi
passed=0 failed=0 skipped=0 status=0

# run_preset PRESET [CTEST ARGS]: adds up Qt Test's own totals, so that every function counts, and shows what was skipped.
run_preset() {
    local preset=$1
    shift
    local log=build/$preset-tests.log
    say "testing ($preset)"
    ctest --test-dir "build/$preset" --verbose --no-tests=error -j "$(nproc)" "$@" >"$log" 2>&1
    local code=$?
    grep -E "^ *[0-9]+/[0-9]+ Test" "$log" | sed 's/^ */  /'
    grep -E "^[0-9]+: SKIP" "$log" | sed 's/^[0-9]*: /  /'
    local p f s
    read -r p f s < <(sed -nE 's/^[0-9]+: Totals: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped.*/\1 \2 \3/p' "$log" |
        awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ $code -ne 0 ]; then
        status=1
        # A program that crashed or timed out has no totals.
        if [ "$f" -eq 0 ]; then failed=$((failed + 1)); fi
        grep -E "^[0-9]+: (FAIL!|QFATAL|   Loc:)|\*\*\*(Failed|Timeout|Exception)|ERROR: .*Sanitizer|runtime error" "$log" | head -n 60
        say "the whole log is in $log"
    fi
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $status
}

install_missing "${packages_build[@]}" ${sanitize:+"${packages_ci[@]}"} || exit 1
fetch_cudnn_frontend
configure_and_build release || { failed=1 status=1; finish; }
run_preset release "$@"
if [ -n "$sanitize" ]; then
    # Contract, planner and readers under the address and undefined-behaviour sanitizers, and half a minute of fuzzing over
    # all readers.
    readers=(config safetensors index onnx graph cluster)
    if configure_and_build asan contract_tests planner_tests "${readers[@]/#/fuzz_}"; then
        run_preset asan -R '^(contract|planner|fuzz)/'
    else
        failed=$((failed + 1)) status=1
    fi
    # The engine's threads under the thread sanitizer.
    threads=(tst_ring tst_device tst_checkpoint tst_watchdog tst_memory tst_random_plans)
    if configure_and_build tsan "${threads[@]}"; then
        run_preset tsan -R "^engine/($(IFS='|'; echo "${threads[*]}"))\$"
    else
        failed=$((failed + 1)) status=1
    fi
fi
finish
