#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QToolButton>

#include "tests/views/test_program.h"
#include "tests/views/window_fixture.h"
#include "views/parts/file_notice.h"

namespace retrograd::views {

/// In the window: files that change, shrink or vanish while they are open.
class FileNoticeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aChangedFileIsOfferedNotReloaded();
  void aReloadWaitsForTheRun();
  void theWishToReloadCanBeTakenBack();
  void aFileThatIsGoneLeavesTheSessionUsable();
  void aFileThatIsReplacedOrCutShortIsNamed();
  void aPartitionKeepsTheOffer();
  void aChangeWhileTheFileIsReadIsSeen();
};

namespace {

/// A file that is open in a window, whose engine takes 5 ms an op and calls `whileReading` before it has read it.
class SlowEngine : public FakeEngine {
 public:
  SlowEngine() { opTime = std::chrono::milliseconds(5); }
  std::shared_ptr<const Analysis> open(const OpenRequest& request, const Progress& progress,
                                       const OnRead& onRead) override {
    if (whileReading) std::exchange(whileReading, {})();
    return FakeEngine::open(request, progress, onRead);
  }
  std::function<void()> whileReading;
};

struct Open {
  explicit Open(int layers = 4) : path(folder.filePath(QStringLiteral("synthetic%1").arg(layers))), f(engine) {
    write("as it was");
    if (!f.open(path)) qFatal("does not open");
  }
  void write(const QByteArray& contents) const {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
    file.write(contents);
  }
  FileNotice& notice() { return *f.window().findChild<FileNotice*>(); }
  QPushButton& reload() { return *notice().findChild<QPushButton*>(QStringLiteral("file-notice-reload")); }
  void click(QAbstractButton& button) { QTest::mouseClick(&button, Qt::LeftButton); }
  /// What the notice says; empty where it does not show.
  QString said() { return notice().isVisible() ? notice().text() : QString(); }
  const OpenDocument* document() { return f.controller().document().get(); }

  QTemporaryDir folder;
  QString path;
  std::shared_ptr<SlowEngine> engine = std::make_shared<SlowEngine>();
  WindowFixture f;
};

}  // namespace

void FileNoticeTest::aChangedFileIsOfferedNotReloaded() {
  Open open;
  auto& f = open.f;
  f.controller().run().runToPosition(5);
  QTRY_COMPARE(f.execution().position, std::size_t(5));
  const auto before = f.controller().document();
  QVERIFY(open.said().isEmpty());
  open.write("something longer than it was");
  QTRY_VERIFY2(open.said().contains(QStringLiteral("was changed on disk")), qPrintable(open.said()));
  QVERIFY(!f.controller().opening());
  QCOMPARE(f.controller().document(), before);
  QCOMPARE(f.execution().position, std::size_t(5));
  QCOMPARE(open.reload().text(), QStringLiteral("Reload"));
  open.click(open.reload());
  QTRY_VERIFY(f.controller().document() != before && !f.controller().opening());
  QTRY_VERIFY(open.said().isEmpty());
  // The next change is one of the file as it is now.
  open.write("again");
  QTRY_VERIFY2(open.said().contains(QStringLiteral("cut short")), qPrintable(open.said()));
}

void FileNoticeTest::aReloadWaitsForTheRun() {
  Open open(100);
  auto& f = open.f;
  f.press(Qt::Key_F5);
  QTRY_VERIFY(f.execution().running);
  const auto before = f.controller().document();
  open.write("something longer than it was");
  QTRY_VERIFY(!open.said().isEmpty());
  QVERIFY(f.execution().running);
  QCOMPARE(open.reload().text(), QStringLiteral("Reload After the Run"));
  f.picture(QStringLiteral("file-notice"));
  std::size_t reached = 0;
  bool ran = true;
  connect(&f.controller(), &DocumentController::openingChanged, this, [&] {
    if (!f.controller().opening()) return;
    reached = f.execution().position;
    ran = f.execution().running;
  });
  open.click(open.reload());
  QVERIFY2(open.said().contains(QStringLiteral("when nothing runs any more")), qPrintable(open.said()));
  QVERIFY(f.execution().running && !f.controller().opening());
  QTRY_VERIFY_WITH_TIMEOUT(f.controller().document() != before, 60000);
  QVERIFY(!ran);
  QCOMPARE(reached, before->program.size());
}

void FileNoticeTest::theWishToReloadCanBeTakenBack() {
  Open open(60);
  auto& f = open.f;
  f.press(Qt::Key_F5);
  QTRY_VERIFY(f.execution().running);
  const auto before = f.controller().document();
  open.write("something longer than it was");
  QTRY_VERIFY(!open.said().isEmpty());
  open.click(open.reload());
  QCOMPARE(open.reload().text(), QStringLiteral("Do Not Reload"));
  open.click(open.reload());
  QVERIFY(f.settle());
  QTRY_COMPARE(open.reload().text(), QStringLiteral("Reload"));
  QCOMPARE(f.controller().document(), before);
  QCOMPARE(f.execution().position, before->program.size());
  open.click(*open.notice().findChild<QToolButton*>());
  QVERIFY(open.said().isEmpty());
}

void FileNoticeTest::aFileThatIsGoneLeavesTheSessionUsable() {
  Open open;
  auto& f = open.f;
  const auto away = open.folder.filePath(QStringLiteral("away"));
  QVERIFY(QFile::rename(open.path, away));
  QTRY_VERIFY2(open.said().contains(QStringLiteral("no longer there")), qPrintable(open.said()));
  QVERIFY(!open.reload().isVisible());
  QVERIFY(f.controller().document() && f.execution().available);
  f.press(Qt::Key_F11);
  QTRY_COMPARE(f.execution().position, std::size_t(1));
  // It comes back as it was.
  QVERIFY(QFile::rename(away, open.path));
  QTRY_VERIFY(open.said().isEmpty());
  // Or another one comes.
  QVERIFY(QFile::remove(open.path));
  QTRY_VERIFY(!open.said().isEmpty());
  open.write("another");
  QTRY_VERIFY(open.reload().isVisible());
  QCOMPARE(f.execution().position, std::size_t(1));
}

void FileNoticeTest::aFileThatIsReplacedOrCutShortIsNamed() {
  Open open;
  const auto* before = open.document();
  const auto other = open.folder.filePath(QStringLiteral("other"));
  QVERIFY(QFile::copy(open.path, other));  // held, or its inode could be the next file's
  open.write("");
  QTRY_VERIFY2(open.said().contains(QStringLiteral("was cut short on disk, from 9 B to 0 B")), qPrintable(open.said()));
  QCOMPARE(::rename(qPrintable(other), qPrintable(open.path)), 0);
  QTRY_VERIFY2(open.said().contains(QStringLiteral("was replaced")), qPrintable(open.said()));
  // A write to the file that is there now is seen too: an inode is watched, not a name.
  open.write("");
  open.click(open.reload());
  QTRY_VERIFY(open.document() != before && open.said().isEmpty());
}

void FileNoticeTest::aPartitionKeepsTheOffer() {
  Open open;
  auto& f = open.f;
  open.write("something longer than it was");
  QTRY_VERIFY(!open.said().isEmpty());
  const auto before = f.controller().document();
  f.controller().adopt(before->analysis, {});  // another partition of what was read
  QTRY_VERIFY(f.controller().document() != before);
  QVERIFY2(open.said().contains(QStringLiteral("was changed")), qPrintable(open.said()));
}

void FileNoticeTest::aChangeWhileTheFileIsReadIsSeen() {
  Open open;
  auto& f = open.f;
  const auto before = f.controller().document();
  open.engine->whileReading = [&] { open.write("something longer than it was"); };
  f.controller().reload();
  QTRY_VERIFY(f.controller().document() != before);
  QTRY_VERIFY(!open.said().isEmpty());
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::FileNoticeTest)
#include "file_notice_test.moc"
