#include <QDir>
#include <QFile>
#include <QMimeDatabase>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/source_path.h"
#include "tests/views/test_program.h"

namespace retrograd::views {
namespace {

const QString source = QString::fromStdString(sourcePath(""));
const QString exported = QStringLiteral("application/x-torch-export");
const QString script = QStringLiteral("application/x-torchscript");
const QString session = QStringLiteral("application/x-retrograd-session");
const QString zip = QStringLiteral("application/zip");

}  // namespace

/// What a desktop takes our files for, by their names and by their contents, with our types next to the system's.
class MimeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void namesDecide();
  void contentsDecideWhereNamesDoNot_data();
  void contentsDecideWhereNamesDoNot();
  void otherArchivesStayWhatTheyAre();

 private:
  QTemporaryDir folder_;
};

void MimeTest::initTestCase() {
  const auto packages = folder_.filePath(QStringLiteral("mime/packages"));
  QVERIFY(QDir().mkpath(packages));
  QVERIFY(QFile::copy(source + QStringLiteral("resources/desktop/org.retrograd.retrograd.mime.xml"),
                      packages + QStringLiteral("/org.retrograd.retrograd.xml")));
  // In one folder, as an installation has them: Qt 6.4 lets the last of several folders win.
  QVERIFY(QFile::copy(QStringLiteral("/usr/share/mime/packages/freedesktop.org.xml"),
                      packages + QStringLiteral("/freedesktop.org.xml")));
  qputenv("XDG_DATA_HOME", folder_.filePath(QStringLiteral("home")).toUtf8());
  qputenv("XDG_DATA_DIRS", folder_.path().toUtf8());
  QVERIFY2(QMimeDatabase().mimeTypeForName(exported).isValid(), "the types are read");
}

void MimeTest::namesDecide() {
  const QMimeDatabase types;
  const auto byName = [&](const char* name) {
    return types.mimeTypeForFile(QLatin1String(name), QMimeDatabase::MatchExtension).name();
  };
  QCOMPARE(byName("model.pt2"), exported);
  QCOMPARE(byName("model.pt"), script);
  QCOMPARE(byName("mine.retrograd"), session);
  QCOMPARE(byName("mine.zip"), zip);
  for (const auto& name : {exported, script, session}) {
    const auto type = types.mimeTypeForName(name);
    QVERIFY2(type.inherits(zip), qPrintable(name));
    QVERIFY2(type.comment() != name, qPrintable(name));
  }
}

void MimeTest::contentsDecideWhereNamesDoNot_data() {
  QTest::addColumn<QString>("file");
  QTest::addColumn<QString>("type");
  QTest::newRow("export") << QStringLiteral("resources/samples/mlp.pt2") << exported;
  QTest::newRow("export of another name") << QStringLiteral("resources/samples/tiny_gpt.pt2") << exported;
  QTest::newRow("script") << QStringLiteral("tests/data/torchscript/containers.pt") << script;
  QTest::newRow("script that begins with a tensor") << QStringLiteral("tests/data/torchscript/dropout.pt") << script;
  QTest::newRow("session") << QStringLiteral("tests/data/sessions/mlp_format1.retrograd") << session;
}

void MimeTest::contentsDecideWhereNamesDoNot() {
  QFETCH(QString, file);
  QFETCH(QString, type);
  QFile content(source + file);
  QVERIFY(content.open(QIODevice::ReadOnly));
  QCOMPARE(QMimeDatabase().mimeTypeForData(content.read(1 << 14)).name(), type);
}

void MimeTest::otherArchivesStayWhatTheyAre() {
  // An empty archive's directory, and one member whose name has nothing to do with us.
  QByteArray archive("PK\003\004\024\0\0\0\0\0", 10);
  archive += QByteArray(16, '\0') + QByteArray("\011\0\0\0", 4) + "notes.txt" + QByteArray(200, 'x');
  QCOMPARE(QMimeDatabase().mimeTypeForData(archive).name(), zip);
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::MimeTest)
#include "mime_test.moc"
