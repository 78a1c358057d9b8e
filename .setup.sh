# Sourced by launch.sh and test.sh: installs what is missing on Debian 12 / Ubuntu 24.04 and says what it does.
# Debian package names only; `SHARDSCOPE_SKIP_INSTALL=1` turns installing off.

packages_build=(g++ cmake ninja-build git pkg-config nlohmann-json3-dev libfmt-dev libcli11-dev libexpected-dev libssl-dev
    libgloo-dev libopenblas-dev libpcre2-dev libutf8proc-dev libonnx-dev libprotobuf-dev protobuf-compiler libhwloc-dev
    qt6-base-dev qt6-charts-dev libqt6opengl6-dev qt6-svg-dev fonts-dejavu-core fonts-inter)
# Launchers and servers that runs are tried under, and the compiler of the sanitized tests; only CI and `test.sh --sanitize`
# install them, elsewhere the tests of them are skipped where they are missing.
packages_ci=(openmpi-bin slurm-client slurmctld slurmd iproute2 openssh-client openssh-server clang)
packages_run=(qt6-qpa-plugins)

say() { printf '%s: %s\n' "$(basename "$0")" "$*"; }

install_missing() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        say "all ${#} packages are installed"
        return 0
    fi
    if [ -n "${SHARDSCOPE_SKIP_INSTALL:-}" ]; then
        say "missing (not installed, as asked): ${missing[*]}"
        return 0
    fi
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { say "needs root or sudo to install: ${missing[*]}" >&2; return 1; }
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        say "apt-get failed; the whole log is in $log" >&2
        return 1
    fi
    rm -f "$log"
}

# Where there is an nvcc: cuDNN's graph API, which comes as headers in a Python package. Attention on GPUs works without.
fetch_cudnn_frontend() {
    local folder=build/deps/cudnn-frontend
    command -v nvcc >/dev/null && [ ! -f $folder/include/cudnn_frontend.h ] && [ -z "${SHARDSCOPE_SKIP_INSTALL:-}" ] || return 0
    mkdir -p $folder
    if python3 -m pip install --quiet --disable-pip-version-check --no-deps --target $folder nvidia-cudnn-frontend \
        >build/deps/pip.log 2>&1; then
        say "fetched the headers of nvidia-cudnn-frontend"
    else
        say "nvidia-cudnn-frontend could not be fetched (build/deps/pip.log): attention on GPUs runs through our own kernel"
    fi
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
    local preset=$1
    shift
    say "building ($preset)"
    mkdir -p build
    local log=build/$preset.log
    # Kernels for one kind of GPU are enough to see that they compile.
    if ! { cmake --preset "$preset" ${CI:+-DSHARDSCOPE_CUDA_ARCHITECTURES=80} >"$log" 2>&1 && cmake --build --preset "$preset" ${1:+--target "$@"} >>"$log" 2>&1; }; then
        grep -E "error|Error|FAILED" "$log" | head -n 40 >&2
        tail -n 5 "$log" >&2
        say "the build failed; the whole log is in $log" >&2
        return 1
    fi
    grep -h "Shardscope" "$log" | sed 's/^-- /  /' || true
}
