#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QTemporaryDir>
#include <QTimer>
#include <QTreeView>

#include "core/derivation/gradient_of.h"
#include "tests/views/stages_window.h"
#include "tests/views/test_program.h"
#include "views/docks/stage_check_dock.h"
#include "views/docks/stages_dock.h"

namespace retrograd::views {

/// What else of stages is chosen in the real window: how shared parameters reach them, and the loss. Through LibTorch.
class StageChoicesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sharedParametersAreSentOrCopied();
  void aTiedParameterIsSentUnderAllItsNames();
  void aLossIsChosen();
  void whatCannotBeTheLossIsRefused();
};

namespace {

QString message(WindowFixture& f) { return find<QLabel>(f, "stages-message")->text(); }

/// A printed computation as a file.
struct Text {
  explicit Text(const char* text) : path(folder.filePath(QStringLiteral("model.txt"))) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
    file.write(text);
  }
  QTemporaryDir folder;
  QString path;
};

/// Cuts at points as a user types them.
void typePoints(WindowFixture& f, const QString& points) {
  auto* line = find<QLineEdit>(f, "stages-points");
  line->setFocus();
  QTest::keyClicks(line, points);
  QTest::keyClick(line, Qt::Key_Return);
}

/// What the check of the stages says.
QString checkStages(WindowFixture& f) {
  f.window().findChild<QAction*>(QStringLiteral("action-check-stages"))->trigger();
  auto& dock = f.window().panel<StageCheckDock>();
  return QTest::qWaitFor([&] { return !dock.checking(); }, 60000) ? dock.summary() : QString();
}

/// Opens the context menu by key, and triggers the entry.
void chooseFromMenu(QWidget* widget, const QString& text, QString* problem) {
  QTimer::singleShot(0, widget, [text, problem] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    *problem = QStringLiteral("no such entry");
    for (auto* action : menu ? menu->actions() : QList<QAction*>()) {
      if (action->text().remove(QLatin1Char('&')) != text) continue;
      *problem = action->isEnabled() ? QString() : action->toolTip();
      if (action->isEnabled()) action->trigger();
    }
    if (menu) menu->close();
  });
  QContextMenuEvent event(QContextMenuEvent::Keyboard, QPoint(5, 5), widget->mapToGlobal(QPoint(5, 5)));
  QApplication::sendEvent(widget, &event);
}

/// How a parameter is shared, by any of its names.
MultiUse useOf(WindowFixture& f, const std::string& name) {
  for (const auto& shared : plan(f).cut()->split.shared)
    if (std::find(shared.names.begin(), shared.names.end(), name) != shared.names.end()) return shared.use;
  qFatal("no such parameter");
}

/// Edges of a cut by which parameters are sent.
std::size_t parametersSent(WindowFixture& f) {
  const auto& cut = *plan(f).cut();
  return static_cast<std::size_t>(std::count_if(
      cut.split.edges.begin(), cut.split.edges.end(),
      [&](const PipelineEdge& edge) { return edge.source >= 0 && !cut.tables().value(edge.value).producer; }));
}
std::int64_t parameterBytes(WindowFixture& f) {
  std::int64_t bytes = 0;
  for (const auto& facts : plan(f).cut()->facts) bytes += facts.parameterBytes;
  return bytes;
}

ValueId parameter(WindowFixture& f, const std::string& name) {
  for (const auto& input : f.analysis().computation().inputs)
    if (input.target == name) return input.value;
  return {};
}

}  // namespace

// Holds P37, P38: of each parameter it can be said whether stages have copies or are sent it, and the stages give the
// same either way.
void StageChoicesTest::sharedParametersAreSentOrCopied() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("pipeline/shared_2st/model.pt2")));
  QVERIFY(settled(f));
  showStages(f);
  find<QTabWidget>(f, "stages-tabs")->setCurrentIndex(2);
  auto* table = find<QTreeView>(f, "stages-shared");
  auto* edges = find<QTreeView>(f, "stages-edges")->model();
  for (const char* name : {"stages-table", "stages-edges", "stages-shared"}) {
    auto* model = find<QTreeView>(f, name)->model();
    new QAbstractItemModelTester(model, QAbstractItemModelTester::FailureReportingMode::QtTest, &f.window());
  }
  const auto shared = plan(f).cut()->split.shared;
  QCOMPARE(shared.size(), std::size_t(3));
  QCOMPARE(parametersSent(f), std::size_t(0));
  const int crossing = edges->rowCount();
  const auto copied = parameterBytes(f);

  table->setFocus();
  table->setCurrentIndex(table->model()->index(1, 0));
  QTest::keyClick(table, Qt::Key_Space);
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->split.shared.at(1).use, MultiUse::transmit);
  QCOMPARE(plan(f).cut()->split.shared.at(0).use, MultiUse::replicate);
  QCOMPARE(table->model()->index(1, SharedParametersModel::use).data().toString(),
           QStringLiteral("stage %1 sends it").arg(shared.at(1).nameIn.begin()->first));
  // It crosses now, with its bytes and its gradient, and one stage holds it.
  QCOMPARE(edges->rowCount(), crossing + static_cast<int>(shared.at(1).nameIn.size()) - 1);
  QCOMPARE(parameterBytes(f), copied - shared.at(1).bytes * static_cast<std::int64_t>(shared.at(1).nameIn.size() - 1));
  const auto sent = std::find_if(plan(f).cut()->edges.begin(), plan(f).cut()->edges.end(),
                                 [&](const EdgeDescription& edge) { return edge.bytes == shared.at(1).bytes; });
  QVERIFY(sent != plan(f).cut()->edges.end());
  const int row = static_cast<int>(sent - plan(f).cut()->edges.begin());
  QCOMPARE(edges->index(row, StageEdgesModel::source).data().toString(),
           QString::number(shared.at(1).nameIn.begin()->first));
  QVERIFY(edges->index(row, StageEdgesModel::gradient).data().toString().contains(QStringLiteral("sent back")));
  QCOMPARE(find<QComboBox>(f, "stages-sharing")->currentIndex(), -1);  // not all alike
  QCOMPARE(plan(f).history().undoText(),
           QStringLiteral("Send %1").arg(QString::fromStdString(shared.at(1).names.front())));
  QVERIFY2(checkStages(f).startsWith(QStringLiteral("\u2713 3 stages")), qPrintable(checkStages(f)));
  showStages(f);
  f.picture(QStringLiteral("stages-sent"));

  // The selection stays: the same key switches it back.
  table->setFocus();
  QTest::keyClick(table, Qt::Key_Space);
  QVERIFY(settled(f));
  QCOMPARE(parametersSent(f), std::size_t(0));
  QCOMPARE(plan(f).request(), CutRequest());
  QCOMPARE(find<QComboBox>(f, "stages-sharing")->currentIndex(), 0);

  // By the context menu, several at once; what is so already says so.
  QTest::keyClick(table, Qt::Key_A, Qt::ControlModifier);
  QString problem;
  chooseFromMenu(table, QStringLiteral("Copy in Each Stage"), &problem);
  QCOMPARE(problem, QStringLiteral("They are shared in this way"));
  chooseFromMenu(table, QStringLiteral("Sent by the First Stage"), &problem);
  QCOMPARE(problem, QString());
  QVERIFY(settled(f));
  for (const auto& one : plan(f).cut()->split.shared) QCOMPARE(one.use, MultiUse::transmit);
  QVERIFY2(checkStages(f).startsWith(QStringLiteral("\u2713 3 stages")), qPrintable(checkStages(f)));

  plan(f).undo();
  QVERIFY(settled(f));
  QCOMPARE(parametersSent(f), std::size_t(0));
  QVERIFY(f.window().panel<StageCheckDock>().summary().contains(QStringLiteral("check again")));
  plan(f).redo();
  QVERIFY(settled(f));
  QVERIFY(parametersSent(f) > 0);

  // All at once, and again after other cuts.
  showStages(f);
  auto* all = find<QComboBox>(f, "stages-sharing");
  all->setFocus();
  QTest::keyClick(all, Qt::Key_Home);
  QVERIFY(settled(f));
  QCOMPARE(parametersSent(f), std::size_t(0));
  QTest::keyClick(all, Qt::Key_Down);
  QVERIFY(settled(f));
  QCOMPARE(plan(f).request().options.multiUse, MultiUse::transmit);
  QVERIFY(plan(f).request().options.multiUseOf.empty());
  f.window().findChild<QAction*>(QStringLiteral("action-remove-cuts"))->trigger();
  QVERIFY(settled(f));
  QCOMPARE(plan(f).request().options.multiUse, MultiUse::transmit);
}

void StageChoicesTest::aTiedParameterIsSentUnderAllItsNames() {
  const Text model(R"(
def computation(x, e, o):
    # x: "f32[4, 4]"
    # e: "f32[4, 4]", parameter e.weight, also o.weight
    # o: "f32[4, 4]", parameter o.weight, also e.weight, shares e
    a = aten.mm(x, e)
    b = aten.tanh(a)
    c = aten.mm(b, o)
    d = aten.sin(c)
    f = aten.mm(d, e)
    return f
)");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(model.path));
  showStages(f);
  QVERIFY(settled(f));
  typePoints(f, QStringLiteral("#b, #d"));
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->stages(), 3);
  QCOMPARE(useOf(f, "o.weight"), MultiUse::replicate);
  plan(f).share(plan(f).cut()->split.shared, MultiUse::transmit);
  QVERIFY(settled(f));
  QCOMPARE(useOf(f, "e.weight"), MultiUse::transmit);
  QCOMPARE(parametersSent(f), std::size_t(2));
  QCOMPARE(parameterBytes(f), std::int64_t(64));
  QVERIFY2(checkStages(f).startsWith(QStringLiteral("\u2713 3 stages")), qPrintable(checkStages(f)));
  // Among parameters that are all sent it is the exception by both names.
  plan(f).shareAll(MultiUse::transmit);
  QVERIFY(settled(f));
  plan(f).share(plan(f).cut()->split.shared, MultiUse::replicate);
  QVERIFY(settled(f));
  QCOMPARE(parametersSent(f), std::size_t(0));
  plan(f).undo();
  QVERIFY(settled(f));
  QCOMPARE(parametersSent(f), std::size_t(2));
}

// Holds P46, P48, P51: the gradient begins at the loss, in the joint trace and in the stages that are cut of it.
void StageChoicesTest::aLossIsChosen() {
  const Text model(R"(
def computation(x, w, u):
    # x: "f32[4, 4]"
    # w: "f32[4, 4]", parameter w
    # u: "f32[4, 4]", parameter u
    a = aten.mm(x, w)
    b = aten.mm(x, u)
    c = aten.sin(b)
    s = aten.cos(a)
    loss = aten.sum(c)
    return s, loss
)");
  WindowFixture f(liveEngine());
  QVERIFY(f.open(model.path));
  showStages(f);
  QVERIFY(settled(f));
  typePoints(f, QStringLiteral("#b, #s"));
  QVERIFY(settled(f));
  QCOMPARE(plan(f).cut()->stages(), 3);
  QVERIFY(gradientOf(f.analysis(), parameter(f, "w")) && gradientOf(f.analysis(), parameter(f, "u")));
  QCOMPARE(f.analysis().request.cotangents.size(), std::size_t(2));
  find<QTabWidget>(f, "stages-tabs")->setCurrentIndex(1);
  auto* loss = find<QComboBox>(f, "stages-loss");
  QCOMPARE(loss->count(), 3);
  QCOMPARE(loss->currentText(), QStringLiteral("Loss: every output"));

  const auto chosen = [&](const std::string& place) {
    return QTest::qWaitFor(
               [&] { return !f.controller().opening() && f.controller().document()->request.loss == place; }, 20000) &&
           settled(f);
  };
  loss->setFocus();
  QTest::keyClick(loss, Qt::Key_End);
  QVERIFY(chosen("1"));
  QCOMPARE(loss->currentText(), QStringLiteral("Loss: 1 (loss)"));
  QCOMPARE(f.analysis().request.cotangents.size(), std::size_t(1));
  QVERIFY(!gradientOf(f.analysis(), parameter(f, "w")));
  QVERIFY(gradientOf(f.analysis(), parameter(f, "u")));
  // The cuts are the same, and what they are cut of is the joint for the loss.
  QCOMPARE(plan(f).cut()->stages(), 3);
  QVERIFY(plan(f).history().canUndo());
  QVERIFY2(checkStages(f).startsWith(QStringLiteral("\u2713 3 stages")), qPrintable(checkStages(f)));
  QStringList gradients;
  const auto* rows = find<QTreeView>(f, "stage-check-table")->model();
  for (int row = 0; row < rows->rowCount(); ++row)
    if (rows->index(row, StageCheckModel::what).data().toString().contains(QStringLiteral("parameter")))
      gradients << rows->index(row, StageCheckModel::name).data().toString();
  QCOMPARE(gradients, QStringList{QStringLiteral("grad.p.u")});
  // b and c lead to the loss, a does not.
  const auto& edges = plan(f).cut()->edges;
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (plan(f).cut()->split.edges[i].source >= 0)
      QCOMPARE(static_cast<bool>(plan(f).cut()->gradients[i]), edges[i].name != "a");
  showStages(f);
  f.picture(QStringLiteral("stages-loss"));
  // Other inputs leave it as it is, and so does another partition.
  auto request = f.controller().document()->request;
  request.seed = 3;
  f.controller().reopen(request);
  QVERIFY(QTest::qWaitFor([&] { return !f.controller().opening() && f.controller().document()->request.seed == 3; },
                          20000) &&
          settled(f));
  QCOMPARE(loss->currentText(), QStringLiteral("Loss: 1 (loss)"));
  QCOMPARE(f.analysis().request.cotangents.size(), std::size_t(1));

  loss->setFocus();
  QTest::keyClick(loss, Qt::Key_Home);
  QVERIFY(chosen(""));
  QCOMPARE(loss->currentText(), QStringLiteral("Loss: every output"));
  QVERIFY(gradientOf(f.analysis(), parameter(f, "w")));
  QCOMPARE(plan(f).cut()->stages(), 3);
}

// Holds P1, P9, P48: outputs have the names that forward gave them; a refusal has core's words, and everything stays.
void StageChoicesTest::whatCannotBeTheLossIsRefused() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(data("models/multi_output/model.pt2")));
  showStages(f);
  QVERIFY(settled(f));
  const auto document = f.controller().document();
  const auto cut = plan(f).cut();
  find<QTabWidget>(f, "stages-tabs")->setCurrentIndex(1);
  auto* loss = find<QComboBox>(f, "stages-loss");
  QStringList names;
  for (int i = 0; i < loss->count(); ++i) names << loss->itemData(i).toString();
  QVERIFY2(names.contains(QStringLiteral("a")) && names.contains(QStringLiteral("pair.1")) &&
               names.contains(QStringLiteral("none")),
           qPrintable(names.join(QLatin1Char(' '))));
  loss->setFocus();
  QTest::keyClick(loss, Qt::Key_Down);
  QVERIFY2(
      message(f).contains(QStringLiteral("grad can be implicitly created only for scalar outputs; linear is cpu f32[")),
      qPrintable(message(f)));
  QCOMPARE(loss->currentIndex(), 0);
  plan(f).chooseLoss("const");
  QVERIFY2(message(f).contains(QStringLiteral("Loss spec must specify a dynamic value but got 3")),
           qPrintable(message(f)));
  QVERIFY(!f.controller().opening());
  QCOMPARE(f.controller().document(), document);
  QCOMPARE(plan(f).cut(), cut);
  // An output that the model does not have is found out while it is opened; what is open stays.
  auto request = document->request;
  request.loss = "lost";
  f.controller().reopen(request);
  QVERIFY(QTest::qWaitFor([&] { return !f.controller().opening(); }, 20000));
  QVERIFY2(f.window().messages().text().contains(QStringLiteral("no output of the name lost")),
           qPrintable(f.window().messages().text()));
  QCOMPARE(f.controller().document(), document);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::StageChoicesTest)
#include "stage_choices_test.moc"
