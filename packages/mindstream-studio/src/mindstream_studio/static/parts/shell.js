/** The navigation beside each page, the choice of user and theme, and the head of a page. */
import { html, useId } from "../html.js";
import { held, token, useToken, wanted } from "../network.js";
import { PAGES } from "../pages.js";
import { base, go, linkToPage, linkToRecording, page, recordings, theme, user, users } from "../state.js";
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
          <a href=${linkToPage(name)} aria-current=${page.value === name ? "page" : undefined}>
            <${Icon} name=${icon} />${title}
          </a>`)}
      </nav>
      <div class="foot">${held ? html`<p class="small soft words">of ${user.value}’s mind</p>` : !wanted.value && html`<${Whose} />`}<${ThemeSwitch} />${token.value && !wanted.value && html`<button class="link small" onClick=${signOut}>Sign out</button>`}</div>
    </div>`;
}

/** Sign out: forget the token, so that the shell asks for another one. */
function signOut() {
  useToken("");
  window.location.reload();
}

const RECORDED = "recorded:";

/** The choice of the user whose mind is shown, or of a recording. */
function Whose() {
  const id = useId();
  const here = [...new Set([...(base.value ? [] : [user.value]), ...users.value])];
  const recorded = [...new Set(recordings.value.map((each) => each.user).filter(Boolean))];
  const now = base.value ? RECORDED + user.value : user.value;
  /** @param {any} event */
  const choose = ({ target: { value } }) => {
    const of = value.startsWith(RECORDED) ? { user: value.slice(RECORDED.length), from: "recorded" } : { user: value, from: "" };
    go(page.value, { ...of, seq: "" });
  };
  /** @param {string} prefix @param {string} name */
  const option = (prefix, name) => html`<option value=${prefix + name} selected=${prefix + name === now}>${name}${prefix && " (recorded)"}</option>`;
  return html`
    <label for=${id}><span>Whose mind</span>
      <select id=${id} value=${now} onChange=${choose}>
        ${recorded.length ? html`<optgroup label="minds on this server">${here.map((name) => option("", name))}</optgroup>` : here.map((name) => option("", name))}
        ${recorded.length > 0 && html`<optgroup label="shipped recordings (read-only)">${recorded.map((name) => option(RECORDED, name))}</optgroup>`}
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
 * The head of a page: its title, beside it where its content comes from, and a sentence about its purpose.
 * @param {{title: string, children?: any}} props
 */
export function Head({ title, children }) {
  const recorded = base.value ? undefined : recordings.value.find((each) => each.page === page.value);
  return html`
    <header class="head">
      <h1>${title}</h1><${SaidHow} />
      ${children && html`<p>${children}</p>`}
      ${recorded && html`<p class="small"><a href=${linkToRecording(recorded)}>Look at a recording</a></p>`}
    </header>`;
}
