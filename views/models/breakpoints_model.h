#pragma once
#include <memory>

#include "views/models/table_model.h"
#include "views/session/note_book.h"

namespace retrograd::views {

/// The breakpoints in the order in which they were made; the first column has a check box, and
/// the condition is edited in words.
class BreakpointsModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { where, condition, hits, op, columns };

  explicit BreakpointsModel(QObject* parent = nullptr);

  void set(std::shared_ptr<const OpenDocument> document, std::vector<Breakpoint> breakpoints);
  /// How often each was met; a shorter list leaves the rest at none.
  void setHits(std::vector<std::int64_t> hits);
  /// The op a breakpoint leads to: its own, or the first of its kind or module. Walks the trace for the latter.
  BoundSymbolId placeOf(int row) const;

  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 Q_SIGNALS:
  void enableRequested(int row, bool on);
  void conditionRequested(int row, const QString& words);

 private:
  std::size_t rows() const override { return breakpoints_.size(); }
  QString whereText(const Breakpoint& breakpoint) const;
  QString hitsText(int row) const;
  QString opText(const Breakpoint& breakpoint) const;

  std::shared_ptr<const OpenDocument> document_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<std::int64_t> hits_;
};

}  // namespace retrograd::views
