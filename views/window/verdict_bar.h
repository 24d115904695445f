#pragma once
#include <QFrame>
#include <QToolButton>

#include "views/findings/verdict_line.h"
#include "views/session/view_context.h"
#include "views/widgets/sentence_button.h"

namespace retrograd::views {

/// One line below the tool bar that says what is known of the open file: red, amber, green or grey, with the sentence,
/// the line of Python that it leads to, and one action. It says what the board of findings decides, and while a file
/// opens that it does.
class VerdictBar : public QFrame {
  Q_OBJECT

 public:
  explicit VerdictBar(ViewContext context, QWidget* parent = nullptr);

  const VerdictLine& line() const { return line_; }
  QSize sizeHint() const override { return {200, QFrame::sizeHint().height()}; }  // whatever it says
  QSize minimumSizeHint() const override { return {60, sizeHint().height()}; }
  QString sentence() const { return sentence_->text(); }
  QString place() const { return place_->text(); }
  /// How the action of a claim, and a command, read on a button.
  void setTitles(std::function<QString(const Claim&)> ofClaim, std::function<QString(const QString&)> ofCommand);

 Q_SIGNALS:
  /// To the place of the claim.
  void led(const retrograd::Claim& claim);
  /// The one action of the claim.
  void acted(const retrograd::Claim& claim);
  /// The command that judges what was not judged.
  void commandChosen(const QString& command);
  /// All findings are wanted.
  void allWanted();

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void tell();
  void recolor();
  void act();

  const ViewContext context_;
  FindingBoard& board_;
  VerdictLine line_;
  std::function<QString(const Claim&)> titleOfClaim_;
  std::function<QString(const QString&)> titleOfCommand_;
  SentenceButton *sentence_, *place_;
  QToolButton *action_, *more_;
};

}  // namespace retrograd::views
