// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

#include <QtCore/QByteArray>
#include <QtCore/QProcess>
#include <QtCore/QStringList>
#include <nlohmann/json.hpp>

namespace shardscope::testing {

/// What a program said; exit code -1 when it did not end by itself within a minute.
struct Outcome {
    int exitCode = -1;
    QByteArray out;
    QByteArray errors;

    contract::Json json() const { return contract::Json::parse(out.toStdString(), nullptr, false); }
};

inline Outcome finish(QProcess& process) {
    if (!process.waitForFinished(60000) || process.exitStatus() != QProcess::NormalExit)
        return {};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

/// shardscope-plan with these arguments.
inline Outcome plan(const QStringList& arguments) {
    QProcess process;
    process.start(QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-plan"), arguments);
    return finish(process);
}

} // namespace shardscope::testing
