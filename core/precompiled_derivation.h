// What the folders of core above derivation/ share, apart from what all of core does: a model and what was derived of it, compiled once.
#pragma once
#include "core/derivation/analysis.h"
#include "core/precompiled.h"
