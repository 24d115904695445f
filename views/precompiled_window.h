// The main window and the panels' contract, for window/ and what adds itself to it; compiled once.
#pragma once
#include "views/docks/panel.h"
#include "views/precompiled_session.h"
#include "views/window/main_window.h"
