/*
 * tickwheel's layers for C++17: strands, limiters and schedulers as objects. Includes
 * tickwheel.hpp, whose rules hold. Programs link libtickwheel-layers and libtickwheel.
 */
#ifndef TICKWHEEL_LAYERS_HPP
#define TICKWHEEL_LAYERS_HPP

#include "../tickwheel.hpp"
#include "cpp/limiter.hpp"
#include "cpp/scheduler.hpp"
#include "cpp/strand.hpp"
#include "layers.h"

#endif
