#!/usr/bin/env bash
# Runs crawl.Storm for `go run ./fleet/faults -fetch`, whose environment it takes: with the address of a router on this
# machine (route), of all nodes (list), or with one name for all (name).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for need in java mvn; do
	command -v "$need" >/dev/null || { echo "storm.sh: there is no $need: nothing is tried"; exit 1; }
done
[[ -e $here/target/javacrawler-1.jar ]] || mvn -q -B -f "$here/pom.xml" package
address=$name
case ${1:-route} in
list) address=$grpc ;;
route)
	address=127.0.0.1:${ROUTE:=7171}
	"$frontier" route -http "127.0.0.1:$((ROUTE + 1))" -grpc "$address" -part "fleet=$nodes" -part-grpc "fleet=http://${grpc//,/,http://}" >"$folder/route.log" 2>&1 &
	;;
esac
router=${!-} # its process, if there is one
java -Xmx200m "-Djdk.net.hosts.file=$hosts" -cp "$here/target/classes:$here/target/lib/*" crawl.Storm "$address" "$proxy" 20 &
java=$!
(while kill -0 $$ 2>/dev/null; do sleep 1; done; kill $java $router) & # this process is ended with SIGKILL
wait $java
exit 1
