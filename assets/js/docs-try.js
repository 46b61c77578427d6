// Tries an operation with the reader's own credentials. They are read from their fields when a request is sent, go to
// this gateway only, and are kept nowhere.
import { asked, field, make } from "./parts.js";

const credentials = [...document.querySelectorAll(".credential")].map((row) => {
  const [label, input] = field(row.dataset.prefix ? "Token" : row.dataset.header, { class: "secret" });
  return { ...row.dataset, label, input };
});
if (credentials.length > 0) {
  const told = make("p", { class: "soft" }, "What you fill in stays in this page. It is gone when you leave or reload it.");
  const box = make("fieldset", { class: "try" }, make("legend", {}, "To try operations here"));
  box.append(...credentials.map(({ label }) => label), told);
  document.querySelector("#credentials").nextElementSibling.nextElementSibling.after(box);
}

function request(operation, inputs, body) {
  let path = operation.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const { place, name, input } of inputs) {
    const value = input.value.trim();
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value && place === "query") query.set(name, value);
    else if (value) headers[name] = value;
  }
  if ("key" in operation.dataset) {
    for (const { header, prefix, input } of credentials) headers[header] = prefix + input.value.trim().replace(prefix, "");
  }
  if (body) headers["Content-Type"] = "application/json";
  const init = { method: operation.dataset.method, headers, body: body?.value, credentials: "omit", cache: "no-store" };
  return [query.size > 0 ? `${path}?${query}` : path, init];
}

for (const operation of document.querySelectorAll(".operation")) {
  const form = make("form", { class: "try" });
  const inputs = [...operation.querySelectorAll("tr[data-in]")].flatMap(({ dataset }) => {
    if (dataset.in === "body") return [];
    const [label, input] = field(dataset.name, { placeholder: dataset.example, ...(dataset.in === "path" && { required: "" }) });
    form.append(label);
    return [{ place: dataset.in, name: dataset.name, input }];
  });
  const example = operation.querySelector(".request");
  const [label, body] = example ? field("Body", { rows: example.textContent.split("\n").length + 1 }) : [];
  if (body) {
    body.value = example.textContent;
    form.append(label);
  }
  const output = make("pre", { tabindex: "0", "aria-live": "polite", hidden: "" });
  form.append(make("button", { class: "button" }, "spends" in operation.dataset ? "Send: this moves money" : "Send"), output);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.hidden = false;
    output.textContent = "Asking…";
    output.textContent = await asked(...request(operation, inputs, body));
  });
  operation.lastElementChild.append(make("details", {}, make("summary", {}, "Try it"), form));
}
