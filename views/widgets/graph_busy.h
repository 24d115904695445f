#pragma once
#include <QFrame>
#include <QLabel>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>

namespace retrograd::views {

/// The graph's present work, how far it is and Cancel, over the lower left corner of its canvas. Shows after 100 ms
/// only.
class GraphBusy : public QFrame {
  Q_OBJECT

 public:
  explicit GraphBusy(QWidget* graph);

  /// Something was begun, of which nothing is known yet; the panel stays as it is where it shows already.
  void begin();
  /// `fraction` from 0 to 1.
  void tell(const QString& stage, double fraction);
  void end();

  QString text() const { return text_->text(); }
  QToolButton& cancelButton() const { return *cancel_; }

 Q_SIGNALS:
  void cancelled();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QLabel* text_;
  QProgressBar* bar_;
  QToolButton* cancel_;
  QTimer delay_;
};

}  // namespace retrograd::views
