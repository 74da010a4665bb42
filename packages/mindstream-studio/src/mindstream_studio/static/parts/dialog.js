/** The confirmation dialog: it shows what a change would do, and asks before doing it. */
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { ReadFailure } from "./failure.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{title: string, verb: string, grave?: boolean, preview: () => Promise<any>, act: () => Promise<unknown>}} Change
 *   `preview` returns nodes that show the effect; `act` makes the change and may return a sentence that confirms it
 */

const asked = signal(/** @type {Change | null} */ (null));
/** The confirmation of the last change, shown until the user closes it or another change is requested. */
const done = signal("");

/** Show the effect of a change, and make the change if the user confirms. @param {Change} change */
export function askChange(change) { asked.value = change; done.value = ""; }

export function ChangeDialog() {
  if (asked.value) return html`<${Opened} key=${asked.value} change=${asked.value} />`;
  return html`
    <div role="status" class=${done.value ? "done card row" : ""}>
      ${done.value && html`<span>${done.value}</span><button class="quiet icon" onClick=${() => { done.value = ""; }} aria-label="Close this notice"><${Icon} name="close" /></button>`}
    </div>`;
}

/** @param {{change: Change}} props */
function Opened({ change }) {
  const place = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [seen, see] = useState(/** @type {any} */ (null));
  const [problem, tell] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState(false);
  const leave = () => {
    place.current?.close();
    if (asked.value === change) asked.value = null; // else the user has already asked for the next change
  };
  useEffect(() => {
    place.current?.showModal();
    change.preview().then(see, tell);
    window.addEventListener("hashchange", leave); // the user opens another page, which the question is not about
    return () => window.removeEventListener("hashchange", leave);
  }, [change]);
  /** @param {Event} event */
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const said = await change.act();
      leave();
      done.value = typeof said === "string" ? said : "";
    } catch (error) {
      tell(/** @type {Error} */ (error));
      setBusy(false);
    }
  };
  return html`
    <dialog ref=${place} aria-labelledby="change-title" onClose=${leave}>
      <form onSubmit=${act}>
        <header>
          <h2 id="change-title">${change.title}</h2>
          <button type="button" class="quiet icon" onClick=${leave} aria-label="Close"><${Icon} name="close" /></button>
        </header>
        ${seen ?? (!problem && html`<p class="soft">Checking what this would change …</p>`)}
        ${problem && html`<${ReadFailure} problem=${problem} />`}
        <div class="row">
          <button class=${change.grave ? "grave" : "main"} disabled=${!seen || busy}>${change.verb}</button>
          <button type="button" class="quiet" onClick=${leave}>Leave it</button>
        </div>
      </form>
    </dialog>`;
}
