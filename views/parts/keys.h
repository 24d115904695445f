#pragma once
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QPushButton>
#include <QTableView>

#include "views/parts/keymap_model.h"
#include "views/widgets/key_edit.h"

namespace retrograd::views {

class MainWindow;

/// Everything of the window that can have a key, with the name that represents it in the settings.
QList<std::pair<QString, QAction*>> commandActions(MainWindow& window);

/// All commands with their keys, to be searched and changed. What is changed holds at once, in all windows.
class KeysDialog : public QDialog {
  Q_OBJECT

 public:
  KeysDialog(Keymap& keymap, QList<KeyCommand> commands, QWidget* parent);

 private:
  QWidget* makeSearch();
  QWidget* makeEditor();
  void follow();
  void assign();
  int row() const;  ///< of the model; -1: none is chosen

  Keymap& keymap_;
  KeymapModel* model_;
  KeymapFilter* filter_;
  QTableView* table_;
  QComboBox* preset_;
  KeyEdit *pressed_, *wanted_;
  QLabel *editing_, *verdict_;
  QPushButton *assign_, *take_, *reset_, *resetAll_;
};

}  // namespace retrograd::views
