// Searches the contents of the documentation: an entry stays when it has every word, in its title, path, inputs, answers or description.
import { field, make } from "./parts.js";

const contents = document.querySelector(".contents");
const entries = [...contents.querySelectorAll("li")];
const [label, wanted] = field("Search the documentation", { type: "search" });
wanted.addEventListener("input", () => {
  const words = wanted.value.toLowerCase().split(/\s+/);
  for (const entry of entries) {
    const text = `${entry.textContent} ${entry.dataset.words}`.toLowerCase();
    entry.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of contents.querySelectorAll("section")) {
    group.hidden = !group.querySelector("li:not([hidden])");
  }
  nothing.hidden = entries.some((entry) => !entry.hidden);
});
const nothing = make("p", { class: "soft", hidden: "", role: "status" }, "Nothing found.");
contents.prepend(label, nothing);
