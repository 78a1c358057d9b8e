// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/export/ExportContent.h"

#include <QByteArray>

class QAbstractItemModel;

namespace shardscope::app {

/// A view's numbers as comma-separated values (RFC 4180, UTF-8, one header line). Bare numbers in the unit that the
/// header names: bytes, seconds. Empty when the content lacks the view (ExportContent::missing()).
QByteArray csvOf(ViewKind kind, const ExportContent& content);

/// A model's cells: kExportRole where it has one, else kSortRole, else what is shown. The header names the unit that
/// the model gives under kUnitRole.
QByteArray csvOfModel(const QAbstractItemModel& model);

} // namespace shardscope::app
