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

std::optional<CoalescingFault> findCoalescingFault(const std::vector<Operator>& operators,
                                                   const std::vector<OperatorDecision>& decisions) {
    const std::vector<std::int32_t> owners = storageOwners(operators);
    for (std::size_t begin = 0, end = 0; begin < operators.size(); begin = end) {
        end = begin + 1;
        while (end < operators.size() && operators[begin].block >= 0 && operators[end].block == operators[begin].block)
            ++end;
        std::size_t first = begin;
        while (first < end && !decisions[first].coalesced)
            ++first;
        if (first == end)
            continue;
        for (std::size_t i = begin; i < end; ++i) {
            const OperatorDecision& decision = decisions[i];
            const auto fault = [&](const char* reason) {
                return CoalescingFault{static_cast<std::int32_t>(i), reason};
            };
            const Placement& placement = decisions[static_cast<std::size_t>(owners[i])].placement;
            const bool usesSlot = placement.isSharded() ||
                                  (placement.kind == PlacementKind::Keep && !holdsGradient(operators[i], placement));
            if (!decision.coalesced) {
                if (usesSlot)
                    return fault("must be true: it needs a slot while the others of its block hold theirs");
                continue;
            }
            if (operators[i].block < 0)
                return fault("is true outside a block");
            if (operators[i].isTied() || operators[i].sharedStorage)
                return fault("is true for an operator with shared storage");
            if (!usesSlot || placement.isSplit())
                return fault("is true; it must be sharded in one slice, or kept and not held");
            if (placement.group != decisions[first].placement.group)
                return fault("is true in another group than the operators before it in the block");
        }
    }
    return std::nullopt;
}

namespace {

/// One compute instruction together with what it needs from its slot.
struct Use {
    StepInstruction instruction;
    std::int32_t slotUse = -1; ///< index into the builder's slot uses
};

/// A stretch of compute instructions during which a slot is held.
struct SlotUse {
    StepInstruction like; ///< operator, part and slot of its communication
    bool gathers = false;
    bool reduces = false; ///< leaves unreduced gradients in its slot
    std::size_t last = 0; ///< its last compute instruction
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
        m_uses.push_back({{StepCode::Loss, -1, -1, -1}});
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
    const OperatorDecision& decision(std::int32_t op) const { return m_decisions[static_cast<std::size_t>(op)]; }
    bool recomputed(std::int32_t op) const { return at(op).block >= 0 && decision(op).recompute; }
    bool endsBlock(std::int32_t op) const {
        const auto next = static_cast<std::size_t>(op) + 1;
        return at(op).block >= 0 && (next == m_operators.size() || m_operators[next].block != at(op).block);
    }

    void addUses(std::int32_t op, StepCode code) {
        const std::vector<SlicePart> parts = sliceParts(at(op), placementOf(op));
        const bool keep = placementOf(op).kind == PlacementKind::Keep && !holdsGradient(at(op), placementOf(op));
        for (std::size_t part = 0; part < parts.size(); ++part) {
            const bool gathers = parts[part].sharded;
            const bool reduces = code == StepCode::Backward && (gathers || keep);
            Use use{{code, op, static_cast<std::int32_t>(part), -1}};
            if (gathers || reduces) {
                use.slotUse =
                    decision(op).coalesced ? blockUse(op, code) : static_cast<std::int32_t>(m_slotUses.size());
                if (static_cast<std::size_t>(use.slotUse) == m_slotUses.size())
                    m_slotUses.push_back({use.instruction});
                SlotUse& slotUse = m_slotUses[static_cast<std::size_t>(use.slotUse)];
                slotUse.gathers |= gathers;
                slotUse.reduces |= reduces;
                slotUse.last = m_uses.size();
                if (decision(op).coalesced)
                    slotUse.like = {code, firstCoalesced(op), StepInstruction::kWholeBlock, -1};
            }
            m_uses.push_back(use);
        }
    }

    /// The slot use that the coalesced operators of a block share in forward, and from recomputation to backward.
    std::int32_t blockUse(std::int32_t op, StepCode code) {
        const bool forward = code == StepCode::Forward;
        if (at(op).block != m_openBlock || forward != m_openForward) {
            m_openBlock = at(op).block;
            m_openForward = forward;
            m_openUse = static_cast<std::int32_t>(m_slotUses.size());
        }
        return m_openUse;
    }
    std::int32_t firstCoalesced(std::int32_t op) const {
        std::int32_t first = op;
        for (std::int32_t i = op; i >= 0 && at(i).block == at(op).block; --i)
            first = decision(i).coalesced ? i : first;
        return first;
    }

    void addBackward(std::int32_t count) {
        for (std::int32_t op = count - 1; op >= 0; --op) {
            if (endsBlock(op) && recomputed(op)) {
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
        m_program.slotCount = m_slotUses.empty() ? 0 : m_prefetch + 1;
        std::int32_t next = 0;
        for (SlotUse& slotUse : m_slotUses) {
            slotUse.like.slot = next;
            next = (next + 1) % m_program.slotCount;
        }
        for (Use& use : m_uses) {
            if (use.slotUse >= 0)
                use.instruction.slot = m_slotUses[static_cast<std::size_t>(use.slotUse)].like.slot;
        }
    }

    void emit(StepCode code, const StepInstruction& like) {
        m_program.instructions.push_back({code, like.op, like.part, like.slot});
    }

    /// Issues the gather of the slot use number `index`, if there is one.
    void emitGather(std::size_t index) {
        if (index < m_slotUses.size() && m_slotUses[index].gathers)
            emit(StepCode::Gather, m_slotUses[index].like);
    }

    void emitMicroStep() {
        const auto ahead = static_cast<std::size_t>(m_prefetch);
        for (std::size_t index = 0; index <= ahead; ++index)
            emitGather(index);
        m_program.instructions.push_back({StepCode::Load, -1, -1, -1});
        std::size_t done = 0; // slot uses computed so far
        for (std::size_t i = 0; i < m_uses.size(); ++i) {
            m_program.instructions.push_back(m_uses[i].instruction);
            if (done < m_slotUses.size() && m_slotUses[done].last == i) {
                if (m_slotUses[done].reduces)
                    emit(StepCode::ReduceScatter, m_slotUses[done].like);
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
        if (placement.kind == PlacementKind::Keep && holdsGradient(at(done.op), placement))
            m_program.instructions.push_back({StepCode::ReduceScatter, done.op, 0, -1});
        const std::vector<SlicePart> parts = sliceParts(at(done.op), placement);
        if (placement.kind != PlacementKind::Keep && !parts.back().sharded)
            m_program.instructions.push_back(
                {StepCode::AllReduce, done.op, static_cast<std::int32_t>(parts.size()) - 1, -1});
    }

    void emitTail(std::int32_t count) {
        m_program.instructions.push_back({StepCode::Clip, -1, -1, -1});
        std::int32_t firstKept = -1; // coalesced, of the block being updated
        for (std::int32_t op = 0; op < count; ++op) {
            if (at(op).isTied())
                continue;
            m_program.instructions.push_back({StepCode::Update, op, -1, -1});
            const bool kept = placementOf(op).kind == PlacementKind::Keep;
            if (kept && !decision(op).coalesced)
                m_program.instructions.push_back({StepCode::GatherUpdated, op, 0, -1});
            if (kept && decision(op).coalesced && firstKept < 0)
                firstKept = op;
            if (firstKept >= 0 && endsBlock(op)) {
                m_program.instructions.push_back(
                    {StepCode::GatherUpdated, firstKept, StepInstruction::kWholeBlock, -1});
                firstKept = -1;
            }
        }
        m_program.instructions.push_back({StepCode::Finish, -1, -1, -1});
    }

    const std::vector<Operator>& m_operators;
    const std::vector<OperatorDecision>& m_decisions;
    std::vector<std::int32_t> m_owners;
    std::int32_t m_prefetch;
    std::vector<Use> m_uses;
    std::vector<SlotUse> m_slotUses;
    std::int32_t m_openBlock = -1;
    bool m_openForward = false;
    std::int32_t m_openUse = -1;
    StepProgram m_program;
};

} // namespace

StepProgram buildStepProgram(const std::vector<Operator>& operators, const std::vector<OperatorDecision>& decisions,
                             std::int32_t prefetchDepth) {
    return ProgramBuilder(operators, decisions, prefetchDepth).build();
}

} // namespace shardscope::contract
