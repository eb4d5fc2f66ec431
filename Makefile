# tickwheel: `make help` lists the targets.
#
# Knobs:
#   CC, CXX, CFLAGS    your compilers; your flags are appended
#   MODE               release, debug, asan or tsan
#   SECONDS, AT_ONCE   length of each stress program, and how many run side by side
#   V=1                shows the commands
#   PROBES=0           builds without static probes
#   NO_INSTALL=1       make demo and make test install nothing
#
# test/*/*.mk have the tests and checks of their folders, packaging/install.mk the packages.

MODE    ?= release
SECONDS ?= 20
AT_ONCE ?= 1
BENCH   ?=
CFLAGS  ?=
V       ?= 0
PROBES  ?= 1
NO_INSTALL ?=

version = $(shell sed -n 's/^\#define TW_VERSION_$(1) \([0-9]*\)$$/\1/p' include/tickwheel/version.h)
VERSION := $(call version,MAJOR).$(call version,MINOR).$(call version,PATCH)
SOVERSION := $(call version,MAJOR).$(call version,MINOR)

# Every build has functions and lines for backtraces (-g1). Variables and types, which take a fifth of
# the build's time, are in MODE=debug, or with CFLAGS=-g.
opt_release := -O2 -DNDEBUG
opt_debug   := -O1 -g3 -DTW_DEBUG
opt_asan    := -O1 -g -DTW_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
opt_tsan    := -O1 -g -DTW_DEBUG -fsanitize=thread -fno-omit-frame-pointer

# Hardening of the library; test/package/hardened.sh checks the result.
machine := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
hard_x86_64  := -fcf-protection
hard_aarch64 := -mbranch-protection=standard
hard := -fstack-protector-strong -fstack-clash-protection $(hard_$(machine))
opt_release += $(hard) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
opt_debug   += $(hard)
# Modes for the checks' own builds; each has a folder of its own in build/.
# In a folder of its own, since `make check` runs `test` beside `check-asan`.
opt_recipes  := $(opt_asan)
opt_clang    := -O2 -DNDEBUG
opt_gcc      := -O2 -DNDEBUG -Werror
# Comparisons are not traced: the inputs have no magic numbers, and tracing took half of the time.
opt_fuzz     := -O2 -g -DTW_DEBUG -fsanitize-coverage=inline-8bit-counters,pc-table \
		-fsanitize=address,undefined -fno-sanitize-recover=all
opt_cover    := -O0 -g -DTW_DEBUG --coverage -DCOVERAGE
opt_arm64    := -O2 -DNDEBUG -Werror $(hard)

warn   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef
# Who links the archive with -Wl,--gc-sections gets the functions alone that the program needs.
sections := -ffunction-sections
common := -std=c11 -D_GNU_SOURCE $(warn) -g1 -fPIC -fvisibility=hidden -Iinclude -I. -pthread -MMD -MP $(opt_$(MODE))
# Callbacks of tests leave most of what they are given.
test_warn := -Wno-unused-parameter
hash := \#
# Static probes for tracers, if their header is installed (mpsc/base/probes.h).
has_probes = $(shell printf '$(hash)include <sys/sdt.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo -DTW_PROBES)
common += $(if $(filter 1,$(PROBES)),$(has_probes))
# The three files on every timer's path find their thread's block by a TLS descriptor (x86-64's GNU2 dialect;
# other targets use descriptors by default). That call preserves all general registers, so these files use
# general registers only.
short_tls := -mtls-dialect=gnu2 -mgeneral-regs-only
tls_sample := extern _Thread_local int x; int f(void); int f(void) { return x; }
short_tls := $(if $(filter release debug gcc,$(MODE)),$(shell echo '$(tls_sample)' | \
	$(CC) $(short_tls) -fPIC -x c -c -o /dev/null - 2>/dev/null && echo $(short_tls)))
links  := $(filter -fsanitize% --coverage,$(opt_$(MODE))) -pthread

ifeq ($(opt_$(MODE)),)
$(error MODE=$(MODE) is not known: release, debug, asan or tsan)
endif

B    := build/$(MODE)
Q    := $(if $(filter 1,$(V)),,@)
say   = $(if $(filter 1,$(V)),,@echo "  $(1)	$@";)

comma   := ,
# Two libraries: the core, and the layers that stand on it. Parts of the core that have no state are in both.
objects   = $(patsubst %.c,$B/%.o,$(shell packaging/sources.sh $(1)))
common_o := $(call objects,common)
short_o  := $(call objects,short)
core_o   := $(sort $(call objects,core) $(short_o) $(common_o))
layers_o := $(call objects,layers)
lib_o    := $(core_o) $(layers_o)
$(foreach o,$(short_o),$(eval flags_$(o:$B/%.o=%) := $(short_tls)))
lib      := $B/libtickwheel.a
layers   := $B/libtickwheel-layers.a
# What a program links that may use both.
archives := $(layers) $(lib)
shared   := $B/libtickwheel.so $B/libtickwheel-layers.so

# An example or bench is a file, or a folder whose files make one program.
example_c    = $(filter-out $(loop_lacks:%=examples/loop_%.c),$(wildcard examples/*.c))
example_bins = $(patsubst examples/%.c,$B/bin/%,$(example_c)) \
               $(patsubst examples/%/,$B/bin/%,$(filter-out examples/cache/ examples/durable/,$(wildcard examples/*/)))

.PHONY: FORCE all help deps demo test stress tsan asan models models-mutants bench pair check-bench check-includes
.PHONY: check-format bench-loop figures format clean
.SECONDARY:
.DEFAULT_GOAL := all

##@ Build and run

all: deps-build ## both libraries, static and shared
	$(again) $(archives) $(shared) MODE=$(MODE)

# The lists come from the lines "##@ HEADING" and "TARGET: ... ## TEXT" of all makefiles.
help: ## this list
	@awk -F ':.*## ' '/^##@ / { printf "%s%s\n", n++ ? "\n" : "", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  make %-22s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## removes build/
	$(Q)rm -rf build

# Says what is missing, and stops. `make demo` and `make test` install it, unless NO_INSTALL=1.
deps-%:
	@CC="$(CC)" CXX="$(CXX)" .ci/deps --check $(subst +, ,$*)

installed-%:
	@CC="$(CC)" CXX="$(CXX)" NO_INSTALL="$(NO_INSTALL)" .ci/deps $(subst +, ,$*)

# Each target first looks for the packages that it needs, then builds in a second make: quietly, on all processors.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif
jobs  = $(if $(findstring j,$(MAKEFLAGS)),,-j$(shell nproc))
again = +$(Q)$(MAKE) --no-print-directory $(if $(filter 1,$(V)),,-s) $(jobs)

# Objects are built again when the compiler or the flags change.
$B/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(common) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(common) $(CFLAGS)' >$@

# ------------------------------------------------------------------ library

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) $(common) $(side) $(flags_$*) $(if $(filter test/%,$*),$(test_warn),$(sections)) $(CFLAGS) \
		-c -o $@ $<

# In these a function that is private to the layers comes from another library (mpsc/base/atomics.h).
$(layers_o) $(common_o): side := -DTW_LAYER
$(lib): $(core_o)
$(layers): $(layers_o)
$(archives):
	$(call say,ar)rm -f $@ && ar qcs $@ $^

$(shared): %.so: %.so.$(SOVERSION)
	@ln -sf $(<F) $@

link_shared = $(CC) $(links) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(filter %.map,$^) \
	-Wl,-z,nodelete -Wl,-z,relro,-z,now,-z,noexecstack -Wl,-z,defs $(CFLAGS) -o $@ $(filter %.o,$^)

$B/libtickwheel.so.$(SOVERSION): $(core_o) packaging/tickwheel.map
	$(call say,ld)$(link_shared)

$B/libtickwheel-layers.so.$(SOVERSION): $(layers_o) $(common_o) packaging/layers.map $B/libtickwheel.so
	$(call say,ld)$(link_shared) -L$B -ltickwheel

# ------------------------------------------------------------------ programs

.SECONDEXPANSION:
program_o = $(patsubst %.c,$B/%.o,$(or $(wildcard $(1)/*.c),$(1).c))

$B/bin/%: $$(call program_o,examples/%) $(archives)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ $(libs_$(*:loop_%=%)) -lm

# A service and callbacks whose names need escapes, for test/examples/metrics.sh.
$B/test/examples/metrics: $B/test/examples/metrics.o $(archives)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^

# Event loops of other libraries: examples/loop_NAME.c is built if library NAME is installed.
libs_libevent = $(shell pkg-config --libs libevent_pthreads 2>/dev/null)
libs_libev    = $(shell printf '$(hash)include <ev.h>\n' | $(CC) -E -x c - >/dev/null 2>&1 && echo -lev)
libs_libuv    = $(shell pkg-config --libs libuv 2>/dev/null)
libs_glib     = $(shell pkg-config --libs glib-2.0 2>/dev/null)
libs_liburing = $(shell pkg-config --libs liburing 2>/dev/null)
flags_examples/loop_glib = $(shell pkg-config --cflags glib-2.0)
loop_names = $(patsubst examples/loop_%.c,%,$(wildcard examples/loop_*.c))
loop_lacks = $(strip $(foreach l,$(loop_names),$(if $(libs_$l),,$l)))

# Libraries to compare with, each only if it is installed: bench/candidate_NAME*.c, and BENCH_HAS_NAME.
bench_peers := libevent libev libuv
upper = $(shell echo $(1) | tr a-z A-Z)
ifneq ($(filter %/bench/bench bench,$(MAKECMDGOALS)),)
bench_has   := $(foreach p,$(bench_peers),$(if $(libs_$p),$p))
bench_libs  := $(foreach p,$(bench_has),$(libs_$p))
bench_lacks := $(filter-out $(bench_has),$(bench_peers))
flags_bench/candidate := $(foreach p,$(bench_has),-DBENCH_HAS_$(call upper,$p))
endif
bench_c := $(filter-out $(foreach p,$(bench_lacks),bench/candidate_$p.c bench/candidate_$p_%.c), \
	$(wildcard bench/*.c))
bench_o := $(bench_c:%.c=$B/%.o)

$B/bench/peers: FORCE
	@mkdir -p $(@D); echo '$(bench_has)' | cmp -s - $@ || echo '$(bench_has)' >$@

$B/bench/candidate.o: $B/bench/peers

$B/bench/bench: $(bench_o) $(archives) $B/bench/peers
	$(if $(bench_lacks),@echo "bench: not found$(comma) and left out: $(bench_lacks)")
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $(bench_o) $(archives) $(bench_libs) -lm

# ------------------------------------------------------------------ to run

demo: installed-build+demo ## an HTTP server under load whose timeouts are tickwheel timers; ends with a verdict
	$(again) $B/bin/server
	$(Q)examples/server/demo.py $B/bin/server

test: installed-build+test ## headers, examples, README, unit, model and service tests; two minutes
	$(again) $(archives) $(shared) $(example_bins) $B/test/unit/run $B/test/package/loaded \
		$B/test/package/plugin.so $B/test/examples/metrics $B/test/contract/answers $B/plain/misuses
	$(again) build/recipes/libtickwheel-layers.a build/recipes/libtickwheel.a MODE=recipes
	$(Q)CC="$(CC)" CXX="$(CXX)" test/lint/headers.sh
	$(Q)CC="$(CC)" CXX="$(CXX)" test/examples/docs.sh $(layers) $(lib) $B
	$(Q)CC="$(CC)" test/examples/recipes.sh build/recipes/libtickwheel-layers.a \
		build/recipes/libtickwheel.a $B
	$(if $(loop_lacks),@echo "examples: not found$(comma) and left out: $(loop_lacks)")
	$(Q)test/examples/run.sh $B/bin
	$(Q)test/examples/metrics.sh $B/bin/server $B/test/examples/metrics
	$(Q)CC="$(CC)" PROBES=$(PROBES) test/package/probes.sh $B/libtickwheel.so
	$(Q)$B/test/package/loaded $B/libtickwheel.so $B/test/package/plugin.so
	$(Q)test/lint/trust.sh
	$(Q)test/contract/comments.sh
	$(Q)test/contract/answers.sh $B/test/contract/answers $B/plain/misuses
	$(again) test-cpp
	$(again) test-cache
	$(Q)$B/test/unit/run --jobs 2 $(TEST)

##@ Bench

bench: deps-build+bench ## figures beside heaps, wheels and event loops; BENCH="--quick" for a first look
	$(again) $B/bench/bench
	$(Q)bench/bench.py $B/bench/bench --out build/bench/results.json $(BENCH)

$B/bench/loop/turns: bench/loop/turns.c $(archives) $B/flags
	@mkdir -p $(@D)
	$(call say,cc)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Iinclude -pthread $(CFLAGS) -o $@ $< $(archives)

bench-loop: deps-build+bench ## what timers add to a turn of an epoll loop: by descriptor, and by the next expiry
	$(again) $B/bench/loop/turns
	$(Q)$B/bench/loop/turns

pair: deps-build+bench+pair ## ratios of this tree to REV, in interleaved pairs, with the gates; REV=c43d86c PAIR=W1,W3
	$(Q)$(if $(REV),,echo "pair: REV=commit is missing" >&2; exit 2;) bench/pair.sh $(REV) $(PAIR)

figures: bench ## docs/figures.md, the table of README.md and docs/bench.svg, from a run of the bench
	$(Q)bench/figures.py build/bench/results.json

check-bench: deps-build+bench ## tests of the bench: options, files, comparison, page; half a minute
	$(again) $B/bench/bench
	$(Q)test/bench/bench.sh $B/bench/bench

# ------------------------------------------------------------------ checks

.PHONY: check check-parts check-full

# Seconds of a stress program in `make check`, and in `make check-full`.
SHORT ?= 3
LONG  ?= 60

# The parts of `make check` run side by side, as many as make has jobs, each in a make of its own (.ci/part).
# They start in this order: long ones first, short ones last. Parts that build in the same folder run one after
# the other, as the lines below say. `make -j1 check` runs all parts one after the other.
parts := check-asan check-static check-includes check-hardened abi test check-compilers models check-tsan \
	check-memcheck check-sandbox check-install check-musl check-man check-clocks check-format check-pairs \
	check-words check-misuse check-functions check-trust check-cache check-durable check-cpp

check_deps := deps-build+test+install+man+musl+models+check+static+abi+clang+memcheck+faults+cache+durable

##@ All checks

check: $(check_deps) ## all checks in a short form, side by side; build/check has the output of each
	$(Q)rm -rf build/check
	$(again) check-parts
	@echo "check: ok"

check-parts: $(parts:%=part-%)

part-%: FORCE
	+$(Q).ci/part $* $(MAKE) --no-print-directory NO_INSTALL=1 $*

# In build/release:
part-check-hardened: part-check-includes
part-abi: part-check-hardened
part-test: part-abi
part-check-install: part-test
part-check-man: part-check-install
part-check-clocks: part-check-man
part-check-cache: part-check-clocks
part-check-durable: part-check-cache
# In build/asan and build/tsan:
part-check-cpp: part-check-asan part-check-tsan
# In build/gcc and build/clang:
part-check-memcheck part-check-sandbox: part-check-compilers

full := check check-memcheck-debug check-tsan-units models-mutants check-planted check-analyzer check-arm64

check-full: $(full) ## make check, and the checks in depth, each for a minute; more than an hour
	$(again) stress SECONDS=$(LONG)
	$(again) tsan SECONDS=$(LONG)
	$(again) fuzz SECONDS=$(LONG)
	$(again) soak SECONDS=$(LONG)
	@echo "check-full: ok"

# Each folder has the rules of its own.
include $(sort $(wildcard test/*/*.mk)) examples/cache/cache.mk examples/durable/durable.mk
include packaging/install.mk

# Only this mode's: parts of `make check` build other modes at the same time.
-include $(shell find $B -name '*.d' 2>/dev/null)
