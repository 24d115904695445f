#pragma once
#include <QLabel>

#include "views/session/view_context.h"

namespace retrograd::views {

/// Says which op a panel shows while the run is at another one, and the key that leads there. Hidden while they are the
/// same, and before the first step.
class ShownOp : public QLabel {
  Q_OBJECT

 public:
  explicit ShownOp(ViewContext context, QWidget* parent = nullptr);

 private:
  void tell();

  const ViewContext context_;
};

}  // namespace retrograd::views
