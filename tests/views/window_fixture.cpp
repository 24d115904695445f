#include "tests/views/window_fixture.h"

#include <QApplication>
#include <QScrollBar>

namespace retrograd::views {

WindowFixture::WindowFixture(std::shared_ptr<Engine> engine)
    : settings_(folder_.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat),
      theme_(std::make_unique<Theme>(*qApp)),
      worker_(std::make_shared<Worker>()),
      window_(new MainWindow({worker_, std::move(engine), theme_.get(), &settings_})) {
  theme_->choose(Theme::Choice::light);
  window_->resize(1600, 980);
  window_->show();
  // Without a window manager no window becomes active by itself.
  QApplication::setActiveWindow(window_);
  if (!QTest::qWaitForWindowExposed(window_)) qFatal("the window does not show");
}

WindowFixture::~WindowFixture() { delete window_; }

bool WindowFixture::open(const QString& path) {
  window_->openFile(path);
  return QTest::qWaitFor([&] { return !controller().opening(); }, 60000) && controller().document() != nullptr;
}

bool WindowFixture::settle() {
  return QTest::qWaitFor([&] { return !execution().running && !controller().worker().busy(&controller(), QStringLiteral("run")); }, 60000);
}

void WindowFixture::click(TraceKind kind, BoundSymbolId op) {
  auto& view = listing(kind);
  if (!view.isRowVisible(view.rowOf(op))) view.verticalScrollBar()->setValue(view.rowOf(op));
  const auto rect = view.rowRect(view.rowOf(op));
  // Right of the gutter and the fold mark, left of most text: x is where a line of depth 1 starts.
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, QPoint(rect.height() * 4 + 30, rect.center().y()));
}

void WindowFixture::press(int key, Qt::KeyboardModifiers modifiers) {
  auto* focus = QApplication::focusWidget();
  QTest::keyClick(focus ? focus : window_, static_cast<Qt::Key>(key), modifiers);
}

void WindowFixture::picture(const QString& name) {
  const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
  if (folder.isEmpty()) return;
  QTest::qWait(500);  // the answers to the last questions
  window_->grab().save(QStringLiteral("%1/%2.png").arg(folder, name));
}

}  // namespace retrograd::views
