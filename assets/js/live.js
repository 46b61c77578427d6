// Swaps the part of a page that lives when a server-sent event says that it would look different. Without events it looks
// now and then; in the end it shows a link.
const EVERY = 5000;
const LONGEST = 1_800_000;
const [live, part, said] = ["live", "live-part", "live-said"].map((name) => document.querySelector(`[data-${name}]`));
const pause = (time) => new Promise((done) => setTimeout(done, time));
let source, timer, wanted, busy;

function stop() {
  source.close();
  clearInterval(timer);
}

// Nobody shall lose what is being typed.
const typed = () =>
  [...part.querySelectorAll("input:not([type=radio], [type=checkbox]), textarea, select")].some(
    (field) => field === document.activeElement || field.value !== (field.defaultValue ?? field.value),
  );

// What a visitor has opened or chosen stays so, and so does the focus.
function swap(fresh) {
  const focus = part.contains(document.activeElement) && document.activeElement.id;
  for (const { id, open } of part.querySelectorAll("details[id][open], input[id]:checked")) {
    fresh.querySelector(`#${CSS.escape(id)}`)?.setAttribute(open ? "open" : "checked", "");
  }
  part.replaceChildren(...fresh.childNodes);
  part.dataset.version = fresh.dataset.version;
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  const headline = part.querySelector("[data-live-headline]") ?? part.querySelector("h1");
  if (said && headline) said.textContent = headline.textContent;
  document.dispatchEvent(new CustomEvent("swapped", { detail: part }));
}

async function load() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
  if (answer.status === 429 || answer.status >= 500) throw answer;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = next.querySelector("[data-live-part]");
  if (!fresh) return location.reload();
  if (fresh.dataset.version !== part.dataset.version) {
    if (typed()) return update();
    swap(fresh);
    document.title = next.title;
  }
  if (!next.querySelector("[data-live]")) stop();
}

async function update() {
  wanted = true;
  if (busy) return;
  busy = true;
  while (wanted) {
    while (typed()) await pause(1000);
    wanted = false;
    try {
      await load();
    } catch {
      wanted = true;
      await pause(EVERY);
    }
  }
  busy = false;
}

function look() {
  const until = Date.now() + LONGEST;
  timer = setInterval(() => {
    if (Date.now() < until) return document.hidden || update();
    stop();
    for (const link of document.querySelectorAll("[data-live-stopped]")) link.hidden = false;
  }, EVERY);
}

if (live && part) {
  source = new EventSource(live.dataset.live);
  source.onerror = () => source.readyState === EventSource.CLOSED && look();
  source.addEventListener("change", ({ data }) => data === part.dataset.version || update());
  source.addEventListener("end", ({ data }) => {
    stop();
    if (data === "time") look();
  });
}
