#include "views/models/goto_model.h"

#include "views/text/format.h"

namespace retrograd::views {

QString commandText(const QAction& action) {
  if (const auto named = action.property("command"); named.isValid()) return named.toString();
  auto text = action.text();
  text.remove(QLatin1Char('&'));
  if (text.endsWith(QStringLiteral("..."))) text.chop(3);
  return text;
}

namespace {

/// With the number that all places know an op by.
QString detailOf(const Place& place) {
  const auto detail = toQt(place.detail);
  const bool isOp = place.op && (place.kind == Place::Kind::operation || place.kind == Place::Kind::op);
  return isOp ? QStringLiteral("#%1  %2").arg(QString::number(place.op.index), detail) : detail;
}

}  // namespace

void GotoModel::showPlaces(std::vector<Place> places) {
  beginResetModel();
  places_ = std::move(places);
  commands_.clear();
  endResetModel();
}

void GotoModel::showCommands(const QList<QAction*>& commands) {
  beginResetModel();
  places_.clear();
  commands_.assign(commands.begin(), commands.end());
  endResetModel();
}

QAction* GotoModel::command(int row) const {
  return row >= 0 && static_cast<std::size_t>(row) < commands_.size() ? commands_[row].data() : nullptr;
}

const Place* GotoModel::place(int row) const {
  return row >= 0 && static_cast<std::size_t>(row) < places_.size() ? &places_[row] : nullptr;
}

int GotoModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(places_.size() + commands_.size());
}

QVariant GotoModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (const auto* action = command(index.row())) {
    const auto keys = action->shortcut().toString(QKeySequence::NativeText);
    const auto reason = action->property("reason").toString();
    if (role == Qt::DisplayRole) return commandText(*action);
    if (role == detailRole) return action->isEnabled() || reason.isEmpty() ? keys : reason;
    if (role == Qt::ToolTipRole) return action->toolTip();
    if (role == Qt::AccessibleTextRole)
      return commandText(*action) + QStringLiteral(", ") + data(index, detailRole).toString();
  }
  if (const auto* one = place(index.row())) {
    if (role == Qt::DisplayRole) return toQt(one->name);
    if (role == detailRole) return detailOf(*one);
    if (role == Qt::AccessibleTextRole) return toQt(one->name) + QStringLiteral(", ") + detailOf(*one);
  }
  return {};
}

Qt::ItemFlags GotoModel::flags(const QModelIndex& index) const {
  // A disabled command can be chosen, so that it says why; it only looks disabled.
  return index.isValid() ? Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren : Qt::NoItemFlags;
}

}  // namespace retrograd::views
