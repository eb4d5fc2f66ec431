#!/bin/sh
# install.sh [ROW...]: puts what the rows need into build/peers, and prints the rows that can be
# played. A row that cannot be played is named on the standard error. Packages of npm have the
# versions of package-lock.json.
set -eu
cd "$(dirname "$0")/../.."
to=$PWD/build/peers from=$PWD/test/peers
mkdir -p "$to"

has() { command -v "$1" >/dev/null 2>&1; }
lack() { echo "peers: $1" >&2; }

packages() {
	has node && has npm || { lack "node or npm was not found"; return 1; }
	cmp -s "$from/package-lock.json" "$to/package-lock.json" && [ -d "$to/node_modules" ] && return
	cp "$from/package.json" "$from/package-lock.json" "$to/"
	(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --silent) >"$to/npm.log" 2>&1 && return
	rm -f "$to/package-lock.json"
	lack "npm could not install the packages: $(tail -n 1 "$to/npm.log")"
	return 1
}

java_classes() {
	has javac && has jar || { lack "no Java compiler was found"; return 1; }
	major=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge 17 ] || { lack "Java 17 is needed, found ${major:-none}"; return 1; }
	[ -e /usr/share/java/netty-common.jar ] || { lack "netty-common.jar was not found"; return 1; }
	[ -e "$to/java/player.jar" ] && [ -z "$(find "$from/java" -newer "$to/java/player.jar" -type f)" ] && return
	rm -rf "$to/java" && mkdir -p "$to/java/boot" "$to/java/player"
	javac -d "$to/java/boot" "$from"/java/boot/peers/*.java
	jar --create --file "$to/java/boot.jar" -C "$to/java/boot" .
	javac -cp "$to/java/boot:/usr/share/java/netty-common.jar" -d "$to/java/player" "$from"/java/player/peers/*.java
	printf 'Premain-Class: peers.Agent\n' >"$to/java/manifest"
	jar --create --file "$to/java/player.jar" --manifest "$to/java/manifest" -C "$to/java/player" .
}

packages || exit 1 # node plays the scripts of all rows
for row in "${@:-all}"; do
	case $row in timers | all) ;; *) echo "$row"; continue ;; esac
	! java_classes || echo timers
	[ "$row" != all ] || printf '%s\n' actions scheduler limiter
done
