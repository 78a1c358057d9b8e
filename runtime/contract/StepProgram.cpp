// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/StepProgram.h"

#include "runtime/contract/Sizing.h"

#include <algorithm>
#include <unordered_map>

namespace shardscope::contract {

std::string_view stepCodeName(StepCode code) {
    switch (code) {
    case StepCode::Load:
        return "load";
    case StepCode::Gather:
        return "gather";
    case StepCode::Forward:
        return "forward";
    case StepCode::Loss:
        return "loss";
    case StepCode::Recompute:
        return "recompute";
    case StepCode::Backward:
        return "backward";
    case StepCode::ReduceScatter:
        return "reduce-scatter";
    case StepCode::AllReduce:
        return "all-reduce";
    case StepCode::Clip:
        return "clip";
    case StepCode::Update:
        return "update";
    case StepCode::GatherUpdated:
        return "gather-updated";
    case StepCode::Finish:
        return "finish";
    }
    return "?";
}

std::vector<std::int32_t> storageOwners(const std::vector<Operator>& operators) {
    std::unordered_map<std::string, std::int32_t> byName;
    for (std::size_t i = 0; i < operators.size(); ++i)
        byName.emplace(operators[i].name, static_cast<std::int32_t>(i));
    std::vector<std::int32_t> owners(operators.size());
    for (std::size_t i = 0; i < operators.size(); ++i) {
        owners[i] = static_cast<std::int32_t>(i);
        if (const auto owner = byName.find(operators[i].tiedTo); operators[i].isTied() && owner != byName.end())
            owners[i] = owner->second;
    }
    return owners;
}

namespace {

/// One compute instruction together with what it needs from its slot.
struct Use {
    StepInstruction instruction;
    bool gathers = false;
    bool reduces = false; ///< leaves an unreduced gradient in its slot
};

class ProgramBuilder {
public:
    ProgramBuilder(const std::vector<Operator>& operators, const std::vector<OperatorDecision>& decisions,
                   std::int32_t prefetchDepth)
        : m_operators(operators), m_decisions(decisions), m_owners(storageOwners(operators)),
          m_prefetch(prefetchDepth) {}

    StepProgram build() {
        const auto count = static_cast<std::int32_t>(m_operators.size());
        for (std::int32_t op = 0; op < count; ++op)
            addUses(op, StepCode::Forward);
        m_uses.push_back({{StepCode::Loss, -1, -1, -1}, false, false});
        addBackward(count);
        assignSlots();
        emitMicroStep();
        emitTail(count);
        return std::move(m_program);
    }

private:
    const Placement& placementOf(std::int32_t op) const {
        return m_decisions[static_cast<std::size_t>(m_owners[static_cast<std::size_t>(op)])].placement;
    }
    const Operator& at(std::int32_t op) const { return m_operators[static_cast<std::size_t>(op)]; }
    bool recomputed(std::int32_t op) const {
        return at(op).block >= 0 && m_decisions[static_cast<std::size_t>(op)].recompute;
    }
    bool isShared(std::int32_t op) const { return at(op).sharedStorage || at(op).isTied(); }

    void addUses(std::int32_t op, StepCode code) {
        const std::vector<SlicePart> parts = sliceParts(at(op), placementOf(op));
        const bool keep = placementOf(op).kind == PlacementKind::Keep && !isShared(op);
        for (std::size_t part = 0; part < parts.size(); ++part) {
            Use use{{code, op, static_cast<std::int32_t>(part), -1}, parts[part].sharded, false};
            use.reduces = code == StepCode::Backward && (parts[part].sharded || keep);
            m_uses.push_back(use);
        }
    }

    void addBackward(std::int32_t count) {
        for (std::int32_t op = count - 1; op >= 0; --op) {
            const bool endsBlock = at(op).block >= 0 && (op + 1 == count || at(op + 1).block != at(op).block);
            if (endsBlock && recomputed(op)) {
                std::int32_t first = op;
                while (first > 0 && at(first - 1).block == at(op).block)
                    --first;
                for (std::int32_t again = first; again < op; ++again)
                    addUses(again, StepCode::Recompute);
            }
            addUses(op, StepCode::Backward);
        }
    }

    void assignSlots() {
        const bool any =
            std::any_of(m_uses.begin(), m_uses.end(), [](const Use& use) { return use.gathers || use.reduces; });
        m_program.slotCount = any ? m_prefetch + 1 : 0;
        std::int32_t next = 0;
        for (std::size_t i = 0; i < m_uses.size(); ++i) {
            if (!m_uses[i].gathers && !m_uses[i].reduces)
                continue;
            m_uses[i].instruction.slot = next;
            next = (next + 1) % m_program.slotCount;
            m_slotUses.push_back(i);
        }
    }

    void emit(StepCode code, const StepInstruction& like) {
        m_program.instructions.push_back({code, like.op, like.part, like.slot});
    }

    /// Issues the gather of the slot use number `index`, if there is one.
    void emitGather(std::size_t index) {
        if (index < m_slotUses.size() && m_uses[m_slotUses[index]].gathers)
            emit(StepCode::Gather, m_uses[m_slotUses[index]].instruction);
    }

    void emitMicroStep() {
        const auto ahead = static_cast<std::size_t>(m_prefetch);
        for (std::size_t index = 0; index <= ahead; ++index)
            emitGather(index);
        m_program.instructions.push_back({StepCode::Load, -1, -1, -1});
        std::size_t done = 0; // slot uses computed so far
        for (std::size_t i = 0; i < m_uses.size(); ++i) {
            const Use& use = m_uses[i];
            m_program.instructions.push_back(use.instruction);
            if (use.reduces)
                emit(StepCode::ReduceScatter, use.instruction);
            if (use.gathers || use.reduces) {
                ++done;
                emitGather(done + ahead);
            }
            emitWholeReduction(i);
        }
        m_program.microStepEnd = static_cast<std::int32_t>(m_program.instructions.size());
    }

    /// After the last backward use of a storage, what is whole in it is reduced once per step.
    void emitWholeReduction(std::size_t index) {
        const StepInstruction& done = m_uses[index].instruction;
        const bool lastPart = index + 1 == m_uses.size() || m_uses[index + 1].instruction.op != done.op ||
                              m_uses[index + 1].instruction.code != done.code;
        // Backward runs in reverse order, so the owner, which comes before those tied to it, is used last.
        if (done.code != StepCode::Backward || !lastPart || at(done.op).isTied())
            return;
        const Placement& placement = placementOf(done.op);
        if (placement.kind == PlacementKind::Keep && isShared(done.op))
            m_program.instructions.push_back({StepCode::ReduceScatter, done.op, 0, -1});
        const std::vector<SlicePart> parts = sliceParts(at(done.op), placement);
        if (placement.kind != PlacementKind::Keep && !parts.back().sharded)
            m_program.instructions.push_back(
                {StepCode::AllReduce, done.op, static_cast<std::int32_t>(parts.size()) - 1, -1});
    }

    void emitTail(std::int32_t count) {
        m_program.instructions.push_back({StepCode::Clip, -1, -1, -1});
        for (std::int32_t op = 0; op < count; ++op) {
            if (at(op).isTied())
                continue;
            m_program.instructions.push_back({StepCode::Update, op, -1, -1});
            if (placementOf(op).kind == PlacementKind::Keep)
                m_program.instructions.push_back({StepCode::GatherUpdated, op, 0, -1});
        }
        m_program.instructions.push_back({StepCode::Finish, -1, -1, -1});
    }

    const std::vector<Operator>& m_operators;
    const std::vector<OperatorDecision>& m_decisions;
    std::vector<std::int32_t> m_owners;
    std::int32_t m_prefetch;
    std::vector<Use> m_uses;
    std::vector<std::size_t> m_slotUses;
    StepProgram m_program;
};

} // namespace

StepProgram buildStepProgram(const std::vector<Operator>& operators, const std::vector<OperatorDecision>& decisions,
                             std::int32_t prefetchDepth) {
    return ProgramBuilder(operators, decisions, prefetchDepth).build();
}

} // namespace shardscope::contract
