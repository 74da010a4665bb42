/** The placeholder of an empty page: it says what to do, and offers a recording of the page. */
import { html } from "../html.js";
import { base, linkToRecording, page, recordings, user } from "../state.js";

/** @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  const offered = recordings.value.filter((each) => each.page === page.value && !(base.value && each.user === user.value));
  return html`
    <section class="empty">
      <h2>${title}</h2>
      ${children}
      ${offered.length > 0 && html`<p class="soft">Or look at a recording:</p>`}
      ${offered.map((one) => html`<a href=${linkToRecording(one)}>${one.title}</a>`)}
    </section>`;
}
