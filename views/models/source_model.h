#pragma once
#include "views/models/table_model.h"
#include "views/session/source_file.h"
#include "views/text/python_colors.h"

namespace retrograd::views {

/// The source stack of an op, innermost frame first. Frames of PyTorch's own code are in italics.
class FramesModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { function, place, columns };

  explicit FramesModel(QObject* parent = nullptr);

  void set(const SourceStack& stack);
  const SourceFrame& frame(int row) const { return frames_[row]; }
  /// Of the frame that the op is known by: the innermost that is not PyTorch's; -1 where there is none.
  int shownRow() const { return shown_; }

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return frames_.size(); }
  std::vector<SourceFrame> frames_;
  int shown_ = -1;
};

/// Lines of a source file, each with how many ops of the computation come from it, and the current one marked.
class SourceLinesModel : public TableModel {
  Q_OBJECT

 public:
  enum Column { number, ops, code, columns };
  enum Role { currentRole = Qt::UserRole + 100 };  ///< bool: the line of the chosen frame

  explicit SourceLinesModel(QObject* parent = nullptr);

  void set(const QStringList& lines, OpsByLine ops);
  /// From 1; one that is not there marks none.
  void setCurrent(int line);
  /// The row of the current line; -1 where none is marked.
  int currentRow() const { return current_ >= 1 && current_ <= lines_.size() ? current_ - 1 : -1; }
  /// Ops that come from the line of a row, in their order.
  const std::vector<BoundSymbolId>& opsAt(int row) const;
  /// What has a colour of its own in the line of a row.
  const std::vector<PythonSpan>& spansAt(int row) const { return spans_[row]; }
  /// Characters of the longest line.
  int width() const { return width_; }

  QVariant data(const QModelIndex& index, int role) const override;

 private:
  std::size_t rows() const override { return static_cast<std::size_t>(lines_.size()); }
  QStringList lines_;
  std::vector<std::vector<PythonSpan>> spans_;
  OpsByLine ops_;
  int current_ = 0;
  int width_ = 0;
};

}  // namespace retrograd::views
