#include "views/findings/findings_model.h"

#include <QFont>
#include <array>

#include "core/judge/report.h"
#include "core/trace/source.h"
#include "views/findings/verdict_line.h"
#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, FindingsModel::columns> findingColumns{
    {{"Severity"}, {"Finding"}, {"Line"}, {"Action"}}};

QString severityText(Severity severity) {
  const auto word = toQt(name(severity));
  if (severity == Severity::fault) return QStringLiteral("\u2717 ") + word;
  return severity == Severity::suspicion ? QStringLiteral("\u26a0 ") + word : word;
}

/// The line has a column of its own.
QString sentenceOf(Claim claim) {
  claim.line.clear();
  return toQt(textOf(claim));
}

}  // namespace

FindingsModel::FindingsModel(QObject* parent) : TableModel(findingColumns, parent) {}

void FindingsModel::show(std::vector<FindingBoard::Entry> entries, const std::shared_ptr<const OpenDocument>& document,
                         const std::function<QString(const Claim&)>& titleOf) {
  beginResetModel();
  rows_.clear();
  for (auto& entry : entries) {
    auto& claim = entry.claim;
    auto line = claim.line;
    if (line.empty() && document && claim.op) line = pythonLine(*document->analysis->document, claim.op);
    const auto title = titleOf(claim);
    rows_.push_back({std::move(claim), toQt(line), title});
  }
  endResetModel();
}

QVariant FindingsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_[index.row()];
  const auto text = [&](int column) {
    switch (column) {
      case severity: return severityText(row.claim.severity);
      case what: return sentenceOf(row.claim);
      case line: return row.line;
      default: return row.action;
    }
  };
  switch (role) {
    case Qt::DisplayRole:
    case Qt::ToolTipRole: return text(index.column());
    case Qt::AccessibleTextRole: {
      QStringList cells;
      for (int column = severity; column < columns; ++column)
        if (const auto cell = text(column); !cell.isEmpty()) cells << cell;
      return index.column() == severity ? cells.join(QStringLiteral(", ")) : text(index.column());
    }
    case Qt::FontRole: {
      if (index.column() != action || row.action.isEmpty()) return {};
      QFont font;
      font.setUnderline(true);  // as a link: a click does it
      return font;
    }
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignLeft | Qt::AlignTop);  // of a row of several lines
    case lightRole: return static_cast<int>(lightOf(row.claim.severity));
    case opRole: return row.claim.op.index;
    case valueRole: return row.claim.value.index;
    default: return {};
  }
}

}  // namespace retrograd::views
