#!/bin/sh
# Compiles the library into build/, and with "test" its tests as well, and runs them.
set -eu
cd "$(dirname "$0")"
JUNIT=${JUNIT:-/usr/share/java/junit4.jar:/usr/share/java/hamcrest-core.jar}
# The programs run for a second or two: not worth a second compiler tier or a second collector thread.
QUICK='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'
export JDK_JAVAC_OPTIONS="-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC"
mkdir -p build/main build/test
find src/main -name '*.java' > build/main.txt
javac -Xlint:all -d build/main @build/main.txt
if [ "${1:-}" = test ]; then
    find src/test -name '*.java' > build/test.txt
    javac -Xlint:all -cp "build/main:$JUNIT" -d build/test @build/test.txt
    classes=$(find src/test -name '*Test.java' | sort | sed 's,^src/test/java/,,; s,/,.,g; s,\.java$,,')
    # shellcheck disable=SC2086
    exec java $QUICK -cp "build/main:build/test:$JUNIT" \
        org.example.spanset.ConsoleRunner $classes
fi
