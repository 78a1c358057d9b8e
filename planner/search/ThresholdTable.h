// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/BatchTable.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// What bounds on live memory and slots leave of a batch's table: the options that fit and that no other one of the
/// same unit beats, and one group for all those that no longer differ. Blocks at the ends of a network, for example,
/// differ from those in the middle only in what hides the exchange of a coalesced block; where none fits, they are
/// alike, and nothing is gained by deciding them apart.
class ThresholdTable {
public:
    ThresholdTable(const BatchTable& table, std::int64_t live, std::int64_t slot);

    /// `allowed` says what the bound on live memory allows. Variants that do not fit have a slot above the bound.
    const std::vector<GroupTable>& groups() const { return m_groups; }
    std::int64_t slot() const { return m_slot; }
    /// Runs over groups() as runs over the groups of the batch's table.
    GroupRuns expand(GroupRuns runs) const;

private:
    struct Original {
        std::size_t group;  ///< of the batch's table
        std::int32_t count; ///< of its bundles
    };

    std::int64_t m_slot;
    std::vector<GroupTable> m_groups;
    std::vector<std::vector<Original>> m_originals; ///< [group]
};

} // namespace shardscope::planner
