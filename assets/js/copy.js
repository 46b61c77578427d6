// Buttons that copy the text in their `data-copy`. They are hidden where there are no scripts.
const SAID_FOR = 2_000;
const said = document.createElement("p");
said.setAttribute("role", "status");
said.className = "unseen";
document.body.append(said);

// Where the clipboard may not be written to, a selection can be copied.
function select(text, button) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  field.readOnly = true;
  button.after(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  button.focus({ preventScroll: true });
  return copied;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return select(text, button);
  }
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy]");
  if (!button || "said" in button.dataset) return;
  const text = (await copy(button.dataset.copy, button)) ? "Copied" : "Not copied";
  const inside = [...button.childNodes];
  button.dataset.said = "";
  button.replaceChildren(text);
  said.textContent = text;
  setTimeout(() => {
    delete button.dataset.said;
    button.replaceChildren(...inside);
    said.textContent = "";
  }, SAID_FOR);
});

export function wake(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
}

wake(document);
document.addEventListener("swapped", ({ detail }) => wake(detail));
