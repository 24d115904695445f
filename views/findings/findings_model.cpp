#include "views/findings/findings_model.h"

#include <QFont>
#include <array>

#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, FindingsModel::columns> findingColumns{
    {{"Severity"}, {"Finding"}, {"Line"}, {"Numbers"}, {"Action"}}};

QString severityText(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::note: return tr("note");
    case Finding::Severity::warning: return tr("\u26a0 warning");
    case Finding::Severity::error: return tr("\u2717 error");
  }
  return {};
}

}  // namespace

FindingsModel::FindingsModel(QObject* parent) : TableModel(findingColumns, parent) {}

void FindingsModel::show(std::vector<FindingBoard::Entry> entries, const std::shared_ptr<const OpenDocument>& document,
                         const std::function<QString(const Finding&)>& titleOf) {
  beginResetModel();
  rows_.clear();
  for (auto& entry : entries) {
    auto& finding = entry.finding;
    const auto line = document ? toQt(pythonLine(*document->analysis->document, finding.op)) : QString();
    const auto title = titleOf(finding);
    rows_.push_back({std::move(finding), line, title});
  }
  endResetModel();
}

QVariant FindingsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_[index.row()];
  const auto text = [&](int column) {
    switch (column) {
      case severity: return severityText(row.finding.severity);
      case what: return toQt(row.finding.title);
      case line: return row.line;
      case numbers: return toQt(row.finding.numbers);
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
    case opRole: return row.finding.op.index;
    case valueRole: return row.finding.value.index;
    default: return {};
  }
}

}  // namespace retrograd::views
