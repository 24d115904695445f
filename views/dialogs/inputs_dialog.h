#pragma once
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRadioButton>

#include "views/models/inputs_model.h"

namespace retrograd::views {

/// Where the inputs come from and which of them to differentiate. chosen() brings the request to open the file with.
class InputsDialog : public QDialog {
  Q_OBJECT

 public:
  InputsDialog(const OpenDocument& document, QWidget* parent);
  OpenRequest request() const;

 Q_SIGNALS:
  void chosen(const retrograd::OpenRequest& request);

 private:
  QWidget* makeSources();
  void browse();
  void update();

  OpenRequest request_;
  InputsModel* model_;
  QRadioButton *sample_, *drawn_, *file_;
  QLineEdit* path_;
  QPushButton* browse_;
  QLineEdit* seed_;
  QLabel* why_;
  QPushButton* ok_ = nullptr;
};

}  // namespace retrograd::views
