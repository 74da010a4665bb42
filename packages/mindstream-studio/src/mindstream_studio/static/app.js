/** The shell: navigation, choice of the user, the page named by the link (or the sign-in), side sheet and dialog. */
import { html, render, useEffect, useRef, useState } from "./html.js";
import { connection, listen, readNewest } from "./events.js";
import { held, request, token, wanted } from "./network.js";
import { PAGES } from "./pages.js";
import { base, go, linkToRecording, page, params, recordings, user, users } from "./state.js";
import { ChangeDialog } from "./parts/dialog.js";
import { ReadFailure } from "./parts/failure.js";
import { Aside } from "./parts/shell.js";
import { SignIn } from "./parts/sign_in.js";
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
  const asks = wanted.value !== "";
  useEffect(() => (asks ? undefined : listen(base.value, user.value)), [base.value, user.value, asks, token.value]);
  useEffect(() => {
    if (!entry && PAGES[0]) go(PAGES[0].name);
    closeSheet();
    main.current?.focus({ preventScroll: true });
  }, [entry]);
  return html`
    <${Aside} />
    <main ref=${main} tabindex="-1" id="main">
      ${connection.value === "lost" && html`<p class="notice lost" role="status">The server cannot be reached. This page continues when the server answers again.</p>`}
      ${asks ? html`<${SignIn} signedIn=${signedIn} />` : entry && html`<${Loaded} entry=${entry} />`}
    </main>
    <${Sheet} />
    <${ChangeDialog} />`;
}

/** Load the names of the users whose minds the server has; the first one is shown by default. */
async function learnUsers() {
  const answer = await request("/api/v1/users");
  if (answer.ok) users.value = (await answer.json()).users;
}

/** Load the list of the shipped recordings, for the pages and for the choice of a user. */
async function learnRecordings() {
  const answer = await request("about.json");
  if (answer.ok) recordings.value = (await answer.json()).recordings;
}

/** Load users and recordings; repeat a request that failed when the server is back. */
const learn = () => Promise.all([learnUsers(), learnRecordings()].map((each) => each.catch(() => {})));

/** Read the newest row of the log before any other request, so that the event stream misses no later row. */
const learnNewest = async () => { if (!base.value) await readNewest("", user.value).catch(() => {}); };

function signedIn() {
  learn().then(learnNewest).finally(() => { wanted.value = ""; });
}

async function begin() {
  const first = PAGES.find((each) => each.name === page.value) ?? PAGES[0];
  if (first) load(first).catch(() => {}); // loaded while users and recordings are read; an error is shown when the page is opened
  const learned = learn();
  if (held || (!params.value.user && !base.value)) await learned; // a link without a user means the first user; a saved file sets the link before its first answer
  const talk = recordings.value.find((each) => each.page === "talk");
  if (!held && talk && !window.location.hash && !users.value.length) window.location.replace(linkToRecording(talk)); // an empty studio begins with a recording
  await learnNewest();
  connection.subscribe((now) => { if (now === "back") learn(); });
  const root = document.getElementById("app");
  if (root) render(html`<${App} />`, root);
}

begin();
