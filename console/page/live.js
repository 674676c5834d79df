// With JavaScript what is marked data-live is fetched anew every two seconds, and the
// token is asked for once: it is kept for this tab alone. It may come behind the # of the
// address, which no server sees.
"use strict";

const key = "frontier-token";
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(key, given);
  history.replaceState(null, "", location.pathname + location.search);
}
for (const field of document.querySelectorAll("[data-token]")) {
  field.value = sessionStorage.getItem(key) ?? "";
  field.closest("form").addEventListener("submit", () => sessionStorage.setItem(key, field.value));
}

// Who has come with the token need not type it.
const enter = document.querySelector("[data-enter]");
if (enter && sessionStorage.getItem(key)) enter.submit();

// refresh replaces what is live, unless somebody is at it.
async function refresh() {
  const address = new URL(location.href);
  address.searchParams.delete("said");
  const answer = await fetch(address, { signal: AbortSignal.timeout(10000) });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
    const busy = old.contains(document.activeElement) || String(getSelection()) && getSelection().containsNode(old, true);
    if (now && !busy && old.innerHTML !== now.innerHTML) old.replaceChildren(...now.childNodes);
  }
}

// say tells once, also who does not see the page, that it does not follow any more.
function say(text) {
  const gone = document.getElementById("gone");
  if (gone.textContent !== text) gone.textContent = text;
}

async function loop() {
  let since = new Date();
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    if (document.hidden) continue;
    try {
      await refresh();
      since = new Date();
      say("");
    } catch {
      say(`The crawl does not answer: the figures are those of ${since.toLocaleTimeString()}.`);
    }
  }
}
// A search that has found nothing so far goes on by itself.
const further = document.querySelector("[data-on]");
if (further) location.replace(further.href);
else if (document.querySelector("[data-live]")) loop();
