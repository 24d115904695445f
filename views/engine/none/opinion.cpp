#include "views/engine/opinion.h"

namespace retrograd::views {

SecondOpinion askSecondOpinion(const jobs::JobLog&, const SecondOpinionRequest&, const Progress&) {
  throw Error(ErrorCode::badUse, "this build has no LibTorch");
}

}  // namespace retrograd::views
