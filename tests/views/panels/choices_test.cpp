#include <QComboBox>
#include <QDialog>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>

#include "core/base/allowed_memory.h"
#include "core/base/user_choice.h"
#include "core/formats/safetensors/safetensors.h"
#include "tests/support/source_path.h"
#include "tests/views/test_program.h"
#include "tests/views/user.h"
#include "views/widgets/message_bar.h"

namespace retrograd::views {

/// Messages of core name what the user can choose as the window has it.
class ChoicesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void namesArePlacesOfTheWindow();
  void aRefusedRunNamesThePreference();
  void weightsThatFitInPartAreLoadedOnRequest();
};

namespace {

QString plain(QString text) { return text.remove(QLatin1Char('&')).remove(QStringLiteral("...")); }

bool hasItem(const QMenu& menu, const QString& text) {
  const auto all = menu.actions();
  return std::any_of(all.begin(), all.end(), [&](const QAction* action) { return plain(action->text()) == text; });
}

/// The row of a page of Preferences with this name, by its label; null where there is none.
QComboBox* fieldOf(const QDialog& preferences, const QString& page, const QString& label) {
  const auto* pages = preferences.findChild<QTabWidget*>();
  for (int i = 0; i < pages->count(); ++i) {
    if (plain(pages->tabText(i)) != page) continue;
    for (auto* text : pages->widget(i)->findChildren<QLabel*>())
      if (plain(text->text()) == label) return qobject_cast<QComboBox*>(text->buddy());
  }
  return nullptr;
}

QDialog& preferencesOf(WindowFixture& f) {
  f.press(Qt::Key_Comma, Qt::ControlModifier);
  return *f.window().findChild<QDialog*>(QStringLiteral("preferences"));
}

void write(QComboBox& field, const QString& text) {
  field.setEditText(text);
  Q_EMIT field.lineEdit()->editingFinished();
}

}  // namespace

void ChoicesTest::namesArePlacesOfTheWindow() {
  WindowFixture f(liveEngine());
  const auto& preferences = preferencesOf(f);
  int items = 0, fields = 0;
  for (int i = 0; i < userChoiceCount; ++i) {
    const auto name = QString::fromStdString(nameOf(static_cast<UserChoice>(i)));
    QVERIFY2(!name.isEmpty() && !name.startsWith(QLatin1Char('-')), qPrintable(QString::number(i)));
    const auto path = name.split(QStringLiteral(" > "));
    if (path.size() == 3) {
      QVERIFY2(fieldOf(preferences, path[1], path[2]) && path[0] == preferences.windowTitle(), qPrintable(name));
      ++fields;
    } else if (path.size() == 2) {
      const auto item =
          path[1].section(QStringLiteral(", "), 0, 0);  // what to choose in the item's dialog comes after it
      const auto menus = f.window().menuBar()->actions();
      const bool found = std::any_of(menus.begin(), menus.end(), [&](const QAction* menu) {
        return plain(menu->text()) == path[0] && hasItem(*menu->menu(), item);
      });
      QVERIFY2(found, qPrintable(name));
      ++items;
    }
  }
  QVERIFY(items >= 4 && fields == 2);
}

void ChoicesTest::aRefusedRunNamesThePreference() {
  QTemporaryDir folder;
  QFile file(folder.filePath(QStringLiteral("large.txt")));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(R"(def computation(x):
    # x: "f32[4096, 4400]"

    y = torch.ops.aten.mul.Tensor(x, x)
    loss = torch.ops.aten.sum.default(y)
    return (loss,)
)");
  file.close();
  WindowFixture f(liveEngine());
  QVERIFY(f.open(file.fileName()));
  QVERIFY(f.quiet());
  auto& preferences = preferencesOf(f);
  auto* memory = fieldOf(preferences, QStringLiteral("Running"), QStringLiteral("Memory for runs"));
  write(*memory, QStringLiteral("16 MiB"));
  f.window().actions().resume->trigger();
  QTRY_VERIFY2(f.window().messages().text().contains(QStringLiteral("with Preferences > Running > Memory for runs")),
               qPrintable(f.window().messages().text()));
  QVERIFY(!f.window().messages().text().contains(QStringLiteral("--")));
  QCOMPARE(f.execution().position, 0);
  write(*memory, QString());  // what is free, as before
  QVERIFY(!runningMemory());
  f.window().actions().resume->trigger();
  QTRY_COMPARE(f.execution().position, f.execution().size);
}

void ChoicesTest::weightsThatFitInPartAreLoadedOnRequest() {
  WindowFixture f(liveEngine());
  QVERIFY(f.open(QString::fromStdString(sourcePath("resources/samples/mlp.pt2"))));
  QVERIFY(f.quiet());
  const auto& weights = f.analysis().file.weights;
  QVERIFY(weights.size() > 1);
  const TensorMap part{*weights.begin()};
  QTemporaryDir folder;
  const auto path = folder.filePath(QStringLiteral("part.safetensors"));
  writeSafetensors(path.toStdString(), part);
  User(f).drop(path);
  QTRY_VERIFY2(f.window().messages().text().contains(QStringLiteral("File > Load What Fits takes what fits")),
               qPrintable(f.window().messages().text()));
  f.window().findChild<QAction*>(QStringLiteral("action-load-what-fits"))->trigger();
  User(f).drop(path);
  QTRY_VERIFY(!f.controller().opening() && f.controller().document()->request.data.weights == path.toStdString());
  const auto& problems = f.analysis().file.problems;
  QVERIFY(std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.message.find("though it does not fit") != std::string::npos;
  }));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ChoicesTest)
#include "choices_test.moc"
