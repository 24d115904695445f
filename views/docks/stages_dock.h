#pragma once
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QTabWidget>
#include <QToolButton>
#include <QTreeView>

#include "views/canvases/stage_bar.h"
#include "views/docks/panel.h"
#include "views/models/stages_model.h"
#include "views/stages/stage_plan.h"

namespace retrograd::views {

/// The open model in pipeline stages: how it is cut, what each stage weighs, what crosses, which parameters several
/// stages use. Shows the window's StagePlan and changes it; a row leads to its op.
class StagesDock : public Panel {
  Q_OBJECT

 public:
  /// The actions are shown as buttons; who owns them runs them.
  struct Commands {
    QAction *undo, *redo, *measure;
  };
  StagesDock(ViewContext context, Commands commands, QWidget* parent = nullptr);

  /// What the line below the controls says: the reason of a refusal, or what to do.
  QString message() const { return message_->text(); }
  QVariantMap saveState() const override;
  void restoreState(const QVariantMap& state) override;

 protected:
  void refresh() override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class How { points, equalStages };

  QWidget* makeControls(const Commands& commands);
  QWidget* makeMessage();
  QWidget* makeTables();
  QTreeView* makeTable(QAbstractItemModel* model, const QString& name, const char* object);
  QWidget* makeCrossing();
  QWidget* makeSharing();
  QComboBox* makeLoss();
  /// A table with a line of controls above it.
  QWidget* withLine(const QList<QWidget*>& controls, QTreeView* table);
  /// What the controls ask for.
  CutRequest asked() const;
  void change(const QString& what);
  void refreshControls();
  void refreshMessage();
  void refreshTables();
  void refreshLoss();
  void refreshSharing();
  /// The parameters whose rows are selected.
  std::vector<SharedParameter> selectedShared() const;
  void share(MultiUse use) { plan_->share(selectedShared(), use); }
  void selectionChanged();
  void showStage(int stage);

  StagePlan* plan_;
  QComboBox *how_, *balance_, *shared_, *loss_;
  QAction *copy_, *send_;
  QLineEdit* points_;
  QSpinBox *stages_, *microbatches_;
  QLabel *of_, *message_, *notes_;
  QCheckBox* markers_;
  QToolButton* toOp_;
  StageBar* bar_;
  StagesModel* stagesModel_;
  StageEdgesModel* edgesModel_;
  SharedParametersModel* sharedModel_;
  QTreeView *stagesTable_, *edgesTable_, *sharedTable_;
  QTabWidget* tabs_;
  bool refreshing_ = false;
};

}  // namespace retrograd::views
