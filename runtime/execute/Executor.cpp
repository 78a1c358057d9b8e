// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Executor.h"

#include "runtime/device/HostDevice.h"
#include "runtime/execute/OptimizerStep.h"
#include "runtime/execute/Schedule.h"
#include "runtime/network/Initializer.h"
#include "runtime/ops/Kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace shardscope::engine {

using contract::StepCode;
using contract::StepInstruction;

contract::Result<std::unique_ptr<Executor>> Executor::create(const PlanSetup& setup, Group& group, const Dataset& data,
                                                             std::unique_ptr<Device> device) {
    if (!device)
        device = std::make_unique<HostDevice>();
    auto arenas = Arenas::map(setup.table, *device);
    if (!arenas)
        return tl::unexpected(arenas.error());
    std::unique_ptr<Executor> executor(new Executor(setup, group, data, std::move(device), std::move(*arenas)));
    auto decoder = Decoder::create(setup.architecture, setup.operators, setup.decisions, setup.training, setup.preset,
                                   executor->m_pool, *executor->m_device);
    if (!decoder)
        return tl::unexpected(decoder.error());
    executor->m_decoder = std::move(*decoder);
    if (auto connected = executor->connect(); !connected)
        return tl::unexpected(connected.error());
    return executor;
}

Executor::~Executor() = default;

Executor::Executor(const PlanSetup& setup, Group& group, const Dataset& data, std::unique_ptr<Device> device,
                   Arenas arenas)
    : m_setup(setup), m_group(group), m_data(data), m_device(std::move(device)), m_pool(setup.table, std::move(arenas)),
      m_layout(setup.operators, setup.decisions, setup.ranks, setup.devicesPerNode, setup.preset, m_pool) {
    for (std::int32_t i = 0; i < setup.program.slotCount; ++i) {
        Slot slot;
        slot.gathered = m_pool.find(fmt::format("slot.{}.gathered", i));
        slot.unreduced = m_pool.find(fmt::format("slot.{}.unreduced", i));
        m_slots.push_back(slot);
        m_slotBases.push_back(m_pool.address(slot.gathered != kNoBuffer ? slot.gathered : slot.unreduced));
    }
    findSlotReleases();
    const std::size_t traced =
        setup.program.instructions.size() * static_cast<std::size_t>(setup.training.accumulate) + 8;
    m_trace.reserve(2 * traced);
    m_laneTrace.reserve(traced + setup.program.instructions.size()); // and sums over nodes
}

contract::Result<void> Executor::connect() {
    auto communication = Communication::create(m_setup, m_layout, m_group, m_pool, *m_device);
    if (!communication)
        return tl::unexpected(communication.error());
    m_communication = std::move(*communication);
    m_lane = std::make_unique<Lane>([this](const Lane::Job& job) { return handle(job); });
    return {};
}

void Executor::initialize(std::uint64_t seed) {
    initializeWeights(m_setup.architecture, m_setup.operators, seed, rank(), m_layout, *m_device);
}

double Executor::now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- the communication thread -------------------------------------------------------------------------------------

contract::Result<void> Executor::handle(const Lane::Job& job) {
    const double start = m_traced ? now() : 0;
    const Lane::Ticket ticket = ++m_handled;
    m_device->jobBegins(ticket);
    contract::Result<void> result;
    switch (job.code) {
    case StepCode::Clip:
        result = m_communication->ring().sumScalars(m_scalars.data(), kScalarCount);
        break;
    case StepCode::Load:
        result = m_errand(m_communication->ring());
        break; // an errand
    default:
        result = m_communication->run(job, m_slotBases);
        break;
    }
    m_device->jobEnds(ticket);
    if (m_traced && m_laneTrace.size() < m_laneTrace.capacity())
        m_laneTrace.push_back({job, true, start - m_stepStart, now() - m_stepStart});
    return result;
}

contract::Result<void> Executor::awaitLane() {
    if (!drain())
        return tl::unexpected(failure());
    return {};
}

contract::Result<void> Executor::onLane(std::function<contract::Result<void>(Ring&)> errand) {
    m_errand = std::move(errand);
    hand({StepCode::Load, -1, -1, -1});
    return awaitLane();
}

// ---- the compute thread -------------------------------------------------------------------------------------------

Lane::Ticket Executor::hand(const StepInstruction& job) {
    m_device->jobFollowsCompute(++m_handed);
    m_lane->post(job);
    return m_handed;
}

bool Executor::await(Lane::Ticket ticket) {
    if (!m_lane->wait(ticket))
        return false;
    if (ticket > 0)
        m_device->computeFollowsJob(ticket);
    return true;
}

bool Executor::fail(contract::Error error) {
    m_failure = std::move(error);
    return false;
}

void Executor::post(const StepInstruction& instruction) {
    const Lane::Ticket ticket = hand(instruction);
    if (instruction.slot >= 0)
        m_slots[static_cast<std::size_t>(instruction.slot)].newest = ticket;
}

void Executor::takeSlot(std::int32_t slot) {
    for (const BufferId id :
         {m_slots[static_cast<std::size_t>(slot)].gathered, m_slots[static_cast<std::size_t>(slot)].unreduced})
        if (id != kNoBuffer)
            m_pool.take(id);
}

void Executor::giveBackSlot(std::int32_t slot) {
    for (const BufferId id :
         {m_slots[static_cast<std::size_t>(slot)].gathered, m_slots[static_cast<std::size_t>(slot)].unreduced})
        if (id != kNoBuffer)
            m_pool.giveBack(id);
}

void Executor::load(std::int64_t microStep) {
    const contract::Training& training = m_setup.training;
    std::int32_t* const tokens = m_decoder->takeTokens();
    std::int32_t* const targets = m_decoder->takeTargets();
    const std::int64_t first = rank() * m_setup.samplesPerRank() + microStep * training.microBatch;
    for (std::int64_t i = 0; i < training.microBatch; ++i)
        m_data.trainingSample(m_step, first + i, tokens + i * training.sequence, targets + i * training.sequence);
    m_decoder->deliverBatch();
    m_decoder->beginPass(Decoder::HeadUse::Train);
}

/// Gradients in a slot are reduced with their padding, which must not hold an earlier user's bytes.
void Executor::clearPadding(const StepInstruction& instruction) {
    std::byte* const slot = m_slotBases[static_cast<std::size_t>(instruction.slot)];
    for (const TensorState& tensor :
         m_layout.of(instruction.op).parts[static_cast<std::size_t>(instruction.part)].tensors)
        m_device->kernels().clear(tensor.unreducedIn(slot) + tensor.elements, tensor.paddedElements - tensor.elements);
}

/// A slot is given back by the last compute instruction of its use: the next instruction with that slot belongs to
/// another use, unless both are of one coalesced block on the same side of the loss. After a backward it is given back
/// when its reduction is done.
void Executor::findSlotReleases() {
    const std::vector<StepInstruction>& program = m_setup.program.instructions;
    m_releasesSlot.assign(program.size(), false);
    const auto computes = [](StepCode code) {
        return code == StepCode::Forward || code == StepCode::Recompute || code == StepCode::Backward;
    };
    const auto coalescedIn = [&](const StepInstruction& instruction) {
        const auto op = static_cast<std::size_t>(instruction.op);
        return m_setup.decisions[op].coalesced ? m_setup.operators[op].block : -1;
    };
    for (std::size_t i = 0; i < program.size(); ++i) {
        if (program[i].slot < 0 || (program[i].code != StepCode::Forward && program[i].code != StepCode::Recompute))
            continue;
        std::size_t next = i + 1;
        while (next < program.size() && program[next].slot != program[i].slot)
            ++next;
        const bool sameUse = next < program.size() && computes(program[next].code) && coalescedIn(program[i]) >= 0 &&
                             coalescedIn(program[i]) == coalescedIn(program[next]) &&
                             (program[i].code == StepCode::Forward) == (program[next].code == StepCode::Forward);
        m_releasesSlot[i] = !sameUse;
    }
}

bool Executor::runCompute(std::size_t index) {
    const StepInstruction& instruction = m_setup.program.instructions[index];
    std::byte* slot = nullptr;
    if (instruction.slot >= 0) {
        takeSlot(instruction.slot);
        if (!await(m_slots[static_cast<std::size_t>(instruction.slot)].newest))
            return false;
        slot = m_slotBases[static_cast<std::size_t>(instruction.slot)];
    }
    const PartAccess access = accessPart(m_layout.of(instruction.op), instruction.part, slot);
    switch (instruction.code) {
    case StepCode::Forward:
        m_decoder->forward(instruction.op, access);
        break;
    case StepCode::Recompute:
        m_decoder->recompute(instruction.op, access);
        break;
    default:
        m_decoder->backward(instruction.op, access);
        if (slot != nullptr)
            clearPadding(instruction);
        return true; // its slot is given back when the reduction is done
    }
    if (m_releasesSlot[index])
        giveBackSlot(instruction.slot);
    return true;
}

bool Executor::clip() {
    if (!drain())
        return false;
    for (std::int32_t slot = 0; slot < m_setup.program.slotCount; ++slot)
        giveBackSlot(slot);
    for (std::int32_t op = 0; op < m_layout.count(); ++op) {
        if (m_setup.operators[static_cast<std::size_t>(op)].isTied())
            continue;
        for (const PartState& part : m_layout.of(op).parts)
            for (const TensorState& tensor : part.tensors) {
                const TensorState::Owned owned = tensor.owned(rank());
                // Every node has the shards of an operator that is sharded inside nodes.
                const auto copies = static_cast<double>(tensor.updateSharded ? m_setup.ranks / tensor.group : 1);
                m_device->kernels().addSquares(tensor.updateSharded ? SquareSum::Sharded : SquareSum::Whole,
                                               owned.gradient, owned.count, copies);
            }
    }
    const auto sums = m_device->kernels().readSums();
    if (!sums)
        return fail(sums.error());
    m_sums = *sums;
    const double whole = m_sums.squares[static_cast<int>(SquareSum::Whole)];
    const bool broken = !std::isfinite(m_sums.loss);
    m_scalars = {m_sums.loss,
                 static_cast<double>(m_sums.tokens),
                 m_sums.squares[static_cast<int>(SquareSum::Sharded)],
                 m_stopRequested ? 1.0 : 0.0,
                 broken ? 1.0 : 0.0,
                 broken ? rank() : 0.0};
    if (!await(hand({StepCode::Clip, -1, -1, -1})))
        return false;
    if (auto finite = checkFinite(whole); !finite)
        return fail(finite.error());
    const double tokens = std::max(m_scalars[kTokens], 1.0);
    const contract::Optimizer& optimizer = m_setup.training.optimizer;
    m_outcome.loss = m_scalars[kLoss] / tokens;
    m_outcome.gradientNorm = std::sqrt(whole + m_scalars[kSquares]) / tokens;
    m_outcome.learningRate = learningRateAt(optimizer, m_step, m_steps);
    m_outcome.stopRequested = m_scalars[kStop] > 0;
    const bool clipped = optimizer.clipNorm > 0 && m_outcome.gradientNorm > optimizer.clipNorm;
    m_gradientScale = (clipped ? optimizer.clipNorm / m_outcome.gradientNorm : 1.0) / tokens;
    return true;
}

/// Whether the step may change the weights. Every rank comes to the same end; the one whose loss broke says so of
/// itself, the others of it.
contract::Result<void> Executor::checkFinite(double wholeSquares) {
    const std::int64_t step = m_step;
    if (const double broken = m_scalars[kBrokenLosses]; broken > 0) {
        m_phase = "loss";
        if (!std::isfinite(m_sums.loss))
            return contract::runFailed(fmt::format("the loss of step {} is {} on this rank", step, m_sums.loss));
        return contract::runFailed(broken > 1
                                       ? fmt::format("the losses of step {} are not finite on {} ranks", step, broken)
                                       : fmt::format("the loss of step {}: rank {} has one that is not finite", step,
                                                     static_cast<int>(m_scalars[kBrokenRanks])));
    }
    if (const double squares = wholeSquares + m_scalars[kSquares]; !std::isfinite(squares)) {
        m_phase = "gradient norm";
        return contract::runFailed(
            fmt::format("the gradient norm of step {} is {}; the losses are finite", step, std::sqrt(squares)));
    }
    return {};
}

void Executor::update(std::int32_t op) {
    const OptimizerStep step(m_setup.training.optimizer, m_step, m_gradientScale, m_outcome.learningRate);
    for (const PartState& part : m_layout.of(op).parts)
        for (const TensorState& tensor : part.tensors)
            step.update(m_device->kernels(), op, tensor, rank());
}

void Executor::note(const StepInstruction& instruction, bool communication, double start) {
    if (m_traced && m_trace.size() < m_trace.capacity())
        m_trace.push_back({instruction, communication, start - m_stepStart, now() - m_stepStart});
}

void Executor::begin(std::size_t instruction) {
    m_latest = static_cast<std::int32_t>(instruction);
    m_current = m_latest;
    ++m_begun;
}

Executor::Pulse Executor::pulse() const {
    const std::int32_t current = m_current;
    Pulse pulse{m_begun, current != kIdle && !m_lane->isWaitedFor(), {}};
    if (current != kIdle)
        pulse.instruction = m_setup.program.instructions[static_cast<std::size_t>(current)];
    return pulse;
}

contract::Error Executor::failure() const {
    return m_failure ? *m_failure : *m_lane->failure();
}

/// False when communication failed, or the loss is no number.
bool Executor::run(std::size_t index, std::int64_t microStep) {
    const StepInstruction& instruction = m_setup.program.instructions[index];
    begin(index);
    const bool lastMicroStep = microStep + 1 >= m_setup.training.accumulate;
    const double start = m_traced ? now() : 0;
    switch (instruction.code) {
    case StepCode::Load:
        load(microStep);
        break;
    case StepCode::Gather:
        takeSlot(instruction.slot);
        post(instruction);
        return true;
    case StepCode::Forward:
    case StepCode::Recompute:
    case StepCode::Backward:
        if (!runCompute(index))
            return false;
        break;
    case StepCode::Loss:
        m_decoder->loss();
        break;
    case StepCode::ReduceScatter:
    case StepCode::AllReduce: // what is reduced in place is summed once, when all micro-steps have added to it
        if (instruction.slot >= 0 || lastMicroStep)
            post(instruction);
        // Inside a node the shard is complete after its last use; it is summed over the nodes once per step.
        if (instruction.code == StepCode::ReduceScatter && lastMicroStep &&
            !m_setup.operators[static_cast<std::size_t>(instruction.op)].isTied() &&
            m_communication->hasCopiesOnOtherNodes(instruction.op))
            post({StepCode::AllReduce, instruction.op, instruction.part, -1});
        return true;
    case StepCode::Clip:
        if (!clip())
            return false;
        break;
    case StepCode::Update:
        update(instruction.op);
        break;
    case StepCode::GatherUpdated:
        post(instruction);
        return true;
    case StepCode::Finish:
        if (!drain())
            return false;
        if (auto done = m_device->synchronize(); !done)
            return fail(done.error());
        return true;
    }
    note(instruction, false, start);
    return true;
}

contract::Result<StepOutcome> Executor::runStep(std::int64_t step, std::int64_t steps, bool stopRequested,
                                                bool traced) {
    m_step = step;
    m_steps = steps;
    m_stopRequested = stopRequested;
    m_device->kernels().clearSums();
    m_outcome = {};
    m_trace.clear();
    m_laneTrace.clear();
    m_stepStart = now();
    m_traced = traced; // the lane is idle between steps
    const double waited = m_lane->waitedSeconds();
    m_device->takeStalledSeconds(); // those of passes outside of steps
    const Arenas& arenas = m_pool.arenas();
    m_device->clearBytes(arenas.base(contract::Arena::Gradients), arenas.bytes(contract::Arena::Gradients));
    const auto microStepEnd = static_cast<std::size_t>(m_setup.program.microStepEnd);
    bool fine = true;
    for (std::int64_t microStep = 0; fine && microStep < m_setup.training.accumulate; ++microStep)
        for (std::size_t i = 0; fine && i < microStepEnd; ++i)
            fine = run(i, microStep);
    for (std::size_t i = microStepEnd; fine && i < m_setup.program.instructions.size(); ++i)
        fine = run(i, m_setup.training.accumulate - 1);
    m_current = kIdle;
    if (!fine)
        return tl::unexpected(failure());
    m_outcome.seconds = now() - m_stepStart;
    m_longestStep = std::max<double>(m_longestStep, m_outcome.seconds);
    m_outcome.exposedSeconds = m_lane->waitedSeconds() - waited + m_device->takeStalledSeconds();
    m_traced = false;
    for (const TracedInstruction& entry : m_laneTrace)
        if (m_trace.size() < m_trace.capacity())
            m_trace.push_back(entry);
    return m_outcome;
}

std::string Executor::describe(const StepInstruction& instruction) const {
    const std::string code(contract::stepCodeName(instruction.code));
    if (instruction.op < 0)
        return code;
    const contract::Operator& op = m_setup.operators[static_cast<std::size_t>(instruction.op)];
    const bool wholeBlock = instruction.part == StepInstruction::kWholeBlock && instruction.code != StepCode::Update;
    return code + " " + (wholeBlock ? op.blockName : op.name);
}

std::string Executor::phase() const {
    if (!m_phase.empty())
        return m_phase;
    if (m_lane && m_lane->failure())
        return describe(m_lane->failedJob());
    return m_latest == kIdle ? "start" : describe(m_setup.program.instructions[static_cast<std::size_t>(m_latest)]);
}

} // namespace shardscope::engine
