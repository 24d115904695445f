// The open document and what views share of it, for the folders from session/ up; compiled once.
#pragma once
#include "views/precompiled.h"
#include "views/session/view_context.h"
