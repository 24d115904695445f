// No text is cut without an ellipsis, on each screen, in each look and size of text.
#include <QAbstractButton>
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QStyle>
#include <QStyleOptionComboBox>
#include <QTabBar>
#include <QTest>
#include <QToolButton>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/theme/text_size.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {

class CutTextTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void noTextIsCutWithoutAnEllipsis_data();
  void noTextIsCutWithoutAnEllipsis();
  void cleanup() { setTextSize(0); }
};

namespace {

QString placeOf(const QWidget& widget) {
  QStringList names;
  for (const auto* each = &widget; each; each = each->parentWidget())
    if (!each->objectName().isEmpty()) names.prepend(each->objectName());
  return names.join(QLatin1Char('/'));
}

bool cutsLabel(const QLabel& label) {
  if (dynamic_cast<const ElidedLabel*>(&label) || label.text().isEmpty() || label.buddy()) return false;
  if (const auto* wrapped = dynamic_cast<const WrappedLabel*>(&label))
    return wrapped->isCut() && !wrapped->shownLines().last().endsWith(QChar(0x2026));
  const auto room = label.contentsRect().size() - QSize(2 * label.margin(), 2 * label.margin());
  if (label.wordWrap()) return label.heightForWidth(label.width()) > label.height();
  return label.fontMetrics().horizontalAdvance(label.text()) > room.width();
}

bool cutsButton(const QAbstractButton& button) {
  const auto* tool = qobject_cast<const QToolButton*>(&button);
  if (button.text().isEmpty() || (tool && tool->toolButtonStyle() == Qt::ToolButtonIconOnly && !tool->icon().isNull()))
    return false;
  if (button.hasHeightForWidth()) return button.height() < button.heightForWidth(button.width());  // it wraps
  auto text = button.text();
  text.remove(QLatin1Char('&'));
  const int icon = button.icon().isNull() ? 0 : button.iconSize().width();
  return button.fontMetrics().horizontalAdvance(text) + icon > button.width();
}

bool cutsBox(const QComboBox& box) {
  QStyleOptionComboBox option;
  option.initFrom(&box);
  option.editable = box.isEditable();
  const auto field = box.style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, &box);
  // Qt itself elides the text of one that is not edited.
  return box.isEditable() && box.fontMetrics().horizontalAdvance(box.currentText()) > field.width();
}

/// What is cut in sight.
QStringList cutIn(const QWidget& window) {
  QStringList cut;
  for (const auto* widget : window.findChildren<QWidget*>()) {
    if (!widget->isVisible() || widget->visibleRegion().isEmpty()) continue;
    if (const auto* label = qobject_cast<const QLabel*>(widget); label && cutsLabel(*label))
      cut << placeOf(*widget) + QStringLiteral(": ") + label->text();
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget); button && cutsButton(*button))
      cut << placeOf(*widget) + QStringLiteral(": ") + button->text();
    if (const auto* box = qobject_cast<const QComboBox*>(widget); box && cutsBox(*box))
      cut << placeOf(*widget) + QStringLiteral(": ") + box->currentText();
    if (const auto* tabs = qobject_cast<const QTabBar*>(widget); tabs && tabs->elideMode() == Qt::ElideNone)
      for (int i = 0; i < tabs->count(); ++i)
        if (tabs->tabRect(i).width() < tabs->fontMetrics().horizontalAdvance(tabs->tabText(i)))
          cut << placeOf(*widget) + QStringLiteral(": ") + tabs->tabText(i);
  }
  return cut;
}

}  // namespace

void CutTextTest::noTextIsCutWithoutAnEllipsis_data() {
  QTest::addColumn<QSize>("size");
  QTest::addColumn<double>("points");
  const double usual = QApplication::font().pointSizeF();
  // 2560 x 1440 at a factor of 2 has 1280 x 720 of these pixels.
  for (const auto& size : {QSize(1280, 800), QSize(1600, 1000), QSize(1280, 720)})
    for (const double points : {usual - 1, usual, usual + 3, 1.5 * usual})
      QTest::addRow("%dx%d at %g points", size.width(), size.height(), points) << size << points;
}

void CutTextTest::noTextIsCutWithoutAnEllipsis() {
  QFETCH(QSize, size);
  QFETCH(double, points);
  WindowFixture f(liveEngine(), WindowFixture::Start::asItComes);
  setTextSize(points);
  f.window().resize(size);
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/tiny_gpt.pt2"))));
  f.selection().select(f.analysis().backward.ops[12]);
  for (auto choice : {Theme::Choice::light, Theme::Choice::dark, Theme::Choice::highContrast}) {
    f.theme().choose(choice);
    for (const char* layout : {"reset-layout", "layout-debugging", "layout-memory", "layout-graph", "layout-reading"}) {
      auto* action = f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(layout));
      QVERIFY2(action, layout);
      action->trigger();
      QVERIFY(f.quiet() && standsStill(f.window()));
      const auto cut = cutIn(f.window());
      QVERIFY2(cut.isEmpty(), qPrintable(QLatin1String(layout) + QLatin1Char(' ') + cut.join(QLatin1Char('\n'))));
    }
  }
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::CutTextTest)
#include "cut_text_test.moc"
