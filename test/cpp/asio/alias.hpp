/* The timer under test. Each program is built with either, and must write the same. */
#ifndef TEST_CPP_ASIO_ALIAS_HPP
#define TEST_CPP_ASIO_ALIAS_HPP

#include "../check.hpp"

#ifdef TICKWHEEL_BOOST_ASIO
#include <boost/asio.hpp>
namespace boost::asio
{
using system::error_code;
using system::system_error;
} // namespace boost::asio
namespace asio = boost::asio;
#else
#include <asio.hpp>
#endif

#ifdef WITH_STEADY_TIMER
template <class Executor>
using basic_timer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
			       asio::wait_traits<std::chrono::steady_clock>, Executor>;
using timer = asio::steady_timer;
#else
#include "tickwheel_asio.hpp"
template <class Executor> using basic_timer = tickwheel::asio::basic_timer<Executor>;
using timer = tickwheel::asio::timer;
#endif

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

#endif
