#include "views/models/modules_model.h"

#include <unordered_map>

#include "views/models/tree_model.h"
#include "views/session/selection.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

qint64 numberOf(const ModulesModel::Module& module, int column) {
  return column == ModulesModel::forward ? module.forward : module.backward;
}

int partNamed(ModulesModel::Modules& modules, int parent, const QString& name) {
  const auto path = parent < 0 ? name : modules.all[static_cast<std::size_t>(parent)].path + QLatin1Char('.') + name;
  const auto found = modules.byPath.constFind(path);
  if (found != modules.byPath.constEnd()) return *found;
  const int added = static_cast<int>(modules.all.size());
  auto& siblings = parent < 0 ? modules.top : modules.all[static_cast<std::size_t>(parent)].parts;
  const int place = static_cast<int>(siblings.size());
  siblings.push_back(added);
  modules.all.push_back({.name = name, .path = path, .parent = parent, .place = place});
  modules.byPath.insert(path, added);
  return added;
}

}  // namespace

ModulesModel::Modules ModulesModel::modulesOf(const OpenDocument& open) {
  const auto& document = *open.analysis->document;
  Modules modules;
  std::unordered_map<StringId, int> known;
  const auto moduleOf = [&](StringId module) {
    const auto [found, isNew] = known.try_emplace(module, -1);
    if (isNew && module)
      for (const auto& part : toQt(document.text(module)).split(QLatin1Char('.')))
        found->second = partNamed(modules, found->second, part);
    return found->second;
  };
  const auto visit = [&](BoundSymbolId op, bool derived) {
    const auto& bound = document.boundSymbol(op);
    for (int at = moduleOf(bound.module); at >= 0; at = modules.all[static_cast<std::size_t>(at)].parent) {
      auto& module = modules.all[static_cast<std::size_t>(at)];
      if (derived) ++(isBackwardRole(bound.origin.role) ? module.backward : module.forward);
      else if (!module.first) module.first = op;
    }
  };
  for (auto op : open.trace(TraceKind::computation).lines) visit(op, false);
  for (auto op : open.analysis->forward.ops) visit(op, true);
  for (auto op : open.analysis->backward.ops) visit(op, true);
  return modules;
}

void ModulesModel::show(Modules modules) {
  beginResetModel();
  modules_ = std::move(modules);
  endResetModel();
}

QModelIndex ModulesModel::find(const QString& path) const {
  const auto found = modules_.byPath.constFind(path);
  return found == modules_.byPath.constEnd()
             ? QModelIndex()
             : createIndex(modules_.all[static_cast<std::size_t>(*found)].place, name, static_cast<quintptr>(*found));
}

qint64 ModulesModel::most(Column column) const {
  qint64 most = 0;  // a module has no more ops than the one that holds it
  for (const int module : modules_.top)
    most = std::max(most, numberOf(modules_.all[static_cast<std::size_t>(module)], column));
  return most;
}

QModelIndex ModulesModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, static_cast<quintptr>(partsOf(parent)[static_cast<std::size_t>(row)]));
}

QModelIndex ModulesModel::parent(const QModelIndex& child) const {
  const int parent = child.isValid() ? moduleOf(child).parent : -1;
  return parent < 0
             ? QModelIndex()
             : createIndex(modules_.all[static_cast<std::size_t>(parent)].place, name, static_cast<quintptr>(parent));
}

int ModulesModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(partsOf(parent).size());
}

QVariant ModulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto& module = moduleOf(index);
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole: return column == name ? QVariant(module.name) : QVariant(numberOf(module, column));
    case Qt::TextAlignmentRole:
      return QVariant(column == name ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      return tr("%1: %2 forward ops, %3 backward ops").arg(module.path).arg(module.forward).arg(module.backward);
    case moduleRole: return module.path;
    case sortRole: return column == name ? QVariant() : QVariant(static_cast<double>(numberOf(module, column)));
    case opRole: return module.first.index;
    default: return {};
  }
}

QVariant ModulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::ToolTipRole && section != name) return section == forward ? tr("Forward ops") : tr("Backward ops");
  if (role != Qt::DisplayRole) return {};
  return section == name ? tr("Module") : section == forward ? tr("Fwd") : tr("Bwd");
}

}  // namespace retrograd::views
