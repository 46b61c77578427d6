// Searches as one types: asks the server for the page that the form leads to, and swaps in its results. The form works
// without this. What was found is said to those who hear the page.
const WAIT = 250;
const AGAIN = 2000;
const form = document.querySelector("form[data-filter]");
const [part, said] = ["part", "said"].map((name) => document.querySelector(`[data-filter-${name}]`));
let timer, asking, shown;

function address() {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) fields.set(name, value.trim());
  return fields.size ? `${form.action}?${fields}` : form.action;
}

async function search() {
  const wanted = address();
  if (wanted === shown) return;
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  try {
    const answer = await fetch(wanted, { headers: { accept: "text/html" }, signal });
    if (answer.status === 429 || answer.status >= 500) throw answer;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = next.querySelector("[data-filter-part]");
    if (!fresh || signal.aborted) return;
    part.replaceChildren(...fresh.childNodes);
    said.textContent = fresh.dataset.said;
    document.title = next.title;
    history.replaceState(null, "", wanted);
    shown = wanted;
  } catch {
    if (!signal.aborted) later(AGAIN);
  }
}

function later(time) {
  clearTimeout(timer);
  timer = setTimeout(search, time);
}

if (form && part && said) {
  shown = address();
  form.addEventListener("input", () => later(WAIT));
}
