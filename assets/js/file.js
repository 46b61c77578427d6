// Files that are written while they are sent: shows how far one has come, and says when it broke off. Without scripts its link
// is a plain download.
const numbers = new Intl.NumberFormat("en-US");

function ends(bytes) {
  let found = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) found += 1;
  return found;
}

async function read(link, tell) {
  const answer = await fetch(link.href);
  // Somebody who is signed out is led to the entrance.
  if (!answer.ok || answer.redirected) return location.assign(link.href);
  const reader = answer.body.getReader();
  const parts = [];
  // In front of the lines stands one with the names of the columns.
  let come = -1;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    come += ends(next.value);
    tell(come);
  }
  const made = document.createElement("a");
  made.href = URL.createObjectURL(new Blob(parts, { type: answer.headers.get("content-type") }));
  made.download = answer.headers.get("content-disposition").match(/filename="(.+)"/)[1];
  made.click();
  setTimeout(() => URL.revokeObjectURL(made.href), 60_000);
  return come;
}

for (const link of document.querySelectorAll("a[data-file]")) {
  const said = document.createElement("p");
  said.role = "status";
  said.className = "small soft";
  link.closest("p").after(said);
  const of = link.dataset.file ? ` of ${numbers.format(link.dataset.file)}` : "";
  let reading = false;
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    if (reading) return;
    reading = true;
    let come = 0;
    try {
      const all = await read(link, (now) => {
        come = now;
        said.textContent = `${numbers.format(now)}${of} lines so far`;
      });
      if (all !== undefined) said.textContent = `${numbers.format(all)} lines were downloaded.`;
    } catch {
      said.textContent = `The file broke off after ${numbers.format(come)} lines. Try it again.`;
    }
    reading = false;
  });
}
