#include "views/session/source_file.h"

#include <QFile>
#include <QFileInfo>
#include <unordered_map>

#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString expandTabs(const QString& line) {
  if (!line.contains(QLatin1Char('\t'))) return line;
  QString expanded;
  for (const auto c : line) {
    constexpr int columns = 8;
    if (c == QLatin1Char('\t')) expanded += QString(columns - expanded.size() % columns, QLatin1Char(' '));
    else expanded += c;
  }
  return expanded;
}

/// Lines of the file at which a stack has a frame, each once.
std::vector<int> linesIn(const SourceStack& stack, const std::string& file) {
  std::vector<int> lines;
  for (const auto& frame : stack)
    if (frame.file == file && std::ranges::find(lines, frame.line) == lines.end()) lines.push_back(frame.line);
  return lines;
}

}  // namespace

SourceFile readSource(const QStringList& candidates, qint64 limit) {
  SourceFile source;
  for (const auto& path : candidates) {
    if (!QFileInfo(path).isFile()) continue;
    source.path = path;
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
      source.problem = tr("%1 cannot be read: %2").arg(path, file.errorString());
      return source;
    }
    const auto bytes = file.read(limit + 1);
    if (bytes.size() > limit) {
      source.problem = tr("%1 is larger than %2 MiB and is not shown").arg(path).arg(limit >> 20);
    } else if (bytes.contains('\0')) {
      source.problem = tr("%1 is a binary file and is not shown").arg(path);
    } else {
      source.lines = QString::fromUtf8(bytes).split(QLatin1Char('\n'));
      if (source.lines.last().isEmpty()) source.lines.removeLast();
      for (auto& line : source.lines) {
        if (line.endsWith(QLatin1Char('\r'))) line.chop(1);
        line = expandTabs(line);
      }
      if (source.lines.isEmpty()) source.problem = tr("%1 is empty").arg(path);
    }
    return source;
  }
  return source;
}

OpsByLine opsByLine(const TraceIndex& computation, const std::string& file, const Progress& progress) {
  OpsByLine ops;
  std::unordered_map<std::int32_t, std::vector<int>> known;  // by stack: layers share theirs
  const auto& document = computation.document();
  for (auto op : computation.lines) {
    progress.check();
    const auto source = document.boundSymbol(op).source;
    if (!source) continue;
    const auto [lines, isNew] = known.try_emplace(source.index);
    if (isNew) lines->second = linesIn(document.source(source), file);
    for (auto line : lines->second) ops[line].push_back(op);
  }
  return ops;
}

}  // namespace retrograd::views
