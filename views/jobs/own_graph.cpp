#include "views/jobs/own_graph.h"

#include <QTextBlock>
#include <QTextCursor>
#include <algorithm>

#include "core/formats/fx/fx_reader.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

bool isAtenGraph(jobs::GraphKind kind) {
  return kind == jobs::GraphKind::joint || kind == jobs::GraphKind::forward || kind == jobs::GraphKind::backward ||
         kind == jobs::GraphKind::inference;
}

std::vector<OwnOp> opsOf(const fx::Graph& graph) {
  std::vector<OwnOp> ops;
  for (const auto& node : graph.nodes) {
    OwnOp op;
    op.line = node.line;
    if (node.call.is(fx::Expression::Kind::call)) op.target = node.call.items[0].text;
    if (node.source != fx::noIndex) {
      const auto& source = graph.sources[node.source];
      if (!source.file.empty()) op.source = source.file + ":" + std::to_string(source.line);
      op.backward = source.backward;
    }
    ops.push_back(std::move(op));
  }
  return ops;
}

/// Made off the UI thread, as splitting a large text into lines takes its time.
std::shared_ptr<QTextDocument> documentOf(const QString& text, const OwnGraphLook& look) {
  // Whoever drops it last, it goes on the thread it belongs to.
  std::shared_ptr<QTextDocument> document(new QTextDocument, [](QTextDocument* last) { last->deleteLater(); });
  document->setUndoRedoEnabled(false);
  document->setDefaultFont(look.font);
  document->setPlainText(text);
  const auto color = [](const QTextBlock& block, qsizetype from, qsizetype to, const QColor& ink) {
    QTextCursor cursor(block);
    cursor.setPosition(block.position() + static_cast<int>(from));
    cursor.setPosition(block.position() + static_cast<int>(to), QTextCursor::KeepAnchor);
    QTextCharFormat format;
    format.setForeground(ink);
    cursor.setCharFormat(format);
  };
  for (auto block = document->begin(); block.isValid(); block = block.next()) {
    const auto line = block.text();
    if (line.trimmed().startsWith(QLatin1Char('#'))) {
      color(block, 0, line.size(), look.comment);
    } else if (const auto op = line.indexOf(QStringLiteral(" = torch.")); op >= 0) {
      const auto call = line.indexOf(QLatin1Char('('), op);
      color(block, op + 3, call < 0 ? line.size() : call, look.op);
    }
  }
  document->moveToThread(look.thread);
  return document;
}

}  // namespace

OwnGraph readOwnGraph(const jobs::JobLog& log, const jobs::GraphRecord& record, const OwnGraphLook& look) {
  OwnGraph graph;
  try {
    const auto text = jobs::payloadText(log, record.payload);
    graph.document = documentOf(toQt(text), look);
    if (!isAtenGraph(record.kind)) return graph;
    const auto read = fx::readGraph(text, jobs::placeOf(log, record.payload));
    graph.ops = opsOf(read);
    graph.hasBackwardMarks = read.hasBackwardMarks;
  } catch (const Error& e) {  // a text that is not a whole graph is shown all the same
    if (!graph.document) graph.document = documentOf(toQt(e.what()), look);
  }
  return graph;
}

const OwnOp* opAt(const OwnGraph& graph, int line, bool isComment) {
  const auto& ops = graph.ops;
  const auto below = std::ranges::find_if(ops, [&](const OwnOp& op) { return op.line >= line; });
  if (below != ops.end() && (isComment || below->line == line)) return &*below;
  return below == ops.begin() ? nullptr : &*std::prev(below);
}

const OwnOp* counterpart(const OwnOp& op, const OwnGraph& graph, bool sameGraph) {
  const OwnOp* found = nullptr;
  if (op.source.empty()) return found;
  for (const auto& other : graph.ops) {
    if (other.source != op.source || (sameGraph && other.backward == op.backward)) continue;
    if (other.target == op.target) return &other;
    if (!found) found = &other;
  }
  return found;
}

}  // namespace retrograd::views
