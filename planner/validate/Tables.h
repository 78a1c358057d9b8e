// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"
#include "planner/validate/Validation.h"

namespace shardscope::planner {

/// Each builds one table from its part of published.json. Failures of reading are left in the cursor.
ValidationTable zeroTable(const contract::JsonCursor& published);
ValidationTable megatronActivationTable(const contract::JsonCursor& published);
ValidationTable megatronStateTable(const contract::JsonCursor& published);
ValidationTable megatronStepTable(const contract::JsonCursor& published);
ValidationTable deepspeedTable(const contract::JsonCursor& published);
/// `graph` lowered for published.sequence, with its own vocabulary.
ValidationTable llmcTable(const contract::JsonCursor& published, const Graph& graph);
/// Peaks, and how much more they are on few devices than on many.
std::vector<ValidationTable> torchtitanMemoryTables(const contract::JsonCursor& published, const GraphPointer& graph);
/// Errors: those of opening the bundled cluster that stands for the machine.
contract::Result<ValidationTable> torchtitanThroughputTable(const contract::JsonCursor& published,
                                                            const GraphPointer& graph);
/// Errors: those of the solver.
contract::Result<ValidationTable> osdpTable(const contract::JsonCursor& published);

/// Tolerances.
ValidationRow exactRow(std::string name, std::string unit, double ours, double theirs, std::string convention);
/// Agrees when the published number is ours rounded to a multiple of `digit`.
ValidationRow roundedRow(std::string name, std::string unit, double ours, double theirs, double digit,
                         std::string convention);
ValidationRow relativeRow(std::string name, std::string unit, double ours, double theirs, double percent,
                          std::string convention);

} // namespace shardscope::planner
