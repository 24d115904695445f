#pragma once
#include <QLabel>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/engine/pool_job.h"
#include "views/models/source_model.h"
#include "views/settings/source_paths.h"

namespace retrograd::views {

/// The Python source that the selected op comes from: its stack, and the file of the chosen frame around its line.
/// Enter or a double click on a line leads to the next op that comes from it. Files are read on the pool.
class SourceDock : public Panel {
  Q_OBJECT

 public:
  /// `actions` are shown as buttons, and in context menus.
  SourceDock(ViewContext context, QSettings* settings, const QList<QAction*>& actions, QWidget* parent = nullptr);

  /// Shows the file again, as after a change of the settings.
  void readAgain() { read(); }
  /// The name that the model gives to the file of the chosen frame; empty where there is none.
  QString file() const;
  /// Sources are found from now on as the file of the chosen frame is here.
  void useFile(const QString& chosen);
  /// Shows this frame of the selected op's source, counted from the innermost; once the dock is in sight.
  void chooseFrame(int frame);
  /// Opens what is shown in the editor of the settings, as soon as it is read.
  void openInEditor();

 Q_SIGNALS:
  /// An op of the computation.
  void placeChosen(retrograd::BoundSymbolId op);
  void failed(const QString& message);

 protected:
  void refresh() override;
  void forget() override;
  void leave() override;
  void activate(const QModelIndex& row) override { goToOpOf(row.row()); }

 private:
  struct Answer {
    SourceFile source;
    OpsByLine ops;
    QStringList tried;
  };

  QWidget* makeText();
  QWidget* makeButtons(const QList<QAction*>& actions);
  void read();
  void show(const Answer& answer);
  /// `more` follows it, and is the tooltip too.
  void showProblem(const QString& problem, const QString& more = {});
  void launch();
  void goToOpOf(int row);

  QSettings* settings_;
  FramesModel* frames_;
  SourceLinesModel* lines_;
  QTreeView* stack_;
  QTreeView* text_;
  QLabel* path_;
  QLabel* notice_;
  PoolJob job_;
  SourceStack stackShown_;
  QString found_;          ///< path of the file that is shown, or that could not be
  int wantedFrame_ = -1;   ///< to be chosen with the next stack
  bool launches_ = false;  ///< the editor is to be started when the file was found
};

}  // namespace retrograd::views
