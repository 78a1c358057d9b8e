#!/usr/bin/env bash
# Installs what is missing, builds, and starts the desktop application.
#   ./launch.sh [ARGS]             the window (ARGS go to it: a graph, a plan, a session)
#   ./launch.sh --headless [DIR]   the same main job without a display: plans the demo, trains it on this machine, and
#                                  writes pictures, plan and log to DIR (default build/report)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source ./.setup.sh

headless() {
    local report=${1:-build/report}
    local bin=build/release/bin
    local run
    mkdir -p "$report"
    rm -rf "$report/run"
    run=$report/run
    local workers
    workers=$(nproc)
    if [ "$workers" -lt 2 ]; then workers=2; fi
    if [ "$workers" -gt 4 ]; then workers=4; fi

    say "planning the demo for $workers workers on this machine"
    "$bin/shardscope-plan" solve demo-small --cluster local --devices "$workers" --global-batch $((16 * workers)) \
        -o "$report/plan.json" | tee "$report/summary.txt"
    say "training it"
    "$bin/shardscope-train" run "$report/plan.json" --data builtin:addition --steps "${SHARDSCOPE_DEMO_STEPS:-300}" \
        --learning-rate 1e-3 --run-dir "$run" >/dev/null 2>"$report/train.log" || {
        tail -n 20 "$report/train.log" >&2
        say "training failed; see $report/train.log" >&2
        return 5
    }
    cp "$run/run.ndjson" "$report/run.ndjson"
    "$bin/shardscope-train" show "$run" | tee -a "$report/summary.txt"
    say "drawing"
    QT_QPA_PLATFORM=offscreen "$bin/shardscope" --export "$report" "$report/plan.json" --run "$run"
    local file
    for file in map.png frontier.png loss.png memory.png plan.json run.ndjson summary.txt; do
        [ -s "$report/$file" ] || { say "$report/$file is missing" >&2; return 1; }
    done
    say "the report is in $report"
}

install_missing "${packages_build[@]}" "${packages_run[@]}"
fetch_cudnn_frontend
if [ "${1:-}" = "--headless" ]; then
    configure_and_build release shardscope shardscope-plan shardscope-train
    headless "${2:-}"
elif [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    say "there is no display: doing the main job without one"
    configure_and_build release shardscope shardscope-plan shardscope-train
    headless
else
    configure_and_build release shardscope shardscope-plan shardscope-train
    exec build/release/bin/shardscope "$@"
fi
