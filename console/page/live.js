// With JavaScript what is marked data-live is fetched anew every two seconds. The token may come
// behind the # of the address, which no server sees; it is given to the page once, for a cookie.
"use strict";

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.querySelector("[data-enter]");
  const token = document.querySelector("[data-token]");
  if (form && token) { // the page asks for it
    token.value = given;
    form.submit();
  } else if (document.querySelector("[data-sign-in]")) { // it was not entered before
    enter();
  }
}

// enter signs in, and shows the page as it is then.
async function enter() {
  const page = document.querySelector("[data-sign-in]").href;
  const answer = await fetch(page, { method: "POST", body: new URLSearchParams({ token: given, back: "enter" }) });
  location.replace(answer.ok ? location.href : page);
}

// refresh replaces what is live, unless somebody is at it.
async function refresh() {
  const address = new URL(location.href);
  address.searchParams.delete("said");
  const answer = await fetch(address, { signal: AbortSignal.timeout(10000) });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
    const busy = old.contains(document.activeElement) || old.querySelector(".hit:hover, details[open]") || String(getSelection()) && getSelection().containsNode(old, true);
    if (now && !busy && old.innerHTML !== now.innerHTML) old.replaceChildren(...now.childNodes);
  }
  const state = fresh.querySelector(".hero");
  if (state) document.querySelector(".hero").className = state.className;
  document.title = fresh.title;
}

// say tells once, also who does not see the page, that it does not follow any more.
function say(text) {
  const gone = document.getElementById("gone");
  if (gone.textContent !== text) gone.textContent = text;
}

// over tells whether the crawl has ended, so that there is nothing more to follow.
const over = () => document.querySelector(".hero.ended") !== null;

async function loop() {
  let since = new Date();
  while (!over()) {
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

// What is pointed at in the chart is said below it.
const readout = document.querySelector("[data-readout]");
readout?.parentElement.addEventListener("pointermove", (e) => {
  readout.textContent = e.target.closest?.(".hit")?.querySelector("title").textContent ?? "";
});
