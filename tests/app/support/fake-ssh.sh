#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Stands in for ssh: the machine's name says how it behaves. Its home folder is FAKE_SSH_HOME.
while [ "$1" != "--" ]; do shift; done
shift
machine=$1
shift
export HOME="$FAKE_SSH_HOME"
case "$machine" in
    nowhere)
        echo "ssh: Could not resolve hostname nowhere: Name or service not known" >&2
        exit 255
        ;;
    breaks | breaks-for-good)
        # The first connection breaks after three steps; what runs there goes on.
        if [ -e "$HOME/broken" ]; then
            [ "$machine" = breaks ] || { echo "ssh: connection refused" >&2; exit 255; }
            exec /bin/sh -c "$*"
        fi
        : >"$HOME/broken"
        mkfifo "$HOME/pipe"
        cat >"$HOME/input"
        setsid /bin/sh -c "$*" <"$HOME/input" >"$HOME/pipe" &
        steps=0
        while [ $steps -lt 3 ] && read -r line; do
            echo "$line"
            case "$line" in *'"type":"step"'*) steps=$((steps + 1)) ;; esac
        done <"$HOME/pipe"
        echo "client_loop: send disconnect: Broken pipe" >&2
        exit 255
        ;;
esac
# A process of its own: what runs there does not end with the connection.
exec setsid --fork --wait /bin/sh -c "$*"
