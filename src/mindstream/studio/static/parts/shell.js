/** The navigation beside each page, whose page it is, and light or dark; the head of a page. */
import { html, useId } from "../html.js";
import { PAGES } from "../pages.js";
import { go, linkTo, page, theme, user, users } from "../state.js";
import { Icon } from "./icons.js";
import { SaidHow } from "./said_how.js";

/** @type {import("../state.js").Theme[]} */
const THEMES = ["system", "light", "dark"];
const THEME_ICONS = { system: "system", light: "sun", dark: "moon" };

export function Aside() {
  return html`
    <div class="aside">
      <span class="brand">mindstream</span>
      <nav class="nav" aria-label="Pages">
        ${PAGES.map(({ name, title, icon }) => html`
          <a href=${linkTo(name)} aria-current=${page.value === name ? "page" : undefined}>
            <${Icon} name=${icon} />${title}
          </a>`)}
      </nav>
      <div class="foot"><${Whose} /><${ThemeSwitch} /></div>
    </div>`;
}

function Whose() {
  const id = useId();
  const names = [...new Set([user.value, ...users.value])];
  return html`
    <label for=${id}><span>Whose mind</span>
      <select id=${id} value=${user.value} onChange=${(/** @type {any} */ event) => go(page.value, { user: event.target.value, seq: "" })}>
        ${names.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
    </label>`;
}

function ThemeSwitch() {
  const now = theme.value;
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] ?? "system";
  const words = now === "system" ? "as the system" : now;
  return html`
    <button class="quiet icon" onClick=${() => { theme.value = next; }} title=${`Colours: ${words}`} aria-label=${`Colours: ${words}. Change`}>
      <${Icon} name=${THEME_ICONS[now]} />
    </button>`;
}

/**
 * The head of a page: its title, right of it how what is shown came about, and a sentence that says what it is for.
 * @param {{title: string, children?: any}} props
 */
export function Head({ title, children }) {
  return html`<header class="head"><h1>${title}</h1><${SaidHow} />${children && html`<p>${children}</p>`}</header>`;
}
