#pragma once

#include <kunci/kunci.hpp>
#include <kunci/testing.hpp>
#ifdef KUNCI_TEST_HIREDIS
#include <kunci/hiredis.hpp>
#endif
