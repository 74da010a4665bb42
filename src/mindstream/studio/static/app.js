/** The shell: navigation, whose it is, the page that the link names, the side sheet and the dialog. */
import { html, render, useEffect, useRef, useState } from "./html.js";
import { connection, listen, readNewest } from "./events.js";
import { ask } from "./api.js";
import { request } from "./network.js";
import { PAGES } from "./pages.js";
import { base, go, page, recordings, user, users } from "./state.js";
import { ChangeDialog } from "./parts/dialog.js";
import { ReadFailure } from "./parts/failure.js";
import { Aside } from "./parts/shell.js";
import { Sheet, closeSheet } from "./parts/sheet.js";

/** @type {Map<string, Promise<{Page: () => any}>>} */
const loaded = new Map();

/** @param {import("./pages.js").PageEntry} entry */
function load(entry) {
  const found = loaded.get(entry.name) ?? entry.load();
  loaded.set(entry.name, found);
  found.catch(() => loaded.delete(entry.name));
  return found;
}

/** @param {{entry: import("./pages.js").PageEntry}} props */
function Loaded({ entry }) {
  const [made, keep] = useState(/** @type {{name: string, Page?: () => any, error?: Error} | null} */ (null));
  const ready = made?.name === entry.name ? made : null;
  useEffect(() => {
    document.title = `${entry.title} · mindstream`;
    load(entry).then(({ Page }) => keep({ name: entry.name, Page }), (error) => keep({ name: entry.name, error }));
  }, [entry, connection.value === "live"]);
  if (ready?.Page) return html`<${ready.Page} key=${entry.name} />`;
  return ready?.error ? html`<${ReadFailure} problem=${ready.error} />` : null;
}

function App() {
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const entry = PAGES.find((each) => each.name === page.value);
  useEffect(() => listen(base.value, user.value), [base.value, user.value]);
  useEffect(() => {
    if (!entry && PAGES[0]) go(PAGES[0].name);
    closeSheet();
    main.current?.focus({ preventScroll: true });
  }, [entry]);
  return html`
    <${Aside} />
    <main ref=${main} tabindex="-1" id="main">
      ${connection.value === "lost" && html`<p class="notice lost" role="status">The server does not answer. This page goes on by itself as soon as it does.</p>`}
      ${entry && html`<${Loaded} entry=${entry} />`}
    </main>
    <${Sheet} />
    <${ChangeDialog} />`;
}

/** Ask whose minds there are, and what is recorded; the first page then knows whose it is. */
async function learn() {
  const found = /** @type {{users: string[]}} */ (await ask({ path: "/users" }));
  users.value = found.users;
  const newest = base.value ? null : readNewest("", user.value).catch(() => {});
  const about = await (await request("about.json")).json();
  await newest;
  if (!about.recorded) return;
  const told = await (await request("/recorded/api/v1/recordings")).json();
  recordings.value = told.recordings;
}

async function begin() {
  await learn().catch(() => {}); // what could not be learned is asked again when the server is there
  connection.subscribe((now) => { if (now === "back") learn().catch(() => {}); });
  const root = document.getElementById("app");
  if (root) render(html`<${App} />`, root);
}

begin();
