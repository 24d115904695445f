#include "views/models/values_model.h"

#include <QFont>
#include <array>
#include <cmath>

#include "core/trace/print/printer.h"
#include "views/models/tree_model.h"
#include "views/session/own_names.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, ValuesModel::columns> valueColumns{{{"Operand"},
                                                                      {"Value"},
                                                                      {"Type"},
                                                                      {"State"},
                                                                      {"Min", nullptr, true},
                                                                      {"Max", nullptr, true},
                                                                      {"Mean", nullptr, true},
                                                                      {"Std", nullptr, true},
                                                                      {"Norm", nullptr, true},
                                                                      {"NaN", nullptr, true},
                                                                      {"Inf", nullptr, true},
                                                                      {"Zeros", nullptr, true}}};

/// At most nine characters: "-0.6216", "-3.46e-05".
QString shortNumberText(double number) {
  if (!std::isfinite(number)) return numberText(number);
  const auto text = QString::number(number, 'g', 4);
  return text.contains(QLatin1Char('e')) ? QString::number(number, 'g', 3) : text;
}

/// "in  self", "out  indices", "out 1" of several outputs without names.
QString labelText(const ValueRow& row) {
  const auto label = toQt(row.label);
  if (!row.output) return tr("in  %1").arg(label);
  const auto unnamed = QStringLiteral("output");
  return label.startsWith(unnamed) ? tr("out") + label.mid(unnamed.size()) : tr("out  %1").arg(label);
}

}  // namespace

ValuesModel::ValuesModel(QObject* parent) : TableModel(valueColumns, parent) {}

void ValuesModel::expect(std::shared_ptr<const OpenDocument> document, BoundSymbolId op) {
  auto rows = document && op ? valueRows(*document->analysis->document, op, true) : std::vector<ValueRow>();
  expectRows(std::move(document), std::move(rows));
}

void ValuesModel::expectRows(std::shared_ptr<const OpenDocument> document, std::vector<ValueRow> rows) {
  beginResetModel();
  document_ = std::move(document);
  rows_ = document_ ? std::move(rows) : std::vector<ValueRow>();
  answered_ = false;
  endResetModel();
}

void ValuesModel::setReport(const std::shared_ptr<const ValueReport>& report) {
  const bool sameRows = std::equal(rows_.begin(), rows_.end(), report->rows.begin(), report->rows.end(),
                                   [](const ValueRow& a, const ValueRow& b) {
                                     return a.value == b.value && a.output == b.output && a.after == b.after;
                                   });
  if (!sameRows) beginResetModel();
  rows_ = report->rows;
  answered_ = true;
  if (!sameRows) return endResetModel();
  // The same rows with new numbers: the view's selection and scroll position stay.
  refreshRows();
}

void ValuesModel::setFailure(const QString& reason) {
  answered_ = true;
  for (auto& row : rows_) {
    row.state.present = false;
    row.state.reason = row.absentNow = reason.toStdString();
    row.statistics.reset();
  }
  refreshRows();
}

std::vector<ValueId> ValuesModel::values() const {
  std::vector<ValueId> values;
  for (const auto& row : rows_) values.push_back(row.value);
  return values;
}

int ValuesModel::rowOf(ValueId value) const {
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].value == value) return static_cast<int>(i);
  return -1;
}

QString ValuesModel::number(const ValueRow& row, int column, bool isShort) {
  if (!row.statistics) return {};
  const auto& s = *row.statistics;
  const auto text = [isShort](double number) { return isShort ? shortNumberText(number) : numberText(number); };
  switch (column) {
    case least: return text(s.min);
    case greatest: return text(s.max);
    case mean: return text(s.mean);
    case deviation: return text(s.standardDeviation);
    case norm: return text(s.norm);
    case nan: return QString::number(s.nan);
    case inf: return QString::number(s.inf);
    case zeros: return QString::number(s.zeros);
    default: return {};
  }
}

/// Invalid for the columns of text.
QVariant ValuesModel::sortNumber(const ValueRow& row, int column) {
  if (column < least) return {};
  if (!row.statistics) return qQNaN();
  const auto& s = *row.statistics;
  switch (column) {
    case least: return s.min;
    case greatest: return s.max;
    case mean: return s.mean;
    case deviation: return s.standardDeviation;
    case norm: return s.norm;
    case nan: return static_cast<double>(s.nan);
    case inf: return static_cast<double>(s.inf);
    default: return static_cast<double>(s.zeros);
  }
}

QString ValuesModel::text(const ValueRow& row, int column, bool isShort) const {
  const auto& document = *document_->analysis->document;
  const auto& entry = document.value(row.value);
  // At run time a dynamic size has its number: the present value's shape wins over the trace's.
  const auto* meta = row.state.present && !row.state.number ? &row.state.meta
                     : entry.meta                           ? &document.meta(entry.meta)
                                                            : nullptr;
  switch (column) {
    case label: return labelText(row);
    case valueName: return nameOf(document, row.value, notes_);
    case type: return meta ? typeText(*meta) : tr("number");
    case state:
      if (row.state.number) return toQt(printArgument(document, *row.state.number, {}));
      if (!answered_) return {};
      if (!row.state.present) return toQt(row.state.reason);
      return row.absentNow.empty() ? tr("present") : tr("as it was here");
    default: return number(row, column, isShort);
  }
}

QVariant ValuesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !document_) return {};
  const auto& row = rows_[index.row()];
  const bool bad = row.statistics && document_->intended.isFault(row.value, *row.statistics);
  switch (role) {
    case Qt::DisplayRole: {
      const auto shown = text(row, index.column(), true);
      const bool marks =
          bad && ((index.column() == nan && row.statistics->nan) || (index.column() == inf && row.statistics->inf));
      return marks ? QStringLiteral("! ") + shown : shown;
    }
    case Qt::ToolTipRole:
      if (index.column() == state && row.state.present && !row.absentNow.empty())
        return tr("At the present step: %1. Shown as it was at this op.").arg(toQt(row.absentNow));
      return index.column() == valueName ? fullNameOf(*document_->analysis->document, row.value, notes_)
                                         : text(row, index.column(), false);
    case Qt::TextAlignmentRole: return alignmentOf(index.column());
    case Qt::FontRole: {
      if (!bad || (index.column() != nan && index.column() != inf)) return {};
      QFont font;
      font.setBold(true);
      return font;
    }
    case markRole:
      return index.column() == state && answered_ && row.state.present && !row.state.number
                 ? QVariant(row.absentNow.empty())
                 : QVariant();
    case sortRole: return sortNumber(row, index.column());
    case opRole: return document_->analysis->document->value(row.value).producer.index;
    case valueRole: return row.value.index;
    default: return {};
  }
}

QVariant ValuesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (section != state) return TableModel::headerData(section, orientation, role);
  // Its marks need less room than its name.
  const bool isNamed = role == Qt::AccessibleTextRole || role == Qt::ToolTipRole;
  return isNamed ? TableModel::headerData(section, orientation, Qt::DisplayRole) : QVariant();
}

}  // namespace retrograd::views
