# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of check.sh written in Python have in common: rows of its table, libraries, names of GPUs."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

MEMORY_TOLERANCE = 0.02  # of the plan
CLUSTERS = pathlib.Path(__file__).resolve().parents[2] / "models" / "clusters"


def use_carried_libraries():
    """Our programs need what was packed, this Python must not see it: hence a variable of its own, set for children."""
    if carried := os.environ.get("SHARDSCOPE_LIBRARIES"):
        os.environ["LD_LIBRARY_PATH"] = carried


def row(what, wanted, measured, verdict):
    """One row; check.sh counts it as a failure when the verdict begins with FAILED, and as left out when it begins with
    incomplete. Written at once: a part that runs out of time leaves what it had."""
    print("\t".join(str(cell).replace("\t", " ").replace("\n", " ") for cell in (what, wanted, measured, verdict)),
          flush=True)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "nothing said"


def reason(error):
    """What a program that failed said, without its command."""
    return last_line(str(error).rsplit("]: ", 1)[-1])


def failed(causes):
    """The verdict for a row of several runs: the first cause, and how many there are."""
    return f"FAILED: {causes[0]}" + (f", and {len(causes) - 1} more" if len(causes) > 1 else "")


def percent(measured, wanted):
    return f"{100 * (measured / wanted - 1):+.2f} %" if wanted else "?"


def within(measured, wanted):
    """The verdict about bytes that a plan promises."""
    fits = wanted > 0 and abs(measured / wanted - 1) <= MEMORY_TOLERANCE
    return ("ok" if fits else "FAILED") + f": {percent(measured, wanted)}, at most {100 * MEMORY_TOLERANCE:.0f} %"
