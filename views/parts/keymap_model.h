#pragma once
#include <QSortFilterProxyModel>

#include "views/models/table_model.h"
#include "views/settings/keymap.h"

namespace retrograd::views {

/// The commands with their keys, one a row, up to date with the keymap.
class KeymapModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { commandColumn, keyColumn, sourceColumn, whatColumn, columns };

  KeymapModel(Keymap& keymap, QList<KeyCommand> commands, QObject* parent = nullptr);

  const KeyCommand& command(int row) const { return commands_[row]; }
  Keymap::Binding binding(int row) const { return bindings_.value(commands_[row].name); }
  QString textOf(const QString& name) const;
  /// The command that now has the key, other than this one; null where none has.
  const KeyCommand* holder(const QKeySequence& key, const QString& besides = {}) const;

  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

 private:
  std::size_t rows() const override { return static_cast<std::size_t>(commands_.size()); }
  void follow();

  Keymap& keymap_;
  QList<KeyCommand> commands_;
  QMap<QString, Keymap::Binding> bindings_;
};

/// Rows of a KeymapModel with all of the words in what is shown of them, and with the key where one is asked for.
class KeymapFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

  void setWords(const QString& words);
  void setKey(const QKeySequence& key);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  QStringList words_;
  QKeySequence key_;
};

}  // namespace retrograd::views
