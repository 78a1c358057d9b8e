#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Stands in for shardscope-train: what follows --data says how it behaves.
behaviour=normal
steps=5
folder=.
while [ $# -gt 0 ]; do
    case "$1" in
        --data) behaviour=$2; shift ;;
        --steps) steps=$2; shift ;;
        --run-dir) folder=$2; shift ;;
    esac
    shift
done
ledger='{"parameters":400,"gradients":400,"optimizer":800,"activations":300,"logits":100,"gathered":0,"unreduced":0,"optimizer_temporary":0,"collective":0,"data":0,"context":0,"slack":0}'
hello="{\"type\":\"hello\",\"t\":0,\"rank\":-1,\"seq\":0,\"version\":1,\"plan_sha256\":\"x\",\"world\":2,\"run_dir\":\"/tmp\",\"pid\":$$,\"steps\":$steps}"
step() {
    echo "{\"type\":\"step\",\"t\":$1,\"rank\":0,\"seq\":$1,\"step\":$1,\"loss\":$((9 - $1 % 9)).5,\"learning_rate\":0.001,\"gradient_norm\":1.0,\"tokens\":512,\"step_seconds\":0.1,\"compute_seconds\":0.08,\"exposed_communication_seconds\":0.01,\"tokens_per_second\":5120}"
}
bye() { echo "{\"type\":\"bye\",\"t\":9,\"rank\":-1,\"seq\":99,\"status\":\"$1\",\"steps\":$2,\"reason\":\"\"}"; }
start() {
    echo "$hello"
    for rank in 0 1; do
        echo "{\"type\":\"ready\",\"t\":0.1,\"rank\":$rank,\"seq\":1,\"pid\":$$,\"device\":\"cpu core\"}"
        echo "{\"type\":\"memory\",\"t\":0.2,\"rank\":$rank,\"seq\":2,\"predicted\":{\"ledger\":$ledger},\"allocated\":{\"ledger\":$ledger},\"peak_allocated\":2060,\"resident\":3000}"
    done
}
case "$behaviour" in
    normal)
        start
        i=1
        while [ $i -le "$steps" ]; do step $i; i=$((i + 1)); done
        bye done "$steps"
        ;;
    garbage)
        start
        echo 'this is not telemetry'
        echo '{"type":"step","t":'
        step 1
        bye done 1
        ;;
    half)
        start
        step 1
        step 2 | tr -d '\n'
        ;;
    crash)
        start
        step 1
        echo "{\"type\":\"failure\",\"t\":1,\"rank\":1,\"seq\":3,\"step\":2,\"phase\":\"backward\",\"cause\":\"ran out of memory\",\"first\":true}"
        kill -SEGV $$
        ;;
    stall)
        start
        step 1
        trap 'bye stopped 1; exit 130' INT
        while :; do sleep 0.05; done
        ;;
    stall-to-file)
        # What it says goes into the run folder too, as the real one does.
        { start; step 1; } | tee "$folder/run.ndjson"
        trap 'bye stopped 1 >>"$folder/run.ndjson"; exit 130' INT
        while :; do sleep 0.05; done
        ;;
    silent) exit 4 ;;
    deaf)
        start
        trap '' INT
        while :; do sleep 0.05; done
        ;;
esac
