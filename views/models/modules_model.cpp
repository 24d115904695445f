#include "views/models/modules_model.h"

#include <unordered_map>

#include "views/models/tree_model.h"
#include "views/session/selection.h"
#include "views/text/format.h"

namespace retrograd::views {

struct ModulesModel::Node {
  QString name, path;
  Node* parent = nullptr;
  int row = 0;
  qint64 forward = 0, backward = 0;
  BoundSymbolId first;
  std::vector<std::unique_ptr<Node>> children;
  QHash<QString, Node*> byName;

  Node* child(const QString& part) {
    auto& found = byName[part];
    if (found) return found;
    auto node = std::make_unique<Node>();
    node->name = part;
    node->path = path.isEmpty() ? part : path + QLatin1Char('.') + part;
    node->parent = this;
    node->row = static_cast<int>(children.size());
    found = node.get();
    children.push_back(std::move(node));
    return found;
  }
};

ModulesModel::ModulesModel(QObject* parent) : QAbstractItemModel(parent), root_(std::make_unique<Node>()) {}
ModulesModel::~ModulesModel() = default;

void ModulesModel::setDocument(const std::shared_ptr<const OpenDocument>& document) {
  beginResetModel();
  root_ = std::make_unique<Node>();
  if (document) count(*document);
  endResetModel();
}

void ModulesModel::count(const OpenDocument& open) {
  const auto& document = *open.analysis->document;
  std::unordered_map<StringId, Node*> nodes;
  const auto nodeFor = [&](StringId module) {
    auto& node = nodes[module];
    if (node || !module) return node;
    node = root_.get();
    for (const auto& part : toQt(document.text(module)).split(QLatin1Char('.'))) node = node->child(part);
    return node;
  };
  const auto visit = [&](BoundSymbolId op, bool derived) {
    const auto& bound = document.boundSymbol(op);
    for (auto* node = nodeFor(bound.module); node && node != root_.get(); node = node->parent) {
      if (!derived) {
        if (!node->first) node->first = op;
      } else {
        ++(isBackwardRole(bound.origin.role) ? node->backward : node->forward);
      }
    }
  };
  for (auto op : open.trace(TraceKind::computation).lines) visit(op, false);
  for (auto op : open.analysis->forward.ops) visit(op, true);
  for (auto op : open.analysis->backward.ops) visit(op, true);
}

QModelIndex ModulesModel::find(const QString& path) const {
  const Node* node = root_.get();
  if (path.isEmpty()) return {};
  for (const auto& part : path.split(QLatin1Char('.'))) {
    node = node->byName.value(part);
    if (!node) return {};
  }
  return createIndex(node->row, 0, node);
}

QString ModulesModel::path(const QModelIndex& index) const { return nodeOf(index)->path; }

const ModulesModel::Node* ModulesModel::nodeOf(const QModelIndex& index) const {
  return index.isValid() ? static_cast<const Node*>(index.internalPointer()) : root_.get();
}

QModelIndex ModulesModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, nodeOf(parent)->children[static_cast<std::size_t>(row)].get());
}

QModelIndex ModulesModel::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  auto* parent = nodeOf(child)->parent;
  return parent == root_.get() ? QModelIndex() : createIndex(parent->row, 0, parent);
}

int ModulesModel::rowCount(const QModelIndex& parent) const { return parent.column() > 0 ? 0 : static_cast<int>(nodeOf(parent)->children.size()); }

int ModulesModel::columnCount(const QModelIndex&) const { return 3; }

QVariant ModulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto* node = nodeOf(index);
  switch (role) {
    case Qt::DisplayRole: return index.column() == 0 ? QVariant(node->name) : index.column() == 1 ? QVariant(node->forward) : QVariant(node->backward);
    case Qt::TextAlignmentRole: return QVariant(index.column() ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::ToolTipRole: return tr("%1: %2 forward ops, %3 backward ops").arg(node->path).arg(node->forward).arg(node->backward);
    case moduleRole: return path(index);
    case sortRole: return index.column() == 0 ? QVariant() : QVariant(static_cast<double>(index.column() == 1 ? node->forward : node->backward));
    case opRole: return node->first.index;
    default: return {};
  }
}

QVariant ModulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::ToolTipRole && section) return section == 1 ? tr("Forward ops") : tr("Backward ops");
  if (role != Qt::DisplayRole) return {};
  return section == 0 ? tr("Module") : section == 1 ? tr("Fwd") : tr("Bwd");
}

}  // namespace retrograd::views
