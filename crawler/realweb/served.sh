# This file crawls from a frontier that is served, by clients from elsewhere, and kills the
# server and the clients. It is part of run, whose variables and functions it uses.

# serve_frontier starts the server, on the same port each time, or again after a kill.
serve_frontier() {
	"${server_words[@]}" -dir state "${listen[@]}" "${crawl[@]}" >>serve.out 2>&1 </dev/null &
	frontier=$!
}

# prepare chooses the port and the seeds, and starts the server.
prepare() {
	local site
	RANDOM=$seed
	port=$((20000 + RANDOM % 5000)) # below the ports that systems give out
	[[ $mode != scrapy ]] || port=$((port + 5000)) # the other mode may run beside it
	say "kills $kills, seed $seed (repeat with -kills $kills -seed $seed)"
	seeds=()
	for site in "${sites[@]}"; do seeds+=("http://$site/"); done
	listen=(-grpc "127.0.0.1:$port" -http 127.0.0.1:0)
	[[ $mode != scrapy ]] || listen=(-grpc off -http "127.0.0.1:$port")
	serve_frontier
	began=$(date +%s%N)
}

# begun waits for the first request.
begun() { # process that makes it
	until [[ -s crawl.jsonl ]] && grep -q '"req"' crawl.jsonl; do
		if ! kill -0 "$1" 2>/dev/null || ((SECONDS >= 60)); then
			cat serve.out crawl.out
			fail "the crawl does not begin"
			return 1
		fi
		sleep 0.1
	done
}

# pause_before_kill waits for a random time. The kills are spread over the first minute.
pause_before_kill() {
	local window=$((50000 / (kills + 1))) ms
	ms=$(((RANDOM * 32768 + RANDOM) % window + window / 2))
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# kill_frontier kills the server, and starts it again.
kill_frontier() { # which kill it is
	if ! kill -9 "$frontier" 2>/dev/null; then
		frontier=
		tail -n 20 serve.out
		fail "the server ended before kill $1"
		return 1
	fi
	wait "$frontier" 2>/dev/null || true
	serve_frontier
}

# end_frontier stops the server, which must end well.
end_frontier() {
	local status=0
	kill "$frontier" && wait "$frontier" || status=$?
	frontier=
	((status == 0)) || { tail -n 20 serve.out; fail "the server ended with status $status"; }
}

# served lets a crawler in Java crawl from a server that is killed.
served() {
	local i
	prepare
	java -cp "$java/target/classes:$java/target/lib/*" crawl.Crawl -frontier "127.0.0.1:$port" -proxy "$addr" \
		-hosts "$(comma "${scope[@]}")" -agent realweb-test/1.0 -pause 400 -hold 15 \
		-delay "$slow=$slow_delay" -block "$blocked=$blocked_for" -limit "$limited=$limit" "${seeds[@]}" >crawl.out 2>&1 </dev/null &
	crawling=$!
	begun "$crawling" || { crawling=; return; } # what is to survive the kills is set by then
	for ((i = 1; i <= kills; i++)); do
		pause_before_kill
		kill_frontier "$i" || return
	done
	finish
	end_frontier
	say "$(tail -n 1 crawl.out)"
}

# walk starts one of the processes of Scrapy.
walk() { # which
	http_proxy="http://$addr" "$work/venv/bin/python" "$top/clients/python/tests/walk.py" "http://127.0.0.1:$port" "$(comma "${scope[@]}")" "${seeds[@]}" \
		>>"crawl.$1.out" 2>&1 </dev/null &
	walkers[$1]=$!
}

# scrapied lets three processes of Scrapy share a crawl. They and the server are killed in turn.
scrapied() {
	local i n status
	prepare
	for n in 0 1 2; do walk "$n"; done
	begun "${walkers[0]}" || return
	for ((i = 1; i <= kills; i++)); do
		pause_before_kill
		if ((i % 2 == 0)); then
			kill_frontier "$i" || return
			continue
		fi
		n=$((i / 2 % 3))
		if ! kill -9 "${walkers[n]}" 2>/dev/null; then
			tail -n 20 "crawl.$n.out"
			fail "a process of Scrapy ended before kill $i"
			return
		fi
		wait "${walkers[n]}" 2>/dev/null || true
		walk "$n"
	done
	for n in 0 1 2; do
		while kill -0 "${walkers[n]}" 2>/dev/null; do
			if ((SECONDS >= 600)); then
				kill -9 "${walkers[n]}"
				fail "the crawl did not end within 10 minutes"
			fi
			sleep 0.2
		done
		status=0
		wait "${walkers[n]}" 2>/dev/null || status=$?
		((status == 0)) || { tail -n 20 "crawl.$n.out"; fail "a process of Scrapy ended with status $status"; }
		say "process $n: $(tail -n 1 "crawl.$n.out")"
	done
	walkers=()
	end_frontier
}

# asked_again sees that no page was asked for again but what was in the crawlers' hands at a kill.
asked_again() { # how many they can have had in hand
	local again
	again=$(jq -r 'select(.kind == "req" and .path != "/robots.txt") | .host + .path' crawl.jsonl | sort | uniq -d | wc -l)
	say "asked for again $again"
	((again <= $1 * kills)) || fail "more URLs were asked for again than the crawlers can have had in hand"
}

# settled sees that what was set of three hosts held through all kills.
settled() {
	local first pages
	judge -host "$slow" -exempt-robots -delay "${slow_delay}s" -min-requests 10
	first=$(jq -s --arg host "$blocked" --argjson began "$began" \
		'[.[] | select(.kind == "req" and .host == $host) | .t - $began] | min / 1e9' crawl.jsonl)
	say "$blocked was first asked after $first s, blocked for $blocked_for s"
	jq -en "$first >= $blocked_for - 1" >/dev/null || fail "a block was not kept"
	pages=$(jq -r --arg host "$limited" 'select(.kind == "req" and .host == $host and .path != "/robots.txt") | .path' crawl.jsonl | sort -u | wc -l)
	say "$limited was asked for $pages pages, its limit is $limit"
	((pages == limit)) || fail "a limit was not kept"
}
