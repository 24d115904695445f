#pragma once
#include <QAction>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTabWidget>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "views/engine/pool_job.h"
#include "views/jobs/own_graph.h"
#include "views/theme/theme.h"

namespace retrograd::views {

/// The graphs of one compile as the log has them, in a window of its own, to be read and searched: a tab for each, in
/// the order in which torch.compile made them. A text is read on the thread pool when its tab is first shown. From an
/// op of the backward a key leads to an op of the forward from the same line of Python, and back. The window keeps the
/// log, and stays when another file opens.
class JobGraphsWindow : public QWidget {
  Q_OBJECT

 public:
  /// `attempt` is one of `log`; `title` names it: "0/0  inner".
  JobGraphsWindow(Theme* theme, std::shared_ptr<const jobs::JobLog> log, const jobs::Attempt& attempt,
                  const QString& title, QWidget* parent);

  const QString& title() const { return title_; }
  /// Brings the window to the front with the last graph of this kind; with a line (from 1), at that line.
  void showGraph(jobs::GraphKind kind, int line = 0) { showGraph(pageOf(kind).value_or(0), line); }
  /// The same with a graph by its place in the attempt.
  void showGraph(std::size_t graph, int line = 0);

 private:
  struct Page {
    jobs::GraphRecord graph;
    QPlainTextEdit* view = nullptr;
    PoolJob* job = nullptr;
    OwnGraph text{};
    bool asked = false, read = false;
    int line = 0;                  ///< to go to once it is read
    std::function<void()> then{};  ///< to be done then
  };
  struct Place {
    std::size_t page = 0;
    int line = 0;
    bool operator==(const Place&) const = default;
  };

  void addPage(const jobs::GraphRecord& graph);
  QWidget* makeFoot();
  void read(std::size_t page);
  void shown(std::size_t page, OwnGraph text);
  /// From the op at the cursor to its counterpart, or back from where this led.
  void goToOrigin();
  void goToCounterpart(const OwnOp& op, std::size_t page, Place from);
  std::optional<std::size_t> pageOf(jobs::GraphKind kind) const;
  int lineOfCursor() const;
  void goTo(Page& page, int line);
  void find(bool backward);
  void describe();
  void markLine();
  Page* current();

  Theme* theme_;
  std::shared_ptr<const jobs::JobLog> log_;
  QString title_;
  std::vector<Page> pages_;
  Place from_, to_;  ///< of the last jump
  QTabWidget* tabs_;
  QLineEdit* find_;
  QLabel* line_;
  QAction* origin_;
};

}  // namespace retrograd::views
