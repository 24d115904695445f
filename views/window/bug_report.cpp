#include "views/window/bug_report.h"

#include <QFileInfo>

#include "core/trace/print/printer.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::size_t mostProblems = 10;

QString numbersText(const std::vector<std::int64_t>& numbers) {
  QStringList parts;
  for (auto number : numbers) parts << QString::number(number);
  return QStringLiteral("[%1]").arg(parts.join(QStringLiteral(", ")));
}

QString partitionText(const PartitionOptions& partition) {
  QStringList parts{partition.kind == PartitionOptions::minCut ? QStringLiteral("min-cut") : QStringLiteral("default")};
  if (partition.budget) parts << QStringLiteral("budget %1 bytes").arg(*partition.budget);
  for (const auto& what : partition.recompute) parts << QStringLiteral("recompute %1").arg(toQt(what));
  if (!partition.regions) parts << QStringLiteral("without the file's regions");
  return parts.join(QStringLiteral(", "));
}

void addFile(QStringList& lines, const OpenDocument& document, const Execution& execution) {
  const auto& analysis = *document.analysis;
  lines << QString() << QStringLiteral("### File")
        << QStringLiteral("- name: %1").arg(QFileInfo(toQt(document.request.path)).fileName());
  if (!analysis.file.torchVersion.empty())
    lines << QStringLiteral("- written by: torch %1").arg(toQt(analysis.file.torchVersion));
  lines << QStringLiteral("- ops: computation %1, joint %2, forward %3, backward %4")
               .arg(analysis.computation().trace.ops.size())
               .arg(analysis.joint.ops.size())
               .arg(analysis.forward.ops.size())
               .arg(analysis.backward.ops.size());
  lines << QStringLiteral("- seed: %1").arg(analysis.request.seed)
        << QStringLiteral("- partition: %1").arg(partitionText(analysis.request.partition))
        << QStringLiteral("- device: %1").arg(toQt(toString(analysis.device)));
  for (const auto& source : analysis.inputSource) lines << QStringLiteral("- input %1").arg(toQt(source));
  if (!document.noRunReason.isEmpty()) lines << QStringLiteral("- cannot be run: %1").arg(document.noRunReason);
  if (execution.available)
    lines << QStringLiteral("- position: %1 of %2, the backward begins at %3")
                 .arg(execution.position)
                 .arg(execution.size)
                 .arg(execution.forwardSize);
  if (!execution.error.isEmpty()) lines << QStringLiteral("- error: %1").arg(execution.error);
  const auto& problems = analysis.problems;
  for (std::size_t i = 0; i < std::min(problems.size(), mostProblems); ++i)
    lines << QStringLiteral("- problem: %1").arg(toQt(problems[i].message));
  if (problems.size() > mostProblems)
    lines << QStringLiteral("- and %1 problems more").arg(problems.size() - mostProblems);
}

QString valueLine(const Document& tables, const QString& what, ValueId id) {
  if (!id) return QStringLiteral("- %1: none").arg(what);
  const auto& value = tables.value(id);
  auto text = QStringLiteral("- %1: %2").arg(what, toQt(tables.displayName(id)));
  if (!value.meta) return text + QStringLiteral(", no tensor");
  const auto& meta = tables.meta(value.meta);
  text += QStringLiteral(": %1, strides %2").arg(toQt(typeComment(meta)), numbersText(meta.strides));
  if (meta.offset != 0) text += QStringLiteral(", offset %1").arg(meta.offset);
  return text + QStringLiteral(", ") + toQt(name(value.kind)) +
         (value.requiresGrad ? QStringLiteral(", requires grad") : QString());
}

void addOp(QStringList& lines, const OpenDocument& document, BoundSymbolId op) {
  const auto& tables = *document.analysis->document;
  const auto& bound = tables.boundSymbol(op);
  const auto& symbol = tables.symbol(bound.symbol);
  lines << QString() << QStringLiteral("### Op") << QStringLiteral("- name: %1").arg(toQt(symbol.qualifiedName()))
        << QStringLiteral("- schema: `%1`").arg(symbol.schema.empty() ? QStringLiteral("unknown") : toQt(symbol.schema))
        << QStringLiteral("- call: `%1`").arg(toQt(printCall(tables, op)));
  if (const auto comment = printComment(tables, op); !comment.empty())
    lines << QStringLiteral("- comment: `%1`").arg(toQt(comment));
  if (bound.origin.role != Role::none) lines << QStringLiteral("- role: %1").arg(toQt(name(bound.origin.role)));
  if (bound.origin.op) lines << QStringLiteral("- from: `%1`").arg(toQt(printCall(tables, bound.origin.op)));
  if (bound.recomputed) lines << QStringLiteral("- recomputed in the backward");
  for (auto value : tables.operands(op)) lines << valueLine(tables, QStringLiteral("operand"), value);
  for (auto value : tables.outputs(op)) lines << valueLine(tables, QStringLiteral("output"), value);
}

}  // namespace

QString bugReport(const OpenDocument* document, BoundSymbolId op, const Execution& execution,
                  const Versions& versions) {
  QStringList lines{QStringLiteral("### Versions")};
  for (const auto& line : versions.lines()) lines << QStringLiteral("- ") + line;
  if (document) addFile(lines, *document, execution);
  if (document && op) addOp(lines, *document, op);
  auto text = lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
  // Messages name files in full; where someone keeps theirs is nobody's business.
  if (document)
    for (const auto& path : {document->request.path, document->request.inputs})
      if (!path.empty()) text.replace(toQt(path), QFileInfo(toQt(path)).fileName());
  return text;
}

}  // namespace retrograd::views
