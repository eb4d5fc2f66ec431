# What is built, and how it is loaded.

# A plugin that contains the static library, and a program that loads it, and the shared library, at run time.
$B/test/package/plugin.so: $B/test/package/plugin.o $(archives)
	$(call say,ld)$(CC) $(links) -shared $(CFLAGS) -o $@ $^

$B/test/package/loaded: $B/test/package/loaded.o
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -ldl

.PHONY: check-hardened abi abi-accept amalgamation check-amalgamation

##@ The built library

check-hardened: deps-build+abi ## the shared library is hardened and reads no environment; the static one is lean
	$(again) $(shared) $(archives)
	$(Q)test/package/hardened.sh $B/libtickwheel.so $(lib)
	$(Q)test/package/hardened.sh $B/libtickwheel-layers.so $(layers)
	$(Q)CC="$(CC)" test/package/lean.sh $(lib)

abi: deps-build+abi ## exported symbols and public structs equal test/package/abi*.golden
	$(again) $(shared)
	$(Q)CC="$(CC)" test/package/abi.sh $B/libtickwheel.so
	$(Q)CC="$(CC)" test/package/abi.sh $B/libtickwheel-layers.so

abi-accept: deps-build+abi ## writes the present symbols and structs to test/package/abi*.golden
	$(again) $(shared)
	$(Q)CC="$(CC)" test/package/abi.sh --accept $B/libtickwheel.so
	$(Q)CC="$(CC)" test/package/abi.sh --accept $B/libtickwheel-layers.so

##@ The core as one file

core_c := $(core_o:$B/%.o=%.c)

amalgamation: deps-amalgamation ## the core as tickwheel.c and tickwheel.h, in build/amalgamation; they compile
	$(Q)packaging/amalgamate.py build/amalgamation $(core_c)
	$(Q)$(CC) -std=c11 -fsyntax-only build/amalgamation/tickwheel.c

check-amalgamation: deps-build+test+clang+amalgamation ## gcc and clang compile it, and the unit tests pass on it
	$(again) amalgamation $(test_o) $(layers)
	$(Q)test/package/amalgamation.sh build/amalgamation $(addprefix -Wl$(comma)--wrap=,$(wrapped)) \
		$(test_o) $(layers)
