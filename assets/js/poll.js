// Looks every few seconds how something stands, and swaps the part of the page that shows it. It stops when the part says
// that nothing more happens to it, and after half an hour.
const EVERY = 3000;
const LONGEST = 1_800_000;
const until = Date.now() + LONGEST;
const part = document.querySelector("[data-polled]");
const said = document.querySelector("[data-polled-said]");

// What a reader has opened stays so, and so does the focus.
function swap(fresh) {
  const focus = part.contains(document.activeElement) && document.activeElement.id;
  for (const { id } of part.querySelectorAll("details[id][open]")) fresh.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  part.replaceChildren(...fresh.childNodes);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  if (said) said.textContent = part.querySelector("h1")?.textContent ?? "";
  document.dispatchEvent(new CustomEvent("swapped", { detail: part }));
}

async function look() {
  if (document.hidden) return true;
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!answer.ok) return true;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = next.querySelector("[data-polled]");
  if (!fresh) return location.reload();
  if (fresh.dataset.version !== part.dataset.version) {
    part.dataset.version = fresh.dataset.version;
    document.title = next.title;
    swap(fresh);
  }
  return fresh.dataset.polled === "open";
}

async function again() {
  let goesOn = true;
  try {
    goesOn = await look();
  } catch {
    // The next look may succeed.
  }
  if (goesOn && Date.now() < until) setTimeout(again, EVERY);
}

if (part?.dataset.polled === "open") setTimeout(again, EVERY);
