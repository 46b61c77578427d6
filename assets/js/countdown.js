// Shows the time that is left until `data-until`, by the server's clock, which `data-now` told when the page was made.
const two = (number) => String(number).padStart(2, "0");

function show(element, ahead) {
  if (!element.isConnected) return;
  const left = Math.max(0, Date.parse(element.dataset.until) - Date.now() - ahead);
  const seconds = Math.ceil(left / 1_000);
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor(seconds / 60) % 60;
  element.textContent = `${hours > 0 ? `${hours}:` : ""}${two(minutes)}:${two(seconds % 60)}`;
  if (left > 0) setTimeout(show, left % 1_000 || 1_000, element, ahead);
}

export function wake(root) {
  for (const element of root.querySelectorAll("time[data-until]")) {
    const now = Date.parse(element.dataset.now);
    show(element, Number.isNaN(now) ? 0 : now - Date.now());
  }
}

wake(document);
document.addEventListener("swapped", ({ detail }) => wake(detail));
