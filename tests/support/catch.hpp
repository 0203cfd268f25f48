#pragma once

// Catch2 v3 and v2 under one roof. With v3 link Catch2::Catch2WithMain; with v2 compile catch_main.cpp in.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
