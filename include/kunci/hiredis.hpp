#pragma once

// What a program includes that locks through hiredis; it links hiredis (target kunci::hiredis).
#include <kunci/adapters/hiredis/connection.hpp>
#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
