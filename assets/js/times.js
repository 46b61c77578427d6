// Shows times in the reader's own zone and language. What the page said, in UTC, stays as the title.
const done = new WeakSet();
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const second = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function wake(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-until])")) {
    const time = Date.parse(element.dateTime);
    if (done.has(element) || Number.isNaN(time)) continue;
    done.add(element);
    element.title ||= element.textContent.trim();
    const ofDay = "seconds" in element.dataset ? second : moment;
    // A date without a time is the same everywhere.
    element.textContent = (element.dateTime.includes("T") ? ofDay : day).format(time);
  }
}

wake(document);
document.addEventListener("swapped", ({ detail }) => wake(detail));
