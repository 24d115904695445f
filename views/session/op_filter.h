#pragma once
#include "views/engine/pool_job.h"
#include "views/session/filtered_ops.h"

namespace retrograd::views {

/// The window's filter: its words, which ops of the open document pass it, and the filters before. Views subscribe.
///
/// It holds for whatever is open, and is applied again, off the UI thread, when the words or the document change.
class OpFilter : public QObject {
  Q_OBJECT

 public:
  /// What is wrong with words, and with which part of them.
  struct Problem {
    int begin = 0, end = 0;  ///< characters [begin, end)
    QString message;
  };

  explicit OpFilter(DocumentController* controller, QObject* parent = nullptr);

  static std::optional<Problem> problemOf(const QString& words);
  /// Words that are not a filter change nothing; returns false.
  bool apply(const QString& words);
  /// As applied; empty where all ops pass.
  const QString& words() const { return words_; }
  bool active() const { return !words_.isEmpty(); }
  /// Null while all ops pass, and until it is known which do; else of the document that is open.
  const std::shared_ptr<const FilteredOps>& ops() const { return ops_; }
  bool busy() const { return job_.busy(); }

  /// Makes the words a step of the history, unless they are the last one. While one types, apply() alone makes none.
  void keep();
  bool canGoBack() const { return at_ > 0 || history_[at_] != words_; }
  bool canGoForward() const { return at_ + 1 < history_.size(); }
  void back();
  void forward();

 Q_SIGNALS:
  void wordsChanged();
  /// Other ops pass.
  void changed();
  void historyChanged();

 private:
  void run();
  void go(std::size_t step);

  DocumentController* controller_;
  QString words_;
  Filter filter_;
  std::shared_ptr<const FilteredOps> ops_;
  std::vector<QString> history_{QString()};
  std::size_t at_ = 0;  ///< into history_
  PoolJob job_;
};

}  // namespace retrograd::views
