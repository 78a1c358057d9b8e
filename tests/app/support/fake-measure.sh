#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Stands in for `shardscope-train measure`: the name under which it is started says how it behaves.
case "$0" in
    *slow*) while :; do sleep 0.05; done ;;
    *broken*) echo "shardscope-train: no core to measure on" >&2; exit 3 ;;
    *) [ "$1" = measure ] || exit 2; exit 0 ;;
esac
