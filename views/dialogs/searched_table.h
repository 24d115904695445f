#pragma once
#include <QWidget>

class QLabel;
class QLineEdit;
class QTableWidget;

namespace retrograd::views {

/// A list of texts to look something up in: rows of cells, below a box whose words choose the rows that have them.
class SearchedTable final : public QWidget {
  Q_OBJECT
 public:
  /// `name` is what screen readers say of it.
  SearchedTable(const QStringList& headers, const QString& name, QWidget* parent);

  void add(const QStringList& cells);
  /// Sizes the columns to what they hold; the last one gets the rest and wraps.
  void fit();

 private:
  void search(const QString& text);

  QLineEdit* box_;
  QTableWidget* table_;
  QLabel* none_;
};

}  // namespace retrograd::views
