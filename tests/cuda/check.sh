#!/usr/bin/env bash
# Everything that needs a GPU, in one command and under eight minutes, on a machine that has nothing but a CUDA image with
# PyTorch: every test labelled cuda, losses against the CPU on 1, 2 and 4 ranks that share the card, memory and step time
# against the plan, tokens per second beside PyTorch. Prints one table; ends with 1 when something failed or was left out,
# and with 77 where there is no GPU.
#   tests/cuda/check.sh --pack             here: programs, plans, losses of the CPU, libraries -> build/cuda-check.tar.gz
#   tests/cuda/check.sh [DIR]              there: unpacks that and runs it; reports go to DIR (build/cuda-report)
#   tests/cuda/check.sh --rehearse [DIR]   here: the same parts on CPU cores with tiny networks; --rehearse-quick: in a minute
# cuBLASLt, NCCL and cuDNN are too large to carry and come with the image. SHARDSCOPE_BUILD names another folder than
# build/release, SHARDSCOPE_PYTHON another Python than python3.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
SECONDS=0

build=${SHARDSCOPE_BUILD:-build/release}
python=${SHARDSCOPE_PYTHON:-python3}
pack=build/cuda-check
archive=$pack.tar.gz
largest=$((64 << 20)) # of what travels: the archive and the files of this repository
last_start=440        # no part begins after so many seconds
whole=470             # and none goes on after these
tests=()
for source in tests/cuda/tst_*.cpp; do tests+=("$(basename "$source" .cpp)"); done
rows=() left_out=() workers=() status=0

say() { printf 'check: %s\n' "$*" >&2; }
row() {
    rows+=("$(printf '%-42s %-40s %-24s %s' "$1" "$2" "$3" "$4")")
    case $4 in
        FAILED*) status=1 ;;
        incomplete*) left_out+=("$1") ;;
    esac
}

# part NAME SECONDS COMMAND...: the rows that a command prints, unless time is over. @SECONDS@ is what it may take itself.
part() {
    local name=$1 seconds=$2 file code
    shift 2
    if ((SECONDS >= last_start)); then
        row "$name" "-" "-" "incomplete: $last_start s were over before it began"
        return
    fi
    ((seconds > whole - SECONDS)) && seconds=$((whole - SECONDS))
    file=$report/${name// /-}
    timeout -k 5 "$seconds" "${@//@SECONDS@/$((seconds - 8))}" >"$file.rows" 2>"$file.log"
    code=$?
    while IFS=$'\t' read -r what wanted measured verdict; do row "$what" "$wanted" "$measured" "$verdict"; done <"$file.rows"
    case $code in
        0) ;;
        124 | 137) row "$name" "-" "-" "FAILED: no end within $seconds s" ;;
        *) row "$name" "-" "-" "FAILED: ended with $code: $(tail -n 1 "$file.log" | cut -c1-200)" ;;
    esac
}

run_tests() {
    local test code output totals
    for test in "${tests[@]}"; do
        output=$report/$test.txt
        if ((SECONDS >= last_start)); then
            row "$test" "0 failed" "-" "incomplete: $last_start s were over before it began"
            continue
        fi
        timeout -k 5 100 "${ours[@]}" "$test_folder/$test" >"$output" 2>&1
        code=$?
        totals=$(grep -E '^Totals' "$output" | sed 's/Totals: //; s/, 0 blacklisted.*//')
        # A program that skipped everything has tested nothing.
        if [ $code -eq 0 ] && [[ $totals != "0 passed"* ]]; then
            row "$test" "0 failed" "$totals" "ok"
        elif [ $code -eq 0 ] && [ "$device" = cpu ]; then
            row "$test" "0 failed" "$totals" "skipped:$(sed -nE 's/^SKIP +: [^ ]+//p' "$output" | head -n 1)"
        else
            row "$test" "0 failed" "${totals:-ended with $code}" "FAILED: $(grep -m 1 -E '^(FAIL|SKIP|QFATAL)' "$output" | cut -c1-200)"
        fi
    done
}

end_workers() {
    local worker
    for worker in "${workers[@]}"; do kill -KILL -- "-$worker" 2>/dev/null; done
}

show() {
    local missing
    missing=$(IFS=';' && echo "${left_out[*]}")
    {
        [ "$device" = cpu ] && printf 'REHEARSAL on CPU cores with tiny networks: no figure below is of a GPU\n'
        printf 'GPU: %s\n' "$gpu"
        printf '%-42s %-40s %-24s %s\n' "what" "predicted or wanted" "measured" "verdict, or more"
        printf '%s\n' "${rows[@]}"
        printf 'after %d s; left out: %s\n' "$SECONDS" "${missing:-nothing}"
    } | tee "$report/table.txt"
    if ((${#left_out[@]} > 0 && status == 0)) && [ $device = cuda ]; then status=1; fi
    exit $status
}

if [ "${1:-}" = "--pack" ]; then
    rm -rf "$pack" "$archive" && mkdir -p "$pack/bin" "$pack/lib" "$pack/base"
    cp "$build/bin/shardscope-train" "$build/bin/shardscope-plan" "$pack/bin/" || exit 1
    for test in "${tests[@]}"; do cp "$build/tests/$test" "$pack/bin/" || exit 1; done
    strip "$pack"/bin/*
    # The C library stays: a program must run with the one that the GPU's driver libraries are loaded into.
    ldd "$pack"/bin/* | awk '$3 ~ /^\// {print $3}' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$pack/lib/"
    # The compiler's, only for a machine without any: those there may be newer, and its libraries need them.
    mv "$pack"/lib/libstdc++.so.* "$pack"/lib/libgcc_s.so.* "$pack/base/"
    strip --strip-unneeded "$pack"/lib/* 2>/dev/null
    "$python" tests/cuda/losses.py plans --bin "$build/bin" --plans "$pack/losses" || exit 1
    "$python" tests/cuda/speed.py plans --bin "$build/bin" --plans "$pack/speed" || exit 1
    tar -czf "$archive" -C "$pack" . || exit 1
    packed=$(stat -c %s "$archive")
    tree=$(git ls-files -coz --exclude-standard | xargs -0 cat -- | wc -c)
    say "packed $((packed / 1024)) KiB into $archive; with the repository's $((tree / 1024)) KiB" \
        "$(((packed + tree) * 100 / largest)) % of what may travel"
    if ((packed + tree > largest)); then
        say "that is more than $((largest >> 20)) MiB"
        exit 1
    fi
    exit 0
fi

device=cuda quick=
case ${1:-} in
    --rehearse) device=cpu && shift ;;
    --rehearse-quick) device=cpu quick=yes && shift ;;
    -*) say "unknown option $1" && exit 2 ;;
esac
report=${1:-build/cuda-$([ $device = cpu ] && echo rehearsal || echo report)}
rm -rf "$report" && mkdir -p "$report"
export QT_QPA_PLATFORM=offscreen PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SHARDSCOPE_MODELS=$PWD/models
gpu="none"
if [ $device = cpu ]; then
    bin=$build/bin test_folder=$build/tests plans=$report/plans ours=(env)
    measured=(--workers 1)
    short=(--steps 4 --ranks 2 4 1) at_once=3 speed_steps=8
    last_start=800 whole=900 # a machine that compiles is slow
    [ -n "$quick" ] && short=(--steps 3 --ranks 2 --kinds gpt2) speed_steps=6
    "$python" tests/cuda/losses.py plans --cpu --steps "${short[1]}" --bin "$bin" --plans "$plans/losses" || exit 1
    "$python" tests/cuda/speed.py plans --cpu --bin "$bin" --plans "$plans/speed" || exit 1
else
    if [ -f "$archive" ]; then rm -rf "$pack" && mkdir -p "$pack" && tar -xzf "$archive" -C "$pack"; fi
    if [ ! -x "$pack/bin/shardscope-train" ]; then
        say "there is neither $archive nor $pack: run 'tests/cuda/check.sh --pack' where the programs are built"
        exit 2
    fi
    bin=$pack/bin test_folder=$pack/bin plans=$pack measured=(--device cuda) short=() at_once=6 speed_steps=24
    libraries=$PWD/$pack/lib
    ldconfig -p 2>/dev/null | grep -q 'libstdc++\.so\.6' || libraries+=:$PWD/$pack/base
    libraries+=:/usr/local/cuda/lib64:/usr/local/cuda/lib:/usr/lib/x86_64-linux-gnu
    # PyTorch's wheels bring cuDNN and the rest where the image has them nowhere else.
    for folder in $("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)/nvidia/*/lib; do
        libraries+=:$folder
    done
    export SHARDSCOPE_LIBRARIES=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    ours=(env "LD_LIBRARY_PATH=$SHARDSCOPE_LIBRARIES")
fi

# Without a GPU every figure is "not yet measured", and the reason is the program's own.
timeout -k 5 90 "${ours[@]}" "$bin/shardscope-train" measure "${measured[@]}" -o "$report/local.cluster.json" \
    >"$report/measure.txt" 2>"$report/measure.log"
code=$?
reason=$(tail -n 1 "$report/measure.log" | sed 's/^shardscope-train: //' | cut -c1-200)
if [ $code -eq 124 ] || [ $code -eq 137 ]; then reason="no end within 90 s"; fi
case $code:$device:$reason in
    0:*) row "shardscope-train measure" "-" "$(sed -n 2p "$report/measure.txt" | tr -s ' ')" "ok" ;;
    *:cuda:*"no NVIDIA driver"* | *:cuda:*"has no GPU"* | *:cuda:*"built without CUDA"*)
        for what in "${tests[@]}" "losses against the CPU, 6 plans" "memory against the plan" "step time against the plan" \
            "tokens per second beside PyTorch" "model-FLOPs utilisation"; do
            row "$what" "-" "not yet measured" "$reason"
        done
        status=77
        show
        ;;
    # A GPU that cannot be used is a failure; a machine without one is not.
    *) gpu=", but it cannot be measured" && row "shardscope-train measure" "-" "-" "FAILED: ended with $code: $reason" ;;
esac
if [ $device = cuda ]; then
    found=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | paste -sd ';')
    gpu=${found:-unknown}${gpu#none}
fi
if ! "$python" -c 'import json' 2>/dev/null; then
    row "losses, memory, speed" "-" "-" "FAILED: there is no Python named $python"
    run_tests
    show
fi

trap end_workers EXIT
run_tests # alone on the card: one of them watches its memory
[ -z "$quick" ] && mapfile -t workers < <("$python" tests/cuda/speed.py start --plans "$plans/speed" \
    --report "$report/speed" --device $device)
part "losses" $([ $device = cpu ] && echo 240 || echo 120) "$python" tests/cuda/losses.py run --bin "$bin" --plans "$plans/losses" \
    --report "$report/losses" --device $device --at-once $at_once --seconds @SECONDS@ "${short[@]}"
part "memory and speed" 300 "$python" tests/cuda/speed.py run --bin "$bin" --plans "$plans/speed" --report "$report/speed" \
    --cluster "$report/local.cluster.json" --device $device --steps $speed_steps --seconds @SECONDS@
show
