#include "views/engine/opinion.h"

namespace retrograd::views {

SecondOpinion askSecondOpinion(const jobs::JobLog& log, const SecondOpinionRequest& request, const Progress& progress) {
  return secondOpinion(log, request, progress);
}

}  // namespace retrograd::views
