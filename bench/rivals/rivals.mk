# Rivals of the bench, each only if what it needs is installed; the bench names those that are left out.
#
# Each has a list of make variables: rival_NAME (empty: left out), flags, libraries, objects or programs.

ifneq ($(filter %/bench/bench bench lars,$(MAKECMDGOALS)),)
netty_jars  := $(wildcard /usr/share/java/netty-common.jar /usr/share/java/jctools-core.jar)
rival_java  := $(shell command -v javac >/dev/null && command -v java >/dev/null && echo java)
rival_netty := $(if $(rival_java),$(if $(filter %/netty-common.jar,$(netty_jars)),netty))
rival_go    := $(shell command -v go >/dev/null && echo go)
rival_asio  := $(shell printf '$(hash)include <asio.hpp>\n' | $(or $(CXX),c++) -std=c++17 -E -x c++ - \
	>/dev/null 2>&1 && echo asio)
rival_glib  := $(shell pkg-config --exists glib-2.0 2>/dev/null && echo glib)
rival_dpdk  := $(shell pkg-config --exists libdpdk 2>/dev/null && echo dpdk)
rivals      := $(rival_java) $(rival_netty) $(rival_go) $(rival_asio) $(rival_glib) $(rival_dpdk)
endif

rival_flags   = $(foreach r,$(rivals),-DBENCH_HAS_$(call upper,$r))
rival_libs    = $(if $(rival_asio),-lstdc++) $(if $(rival_glib),$(libs_glib)) $(if $(rival_dpdk),-lrte_timer -lrte_eal)
rival_o       = $B/bench/rivals/rival.o $B/bench/rivals/programs.o \
		$(foreach r,$(rival_asio) $(rival_glib) $(rival_dpdk),$B/bench/rivals/candidate_$r.o)
rival_programs = $(if $(rival_java),$B/bench/rivals/java/Main.class) $(if $(rival_go),$B/bench/rivals/go)

flags_bench/rivals/programs = $(rival_flags) -DBENCH_NETTY_JARS='"$(subst $() ,:,$(netty_jars))"'
flags_bench/rivals/candidate_glib = $(shell pkg-config --cflags glib-2.0)
flags_bench/rivals/candidate_dpdk = $(filter-out -include rte_config.h,$(shell pkg-config --cflags libdpdk))

$B/bench/rivals/programs.o: $B/bench/peers

$B/bench/rivals/candidate_asio.o: bench/rivals/candidate_asio.cpp $B/flags
	@mkdir -p $(@D)
	$(call say,c++)$(or $(CXX),c++) -std=c++17 -D_GNU_SOURCE $(opt_$(MODE)) -g -Wall -Wextra \
		-I. -Iinclude -pthread \
		-MMD -MP -c -o $@ $<

java_c := $(filter-out bench/rivals/java/Netty.java,$(wildcard bench/rivals/java/*.java))
$B/bench/rivals/java/Main.class: $(wildcard bench/rivals/java/*.java) $B/bench/peers
	@mkdir -p $(@D)
	$(call say,javac)javac -Xlint:all -Werror -d $(@D) $(if $(rival_netty),-cp $(subst $() ,:,$(netty_jars))) \
		$(java_c) $(if $(rival_netty),bench/rivals/java/Netty.java) && touch $@

$B/bench/rivals/go: $(wildcard bench/rivals/go/*.go) bench/rivals/go/go.mod
	@mkdir -p $(@D)
	$(call say,go)cd bench/rivals/go && GOCACHE=$(CURDIR)/build/go-cache GOFLAGS=-mod=mod GO111MODULE=on \
		go build -o $(CURDIR)/$@ .
