#pragma once
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QTreeView>

#include "views/docks/panel.h"
#include "views/models/compare_model.h"

namespace retrograd::views {

/// The run of what is open compared with another one, op by op: in another precision, on another device, with another
/// seed, with other weights, of another file, or several of these at once; what `retrograd compare` offers.
class CompareDock : public Panel {
  Q_OBJECT

 public:
  /// The action is shown as a button; who owns it calls compare().
  CompareDock(ViewContext context, QAction* compare, QWidget* parent = nullptr);

  /// Opens the counterpart and runs both, on the worker.
  void compare();
  QString summary() const { return summary_->text(); }

 protected:
  void refresh() override;
  void forget() override;
  QString emptyText() const override {
    return unlessClosed(
        tr("Choose above in what the other run differs: Compare runs both and lists where they diverge"));
  }

 private:
  /// What the fields ask for.
  struct Fields {
    Counterpart other;
    double tolerance = 0;
    QString words;    ///< "bfloat16, seed 7"
    QString problem;  ///< of what a field holds; empty where all can be used
  };

  QWidget* makeFields(QAction* compare);
  QLineEdit* makeField(QWidget* parent, const char* name, const QString& title, const QString& empty, QAction* compare);
  QToolButton* makeBrowser(QWidget* parent, QLineEdit* field, const QString& title, const QString& filter);
  void askForDevices();
  void fillDevices(const std::vector<DeviceStatus>& devices);
  void precisionChanged();
  void show(const std::shared_ptr<const RunComparison>& comparison, const Fields& asked);
  std::optional<DType> precision() const;
  Fields fields() const;

  CompareModel* model_;
  QTreeView* table_;
  QComboBox* precision_;
  QComboBox* device_;
  QLineEdit* seed_;
  QLineEdit* weights_;
  QLineEdit* file_;
  QLineEdit* tolerance_;
  QLabel* summary_;
  QToolButton* first_;
  bool devicesFilled_ = false;
};

}  // namespace retrograd::views
