#pragma once
#include <QStringList>
#include <map>
#include <vector>

#include "core/base/progress.h"
#include "views/text/trace_index.h"

namespace retrograd::views {

/// A text file as it is read to be shown.
struct SourceFile {
  QString path;       ///< empty where none was found
  QStringList lines;  ///< tabs expanded to columns of 8; bytes other than UTF-8 are replaced
  QString problem;    ///< why no lines are shown; empty where there are some
};

constexpr qint64 largestSource = 8 << 20;  ///< bytes; larger files are not shown

/// The first of these paths that is an ordinary file. Devices, pipes and folders are passed over: the names come from a
/// model.
SourceFile readSource(const QStringList& candidates, qint64 limit = largestSource);

/// By line, from 1: ops of the computation with this line of the file anywhere in their stack, in their order.
using OpsByLine = std::map<int, std::vector<BoundSymbolId>>;
/// Throws Error(cancelled).
OpsByLine opsByLine(const TraceIndex& computation, const std::string& file, const Progress& progress);

}  // namespace retrograd::views
