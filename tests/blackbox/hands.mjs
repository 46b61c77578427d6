// Two ways to use a page: by `keyboard` alone, and by `pointer`. Both open what is folded around a field or a button first,
// fill in fields by their names, and press things.
import { wrong } from "./browser.mjs";

const PRESSES = 80;

// The focus is in a group of radio buttons when it is on any of them.
const hasFocus = (element) => {
  const { activeElement } = document;
  return activeElement === element || (element.type === "radio" && activeElement.name === element.name);
};

// A field in a label may let the label show it.
const showsFocus = () => {
  const { activeElement } = document;
  const around = [activeElement, activeElement.closest("label")].filter(Boolean);
  return around.some((element) => getComputedStyle(element).outlineStyle !== "none");
};

// Goes to an element by the tabulator key, and sees that one can see where one is.
async function tabTo(page, wanted) {
  for (let presses = 0; presses < PRESSES; presses += 1) {
    if (await wanted.evaluate(hasFocus)) {
      if (!(await page.evaluate(showsFocus))) wrong.push(`${await page.title()}: nothing shows that ${wanted} has the focus`);
      return;
    }
    await page.keyboard.press("Tab");
  }
  throw new Error(`${await page.title()}: the keyboard does not lead to ${wanted}`);
}

const hand = (touch, type) => {
  // The first that the selector finds, with everything open that is folded around it.
  const unfold = async (page, selector) => {
    const wanted = page.locator(selector).first();
    const folds = wanted.locator("xpath=ancestor::details[not(@open)]/summary");
    while ((await folds.count()) > 0) await touch(page, folds.first());
    return wanted;
  };
  const made = {
    unfold,
    async press(page, selector) {
      await touch(page, await unfold(page, selector));
    },
    // Of the form that `within` names.
    async fill(page, fields, within = "form[method=post]") {
      for (const [name, value] of Object.entries(fields)) {
        await type(page, await unfold(page, `${within} [name=${name}]`), value);
      }
    },
    async send(page, fields, within = "form[method=post]", button = "button:not([name])") {
      await made.fill(page, fields, within);
      await made.press(page, `${within} ${button}`);
    },
  };
  return made;
};

const chosen = (page, name) => page.locator(`[name=${name}]:checked`).inputValue();

export const keyboard = hand(
  async (page, wanted) => {
    await tabTo(page, wanted);
    await page.keyboard.press("Enter");
  },
  async (page, wanted, value) => {
    await tabTo(page, wanted);
    const { name, type } = await wanted.evaluate(({ name, type }) => ({ name, type }));
    if (type === "radio") {
      for (let presses = 0; (await chosen(page, name)) !== value; presses += 1) {
        if (presses > PRESSES) throw new Error(`${await page.title()}: ${name} has no ${value}`);
        await page.keyboard.press("ArrowDown");
      }
      return;
    }
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type(value);
  },
);

export const pointer = hand(
  (page, wanted) => wanted.click(),
  async (page, wanted, value) => {
    const { name, type } = await wanted.evaluate(({ name, type }) => ({ name, type }));
    if (type === "radio") await page.locator(`[type=radio][name=${name}][value="${value}"]`).check();
    else await wanted.fill(value);
  },
);
