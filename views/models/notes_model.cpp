#include "views/models/notes_model.h"

#include <QFont>
#include <array>
#include <limits>

#include "core/notes/note_words.h"
#include "views/content/line_notes.h"
#include "views/models/tree_model.h"
#include "views/session/own_names.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr std::array<TableColumn, NotesModel::columns> noteColumns{
    {{"Mark"}, {"Where"}, {"Name"}, {"Comment"}, {"Op or value"}}};

/// What a key says to people: "linear_1, gradient of operand 0".
QString keyText(const OpKey& key) {
  auto text = key.operation.empty() ? tr("an op without an operation") : toQt(key.operation);
  if (key.operationOrdinal > 0) text += tr(" (number %1)").arg(key.operationOrdinal + 1);
  if (key.role == Role::none) return text;
  text += QStringLiteral(", ") + toQt(name(key.role));
  if (key.operand >= 0) text += tr(" of operand %1").arg(key.operand);
  if (key.ordinal > 0) text += tr(", number %1").arg(key.ordinal + 1);
  return text;
}

}  // namespace

BoundSymbolId opOf(const OpenDocument& document, const PlacedNote& note) {
  return note.op ? note.op : note.value ? makerOf(*document.analysis, note.value) : BoundSymbolId();
}

std::optional<std::int64_t> positionOf(const OpenDocument& document, const PlacedNote& note) {
  if (note.isLost()) return std::nullopt;
  const auto op = opOf(document, note);
  if (!op) return -1;  // an input
  if (const auto position = document.program.positionOf(op)) return static_cast<std::int64_t>(*position);
  return document.trace(TraceKind::computation).line(op);
}

NotesModel::NotesModel(QObject* parent) : TableModel(noteColumns, parent) {}

void NotesModel::set(std::shared_ptr<const OpenDocument> document, std::vector<PlacedNote> notes) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; document && i < notes.size(); ++i)
    order.emplace_back(positionOf(*document, notes[i]).value_or(std::numeric_limits<std::int64_t>::max()), i);
  std::ranges::sort(order);
  std::vector<std::size_t> rows;
  for (const auto& [position, i] : order) rows.push_back(i);
  const bool sameRows = document == document_ && rows == rows_;
  if (!sameRows) beginResetModel();
  document_ = std::move(document);
  notes_ = std::move(notes);
  rows_ = std::move(rows);
  if (!sameRows) return endResetModel();
  // The same rows, one of them changed: the view's current row stays.
  refreshRows();
}

QString NotesModel::whereText(const PlacedNote& note) const {
  if (note.isLost()) return tr("gone");
  const auto op = opOf(*document_, note);
  if (!op) return tr("input");
  return placeText(*document_, op);
}

QString NotesModel::whatText(const PlacedNote& note) const {
  const auto& tables = *document_->analysis->document;
  if (note.op) return lineOf(tables, note.op, nullptr, true, false).text;
  if (note.value) {
    const auto& value = tables.value(note.value);
    const auto type = value.meta ? QStringLiteral(": ") + typeText(tables.meta(value.meta)) : QString();
    return toQt(tables.displayName(note.value)) + type;
  }
  if (!note.note.value) return keyText(note.note.op);
  return note.note.value->input.empty()
             ? tr("output %1 of %2").arg(note.note.value->output).arg(keyText(note.note.value->maker))
             : tr("input %1").arg(toQt(note.note.value->input));
}

QVariant NotesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !document_) return {};
  const auto& placed = note(index.row());
  switch (role) {
    case Qt::CheckStateRole:
      return index.column() == bookmark ? QVariant(placed.note.bookmark ? Qt::Checked : Qt::Unchecked) : QVariant();
    case opRole: return opOf(*document_, placed).index;
    case valueRole: return placed.value.index;
    case Qt::FontRole: {
      QFont font;
      font.setItalic(true);
      return placed.isLost() ? QVariant(font) : QVariant();
    }
    case Qt::ToolTipRole:
      if (placed.isLost())
        return tr("The file has changed, and there is no such place any more. The note is kept until you remove it.");
      return index.column() == comment    ? toQt(placed.note.comment)
             : index.column() == bookmark ? tr("Bookmark")
                                          : data(index, Qt::DisplayRole);
    case Qt::DisplayRole: break;
    default: return {};
  }
  switch (index.column()) {
    case where: return whereText(placed);
    case what: return whatText(placed);
    case name: return toQt(placed.note.name);
    case comment: return oneLine(placed.note.comment);
    default: return {};
  }
}

bool NotesModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::CheckStateRole || index.column() != bookmark) return false;
  Q_EMIT bookmarkRequested(noteAt(index.row()), value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags NotesModel::flags(const QModelIndex& index) const {
  const auto flags = TableModel::flags(index);
  return index.isValid() && index.column() == bookmark ? flags | Qt::ItemIsUserCheckable : flags;
}

}  // namespace retrograd::views
