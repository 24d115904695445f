#include <QCheckBox>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QTest>
#include <map>
#include <set>

#include "core/derivation/gradient_of.h"
#include "core/questions/partition_wishes.h"
#include "core/questions/why.h"
#include "tests/views/run_ahead.h"
#include "tests/views/test_program.h"
#include "views/canvases/memory_view.h"
#include "views/docks/memory_dock.h"
#include "views/docks/why_dock.h"
#include "views/models/why_model.h"
#include "views/stages/stage_plan.h"
#include "views/text/format.h"
#include "views/text/line_text.h"

namespace retrograd::views {

/// Other choices of what is saved: checkpointed blocks, equal layers at once, a budget; their curve over Memory.
class WhatIfTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void whatIsKeptThroughAViewSaysSo();
  void aGradientIsTheSum();
  void blocksAreCheckpointedFromTheirInputs();
  void equalLayersFollowAChoice();
  void whatGainsNothingIsNotOffered();
  void whatWasAdoptedIsTakenBackWhereItWasAdopted();
  void aSliderTradesMemoryForTime();
  void theCurveOfAChoiceIsOverMemory();
  void W44_whySaysItInASentenceWithLinks();
  void W44_whyAndInspectorAreOneColumn();
  void W46_allThatIsAdoptedIsUndoneAndRedone();
  void W46_aSavedSessionUndoesWhatItHasAdopted();

 private:
  WhyDock& why() { return fixture_->window().panel<WhyDock>(); }
  bool answered() {
    return QTest::qWaitFor([&] { return !why().verdict().isEmpty(); }, 20000) && fixture_->quiet();
  }
  bool adopt();
  /// "saved: 154 KiB -> 98 KiB (-56 KiB)", without words.
  QString savedLine() { return why().verdict().split(QLatin1Char('\n')).value(1); }
  BoundSymbolId forwardOp(const char* output) const;

  std::unique_ptr<WindowFixture> fixture_;
};

void WhatIfTest::init() {
  fixture_ = std::make_unique<WindowFixture>(liveEngine());
  QVERIFY(fixture_->open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(allKnown(*fixture_));
  QVERIFY(fixture_->quiet());
}

bool WhatIfTest::adopt() {
  const auto before = fixture_->controller().document();
  QTest::mouseClick(why().findChild<QPushButton*>(QStringLiteral("what-if-adopt")), Qt::LeftButton);
  return QTest::qWaitFor([&] { return fixture_->controller().document() != before; }, 20000) && fixture_->quiet();
}

BoundSymbolId WhatIfTest::forwardOp(const char* output) const {
  const auto& analysis = fixture_->analysis();
  for (auto op : analysis.forward.ops)
    for (auto value : analysis.document->outputs(op))
      if (value && analysis.document->displayName(value) == output) return op;
  return {};
}

// The memory of a value is there for the backward, though another value on it is the saved one.
void WhatIfTest::whatIsKeptThroughAViewSaysSo() {
  const auto& document = *fixture_->controller().document();
  const auto& tables = *document.analysis->document;
  int found = 0;
  for (auto op : document.analysis->forward.ops)
    for (auto value : tables.outputs(op)) {
      const auto why = whySaved(*document.analysis, value);
      if (why.saved || why.sharing.empty() || why.storageBytes == 0) continue;
      WhyModel model;
      model.show(fixture_->controller().document(), reportWhy(document, op, value, {}));
      const auto words = model.index(0, 1).data().toString();
      QVERIFY2(words.contains(toQt(tables.displayName(why.sharing.front()))), qPrintable(words));
      QVERIFY2(words.endsWith(bytesText(why.storageBytes)), qPrintable(words));
      ++found;
    }
  QVERIFY(found > 2);
}

// Of a value that several ops read, Why names the gradient that Values and References name: all parts together.
void WhatIfTest::aGradientIsTheSum() {
  const auto& document = *fixture_->controller().document();
  const auto& analysis = *document.analysis;
  int sums = 0;
  for (auto op : analysis.forward.ops) {
    const auto value = analysis.document->outputs(op)[0];
    const auto gradient = gradientOf(analysis, value);
    if (!gradient || gradientTermsOf(analysis, value).size() < 2) continue;
    const auto report = reportWhy(document, op, value, {});
    QCOMPARE(report.values.front().gradient.gradient, gradient);
    QCOMPARE(report.values.front().gradientOp, analysis.document->value(gradient).producer);
    ++sums;
  }
  QVERIFY(sums > 1);
}

// As torch.utils.checkpoint around each block: of what a block makes, its result alone is kept.
void WhatIfTest::blocksAreCheckpointedFromTheirInputs() {
  QCOMPARE(listOfBlocks(*fixture_->controller().document()->analysis, fixture_->controller().document()->saved),
           std::string("blocks"));
  trigger(*fixture_, "checkpoint-blocks");
  QVERIFY(answered());
  QVERIFY(adopt());
  const auto& open = *fixture_->controller().document();
  QCOMPARE(open.request.partition->recompute, std::vector<std::string>{"blocks.*"});
  const auto& document = *open.analysis->document;
  std::map<std::string, int> kept;
  for (auto op : open.analysis->forward.ops) {
    const std::string path(document.text(document.boundSymbol(op).module));
    if (!path.starts_with("blocks.")) continue;
    for (auto output : document.outputs(op)) kept[path.substr(0, 8)] += output && open.saved.costOf(output) > 0;
  }
  QCOMPARE(kept, (std::map<std::string, int>{{"blocks.0", 1}, {"blocks.1", 1}}));
  // One key takes it back.
  fixture_->press(Qt::Key_Z, Qt::ControlModifier);
  QTRY_VERIFY(fixture_->controller().document()->request.partition->recompute.empty());
}

void WhatIfTest::equalLayersFollowAChoice() {
  fixture_->selection().select(forwardOp("linear_6"));
  fixture_->press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
  QVERIFY(answered());
  const auto alone = savedLine();
  auto* box = why().findChild<QCheckBox*>(QStringLiteral("what-if-equal"));
  QVERIFY(box->isVisible() && !box->isChecked());
  box->click();
  QVERIFY(fixture_->quiet());
  QVERIFY2(savedLine() != alone, qPrintable(alone));
  QVERIFY(adopt());
  auto words = fixture_->analysis().request.partition.recompute;
  std::sort(words.begin(), words.end());
  QCOMPARE(words, (std::vector<std::string>{"#linear_2", "#linear_6"}));
  // Of an op in no layer no others follow.
  fixture_->press(Qt::Key_Z, Qt::ControlModifier);
  QTRY_VERIFY(fixture_->analysis().request.partition.recompute.empty());
  QVERIFY(fixture_->quiet());
  const auto& analysis = fixture_->analysis();
  QCOMPARE(inEqualLayers(analysis, analysis.request.partition), analysis.request.partition);
}

// Where recomputing a value frees nothing, the command is disabled and says so.
void WhatIfTest::whatGainsNothingIsNotOffered() {
  const auto& analysis = fixture_->analysis();
  const auto* recompute = fixture_->window().actions().recompute;
  fixture_->raise("dock-why");
  int gaining = 0, others = 0;
  for (auto op : analysis.forward.ops)
    for (auto value : analysis.document->outputs(op)) {
      if (!value || !fixture_->controller().document()->saved.contains(value) || gaining + others > 12) continue;
      const auto known = whySaved(analysis, value);
      const bool gains = known.recompute.freed > known.recompute.extraSaved;
      fixture_->selection().select(op, value);
      QVERIFY(fixture_->quiet());
      QCOMPARE(recompute->isEnabled(), gains);
      if (!gains) QVERIFY2(recompute->toolTip().contains(QStringLiteral("It ")), qPrintable(recompute->toolTip()));
      ++(gains ? gaining : others);
    }
  QVERIFY(gaining > 0 && others > 0);
}

void WhatIfTest::W44_whySaysItInASentenceWithLinks() {
  auto& f = *fixture_;
  f.raise("dock-why");
  f.click(TraceKind::forward, forwardOp("linear_6"));
  const auto* sentence = why().findChild<QLabel*>(QStringLiteral("why-sentence"));
  QTRY_VERIFY2(sentence->text().startsWith(QStringLiteral("linear_6 is saved, 16 KiB: read by the backward of gelu_1")),
               qPrintable(sentence->text()));
  QVERIFY(sentence->isVisible() && sentence->font().bold());
  QVERIFY(!why().findChild<QTreeView*>(QStringLiteral("why"))->isVisible());  // details are folded
  const auto* line = why().findChild<SentenceButton*>(QStringLiteral("why-line"));
  QVERIFY2(line->text().startsWith(QStringLiteral("tiny_gpt.py:")), qPrintable(line->text()));
  f.picture(QStringLiteral("W44-card"));
  SentenceButton* reader = nullptr;
  for (auto* link : why().findChildren<SentenceButton*>())
    if (link->text().startsWith(QStringLiteral("Read by #"))) reader = link;
  QVERIFY(reader && reader->isVisible());
  QTest::mouseClick(reader, Qt::LeftButton);
  QVERIFY2(shortOpName(*f.analysis().document, f.selection().op()).contains(QStringLiteral("gelu_backward")),
           "the link leads to the reader");
}

void WhatIfTest::W44_whyAndInspectorAreOneColumn() {
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  f.window().resize(1500, 900);
  QVERIFY(f.open(modelFile("resources/samples/tiny_gpt.pt2")));
  QVERIFY(f.quiet() && standsStill(f.window()));
  auto* dock = f.raise("dock-why");
  QVERIFY2(dock->width() >= 360, qPrintable(QString::number(dock->width())));
  f.click(TraceKind::forward, f.analysis().forward.ops[3]);
  QVERIFY(f.quiet());
  const auto* card = dock->findChild<QFrame*>(QStringLiteral("why-card"));
  const auto* inspector = dock->findChild<QTreeView*>(QStringLiteral("inspector"));
  QVERIFY(card->isVisible() && inspector->isVisible());
  QVERIFY(card->mapTo(dock, QPoint()).y() < inspector->mapTo(dock, QPoint()).y());
  QVERIFY(inspector->model()->rowCount() > 0);
}

// W46: one history, from newest to oldest, whatever was adopted.
void WhatIfTest::W46_allThatIsAdoptedIsUndoneAndRedone() {
  auto& f = *fixture_;
  auto *undo = f.window().actions().undo, *redo = f.window().actions().redo;
  QVERIFY(f.window().menu("edit")->actions() == (QList<QAction*>{undo, redo}));
  QVERIFY(!undo->isEnabled() && !redo->isEnabled());
  trigger(f, "checkpoint-blocks");
  QVERIFY(answered() && adopt());
  const auto first = f.analysis().request.partition;
  QVERIFY2(undo->text().startsWith(QStringLiteral("&Undo: If each block")), qPrintable(undo->text()));
  CutRequest request;
  request.stages = 2;
  f.window().context().stages->change(request, QStringLiteral("Two stages"));
  QVERIFY(f.quiet());
  QCOMPARE(undo->text(), QStringLiteral("&Undo: Two stages"));
  const auto key = [&](const QAction* command) {
    const auto keys = command->shortcut()[0];
    f.press(keys.key(), keys.keyboardModifiers());
    return f.quiet();
  };
  QVERIFY(key(undo));
  QCOMPARE(f.window().context().stages->request().stages, std::size_t(0));
  QCOMPARE(f.analysis().request.partition, first);
  QVERIFY(key(undo));
  QTRY_COMPARE(f.analysis().request.partition, PartitionOptions());
  QVERIFY(!undo->isEnabled());
  QVERIFY(f.quiet() && key(redo));
  QTRY_COMPARE(f.analysis().request.partition, first);
  QVERIFY(f.quiet() && key(redo));
  QCOMPARE(f.window().context().stages->request().stages, std::size_t(2));
  QVERIFY(!redo->isEnabled());
}

// W46: also after saving and opening again.
void WhatIfTest::W46_aSavedSessionUndoesWhatItHasAdopted() {
  auto& f = *fixture_;
  trigger(f, "checkpoint-blocks");
  QVERIFY(answered() && adopt());
  const auto adopted = f.analysis().request.partition;
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("blocks.retrograd"));
  liveEngine()->save(f.analysis(), f.controller().document()->request.path, path.toStdString(), true, {});
  QVERIFY(f.open(path));
  QCOMPARE(f.analysis().request.partition, adopted);
  auto* undo = f.window().actions().undo;
  QVERIFY(undo->isEnabled());
  f.press(Qt::Key_Z, Qt::ControlModifier);
  QTRY_COMPARE(f.analysis().request.partition, PartitionOptions());
  QVERIFY(f.quiet() && !undo->isEnabled());
  f.window().actions().redo->trigger();
  QTRY_COMPARE(f.analysis().request.partition, adopted);
}

// Why saved, what if, adopt: three actions. Undo: one, next to what was adopted, by mouse or keyboard.
void WhatIfTest::whatWasAdoptedIsTakenBackWhereItWasAdopted() {
  auto& f = *fixture_;
  f.raise("dock-why");
  auto* undo = why().findChild<QToolButton*>(QStringLiteral("what-if-undo"));
  const auto* adopted = why().findChild<QLabel*>(QStringLiteral("what-if-adopted"));
  for (const bool byKey : {false, true}) {
    QVERIFY(!undo->isVisible() && !adopted->isVisible());
    const auto saved = f.controller().document()->saved.bytes;
    f.click(TraceKind::forward, forwardOp("linear_6"));
    QVERIFY(f.quiet());
    for (auto* button : why().findChildren<QToolButton*>())
      if (button->defaultAction() == f.window().actions().recompute) QTest::mouseClick(button, Qt::LeftButton);
    QVERIFY(answered());
    const auto title = why().verdict().section(QLatin1Char('\n'), 0, 0);
    QVERIFY(adopt());
    QVERIFY(f.controller().document()->saved.bytes < saved);
    QVERIFY(undo->isVisible() && undo->isEnabled());
    QCOMPARE(adopted->text(), QStringLiteral("Adopted: ") + title);
    QVERIFY2(undo->toolTip().contains(QStringLiteral("Ctrl+Z")), qPrintable(undo->toolTip()));
    f.picture(QStringLiteral("adopted"));
    if (byKey) {
      why().showDetails(true);
      why().findChild<QTreeView*>(QStringLiteral("why"))->setFocus();
      for (int i = 0; i < 4 && !undo->hasFocus(); ++i) f.press(Qt::Key_Tab);
      QVERIFY(undo->hasFocus());
      f.press(Qt::Key_Space);
    } else {
      QTest::mouseClick(undo, Qt::LeftButton);
    }
    QTRY_COMPARE(f.controller().document()->saved.bytes, saved);
    QVERIFY(f.quiet());
  }
  QVERIFY(!undo->isVisible() && !adopted->isVisible());
}

void WhatIfTest::aSliderTradesMemoryForTime() {
  trigger(*fixture_, "what-if-budget");
  QVERIFY(answered());
  auto* slider = why().findChild<QSlider*>(QStringLiteral("what-if-budget"));
  QVERIFY(slider->isVisible());
  const auto at = [&](int value) {
    const auto before = why().verdict();
    slider->setValue(value);
    const bool changed = QTest::qWaitFor([&] { return why().verdict() != before; }, 20000);
    return changed && fixture_->quiet() ? savedLine() : QString();
  };
  const auto most = at(slider->maximum());
  QVERIFY2(most.contains(QStringLiteral("unchanged")), qPrintable(most));
  const auto least = at(0);
  const auto fewest = liveEngine()->whatIf(fixture_->analysis(), {.kind = PartitionOptions::minCut}, {}, {}).after;
  QVERIFY2(least.contains(QStringLiteral("\u2192 ") + bytesText(fewest.savedBytes)), qPrintable(least));
  QVERIFY(slider->isVisible());
  QVERIFY(adopt());
  QVERIFY(fixture_->analysis().request.partition.budget.has_value());
}

void WhatIfTest::theCurveOfAChoiceIsOverMemory() {
  auto* view = fixture_->window().findChild<MemoryView*>();
  fixture_->raise("dock-memory");
  QVERIFY(fixture_->quiet() && standsStill(*view));
  const auto before = view->grab().toImage();
  trigger(*fixture_, "checkpoint-blocks");
  QVERIFY(answered());
  QVERIFY(standsStill(*view));
  const auto with = view->grab().toImage();
  QVERIFY(with != before);
  const auto& panel = fixture_->window().panel<MemoryDock>();
  QVERIFY2(panel.measured().contains(QStringLiteral("dotted line")), qPrintable(panel.measured()));
  fixture_->picture(QStringLiteral("what-if-curve"));
  for (auto* button : why().findChildren<QPushButton*>())
    if (button->text().contains(QStringLiteral("iscard"))) QTest::mouseClick(button, Qt::LeftButton);
  QVERIFY(why().verdict().isEmpty());
  QVERIFY(standsStill(*view));
  QVERIFY(view->grab().toImage() != with);
  QVERIFY2(!panel.measured().contains(QStringLiteral("dotted line")), qPrintable(panel.measured()));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::WhatIfTest)
#include "what_if_test.moc"
