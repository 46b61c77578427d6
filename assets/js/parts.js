// The pieces that our scripts build pages from.
export const make = (name, attributes = {}, ...inside) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
};

// A field in its label. Browsers shall not keep what is typed into it.
export const field = (label, attributes = {}) => {
  const name = attributes.rows ? "textarea" : "input";
  const input = make(name, { autocomplete: "off", spellcheck: "false", ...attributes });
  return [make("label", {}, label, input), input];
};

// Asks the gateway, and tells what it answered: status, the headers that matter, body.
export async function asked(address, init) {
  try {
    const answer = await fetch(address, init);
    const told = ["location", "retry-after", "idempotent-replayed", "x-request-id"].filter((name) => answer.headers.has(name));
    const head = told.map((name) => `${name}: ${answer.headers.get(name)}\n`).join("");
    const text = await answer.text();
    let body = text;
    try {
      body = JSON.stringify(JSON.parse(text), null, 2);
    } catch {}
    return `${answer.status}\n${head}\n${body}`;
  } catch (error) {
    return `Nothing was answered: ${error.message}`;
  }
}
