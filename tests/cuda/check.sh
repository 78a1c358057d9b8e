#!/usr/bin/env bash
# Everything that needs a GPU, in one command and under eight minutes, on a machine that has nothing but a CUDA image: every
# test labelled cuda (kernels against the CPU, parity of training), predictions against measurements, a benchmark. Prints one
# table; ends with 1 when something failed, and with 77 where there is no GPU.
#   tests/cuda/check.sh --pack     here: programs, plans and the libraries that a bare machine lacks -> build/cuda-check.tar.gz
#   tests/cuda/check.sh [DIR]      there: unpacks that (or takes build/release) and runs it; reports go to DIR
# cuBLASLt and NCCL are too large to carry and come with the CUDA image.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

pack=build/cuda-check
archive=$pack.tar.gz
cuda_folders=/usr/local/cuda/lib64:/usr/local/cuda/lib:/usr/lib/x86_64-linux-gnu
tests=(tst_cuda_kernels tst_cuda_training)
say() { printf 'check: %s\n' "$*" >&2; }

# plan NAME GRAPH ARGS...: a plan for one GPU, with the prediction in it.
plan() {
    local name=$1 graph=$2
    shift 2
    build/release/bin/shardscope-plan solve "$graph" --cluster models/clusters/1x-h200.cluster.json --devices 1 \
        --precision bf16-adam "$@" -o "$pack/$name.plan.json" >/dev/null || { say "no plan for $graph"; exit 1; }
}

if [ "${1:-}" = "--pack" ]; then
    rm -rf "$pack" && mkdir -p "$pack/bin" "$pack/lib"
    cp build/release/bin/shardscope-train "$pack/bin/"
    for test in "${tests[@]}"; do cp "build/release/tests/$test" "$pack/bin/"; done
    strip "$pack"/bin/* 2>/dev/null
    # The C library stays: a program must run with the one that the GPU's driver libraries are loaded into.
    ldd "$pack"/bin/* | awk '$3 ~ /^\// {print $3}' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$pack/lib/"
    plan demo demo-small --memory 32GiB --batch 8
    plan gpt2 gpt2 --memory 64GiB --sequence 1024 --batch 16
    plan llama llama-3.2-1b --memory 96GiB --sequence 2048 --batch 4
    tar -czf "$archive" -C "$pack" . && say "packed $(du -h "$archive" | cut -f1) into $archive"
    exit
fi

report=${1:-build/cuda-report}
mkdir -p "$report"
if [ -f "$archive" ] && [ ! -d "$pack/bin" ]; then mkdir -p "$pack" && tar -xzf "$archive" -C "$pack"; fi
if [ ! -x "$pack/bin/shardscope-train" ]; then
    say "there is neither $archive nor $pack: run 'tests/cuda/check.sh --pack' where the programs are built"
    exit 2
fi
export LD_LIBRARY_PATH=$pack/lib:$cuda_folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} QT_QPA_PLATFORM=offscreen
train=$pack/bin/shardscope-train
rows=() status=0

row() { rows+=("$(printf '%-44s %-22s %-22s %s' "$1" "$2" "$3" "$4")"); }
# field NAME FILE TYPE: the numbers of a field in the telemetry lines of a type.
field() { grep -h "\"type\":\"$3\"" "$2" | sed -nE "s/.*\"$1\":(-?[0-9.]+([eE][-+]?[0-9]+)?).*/\1/p"; }
median() { sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'; }
number() { awk -v v="$1" -v f="$2" 'BEGIN {if (v == "") print "?"; else printf f, v}'; }

# Without a GPU every figure is "not yet measured", and the reason is the program's own.
if ! reason=$("$train" measure --device cuda -o "$report/local.cluster.json" 2>&1 >"$report/measure.txt"); then
    for what in "kernels against the CPU" "training against the CPU" "memory" "step time" "tokens per second"; do
        row "$what" "-" "not yet measured" "${reason#shardscope-train: }"
    done
    gpu="none"
    # A GPU that cannot be used is a failure; a machine without one is not.
    case $reason in
        *"no NVIDIA driver"* | *"has no GPU"* | *"built without CUDA"*) status=77 ;;
        *) gpu="there, but not used" status=1 ;;
    esac
else
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | paste -sd ';' || echo unknown)
    for test in "${tests[@]}"; do
        timeout 100 "$pack/bin/$test" >"$report/$test.txt" 2>&1
        code=$?
        totals=$(grep -E '^Totals' "$report/$test.txt" | sed 's/Totals: //; s/, 0 blacklisted.*//')
        # A program that skipped everything has tested nothing.
        if [ $code -eq 0 ] && [[ $totals != "0 passed"* ]]; then verdict=ok; else verdict=FAILED status=1; fi
        row "$test" "0 failed" "${totals:-ended with $code}" "$verdict"
    done
    for name in demo gpt2 llama; do
        steps=40
        run=$report/$name
        rm -rf "$run"
        if ! timeout 75 "$train" run "$pack/$name.plan.json" --data builtin:addition --device cuda --steps $steps \
            --run-dir "$run" >"$report/$name.ndjson" 2>"$report/$name.log"; then
            row "$name: training" "$steps steps" "failed" "FAILED: $(tail -n 1 "$report/$name.log")"
            status=1
            continue
        fi
        lines=$report/$name.ndjson
        predicted=$(sed -nE 's/.*"predicted": *\{"peak_bytes": *([0-9]+).*/\1/p' "$pack/$name.plan.json" | head -n 1)
        peak=$(field peak_allocated "$lines" memory)
        resident=$(field resident "$lines" memory)
        row "$name: bytes of the arenas, whole process" "$(number "$predicted" '%.0f')" "$(number "$peak" '%.0f')" \
            "$(number "$resident" '%.0f')"
        seconds=$(field step_seconds "$lines" step | tail -n $((steps / 2)) | median)
        expected=$(sed -nE 's/.*"predicted".*"step_seconds": *([0-9.eE+-]+),.*/\1/p' "$pack/$name.plan.json" | head -n 1)
        row "$name: seconds of a step" "$(number "$expected" '%.6f')" "$(number "$seconds" '%.6f')" \
            "$(awk -v p="$expected" -v m="$seconds" 'BEGIN {if (p > 0 && m > 0) printf "%+.1f %%", 100 * (m / p - 1)}')"
        row "$name: tokens per second" "-" \
            "$(number "$(field tokens_per_second "$lines" step | tail -n $((steps / 2)) | median)" '%.0f')" \
            "loss $(field loss "$lines" step | head -n 1) -> $(field loss "$lines" step | tail -n 1)"
    done
fi

{
    printf 'GPU: %s\n' "$gpu"
    printf '%-44s %-22s %-22s %s\n' "what" "predicted or wanted" "measured" "verdict, or more"
    printf '%s\n' "${rows[@]}"
} | tee "$report/table.txt"
exit $status
