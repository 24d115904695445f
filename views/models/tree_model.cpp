#include "views/models/tree_model.h"

#include <QFont>

namespace retrograd::views {

TreeModel::Node* TreeModel::Node::add(const QString& childLabel, const QString& childText) {
  auto child = std::make_unique<Node>();
  child->label = childLabel;
  child->text = childText;
  child->oneLine = oneLine;
  child->parent = this;
  child->row = static_cast<int>(children.size());
  children.push_back(std::move(child));
  return children.back().get();
}

TreeModel::TreeModel(QObject* parent) : QAbstractItemModel(parent), root_(std::make_unique<Node>()) {}
TreeModel::~TreeModel() = default;

void TreeModel::replace(std::unique_ptr<Node> root) {
  beginResetModel();
  root_ = std::move(root);
  endResetModel();
}

const TreeModel::Node* TreeModel::nodeOf(const QModelIndex& index) const {
  return index.isValid() ? static_cast<const Node*>(index.internalPointer()) : root_.get();
}

QModelIndex TreeModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, nodeOf(parent)->children[row].get());
}

QModelIndex TreeModel::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  auto* parent = nodeOf(child)->parent;
  return parent == root_.get() ? QModelIndex() : createIndex(parent->row, 0, parent);
}

int TreeModel::rowCount(const QModelIndex& parent) const {
  return parent.column() > 0 ? 0 : static_cast<int>(nodeOf(parent)->children.size());
}

QVariant TreeModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto* node = nodeOf(index);
  switch (role) {
    case Qt::DisplayRole: return index.column() == 0 ? node->label : node->text;
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignLeft | Qt::AlignTop);
    case Qt::ToolTipRole:
      if (!node->tip.isEmpty()) return node->tip;
      return index.column() == 0 && !node->text.isEmpty() ? node->label + QStringLiteral(": ") + node->text
                                                          : node->text;
    case Qt::AccessibleTextRole: return node->label + QStringLiteral(": ") + node->text;
    case Qt::FontRole: {
      if (node->parent != root_.get() || index.column() != 0) return {};
      QFont font;
      font.setBold(true);
      return font;
    }
    case opRole: return node->op.index;
    case valueRole: return node->value.index;
    case moduleRole: return node->module;
    case frameRole: return node->frame;
    case oneLineRole: return node->oneLine;
    default: return {};
  }
}

QVariant TreeModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("Property") : tr("Value");
}

}  // namespace retrograd::views
