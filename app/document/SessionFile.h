// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Choices.h"

#include <string>
#include <string_view>

namespace shardscope::app {

/// The content of a *.shardscope file: the choices, with graph and cluster by the arguments that open them again.
std::string formatSession(const Choices& choices);
/// The same with the steps that can be undone and redone, at most the kMostSteps nearest, and the plans kept.
std::string formatSession(const History& history, const std::vector<KeptPlan>& kept = {});
inline constexpr std::size_t kMostSteps = 200;
/// What a session holds, opened.
struct Session {
    History history;
    std::vector<KeptPlan> kept;
};
/// Reads the text; graph and cluster are not opened yet. Errors: BadInput with the JSON path.
contract::Result<Choices> parseSession(std::string_view text, std::string_view file);
/// Opens a session's graphs and clusters. A history or a kept plan that does not open as it did is left out: what is
/// shown remains. Errors: BadInput with the JSON path, those of the readers.
contract::Result<Session> openSession(std::string_view text, std::string_view file);
/// Opens graph and cluster of choices that were read. Errors: those of the readers.
contract::Result<Choices> openChoices(Choices choices);
/// The choices that a plan file answers. Errors: BadInput when its graph cannot be found again.
contract::Result<Choices> choicesOfPlan(const std::string& path);

enum class FileKind { Session, Plan, Cluster, Graph };
/// Tells files apart by their content; a folder or anything else is taken as a graph. Errors: BadInput when unreadable.
contract::Result<FileKind> kindOfFile(const std::string& path);

} // namespace shardscope::app
