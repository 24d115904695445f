#include "views/findings/findings_model.h"

#include <QFont>

#include "views/models/tree_model.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString severityText(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::note: return QObject::tr("note");
    case Finding::Severity::warning: return QObject::tr("\u26a0 warning");
    case Finding::Severity::error: return QObject::tr("\u2717 error");
  }
  return {};
}

}  // namespace

void FindingsModel::show(std::vector<FindingBoard::Entry> entries, const std::shared_ptr<const OpenDocument>& document,
                         const std::function<QString(const Finding&)>& titleOf) {
  beginResetModel();
  rows_.clear();
  for (auto& entry : entries) {
    auto& finding = entry.finding;
    const auto line =
        document ? QString::fromStdString(pythonLine(*document->analysis->document, finding.op)) : QString();
    const auto title = titleOf(finding);
    rows_.push_back({std::move(finding), line, title});
  }
  endResetModel();
}

int FindingsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant FindingsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& row = rows_[index.row()];
  const auto text = [&](int column) {
    switch (column) {
      case severity: return severityText(row.finding.severity);
      case what: return QString::fromStdString(row.finding.title);
      case line: return row.line;
      case numbers: return QString::fromStdString(row.finding.numbers);
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

QVariant FindingsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case severity: return tr("Severity");
    case what: return tr("Finding");
    case line: return tr("Line");
    case numbers: return tr("Numbers");
    default: return tr("Action");
  }
}

}  // namespace retrograd::views
