#pragma once
#include <QTest>

#include "core/layout/labels.h"
#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// The graph canvas in a window that all tests of a class share.
class GraphTestBase : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    installCodeAccessibility();
    installGraphAccessibility();
    fixture_ = std::make_unique<WindowFixture>();
    fixture_->window().resize(2200, 980);  // the graph has room beside the panels
  }
  void cleanupTestCase() { fixture_.reset(); }

 protected:
  /// A ladder of six layers, 54 ops in the joint, with the graph in sight.
  void openLadder() {
    if (!fixture_->controller().document() || fixture_->analysis().joint.ops.size() != 54)
      QVERIFY(fixture_->open(QStringLiteral("synthetic6")));
    fixture_->window().listings().graphAction()->setChecked(true);
    QVERIFY(laidOut());
  }
  GraphView& graph() { return fixture_->window().listings().graph(); }
  bool laidOut() {
    return QTest::qWaitFor([&] { return graph().picture() && !graph().busy(); }, 30000);
  }
  /// Opens all and goes to full size around the op.
  int show(BoundSymbolId op) {
    graph().reveal(op);
    if (!laidOut()) return -1;
    const int box = graph().boxOf(op);
    graph().zoomTo(
        toQt(graph().picture()->scene.boxes[static_cast<std::size_t>(box)].rect).marginsAdded({300, 200, 300, 200}), 1);
    return box;
  }
  QPoint middle(int box) { return graph().boxRect(box).center().toPoint(); }
  BoundSymbolId gradientOp(std::size_t i) { return fixture_->analysis().backward.ops[i]; }
  std::unique_ptr<WindowFixture> fixture_;
};

}  // namespace retrograd::views
