/** Light and dark: as the system says, or as the user has chosen. */

const KEY = "grove-theme";
const CHOICES = ["system", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Announces changes: `change`. */
export const theme = new EventTarget();

/** The choice: `system`, `light` or `dark`. */
export function chosenTheme() {
  const choice = remembered();
  return CHOICES.includes(choice) ? choice : "system";
}

/** Whether dark colours are shown. */
export function isDark() {
  const choice = chosenTheme();
  return choice === "system" ? dark.matches : choice === "dark";
}

/** Shows the remembered choice. */
export function startTheme() {
  show();
  dark.addEventListener("change", show);
}

/** Goes on to the next choice. */
export function nextTheme() {
  const next = CHOICES[(CHOICES.indexOf(chosenTheme()) + 1) % CHOICES.length];
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage is off: the choice lasts as long as the page.
    transient = next;
  }
  show();
}

let transient = "";

function remembered() {
  try {
    return transient || localStorage.getItem(KEY);
  } catch {
    return transient;
  }
}

function show() {
  const choice = chosenTheme();
  if (choice === "system") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = choice;
  }
  theme.dispatchEvent(new Event("change"));
}
