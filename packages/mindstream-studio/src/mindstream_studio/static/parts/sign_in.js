/** The sign-in page: asks for the token that the server requires, and says why. */
import { html, useState } from "../html.js";
import { request, useToken, wanted } from "../network.js";

/** @type {Record<"none" | "refused" | "another", string>} */
const WHY = {
  none: "This server requires a token. It accepts requests without one only from its own machine, if at all.",
  refused: "The server refused this token: it is mistyped, expired or revoked.",
  another: "Enter the token to use from now on.",
};

/** @param {{signedIn: () => void}} props `signedIn`: called when the server has accepted a token */
export function SignIn({ signedIn }) {
  const [text, type] = useState("");
  const [problem, tell] = useState("");
  /** @param {Event} event */
  const enter = async (event) => {
    event.preventDefault();
    useToken(text.trim());
    tell("");
    try {
      const answer = await request("/api/v1/users");
      if (answer.ok) return signedIn();
      if (answer.status !== 401) tell((await answer.json()).detail);
    } catch {
      tell("The server does not answer.");
    }
  };
  return html`
    <section class="empty" aria-labelledby="sign-in">
      <h1 id="sign-in">Sign in</h1>
      <p role="alert">${problem || WHY[wanted.value || "none"]}</p>
      <form class="stack" onSubmit=${enter}>
        <label><span>Token</span>
          <input type="password" autocomplete="off" value=${text} maxlength="10000" onInput=${(/** @type {any} */ event) => type(event.target.value)} />
        </label>
        <div><button class="main" disabled=${!text.trim()}>Sign in</button></div>
      </form>
      <p class="soft small">The operator of the server creates tokens with <code>mindstream token new</code>. This page stores the token until its tab is closed, and puts it in no link.</p>
    </section>`;
}
