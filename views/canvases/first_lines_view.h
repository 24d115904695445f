#pragma once
#include "views/canvases/code_view.h"
#include "views/text/first_lines.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

/// The first lines of a computation, to be read and scrolled while the rest is being derived; a title says how many of
/// how many they are.
class FirstLinesView : public CodeView {
  Q_OBJECT

 public:
  explicit FirstLinesView(Theme* theme, QWidget* parent = nullptr);

  void show(FirstLines first);
  void clear() { show({}); }

  int rowCount() const override { return static_cast<int>(first_.lines.size()); }
  QString spokenAt(int visible) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void placeTitle();

  ElidedLabel* title_;
  FirstLines first_;
};

}  // namespace retrograd::views
