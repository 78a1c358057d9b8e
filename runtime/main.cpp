// SPDX-License-Identifier: GPL-3.0-or-later
// The training runtime's command line. Wiring only.
#include "runtime/launch/Coordinator.h"
#include "runtime/launch/Export.h"
#include "runtime/launch/Measure.h"
#include "runtime/launch/RunOptions.h"
#include "runtime/launch/Sample.h"
#include "runtime/launch/Show.h"
#include "runtime/launch/Worker.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace shardscope;

namespace {

/// Range alone lets NaN through, since it is on neither side of a bound.
const CLI::Validator isFinite(
    [](std::string& text) {
        return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string() : "must be finite";
    },
    "finite");

void addRunOptions(CLI::App& command, engine::RunOptions& options) {
    command.add_option("PLAN", options.planPath, "plan file")->required();
    command
        .add_option("--data", options.data,
                    "builtin:addition, token ids (*.bin or a folder of them), or a text file or folder")
        ->required();
    command.add_option(
        "--tokenizer", options.tokenizer,
        "a tokenizer.json with byte-level BPE, or its folder: what text is encoded with (default: bytes)");
    command.add_option("--device", options.device, "cpu or cuda")->capture_default_str();
    command.add_option("--workers", options.workers, "number of ranks (default: the plan's)")
        ->check(CLI::Range(1, 4096));
    command.add_option("--steps", options.steps, "optimizer steps in all")
        ->check(CLI::Range(1, 1000000000))
        ->capture_default_str();
    command.add_option("--seed", options.seed, "of weights and data")
        ->check(CLI::Range(0LL, 1LL << 53))
        ->capture_default_str();
    command.add_option("--run-dir", options.runDirectory, "folder of the run (default: ./runs/NAME-TIME)");
    command.add_option("--init", options.init,
                       "weights to begin with: a .safetensors file or a Hugging Face folder (default: random)");
    command.add_flag("--resume", options.resume, "go on from the newest checkpoint in the run folder");
    command.add_option("--checkpoint-every", options.checkpointEvery, "steps between checkpoints (0: at the end only)")
        ->check(CLI::Range(0, 1000000000))
        ->capture_default_str();
    command.add_option("--learning-rate", options.learningRate, "instead of the plan's")
        ->check(CLI::Range(0.0, 1000.0) & isFinite);
    command
        .add_option("--timeout", options.timeoutSeconds, "seconds after which a rank that shows no life is given up")
        ->check(CLI::Range(0.1, 86400.0) & isFinite)
        ->default_str("5");
    command.add_option("--keep-checkpoints", options.checkpointsKept, "how many of the newest checkpoints are kept")
        ->check(CLI::Range(1, 1000000000))
        ->capture_default_str();
}

} // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "run")
        engine::catchEarlyStops();
    CLI::App app{"Trains what a Shardscope plan describes, with one process per rank."};
    app.set_version_flag("--version", "shardscope-train " SHARDSCOPE_VERSION);
    app.require_subcommand(1);

    engine::RunOptions runOptions;
    CLI::App* const run =
        app.add_subcommand("run", "coordinator and workers on this machine; telemetry on standard output");
    addRunOptions(*run, runOptions);
    run->add_option("--book", runOptions.book,
                    "folder of plan-W.json: a restart goes on with the plan for fewer workers W");
    run->add_option("--max-restarts", runOptions.maxRestarts, "restarts from the last checkpoint after a failure")
        ->check(CLI::Range(0, 1000000))
        ->capture_default_str();

    engine::RunOptions workerOptions;
    CLI::App* const worker = app.add_subcommand("worker", "one rank, started by torchrun, srun or mpirun");
    addRunOptions(*worker, workerOptions);

    engine::MeasureOptions measureOptions;
    CLI::App* const measure = app.add_subcommand("measure", "measures this machine and writes a cluster file");
    measure->add_option("--workers", measureOptions.workers, "ranks to measure with (default: one per core, or GPU)")
        ->check(CLI::Range(1, 256));
    measure->add_option("--device", measureOptions.device, "cpu or cuda")->capture_default_str();
    measure->add_option("-o,--output", measureOptions.output, "default: ~/.cache/shardscope/local.cluster.json");
    measure->add_flag("--json", measureOptions.json, "print the cluster as JSON");

    engine::ShowOptions showOptions;
    CLI::App* const show = app.add_subcommand("show", "summary of a finished or running run");
    show->add_option("RUN_DIR", showOptions.runDirectory, "folder of the run")->required();
    show->add_flag("--json", showOptions.json, "print the summary as JSON");

    engine::SampleOptions sampleOptions;
    CLI::App* const sample = app.add_subcommand("sample", "continues a text with the weights of the latest checkpoint");
    sample->add_option("RUN_DIR", sampleOptions.runDirectory, "folder of the run")->required();
    sample->add_option("--prompt", sampleOptions.prompt, "text to continue")->required();
    sample->add_option("--tokenizer", sampleOptions.tokenizer,
                       "where the run's tokenizer lies now, if it was moved; bytes where it had none");
    sample->add_option("--tokens", sampleOptions.tokens, "how many tokens")
        ->check(CLI::Range(0, 1000000))
        ->capture_default_str();
    sample->add_option("--temperature", sampleOptions.temperature, "0: always the most likely token")
        ->check(CLI::Range(0.0, 100.0) & isFinite)
        ->capture_default_str();
    sample->add_option("--seed", sampleOptions.seed, "of the choice of tokens")
        ->check(CLI::Range(0LL, 1LL << 53))
        ->capture_default_str();
    sample->add_flag("--json", sampleOptions.json, "print step, prompt and text as JSON");

    engine::ExportOptions exportOptions;
    CLI::App* const exported =
        app.add_subcommand("export", "a Hugging Face folder of the weights of the latest checkpoint");
    exported->add_option("RUN_DIR", exportOptions.runDirectory, "folder of the run")->required();
    exported->add_option("-o,--output", exportOptions.output, "the folder to be made")->required();
    exported->add_option("--step", exportOptions.step, "of the checkpoint (default: the newest that is whole)")
        ->check(CLI::Range(0LL, 1LL << 53));
    exported->add_option("--dtype", exportOptions.dtype, "of the weights: fp32, or bf16 in half the bytes")
        ->check(CLI::IsMember({"fp32", "bf16"}))
        ->capture_default_str();
    exported->add_flag("--force", exportOptions.force, "replace the folder where it holds files and no folders");
    exported->add_flag("--json", exportOptions.json, "print what was written as JSON");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : contract::exitCode(contract::ErrorKind::Usage);
    }
    if (run->parsed())
        return engine::runCoordinator(runOptions);
    if (worker->parsed())
        return engine::runWorker(workerOptions);
    const auto done = measure->parsed()    ? engine::runMeasure(measureOptions)
                      : sample->parsed()   ? engine::runSample(sampleOptions)
                      : exported->parsed() ? engine::runExport(exportOptions)
                                           : engine::runShow(showOptions);
    if (!done) {
        std::fprintf(stderr, "shardscope-train: %s\n", done.error().message.c_str());
        return contract::exitCode(done.error().kind);
    }
    return 0;
}
